"""The client of a chaos run in Python; its arguments are those of client.c."""
import asyncio
import contextlib
import ctypes
import hashlib
import os
import random
import signal
import sys

import segue

PR_SET_PDEATHSIG = 1
MODES = {"E": {"era": "modern"}, "S": {"era": "legacy"},
         "P": {"era": "legacy", "tasks": False, "resumable": False},
         "PN": {"era": "modern", "tasks": False},
         "D": {"era": "legacy", "draft_tasks": True},
         "Z": {"era": "legacy", "tasks": False},
         "K": {"era": "modern", "tasks": False}}


class History:
    """The file of what this client asked and saw; each line is one write."""

    def __init__(self):
        self.file = os.open(os.environ["SEGUE_HISTORY"],
                            os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, *words):
        line = " ".join(map(str, words)).replace("\n", " ")[:1000]
        os.write(self.file, (line + "\n").encode())


def sum_of(data):
    return hashlib.sha256(data).hexdigest()[:16]


def write_end(history, name, result):
    sums = [sum_of(block.text.encode()) for block in result.content]
    history.write("end", name, "ok", len(sums), sum_of("".join(sums).encode()))


async def read(history, name, stream, move_at):
    """Returns a token when the reader goes on by it."""
    async for segment in stream:
        history.write("see", name, segment.number, sum_of(segment.text.encode()))
        if move_at and segment.number >= move_at:
            move_at = 0
            with contextlib.suppress(segue.NotResumableError, segue.EndedError):
                return stream.detach()
    return None


async def ask(session, history, name, mode, shape, chance):
    count, size, pace = shape
    arguments = {"call": name, "count": count, "size": size, "paceUs": pace}
    history.write("ask", name, mode, 1 if mode == "K" else count)
    try:
        if mode == "K":
            write_end(history, name, await session.call("effect", **arguments))
            return
        stream = session.stream("weave", **arguments)
        token = await read(history, name, stream, chance.choice((0, 1 + chance.randrange(
            count))))
        if token is None:
            write_end(history, name, stream.result)
            return
        history.write("move", name)
        task = session.resume(token)
        await read(history, name, task, 0)
        write_end(history, name, await task.result())
    except Exception as error:  # each call has one end, whatever it is
        history.write("end", name, "error", type(error).__name__, error)


async def ask_on(session, history, names, stop, *others):
    while not stop.is_set():
        await ask(session, history, next(names), *others)


async def run(url, name, seed, mode, calls, *shape):
    history, stop, chance = History(), asyncio.Event(), random.Random(seed)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    names = (f"{name}.{number}" for number in range(1 << 30))
    async with segue.connect(url, proxy="", connect_attempts=10000, connect_timeout=300,
                             max_reconnects=10000, **MODES[mode]) as session:
        await asyncio.gather(*(ask_on(session, history, names, stop, mode, shape, chance)
                               for _ in range(calls)))
    history.write("done", name)


def main():
    url, parent, name, seed, mode, *numbers = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        sys.exit(1)
    asyncio.run(run(url, name, int(seed), mode, *map(int, numbers)))


main()
