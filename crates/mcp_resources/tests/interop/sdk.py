"""Python's `mcp` against the server `notes`: does what the test asks of every client and prints what came, as JSON.

usage: python sdk.py ERA DIRECTORY (URL | PROGRAM ARGUMENT…)     ERA is `legacy` or `modern`
"""

import asyncio
import json
import pathlib
import sys
import warnings

from mcp import MCPError
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import ResourceTemplateReference, ResourceUpdatedNotification

era, directory, *target = sys.argv[1:]
# The newer revision is found out by asking the server what it speaks.
mode = "legacy" if era == "legacy" else "auto"
updated = asyncio.Queue()


async def on_message(message):
    if isinstance(message, ResourceUpdatedNotification):
        updated.put_nowait(message.params.uri)


async def pages(list_page, entries):
    """All entries of a list, page by page, and the number of pages."""
    found, count, cursor = [], 0, None
    while True:
        page = await list_page(cursor=cursor)
        found, count, cursor = found + entries(page), count + 1, page.next_cursor
        if cursor is None:
            return found, count


async def change(client):
    """Subscribes to a file, changes it, and waits until that is told."""
    uri, file = "notes://todo.md", pathlib.Path(directory, "todo.md")
    if era == "legacy":
        await client.subscribe_resource(uri)
        file.write_text("# Changed\n")
        return str(await updated.get())
    async with client.listen(resource_subscriptions=[uri]) as subscription:
        file.write_text("# Changed\n")
        async for event in subscription:
            return str(event.uri)


async def main():
    url = len(target) == 1 and target[0]
    server = url or StdioServerParameters(command=target[0], args=target[1:])
    async with Client(server, mode=mode, message_handler=on_message) as client:
        resources, count = await pages(client.list_resources, lambda page: page.resources)
        templates, _ = await pages(client.list_resource_templates, lambda page: page.resource_templates)

        async def read(uri):
            return (await client.read_resource(uri)).contents[0].text

        try:
            error = await read("notes://none.md")
        except MCPError as refused:
            error = {"code": refused.error.code, "data": refused.error.data}
        reference = ResourceTemplateReference(type="ref/resource", uri="notes://{file}/outline")
        completed = await client.complete(reference, {"name": "file", "value": "t"})
        print(json.dumps({
            "revision": client.protocol_version,
            "server": client.server_info.name,
            "resources": len(resources),
            "pages": count,
            "first": str(resources[0].uri),
            "templates": [template.uri_template for template in templates],
            "text": await read("notes://todo.md"),
            "outline": json.loads(await read("notes://a%20b.md/outline")),
            "error": error,
            "completed": completed.completion.values,
            "updated": await change(client),
        }))


warnings.simplefilter("ignore")
asyncio.run(main())
