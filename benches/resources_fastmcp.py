"""The server that `bench.py resources` compares with: `fastmcp`, with the resources of the example `resource_bench`."""

from fastmcp import FastMCP

TEXT = "A small note.\n" * 8
server = FastMCP("bench")


@server.resource("bench://small")
def small() -> str:
    return TEXT


@server.resource("bench://async")
async def small_async() -> str:
    return TEXT


@server.resource("bench://item/{number}")
async def item(number: str) -> str:
    return f"{number}: {TEXT}"


server.run(show_banner=False, log_level="CRITICAL")
