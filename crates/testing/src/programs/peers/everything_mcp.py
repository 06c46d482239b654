"""An MCP server on the SDK `mcp`, for tests of jp: it speaks 2025-11-25 and 2026-07-28.

usage: python everything_mcp.py [--http PORT]     (stdin and stdout unless told; over HTTP the path is /mcp)
"""

import asyncio
import sys
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import Completion, EmbeddedResource, ResourceTemplateReference, TextResourceContents
from pydantic import BaseModel

NOTES = {"one": "The first note.", "two": "The second note."}

server = MCPServer("everything-mcp")


class Person(BaseModel):
    name: str
    agree: bool = False


class Sum(BaseModel):
    sum: int


def ask_for_person() -> Elicit[Person]:
    return Elicit("What is your name?", Person)


@server.tool()
def add(a: int, b: int) -> Sum:
    """Adds two numbers."""
    return Sum(sum=a + b)


@server.tool()
def note(name: str) -> EmbeddedResource:
    """Gives a note as a resource."""
    text = TextResourceContents(uri=f"note://{name}", mime_type="text/plain", text=NOTES[name])
    return EmbeddedResource(resource=text)


@server.tool()
def ask(person: Annotated[ElicitationResult[Person], Resolve(ask_for_person)]) -> str:
    """Asks for a name."""
    if person.action != "accept":
        return f"The answer was: {person.action}"
    return f"The answer was: {person.data.name}, {'yes' if person.data.agree else 'no'}"


@server.tool()
async def slow(ctx: Context) -> str:
    """Reports progress three times, then answers."""
    for step in range(1, 4):
        await asyncio.sleep(0.02)
        await ctx.report_progress(step, 3, f"Step {step}")
    await ctx.info("All three steps are done.")
    return "Done, in three steps."


@server.tool()
def fail() -> str:
    """Fails."""
    raise ToolError("It failed, as it was asked to.")


@server.resource("note://one", mime_type="text/plain")
def one() -> str:
    """The first note."""
    return NOTES["one"]


@server.resource("note://blob", mime_type="application/octet-stream")
def blob() -> bytes:
    """Six bytes."""
    return bytes(range(6))


@server.resource("note://{name}", mime_type="text/plain")
def by_name(name: str) -> str:
    """A note by its name."""
    return NOTES[name]


@server.completion()
async def complete(ref, argument, context):
    if isinstance(ref, ResourceTemplateReference) and argument.name == "name":
        return Completion(values=[name for name in NOTES if name.startswith(argument.value)])
    return None


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run("stdio")
