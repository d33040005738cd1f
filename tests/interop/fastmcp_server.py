"""A server on FastMCP, for tests/interop/through.py. With PORT it serves HTTP there."""
import os

from fastmcp import Context, FastMCP

server = FastMCP("fast", instructions="Add first.")


@server.tool
def add(a: int, b: int) -> dict[str, int]:
    """Adds."""
    return {"sum": a + b}


@server.tool
async def steps(n: int, ctx: Context) -> str:
    for at in range(n):
        await ctx.report_progress(at + 1, n)
    return "arrived"


@server.tool
def fail() -> str:
    raise ValueError("failed on purpose")


@server.resource("test://greeting")
def greeting() -> str:
    return "hello"


@server.resource("test://greeting/{name}")
def greeting_to(name: str) -> str:
    return f"hello {name}"


@server.prompt
def ask(topic: str) -> str:
    return f"What about {topic}?"


if "PORT" in os.environ:
    server.run("http", show_banner=False, host="127.0.0.1", port=int(os.environ["PORT"]),
               log_level="ERROR")
else:
    server.run(show_banner=False)
