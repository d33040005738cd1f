"""A server on version 1 of the Python SDK, for tests/interop/through.py: the tools, the
resources and the prompts that are called there."""
from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.prompts.base import UserMessage

from py_fixtures import add_fixtures

server = FastMCP("judged", instructions="Greet first.", log_level="ERROR")
add_fixtures(server, types)


@server.tool(structured_output=False)
async def steps(n: int, delayMs: int, ctx: Context) -> str:
    for at in range(1, n + 1):
        await ctx.info(f"step {at}")
        await ctx.report_progress(at, n)
    return "arrived"


@server.prompt()
def ask(topic: str) -> list[UserMessage]:
    return [UserMessage(f"What about {topic}?")]


server.run("stdio")
