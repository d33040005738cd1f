"""The lifespan of a Python server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

import segue
from server_worlds import ServerWorld, nothing_left, run, world  # noqa: F401

# ruff: noqa: F811

SECONDS = 120
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Journal:
    """A lifespan that writes down what happens."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.problem: Exception | None = None
        self.go = asyncio.Event()
        self.go.set()

    @contextlib.asynccontextmanager
    async def lifespan(self, server: segue.Server) -> AsyncIterator[dict[str, str]]:
        self.lines.append(f"begin {server.name}")
        task = asyncio.current_task()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.lines.append("cancelled")
            raise
        if self.problem is not None:
            raise self.problem
        yield {"name": "database"}
        assert asyncio.current_task() is task
        self.lines.append("end")


def test_a_coroutine_is_no_lifespan() -> None:
    async def begin(server: segue.Server) -> None: ...

    lifespan: Any = begin

    async def work() -> None:
        with pytest.raises(TypeError, match="lifespan begin is an async function"):
            await segue.connect(segue.Server("wrong", lifespan=lifespan))

    run(work)


def served(journal: Journal) -> segue.Server:
    server = segue.Server("alive", lifespan=journal.lifespan)

    @server.tool
    async def name(ctx: segue.Context) -> str:
        return str(ctx.lifespan["name"])

    @server.tool
    def plain(ctx: segue.SyncContext) -> str:
        return str(ctx.lifespan["name"])

    @server.resource("note://name")
    async def note(ctx: segue.Context) -> str:
        return str(ctx.lifespan["name"])

    return server


def test_handlers_have_the_value(world: ServerWorld) -> None:
    journal = Journal()

    async def work(session: Any) -> None:
        assert journal.lines == ["begin alive"]
        assert (await session.call("name")).text == "database"
        assert (await session.call("plain")).text == "database"
        (contents,) = (await session.read_resource("note://name")).contents
        assert contents.text == "database"

    world.run(served(journal), work)
    assert journal.lines == ["begin alive", "end"]


def test_without_a_lifespan_the_value_is_none(world: ServerWorld) -> None:
    server = segue.Server("bare")

    @server.tool
    async def name(ctx: segue.Context) -> str:
        return str(ctx.lifespan)

    async def work(session: Any) -> None:
        assert (await session.call("name")).text == "None"

    world.run(server, work)


def test_servings_share_it(nothing_left: None) -> None:
    async def work() -> None:
        journal = Journal()
        server = served(journal)
        for _ in range(2):
            first = server.serving(http="127.0.0.1:0")
            second = server.serving(http="127.0.0.1:0", store=segue.Store())
            await asyncio.gather(first.start(), second.start())
            assert journal.lines == ["begin alive"]
            await first.aclose()
            assert journal.lines == ["begin alive"]
            async with segue.connect(second.url) as session:
                assert (await session.call("name")).text == "database"
            await second.aclose()
            assert journal.lines == ["begin alive", "end"]
            journal.lines.clear()

    run(work)


def test_a_handler_ends_before_it(nothing_left: None) -> None:
    async def work() -> None:
        journal = Journal()
        server = served(journal)
        runs = asyncio.Event()

        @server.tool
        async def long(ctx: segue.Context) -> None:
            try:
                runs.set()
                await asyncio.Event().wait()
            finally:
                journal.lines.append(f"cancelled with {ctx.lifespan['name']}")

        async with server.serving(http="127.0.0.1:0", drain=0) as serving:
            session = await segue.connect(serving.url)
            call = asyncio.ensure_future(session.call("long"))
            await asyncio.wait_for(runs.wait(), SECONDS)
        assert journal.lines == ["begin alive", "cancelled with database", "end"]
        call.cancel()
        await asyncio.wait([call])
        await session.close()

    run(work)


def test_a_lifespan_that_cannot_begin(nothing_left: None) -> None:
    async def work() -> None:
        journal = Journal()
        server = served(journal)
        journal.problem = OSError("no database")
        serving = server.serving(http="127.0.0.1:0")
        for _ in range(2):
            with pytest.raises(OSError, match="no database"):
                await serving.start()
        with pytest.raises(OSError, match="no database"):
            await segue.connect(server)
        journal.problem = None
        journal.lines.clear()
        async with serving:
            assert journal.lines == ["begin alive"]
        assert journal.lines == ["begin alive", "end"]

    run(work)


def test_a_start_that_is_cancelled(nothing_left: None) -> None:
    async def work() -> None:
        journal = Journal()
        server = served(journal)
        journal.go.clear()
        starting = asyncio.ensure_future(server.serving(http="127.0.0.1:0").start())
        while not journal.lines:
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert journal.lines == ["begin alive", "cancelled"]
        journal.go.set()
        async with server.serving(http="127.0.0.1:0"):
            pass
        assert journal.lines[2:] == ["begin alive", "end"]

    run(work)


def test_a_server_that_cannot_listen_leaves_it(nothing_left: None) -> None:
    async def work() -> None:
        journal = Journal()
        with pytest.raises(segue.Error):
            await served(journal).serving(http="127.0.0.1:0", cert_file="no").start()
        assert journal.lines == ["begin alive", "end"]

    run(work)


def test_no_context_manager(nothing_left: None) -> None:
    async def odd(server: segue.Server) -> AsyncIterator[int]:
        yield 1

    async def work() -> None:
        server = segue.Server("odd", lifespan=odd)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="asynccontextmanager"):
            await server.serving(http="127.0.0.1:0").start()

    run(work)


def test_what_it_prints_stays_off_standard_output(nothing_left: None) -> None:
    program = """
import contextlib, segue

@contextlib.asynccontextmanager
async def lifespan(server):
    print("begins")
    yield "value"
    print("ends")

server = segue.Server("printing", lifespan=lifespan)

@server.tool
async def value(ctx: segue.Context) -> str:
    return ctx.lifespan

server.run()
print("is over")
"""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    child = subprocess.Popen(
        [sys.executable, "-B", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdin and child.stdout
    params = {"name": "value", "_meta": META}
    child.stdin.write(json.dumps({**call, "params": params}) + "\n")
    child.stdin.flush()
    answer = json.loads(child.stdout.readline())
    assert answer["result"]["content"][0]["text"] == "value"
    out, err = child.communicate(timeout=SECONDS)  # the input ends
    assert (out, err) == ("is over\n", "begins\nends\n")


def test_a_lifespan_that_cannot_begin_restores_standard_output() -> None:
    program = """
import contextlib, segue

@contextlib.asynccontextmanager
async def lifespan(server):
    raise ValueError("no database")
    yield

try:
    segue.Server("failing", lifespan=lifespan).run()
except ValueError as error:
    print(error)
"""
    child = subprocess.run(
        [sys.executable, "-B", "-c", program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (child.stdout, child.stderr) == ("no database\n", "")
