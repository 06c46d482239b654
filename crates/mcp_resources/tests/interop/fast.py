"""`fastmcp` against the server `notes`: does what the test asks of every client and prints what came, as JSON.

usage: python fast.py ERA DIRECTORY (URL | PROGRAM ARGUMENT…)     ERA is `legacy` or `modern`
"""

import asyncio
import json
import pathlib
import sys
import warnings

from fastmcp import Client
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import StdioTransport
from mcp import MCPError
from mcp.client.subscriptions import listen
from mcp_types import ResourceTemplateReference

era, directory, *target = sys.argv[1:]
# The newer revision is found out by asking the server what it speaks.
mode = "legacy" if era == "legacy" else "auto"


class Updates(MessageHandler):
    def __init__(self):
        super().__init__()
        self.uris = asyncio.Queue()

    async def on_resource_updated(self, message):
        self.uris.put_nowait(str(message.params.uri))


async def change(client, updates):
    """Subscribes to a file, changes it, and waits until that is told; both are of the session below the client."""
    uri, file = "notes://todo.md", pathlib.Path(directory, "todo.md")
    if era == "legacy":
        await client.session.subscribe_resource(uri)
        file.write_text("# Changed\n")
        return await updates.uris.get()
    async with listen(client.session, resource_subscriptions=[uri]) as subscription:
        file.write_text("# Changed\n")
        async for event in subscription:
            return str(event.uri)


async def main():
    updates = Updates()
    server = target[0] if len(target) == 1 else StdioTransport(command=target[0], args=target[1:])
    async with Client(server, mode=mode, message_handler=updates) as client:
        resources = await client.list_resources()
        templates = await client.list_resource_templates()

        async def read(uri):
            return (await client.read_resource(uri))[0].text

        try:
            error = await read("notes://none.md")
        except MCPError as refused:
            error = {"code": refused.error.code, "data": refused.error.data}
        reference = ResourceTemplateReference(type="ref/resource", uri="notes://{file}/outline")
        completed = await client.complete(reference, {"name": "file", "value": "t"})
        print(json.dumps({
            "revision": client.session.protocol_version,
            "server": client.session.server_info.name,
            "resources": len(resources),
            "pages": None,
            "first": str(resources[0].uri),
            "templates": [template.uri_template for template in templates],
            "text": await read("notes://todo.md"),
            "outline": json.loads(await read("notes://a%20b.md/outline")),
            "error": error,
            "completed": completed.values,
            "updated": await change(client, updates),
        }))


warnings.simplefilter("ignore")
asyncio.run(main())
