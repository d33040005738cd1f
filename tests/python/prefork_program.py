"""One worker of several that serve the same port with the same store.

prefork_program.py HTTP STORE

It prints its process id and the URL of a port of its own, at which a test asks this
worker and no other.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import segue

server = segue.Server("prefork")


@server.tool(task="may", restartable=True)
async def count(to: int, ctx: segue.Context) -> AsyncIterator[str]:
    """Counts, and says which worker counts. In the first run it waits for ever at 3."""
    begin = ctx.resumed.segments if ctx.resumed else 0
    for number in range(begin + 1, to + 1):
        if number == 3 and ctx.resumed is None:
            await asyncio.Event().wait()
        yield f"{number}:{os.getpid()} "


@server.tool(stored=True, restartable=True)
async def plain(ctx: segue.Context) -> str:
    """Reports its worker as its progress. In the first run it waits for ever."""
    ctx.progress(os.getpid())
    if ctx.resumed is None:
        await asyncio.Event().wait()
    return str(os.getpid())


async def main(http: str, store: str) -> None:
    port = None if http.startswith("systemd") else {"reuse_port": True}
    async with (
        server.serving(http, store=store, options=port),
        server.serving("127.0.0.1:0", store=store) as own,
    ):
        print(os.getpid(), own.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
