"""The server of a chaos run in Python. Arguments, environment, output and end are those
of the kill matrix' server (tests/kill_matrix/server.c), except for the first argument,
the kind of its handlers: "loop" for coroutines, "threads" for plain functions.

    server.py HANDLERS STORE PORT PARENT
"""
import asyncio
import ctypes
import hashlib
import os
import random
import signal
import sys
import time

import segue

PR_SET_PDEATHSIG = 1
DRAFT_TASKS, FROM_START = 4, 8  # SEGUE_DIALECT_DRAFT_TASKS, SEGUE_WAY_FROM_START
TTL_SECONDS, LEASE_SECONDS = 120, 1
DRAIN_SECONDS = random.choice((0, 1))  # 0: running calls are cancelled at once
CHECKPOINT_EVERY = 8  # segments, as in tests/kill_matrix/weaver.c
BITS = ("warp ", "weft ", "\u00e9t\u00e9 ", '"', "\\", "\n", "\t", "</x>",
        "\U0001f9f5", "0", "{", "\u2028")
PARTS = ["".join(random.choices(BITS, k=24)) for _ in range(256)]

server = segue.Server(
    "chaos", segue.__version__, max_calls=1000, threads=200,
    options={"seal_key": b"the kill matrix has nothing to h", "max_tasks": 10000,
             "dialects_on": DRAFT_TASKS, "draft_ways": FROM_START,
             "max_ttl_ms": TTL_SECONDS * 1000, "grace_ms": TTL_SECONDS * 1000,
             "lookups_per_second": 100000, "fetches_per_second": 100000})


class History:
    """The file of what this server did; each line is one write."""

    def __init__(self):
        self.file = os.open(os.environ["SEGUE_HISTORY"],
                            os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, *words):
        os.write(self.file, (" ".join(map(str, words)) + "\n").encode())

    def made(self, name, number, text):
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.write("made", name, number, digest)


history = History()


def text_of(number, nonce, size):
    """Returns a text that no other run of a tool makes."""
    text = [f"{number} run {nonce:016x} at {time.monotonic_ns()}: "]
    left = random.randrange(size) - len(text[0])
    while left > 0:
        text.append(random.choice(PARTS if left > 200 else BITS))
        left -= len(text[-1].encode())
    return "".join(text)


class Weaving:
    """One run of the tool `weave`."""

    def __init__(self, call, size, pace_us, ctx):
        self.call, self.size, self.pace = call, size, pace_us / 1e6
        self.nonce = random.getrandbits(64)
        self.due = time.monotonic()
        resumed = ctx.resumed
        self.done = resumed.segments if resumed else 0
        if resumed and not self.fits(resumed.data or 0):
            raise segue.McpError(-32603, f"behind segment {self.done} the checkpoint is "
                                         f"{resumed.data}")

    def fits(self, found):
        """Returns whether the checkpoint is the last one before the segments that the run
        goes on from. A crash may have come between a segment and its checkpoint."""
        last = self.done - self.done % CHECKPOINT_EVERY
        return found == last or (self.done == last and found + CHECKPOINT_EVERY == last)

    def make(self, number):
        text = text_of(number, self.nonce, self.size)
        history.made(self.call, number, text)
        return text

    def has_checkpoint(self, number):
        return number > 0 and number % CHECKPOINT_EVERY == 0

    def pause(self):
        """Returns the seconds until the next segment is due. A run that was stopped goes
        on at its pace."""
        now = time.monotonic()
        self.due = max(self.due + self.pace, now - 10 * self.pace)
        return max(0, self.due - now)


async def weave(call: str, count: int, size: int, paceUs: int, ctx: segue.Context):
    run = Weaving(call, size, paceUs, ctx)
    if run.has_checkpoint(run.done):
        await ctx.checkpoint(run.done)
    for number in range(run.done + 1, count + 1):
        yield run.make(number)
        if run.has_checkpoint(number):
            await ctx.checkpoint(number)
        await asyncio.sleep(run.pause())


def weave_on_thread(call: str, count: int, size: int, paceUs: int,
                    ctx: segue.SyncContext):
    run = Weaving(call, size, paceUs, ctx)
    if run.has_checkpoint(run.done):
        ctx.checkpoint(run.done)
    for number in range(run.done + 1, count + 1):
        yield run.make(number)
        if run.has_checkpoint(number):
            ctx.checkpoint(number)
        time.sleep(run.pause())


async def effect(call: str):
    history.write("effect", call)
    history.made(call, 1, call)
    return call


def effect_on_thread(call: str):
    history.write("effect", call)
    history.made(call, 1, call)
    return call


HANDLERS = {"loop": (weave, effect), "threads": (weave_on_thread, effect_on_thread)}


async def run(store, port):
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    at = None if store == "memory" else store
    async with server.serving(http=f"127.0.0.1:{port}", drain=DRAIN_SECONDS,
                              store=segue.Store(at, lease=LEASE_SECONDS)):
        print("listens", port, flush=True)
        await asked.wait()


def main():
    handlers, store, port, parent = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        sys.exit(1)
    options = {"task": "may", "resumable": True, "incremental": True,
               "ttl": TTL_SECONDS, "poll": 0.05}
    for name, function, restartable in zip(("weave", "effect"), HANDLERS[handlers],
                                           (True, False), strict=True):
        # the clients call both tools with the arguments of weave
        server.tool(function, name=name, restartable=restartable, forbid_extra=False,
                    **options)
    asyncio.run(run(store, port))


main()
