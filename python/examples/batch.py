"""A batch of files with checkpoints: the server is killed half-way and started again. The
task goes on behind the last file that was done, and the client notices nothing.

    python batch.py                     a client that kills and restarts the server
    python batch.py serve PORT STORE    the server, over HTTP
"""

import asyncio
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import segue

LIBRARY = Path(__file__).resolve().parents[2] / "core" / "examples" / "library"

server = segue.Server("batch")


@server.tool(task="must", restartable=True)
async def count_words(ctx: segue.Context, directory: str) -> AsyncIterator[str]:
    """Counts the words of all texts in a directory."""
    done: dict[str, int] = (ctx.resumed and ctx.resumed.data) or {}
    sent = ctx.resumed.segments if ctx.resumed else 0
    before = len(done)
    for number, file in enumerate(sorted(Path(directory).glob("*.txt"))):
        if file.name not in done:
            await asyncio.sleep(0.3)  # as if it were much work
            done[file.name] = len(file.read_text().split())
            await ctx.checkpoint(done)
        if number >= sent:  # a crash may come between the checkpoint and the segment
            yield f"{file.name}: {done[file.name]} words\n"
    now = len(done) - before
    yield f"{sum(done.values())} words in {len(done)} files, {now} counted in this run\n"


def start(port: int, store: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, "serve", str(port), str(store)])


async def main(store: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = start(port, store)
    try:
        async with (
            segue.connect(f"http://127.0.0.1:{port}/mcp", connect_attempts=50) as session,
            session.stream("count_words", directory=str(LIBRARY)) as stream,
        ):
            async for segment in stream:
                print(segment.text, end="", flush=True)
                if segment.number == 3:
                    print("(the server is killed and started again)")
                    process.kill()
                    process.wait()
                    process = start(port, store)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        server.run(http=f"127.0.0.1:{sys.argv[2]}", store=sys.argv[3])
    else:
        with tempfile.TemporaryDirectory() as place:
            asyncio.run(main(Path(place) / "tasks.db"))
