"""How calls of a Python server end when something fails: answers that are refused,
tasks that never begin, threads that cannot be made."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import segue
from segue.server import hosting, pool
from segue.server.context import Context
from segue.server.tool import Tool
from server_worlds import ServerWorld, nothing_left, run, world  # noqa: F401

# ruff: noqa: F811
SECONDS = 120


def test_a_reply_that_is_refused_has_its_cause(
    world: ServerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    server = segue.Server("refused", expose_errors=True)

    @server.prompt
    def no_type() -> list[Any]:
        return [{"role": "user", "content": {"text": "no type"}}]

    @server.prompt
    async def several() -> list[Any]:
        return [{"role": "user", "content": [{"type": "text", "text": "one"}]}]

    @server.tool(structured=False)
    async def unknown() -> Any:
        return segue.Unknown({"no": "type"})

    async def work(session: Any) -> None:
        with pytest.raises(segue.RemoteError, match="not valid content: it needs"):
            await session.get_prompt("no_type")
        with pytest.raises(segue.RemoteError, match="one block, not list"):
            await session.get_prompt("several")
        with pytest.raises(segue.ToolError, match="not valid content: it needs"):
            await session.call("unknown")

    world.run(server, work)
    told = [one for one in caplog.records if one.name == "segue.server"]
    messages = [one.getMessage() for one in told if one.levelname == "ERROR"]
    assert messages == [
        "prompt 'no_type' failed",
        "prompt 'several' failed",
        "tool 'unknown' failed",
    ]
    assert all(one.exc_info for one in told)


def test_a_string_is_the_content_of_a_message(world: ServerWorld) -> None:
    server = segue.Server("strings")

    @server.prompt
    def talk() -> list[Any]:
        return [
            {"role": "user", "content": "hi"},
            segue.PromptMessage("assistant", "ho"),  # type: ignore[arg-type]
        ]

    async def work(session: Any) -> None:
        messages = (await session.get_prompt("talk")).messages
        assert [(one.role, one.content.text) for one in messages] == [
            ("user", "hi"),
            ("assistant", "ho"),
        ]

    world.run(server, work)


# ---- ends


class _Racing(set[Any]):
    """The last call ends on its thread right after the loop has looked."""

    host: hosting.Hosting
    has_raced = False

    def __len__(self) -> int:
        count = super().__len__()
        if count and not self.has_raced:
            self.has_raced = True
            self.host.ended(next(iter(self)))
        return count


def test_a_call_that_ends_while_the_loop_looks(nothing_left: None) -> None:
    async def work() -> None:
        made = hosting.Hosting.__new__(hosting.Hosting)
        made.loop = asyncio.get_running_loop()
        made._quiet = None
        made._waiting = {}
        tool = Tool(lambda: None, name="tool")
        made.running = _Racing([Context(None, made, tool)])  # type: ignore[arg-type]
        made.running.host = made  # type: ignore[attr-defined]
        await asyncio.wait_for(made.drain(refuses=True), SECONDS)

    run(work)


def _no_thread(*_: object, **__: object) -> Any:
    raise RuntimeError("can't start new thread")


def test_without_threads_a_call_fails(
    world: ServerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = segue.Server("threads", threads=1)

    @server.tool
    def plain() -> str:
        return "done"

    async def work(session: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(pool, "threading", SimpleNamespace(Thread=_no_thread))
            with pytest.raises(segue.ToolError, match="The tool plain failed"):
                await session.call("plain")
        assert server._pool._busy == server._pool._threads == 0
        assert (await session.call("plain")).text == "done"

    world.run(server, work)


def test_jobs_wait_for_the_threads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    made = pool.Pool(2)
    go, done = threading.Event(), threading.Event()
    made.submit(lambda: go.wait(SECONDS))
    with monkeypatch.context() as patch:
        patch.setattr(pool, "threading", SimpleNamespace(Thread=_no_thread))
        made.submit(done.set)
    assert (made._busy, made._threads) == (2, 1)
    go.set()
    assert done.wait(SECONDS)
    made.close()


def test_a_handler_that_is_cancelled_before_it_begins(
    world: ServerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call and its cancel came in one batch: before Python 3.12 such a task never
    runs a step."""
    server = segue.Server("unbegun")
    contexts: list[Context] = []
    begin = hosting.Hosting.begin

    def cancelled(host: hosting.Hosting, work: Any) -> asyncio.Task[None]:
        task = begin(host, work)
        (context,) = host.running
        contexts.append(context)
        context._cancelled = True
        task.cancel()
        return task

    @server.tool
    async def waits() -> None:
        await asyncio.Event().wait()

    async def work(session: Any) -> None:
        monkeypatch.setattr(hosting.Hosting, "begin", cancelled)
        with pytest.raises(segue.RemoteError):
            await session.call("waits")
        (context,) = contexts
        assert not context._host.running

    world.run(server, work)


def test_a_call_that_ends_while_it_waits_for_a_thread(world: ServerWorld) -> None:
    """The function does not run, because no client waits for its result."""
    server = segue.Server("few", threads=1)
    go = threading.Event()
    ran: list[str] = []

    @server.tool
    def first() -> str:
        go.wait(SECONDS)
        return "first"

    @server.tool
    def second() -> str:
        ran.append("second")
        return "second"

    async def work(session: Any) -> None:
        async def queued(count: int) -> None:
            while server._pool._busy < count:
                await asyncio.sleep(0)

        calls = []
        for count, name in enumerate(("first", "second"), 1):
            calls.append(asyncio.ensure_future(session.call(name)))
            await queued(count)
        calls[1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls[1]
        (host,) = server._hosts.values()
        while not any(context._cancelled for context in host.running):
            await asyncio.sleep(0)
        go.set()
        assert (await calls[0]).text == "first"
        while server._pool._busy:
            await asyncio.sleep(0)
        assert ran == [] and not host.running

    world.run(server, work)
