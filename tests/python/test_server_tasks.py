"""Calls that become tasks: when they do, what they report, and what is left of them
when a loop ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import segue
from segue import testing
from server_worlds import ServerWorld, nothing_left, run, world  # noqa: F401

# ruff: noqa: F811


def test_what_a_task_reports_depends_on_the_revision(world: ServerWorld) -> None:
    server = segue.Server("reports")
    seen = {"begun": asyncio.Event(), "reported": asyncio.Event()}

    @server.tool(task="may", poll=0.02)
    async def work_on(ctx: segue.Context) -> str:
        await ctx.set_status("begun")
        await seen["begun"].wait()  # so the call has become a task
        ctx.progress(1, 2)
        ctx.log("logged")
        await ctx.set_status("reported")
        await seen["reported"].wait()
        return "done"

    async def work(session: Any) -> None:
        progress: list[float] = []
        logs: list[Any] = []

        def on_status(status: str, text: str | None) -> None:
            if text in seen:
                seen[text].set()

        task = await session.start(
            "work_on",
            on_progress=lambda done, total, message: progress.append(done),
            on_log=lambda message: logs.append(message.data),
            on_status=on_status,
        )
        assert (await task.result()).text == "done"
        is_modern = world.era == "modern"
        assert progress == ([] if is_modern else [1.0])
        assert logs == ([] if is_modern else ["logged"])

    world.run(server, work, log_level="info")


def test_what_may_become_a_task(world: ServerWorld) -> None:
    server = segue.Server("policies")

    async def answer() -> str:
        # in 2025-11-25 a call that ends at once becomes no task
        await asyncio.sleep(0.001)
        return "answer"

    server.tool(name="never")(answer)
    server.tool(name="may", task="may", ttl=60, poll=0.05)(answer)
    server.tool(name="must", task="must")(answer)
    server.tool(name="later", task="may", promote_after=3600)(answer)

    async def work(session: Any) -> None:
        await session.list_tools()
        for name, is_task in {
            "never": False,
            "may": True,
            "must": True,
            "later": False,
        }.items():
            task = await session.start(name)
            assert (await task.result()).text == "answer"
            assert (task.id is not None) == is_task, name
        task = await session.start("may")
        assert (await task.status()).ttl_ms == 60_000

    world.run(server, work)


def test_tasks_for_clients_that_take_none(world: ServerWorld) -> None:
    server = segue.Server("policies")

    @server.tool(task="may")
    async def may(ctx: segue.Context) -> str:
        assert ctx.resumed is None
        return f"{await ctx.checkpoint(b'x')} {ctx.defer()} {ctx.hang_up()}"

    @server.tool(task="must")
    def must() -> str:
        return "never"

    async def work(session: Any) -> None:
        text = (await session.call("may")).text
        assert text.startswith("False False")
        with pytest.raises(segue.RemoteError):
            await session.call("must")

    world.run(server, work, tasks=False)


def test_what_a_task_tells(world: ServerWorld) -> None:
    server = segue.Server("tells")
    go = asyncio.Event()

    @server.tool(task="may", promote_after=3600)
    async def work_on(ctx: segue.Context) -> str:
        assert ctx.defer(ttl=120) and ctx.defer()
        await ctx.set_status("half way")
        assert await ctx.checkpoint({"at": 1})
        await go.wait()
        return "done"

    async def work(session: Any) -> None:
        await session.list_tools()
        told: list[str] = []
        task = await session.start(
            "work_on", on_status=lambda status, text: told.append(f"{status} {text}")
        )
        if task.id is None:  # a client of 2025-11-25 must ask for a task in the call
            assert world.era == "legacy"
            go.set()
        else:
            while (status := await task.status()).message != "half way":
                assert status.status == "working"
            go.set()
        assert (await task.result()).text == "done"

    world.run(server, work)


def test_a_task_that_is_cancelled(world: ServerWorld) -> None:
    server = segue.Server("cancelled")
    began, ended = asyncio.Event(), asyncio.Event()

    @server.tool(task="may")
    async def wait(ctx: segue.Context) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def work(session: Any) -> None:
        await session.list_tools()
        task = await session.start("wait")
        await began.wait()
        await task.cancel()
        await ended.wait()
        assert (await task.status()).status == "cancelled"
        with pytest.raises(segue.RequestCancelledError):
            await task.result()

    world.run(server, work)


@pytest.mark.parametrize("is_parked", [False, True], ids=["task", "parked"])
@pytest.mark.parametrize("way", ["pair", "http"])
def test_a_loop_that_ends_lets_calls_go(
    nothing_left: None, tmp_path: Path, way: str, is_parked: bool
) -> None:
    """AS-78, R-975-29: tasks and resumable calls of a loop that ends go on in the next.
    The next loop has the same store; it does not matter how the first one ended."""
    server = segue.Server("loops", store=tmp_path / "tasks.db")
    options: Any = {"era": "legacy", "tasks": False} if is_parked else {}
    runs: list[int] = []
    token = ""

    @server.tool(
        task="never" if is_parked else "may", resumable=is_parked, restartable=True
    )
    async def count(ctx: segue.Context) -> AsyncIterator[str]:
        resumed = ctx.resumed
        runs.append(resumed.segments if resumed else 0)
        for number in range(runs[-1] + 1, 5):
            if number == 3 and resumed is None:
                await asyncio.Event().wait()
            yield f"{number} "

    async def first(url: Any) -> None:
        nonlocal token
        async with segue.connect(url, **options) as session:
            stream = session.stream("count", on_leave="detach")
            async for segment in stream:
                if segment.number == 2:
                    break
            token = stream.token or ""

    async def second(url: Any) -> None:
        async with segue.connect(url, **options) as session:
            assert (await session.resume(token).result()).text == "1 2 3 4 "

    for work in (first, second):

        async def whole(work: Any = work) -> None:
            if way == "pair":
                await work(server)
            else:
                async with server.serving(http="127.0.0.1:0", drain=0) as serving:
                    await work(serving.url)

        run(whole)
    assert runs == [0, 2]


@pytest.mark.parametrize("kind", ["async", "generator", "plain", "stubborn"])
def test_a_server_that_ends_lets_tasks_go(
    nothing_left: None, tmp_path: Path, kind: str
) -> None:
    """AS-78: with the last listener the handlers of tasks end, in bounded time, though
    the loop goes on. The next server on the store, in the same process, goes on with
    the task."""
    server = segue.Server("ends", store=tmp_path / "tasks.db")
    runs: list[int] = []
    ended: list[str] = []
    never, go_on = threading.Event(), asyncio.Event()

    def first(ctx: segue.Context) -> bool:
        resumed = ctx.resumed
        runs.append(resumed.segments if resumed else 0)
        return resumed is None

    if kind == "plain":

        @server.tool(task="may", restartable=True)
        def count(ctx: segue.SyncContext) -> str:
            if first(ctx):
                ctx.send("1 ")
                while not ctx.cancelled:
                    never.wait(0.001)
                ended.append("cancelled")
                return "what comes too late"
            return "2"

    elif kind == "generator":

        @server.tool(task="may", restartable=True)
        async def count(ctx: segue.Context) -> AsyncIterator[str]:
            if first(ctx):
                yield "1 "
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.append("cancelled")
            yield "2"

    else:

        @server.tool(task="may", restartable=True)
        async def count(ctx: segue.Context) -> str:
            if first(ctx):
                await ctx.send("1 ")
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    ended.append("cancelled")
                    if kind != "stubborn":
                        raise
                    await asyncio.shield(go_on.wait())
                    return "what comes too late"
            return "2"

    @server.tool(task="may")
    async def lost(ctx: segue.Context) -> None:
        await ctx.send("1 ")
        await asyncio.Event().wait()

    async def work() -> None:
        tokens: list[str] = []
        serving = await server.serving(http="127.0.0.1:0", drain=0).start()
        async with segue.connect(serving.url, max_reconnects=-1) as session:
            for name in ("count", "lost"):
                task = await session.start(name)
                await anext(aiter(task))
                tokens.append(task.token or "")
                task.detach()
        await asyncio.wait_for(serving.aclose(), 120)
        assert runs == [0]
        if kind == "plain":
            while not ended:
                await asyncio.sleep(0.001)
        assert ended == ["cancelled"]
        async with server.serving(http="127.0.0.1:0") as serving:
            async with segue.connect(serving.url) as session:
                result = await session.resume(tokens[0]).result()
                assert result.text == "1 2"
                with pytest.raises(segue.Error):
                    await session.resume(tokens[1]).result()
        assert runs == [0, 1]
        go_on.set()

    run(work)


async def _leave_five(path: Path) -> list[str]:
    """Leaves five tasks that a server has begun."""
    server = segue.Server("first", store=path)

    @server.tool(task="may", restartable=True)
    async def wait(ctx: segue.Context, number: int) -> AsyncIterator[str]:
        yield "1 "
        await asyncio.Event().wait()

    tokens: list[str] = []
    async with server.serving(http="127.0.0.1:0", drain=0) as serving:
        async with segue.connect(serving.url, max_reconnects=-1) as session:
            for number in range(5):
                task = await session.start("wait", number=number)
                await anext(aiter(task))
                tokens.append(task.token or "")
                task.detach()
    return tokens


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0)


class _Taking:
    """A server that runs this many of them at once."""

    def __init__(self, path: Path, max_calls: int, kind: str = "async") -> None:
        self.server = segue.Server("next", store=path, max_calls=max_calls)
        self.begun: list[int] = []
        self.running = self.most = 0
        self.go = threading.Event()
        tool = self.server.tool(
            name="wait", task="may", restartable=True, poll=0.02, structured=False
        )
        tool(self._wait if kind == "async" else self._wait_plain)

    def _began(self, number: int) -> None:
        self.begun.append(number)
        self.running += 1
        self.most = max(self.most, self.running)

    async def _wait(self, number: int) -> str:
        self._began(number)
        await _until(self.go.is_set)
        self.running -= 1
        return "2"

    def _wait_plain(self, number: int) -> str:
        self._began(number)
        self.go.wait(120)
        self.running -= 1
        return "2"


async def _results(url: Any, tokens: list[str]) -> list[str]:
    async with segue.connect(url) as session:
        tasks = [session.resume(token) for token in tokens]
        return [(await task.result()).text for task in tasks]


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_tasks_that_were_taken_over_begin_when_there_is_room(
    nothing_left: None, tmp_path: Path, kind: str
) -> None:
    async def work() -> None:
        path = tmp_path / "tasks.db"
        tokens = await _leave_five(path)
        taking = _Taking(path, 2, kind)
        async with taking.server.serving(http="127.0.0.1:0") as serving:
            (host,) = taking.server._hosts.values()
            await _until(lambda: len(host._waiting) == 3 and taking.running == 2)
            (unwanted, *_) = {0, 1, 2, 3, 4} - set(taking.begun)
            async with segue.connect(serving.url) as session:
                task = session.resume(tokens[unwanted])
                assert (await task.status()).status == "working"
                await task.cancel()
            await _until(lambda: len(host._waiting) == 2)
            taking.go.set()
            wanted = [one for one in tokens if one != tokens[unwanted]]
            assert await _results(serving.url, wanted) == ["1 2"] * 4
        assert sorted(taking.begun) == sorted({0, 1, 2, 3, 4} - {unwanted})
        assert taking.most == 2

    run(work)


@pytest.mark.parametrize("max_calls", [2, 5])
def test_tasks_that_have_not_begun_are_left_to_the_next_server(
    nothing_left: None, tmp_path: Path, max_calls: int
) -> None:
    """Tested when there was no room for them, and when the server was about to end."""

    async def work() -> None:
        path = tmp_path / "tasks.db"
        taking = _Taking(path, max_calls)
        serving = taking.server.serving(http="127.0.0.1:0", drain=0.5)
        await serving.start()
        (host,) = taking.server._hosts.values()
        if max_calls == 5:
            host.is_draining = True
        tokens = await _leave_five(path)
        await _until(lambda: len(host._waiting) + len(taking.begun) == 5)
        assert len(taking.begun) == (2 if max_calls == 2 else 0)
        await serving.aclose(0)
        after = _Taking(path, 5)
        after.go.set()
        async with after.server.serving(http="127.0.0.1:0") as serving:
            assert await _results(serving.url, tokens) == ["1 2"] * 5
        assert len(after.begun) == 5

    run(work)


@pytest.mark.parametrize("max_calls", [2, 5])
def test_tasks_that_have_not_begun_are_not_waited_for(
    nothing_left: None, tmp_path: Path, max_calls: int
) -> None:
    """A server that ends while it takes tasks over waits for those that it runs."""

    async def work() -> None:
        path = tmp_path / "tasks.db"
        taking = _Taking(path, max_calls)
        serving = taking.server.serving(http="127.0.0.1:0", drain=3600)
        await serving.start()
        (host,) = taking.server._hosts.values()
        if max_calls == 5:
            host.is_draining = True
        tokens = await _leave_five(path)
        await _until(lambda: len(host._waiting) + len(taking.begun) == 5)
        taking.go.set()
        await asyncio.wait_for(serving.aclose(), 60)
        after = _Taking(path, 5)
        after.go.set()
        async with after.server.serving(http="127.0.0.1:0") as serving:
            assert await _results(serving.url, tokens) == ["1 2"] * 5
        assert len(after.begun) + len(taking.begun) == 5

    run(work)


WAYS = ["pair", "http"]


def failing() -> segue.Server:
    server = segue.Server("fails")

    @server.tool(task="may", poll=0.05, ttl=3600)
    async def fails(how: str) -> AsyncIterator[str]:
        yield "one"
        await asyncio.sleep(0.01)  # it is a task by now
        yield "two"
        if how == "error":
            raise segue.McpError(-32603, "broken", {"a": 1})
        if how == "tool":
            raise segue.ToolError("oops")
        await asyncio.Event().wait()

    return server


async def failure_of(session: Any, kind: str, how: str, **options: Any) -> Any:
    with pytest.raises(segue.Error) as caught:
        if kind == "call":
            await session.call("fails", {"how": how})
        elif kind == "start":
            await (await session.start("fails", {"how": how}, **options)).result()
        else:
            async for _ in session.stream("fails", {"how": how}, **options):
                pass
    return caught.value


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_how_it_failed_behind_segments(nothing_left: None, way: str, era: str) -> None:
    """AS-11, over both transports: the error has its code and the segments so far; a
    failed tool's message is its own."""

    async def work(session: Any) -> None:
        await session.list_tools()
        for kind in ("call", "stream", "start"):
            error = await failure_of(session, kind, "error")
            assert (error.code, error.data) == (-32603, {"a": 1}), kind
            assert "broken" in str(error) and error.partial.text == "onetwo", kind
            told = await failure_of(session, kind, "tool")
            assert isinstance(told, segue.ToolError) and str(told) == "oops", kind
            assert told.result is not None and told.result.text == "onetwooops"

    ServerWorld(way, era).run(failing(), work)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_what_streams_does_not_wait_to_be_a_task(
    nothing_left: None, way: str, era: str
) -> None:
    """AS-8: `promote_after` says when a call becomes a task; its segments do not wait."""
    server = segue.Server("streams")
    go = asyncio.Event()

    @server.tool(task="may", promote_after=3600)
    async def count() -> AsyncIterator[str]:
        yield "one"
        await go.wait()
        yield "two"

    async def work(session: Any) -> None:
        await session.list_tools()
        stream = session.stream("count")
        assert (await anext(stream)).text == "one"
        go.set()
        assert (await anext(stream)).text == "two"
        assert (await stream.collect()).text == "onetwo"

    ServerWorld(way, era).run(server, work)


