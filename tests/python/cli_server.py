"""The server that the command line is tested with.  cli_server.py [STORE]

With a store it serves HTTP on a free port and says where on standard output; without, it
serves stdio.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Literal

import msgspec

import segue

server = segue.Server("command-line", version="7", instructions="Be kind.")


class Place(msgspec.Struct):
    x: int
    y: int = 0


@server.tool
def add(a: int, b: int = 1) -> int:
    """Adds two numbers.

    And says so at length.
    """
    return a + b


@server.tool
def show(
    word: str,
    tags: list[str] | None = None,
    place: Place | None = None,
    mood: Literal["good", "bad"] = "good",
    ratio: Annotated[float, msgspec.Meta(ge=0)] = 0.5,
) -> str:
    return repr((word, tags, place, mood, ratio))


@server.tool(task="may")
async def count(to: int, ctx: segue.Context):
    """Counts."""
    for number in range(1, to + 1):
        ctx.progress(number, to, f"at {number}")
        yield f"{number}\n"


@server.tool(task="may")
def gate(fifo: str):
    """Says "before", waits for a writer of the FIFO, says what it wrote."""
    yield "before\n"
    with open(fifo) as file:
        said = file.read()
    yield f"after {said}\n"


@server.tool
def plain_gate(fifo: str):
    """The same, never a task."""
    yield "before\n"
    with open(fifo) as file:
        yield file.read()


@server.tool
def picture() -> segue.Image:
    return segue.Image(b"12345", "image/png")


@server.tool
def fail(why: str) -> str:
    raise segue.ToolError(why)


@server.tool
def refuse() -> str:
    raise segue.McpError(4711, "not today", {"until": "tomorrow"})


@server.tool
async def greet(ctx: segue.Context) -> str:
    try:
        name = await ctx.ask("What is your name?")
    except segue.Declined:
        return "Hello, stranger!"
    return f"Hello, {name}!"


@server.tool
async def book(ctx: segue.Context) -> str:
    sure = await ctx.ask("Book?", bool)
    color = await ctx.ask("Color?", ["red", "blue"])
    return f"{sure} {color}"


@server.tool
def chatty(ctx: segue.SyncContext) -> str:
    ctx.log("thinking", "warning")
    return "done"


@server.resource("notes://today", mime_type="text/plain", description="Of today")
def today() -> str:
    return "nothing planned"


@server.resource("notes://{day}")
def notes(day: str) -> bytes:
    return day.encode()


@server.prompt
def review(code: str, style: str = "short") -> str:
    """Asks for a review."""
    return f"Review ({style}): {code}"


async def main(store: str) -> None:
    async with server.serving(http="127.0.0.1:0", store=store) as listener:
        print(listener.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(sys.argv[1]))
    else:
        server.run()
