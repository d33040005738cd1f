"""A server as a program, for tests of a process: stdio, signals, crashes.

server_program.py [--http ADDRESS] [--store STORE] [--lease SECONDS] [--drain SECONDS]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import segue

server = segue.Server("program", "1")
going: dict[str, asyncio.Event] = {}
never = threading.Event()


@server.tool
def noisy(text: str) -> str:
    """Writes to standard output, where the protocol is, as far as possible."""
    print("printed", text)
    sys.stdout.write("written\n")
    os.write(1, b"to descriptor 1\n")
    subprocess.run(["echo", "of a child"], check=True)
    return f"{text} {sys.stdin.read()!r}"


@server.tool
async def gate(name: str, ctx: segue.Context) -> str:
    """Waits until `open` is called with the name."""
    event = going.setdefault(name, asyncio.Event())
    ctx.progress(1)
    await event.wait()
    return f"through {name}"


@server.tool(name="open")
async def open_gate(name: str) -> None:
    going.setdefault(name, asyncio.Event()).set()


@server.tool
async def open_at_end(name: str, ctx: segue.Context) -> None:
    """Opens the gate when the process is asked to end."""
    file = os.environ["GATE_FILE"]
    await asyncio.to_thread(wait_for_file, file)
    going.setdefault(name, asyncio.Event()).set()


def wait_for_file(file: str) -> None:
    while not os.path.exists(file):
        never.wait(0.01)


@server.tool
def stuck(ctx: segue.SyncContext) -> None:
    """Never ends, not even after a cancel."""
    ctx.progress(1)
    never.wait()


@server.tool
async def hog(file: str) -> None:
    """Blocks the loop for ever."""
    with open(file, "w"):
        pass
    while True:
        pass


async def counting(to: int, pause_at: int, ctx: segue.Context) -> AsyncIterator[str]:
    """Counts; in the first run it waits for ever at one number."""
    resumed = ctx.resumed
    begin = resumed.segments if resumed else 0
    state: dict[str, Any] = (resumed.data if resumed else None) or {"runs": 0}
    state["runs"] += 1
    await ctx.checkpoint(state)
    for number in range(begin + 1, to + 1):
        if number == pause_at and resumed is None:
            await asyncio.Event().wait()
        yield f"{number} "
    yield f"in {state['runs']} runs"


server.tool(counting, name="count", task="may", restartable=True)
server.tool(counting, name="parked", resumable=True, restartable=True)


@server.tool(resumable=True)
async def parked_lost(ctx: segue.Context) -> None:
    """Cannot run again."""
    await ctx.send("begun")
    await asyncio.Event().wait()


@server.tool(resumable=True, restartable=True, resume_within=1)
async def parked_shortly(file: str, ctx: segue.Context) -> None:
    """Runs for a second at most without its client."""
    with open(file, "a") as out:
        out.write("ran\n")
    await ctx.send("begun")
    await asyncio.Event().wait()


@server.tool(resumable=True, restartable=True)
async def die(file: str) -> None:
    """Kills its process, in every run."""
    with open(file, "a") as out:
        out.write("died\n")
    os._exit(3)


@server.tool(task="may")
async def lost(ctx: segue.Context) -> None:
    """Cannot run again."""
    await ctx.send("begun")
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http")
    parser.add_argument("--store")
    parser.add_argument("--lease", type=float)
    parser.add_argument("--drain", type=float, default=10.0)
    args = parser.parse_args()
    store = segue.Store(args.store, lease=args.lease) if args.store else None
    server.run(http=args.http, store=store, drain=args.drain)


if __name__ == "__main__":
    main()