@pytest.mark.parametrize("way", WAYS)
def test_expiry_is_the_same_error_everywhere(nothing_left: None, way: str) -> None:
    """AS-9, over both transports."""

    async def work(session: Any) -> None:
        await session.list_tools()
        for kind in ("stream", "start"):
            for ttl in (0.1, 1.0, 10.0):  # a busy machine takes longer to send both
                error = await failure_of(session, kind, "never", ttl=ttl)
                if error.partial and error.partial.text == "onetwo":
                    break
            assert isinstance(error, segue.RemoteError), kind
            assert (error.code, error.partial.text) == (-32603, "onetwo"), kind
            assert "Task TTL expired" in str(error), kind

    ServerWorld(way, "legacy").run(failing(), work)


@pytest.mark.parametrize("kind", ["call", "stream", "start"])
def test_a_lost_task_is_the_same_error_in_both_eras(
    nothing_left: None, kind: str
) -> None:
    """A task whose tool is not restartable ends when its server dies. The text of the
    error is no segment of the result."""

    async def lost(era: Any) -> dict[str, Any]:
        server = segue.Server("streams")
        sent = asyncio.Event()

        @server.tool(task="must", incremental=True)
        async def job(ctx: segue.Context) -> str:
            await ctx.send("one")
            sent.set()
            await asyncio.sleep(3600)
            return "never"

        texts = []
        lab = testing.Lab()
        served = await lab.serve(server)
        session = await served.connect(era=era)

        async def work() -> None:
            if kind == "call":
                await session.call("job")
            elif kind == "stream":
                texts.extend([one.text async for one in session.stream("job")])
            else:
                task = await session.start("job")
                await task.result()

        calling = asyncio.ensure_future(work())
        await sent.wait()
        await asyncio.sleep(0)
        await served.restart()
        with pytest.raises(segue.Error) as caught:
            await calling
        await lab.aclose()
        error = caught.value
        partial = error.partial.text if error.partial else None
        return {
            "class": type(error),
            "text": str(error),
            "code": error.code,
            "data": error.data,
            "retryable": error.retryable,
            "partial": partial,
            "stray": [text for text in texts if text != "one"],
        }

    async def work() -> None:
        modern, legacy = await lost("auto"), await lost("legacy")
        if kind == "start":  # not every way has received the segment when the server dies
            modern["partial"] = legacy["partial"] = None
        assert modern["class"] is segue.TaskLostError
        assert modern == legacy

    run(work)


@pytest.mark.parametrize("thread", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_done_at_once_is_no_task(
    nothing_left: None, way: str, is_async: bool, thread: bool
) -> None:
    """AS-1: any tool that ends in its first turn is answered with its result."""
    server = segue.Server("quick", options={"first_turn_ms": 60_000})

    async def late() -> str:
        return "done"

    server.tool(name="quick", task="may", thread=thread)(
        late if is_async else lambda: "done"
    )

    async def work(session: Any) -> None:
        await session.list_tools()
        for _ in range(5):
            task = await session.start("quick")
            assert (await task.result()).text == "done"
            assert task.id is None

    ServerWorld(way, "legacy").run(server, work)
