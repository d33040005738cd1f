"""Two replicas on one store and with one key: a task that the first one began goes on at
the second one. On several machines the store is Redis or PostgreSQL.

    python replicas.py                a client that starts both and ends the first
    python replicas.py serve STORE    a replica, over HTTP on a free port
"""

import asyncio
import os
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import segue

KEY = bytes.fromhex(os.environ.get("SEAL_KEY", "")) or os.urandom(32)

server = segue.Server("replicas", options={"seal_key": KEY})


@server.tool(task="must", restartable=True)
async def count(to: int, ctx: segue.Context) -> AsyncIterator[str]:
    """Counts."""
    for number in range(ctx.resumed.segments if ctx.resumed else 0, to):
        yield f"{number + 1}\n"
        await asyncio.sleep(0.3)


async def serve(store: str) -> None:
    async with server.serving(http="127.0.0.1:0", store=store, drain=0) as listener:
        print(listener.url, flush=True)
        await listener.wait_closed()


async def start(store: Path) -> tuple[Process, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        "serve",
        str(store),
        stdout=PIPE,
        env={**os.environ, "SEAL_KEY": KEY.hex()},
    )
    assert process.stdout is not None
    return process, (await process.stdout.readline()).decode().strip()


async def main(store: Path) -> None:
    one, first = await start(store)
    two, second = await start(store)
    async with segue.connect(first) as session:
        task = await session.start("count", to=5)
        async for segment in task:
            print("first:", segment.text, end="")
            if segment.number == 2:
                break
        token = task.token
        assert token is not None
        task.detach()
    one.kill()
    await one.wait()
    async with segue.resume(token, second) as rest:
        async for segment in rest:
            print("second:", segment.text, end="")
    two.terminate()
    await two.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as place:
            asyncio.run(main(Path(place) / "tasks.db"))
