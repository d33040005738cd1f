"""An MCP server made with the Python SDK, for the tests of segments through segue-proxy.
Each tool sends its segments one by one: it waits for a byte from the pipe `go` before
each. It runs in the Python that has the SDK (.ci/python place).

    segments_server.py LOG [--http | --old]

LOG gets a line for each run of a tool. With --http the server listens and prints its URL
to standard error. With --old it speaks the handshake revisions on standard input and
output.
"""

import asyncio
import json
import os
import subprocess
import sys

import segue

LOG = sys.argv[1]
PARTS = 5
LARGE = "x" * 65536
server = segue.Server("segments", "1")


def write_log(*line):
    with open(LOG, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def read_byte(path):
    with open(path, "rb", buffering=0) as pipe:
        pipe.read(1)


async def wait(go):
    await asyncio.to_thread(read_byte, go)


async def parts(name, go):
    write_log(name)
    for number in range(1, PARTS + 1):
        await wait(go)
        yield f"part {number}\n"


@server.tool(task="may")
async def task(go: str):
    async for part in parts("task", go):
        yield part


@server.tool
async def plain(go: str):
    async for part in parts("plain", go):
        yield part


@server.tool(task="may")
async def words(go: str, ctx: segue.Context):
    """A text that grows, then another block, then the first text again."""
    write_log("words")
    await wait(go)
    await ctx.send("one")
    for word in (" two \u00e9\u0001\"", " three"):
        await wait(go)
        await ctx.extend(0, word)
    await wait(go)
    await ctx.send("next")
    await wait(go)
    await ctx.extend(0, " end")


@server.tool(task="may")
async def anew(go: str, ctx: segue.Context):
    write_log("anew")
    for word in ("wrong", "also wrong"):
        await wait(go)
        await ctx.send(word)
    await wait(go)
    await ctx.replace("right")
    for word in ("more", "last"):
        await wait(go)
        await ctx.send(word)


@server.tool(task="may")
async def withdrawn(go: str, ctx: segue.Context):
    """All is withdrawn, and nothing takes its place."""
    write_log("withdrawn")
    for word in ("wrong", "also wrong"):
        await wait(go)
        await ctx.send(word)
    await wait(go)
    await ctx.replace()


@server.tool(task="may")
async def rich(go: str, ctx: segue.Context):
    """A result with all members, which is an error."""
    write_log("rich")
    await wait(go)
    await ctx.send("first")
    await ctx.set_field("structuredContent", {"n": 1, "list": [None, {}]})
    await ctx.set_field("_meta", {"example.com/trace": "z"})
    await wait(go)
    raise segue.ToolError("failed")


@server.tool(task="may")
async def many(go: str, ctx: segue.Context):
    """More segments than a proxy passes on without a new checkpoint, and a pause."""
    write_log("many")
    for number in range(80):
        if number in (0, 40):
            await wait(go)
        await ctx.send(f"{number}")


@server.tool
async def own(go: str, ctx: segue.Context):
    """Each server makes other segments. The third one continues the first block."""
    write_log("own")
    name = os.path.basename(LOG)
    await wait(go)
    await ctx.send(f"{name} 1")
    await wait(go)
    await ctx.send(f"{name} 2")
    await wait(go)
    await ctx.extend(0, " and more")
    await wait(go)
    await ctx.send(f"{name} 3")


@server.tool
async def large(count: int, ctx: segue.Context):
    for number in range(count):
        await ctx.send(f"{number} {LARGE}")
    write_log("large", count)


@server.tool
async def endless(ctx: segue.Context):
    try:
        while True:
            await ctx.send("0 " + LARGE)
    finally:
        write_log("endless ended")


@server.tool
async def full(size: int, ctx: segue.Context):
    """So many bytes in a few segments, small segments, and then nothing."""
    try:
        for start in range(0, size, 4194304):
            await ctx.send("x" * min(size - start, 4194304))
        for _ in range(150):
            await ctx.send("")
        await asyncio.Event().wait()
    finally:
        write_log("full ended")


def refuse_discovery():
    """Passes messages on to a server that does not hear of 2026-07-28."""
    inner = subprocess.Popen([sys.executable, "-B", __file__, LOG],
                             stdin=subprocess.PIPE)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message.get("method") == "server/discover":
            error = {"code": -32601, "message": "Method not found"}
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": error}
            os.write(1, json.dumps(answer).encode() + b"\n")
        else:
            inner.stdin.write(line)
            inner.stdin.flush()
    inner.stdin.close()
    inner.wait()


if __name__ == "__main__":
    if "--old" in sys.argv:
        refuse_discovery()
    else:
        http = "127.0.0.1:0" if "--http" in sys.argv else None
        server.run(http=http, **({"store": LOG + ".db"} if http else {}))
