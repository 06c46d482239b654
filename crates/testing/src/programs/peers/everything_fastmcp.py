"""An MCP server on `fastmcp`, for tests of jp: it speaks 2025-11-25 and 2026-07-28.

usage: python everything_fastmcp.py [--http PORT]     (stdin and stdout unless told; over HTTP the path is /mcp)
"""

import asyncio
import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools.base import ToolResult
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    InputRequiredResult,
    ResourceTemplateReference,
    TextResourceContents,
)

NOTES = {"one": "The first note.", "two": "The second note."}
MODERN = "2026-07-28"

server = FastMCP("everything-fastmcp")


@dataclass
class Person:
    name: str
    agree: bool = False


@server.tool
def add(a: int, b: int) -> dict[str, int]:
    """Adds two numbers."""
    return {"sum": a + b}


@server.tool
def note(name: str) -> ToolResult:
    """Gives a note as a resource."""
    text = TextResourceContents(uri=f"note://{name}", mime_type="text/plain", text=NOTES[name])
    return ToolResult(content=[EmbeddedResource(resource=text)])


def person_wanted() -> InputRequiredResult:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "agree": {"type": "boolean", "default": False}},
        "required": ["name"],
    }
    params = ElicitRequestFormParams(message="What is your name?", requested_schema=schema)
    return InputRequiredResult(input_requests={"person": ElicitRequest(params=params)}, request_state="asked")


def told(action: str, name: str = "", agree: bool = False) -> str:
    return f"The answer was: {name}, {'yes' if agree else 'no'}" if action == "accept" else f"The answer was: {action}"


# 2025-11-25 asks in the middle of a call, 2026-07-28 by having the call made again.
@server.tool
async def ask(ctx: Context) -> str | InputRequiredResult:
    """Asks for a name."""
    if ctx.request_context.protocol_version != MODERN:
        answer = await ctx.elicit("What is your name?", Person)
        return told(answer.action, **vars(answer.data)) if answer.action == "accept" else told(answer.action)
    answers = ctx.input_responses
    if not answers:
        return person_wanted()
    return told(answers["person"].action, **(answers["person"].content or {}))


@server.tool
async def slow(ctx: Context) -> str:
    """Reports progress three times, then answers."""
    for step in range(1, 4):
        await asyncio.sleep(0.02)
        await ctx.report_progress(step, 3, f"Step {step}")
    await ctx.info("All three steps are done.")
    return "Done, in three steps."


@server.tool
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


@server.completion
def complete(ref, argument, context):
    if isinstance(ref, ResourceTemplateReference) and argument.name == "name":
        return [name for name in NOTES if name.startswith(argument.value)]
    return None


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        server.run("http", port=int(sys.argv[2]), show_banner=False)
    else:
        server.run("stdio", show_banner=False)
