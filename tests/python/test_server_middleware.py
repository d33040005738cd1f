"""Middleware of a Python server."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import segue
from server_worlds import ServerWorld, nothing_left, run, world  # noqa: F401

# ruff: noqa: F811

SECONDS = 120


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def shop() -> segue.Server:
    """A server with a handler of each kind."""
    server = segue.Server("shop")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    def plain(word: str, ctx: segue.SyncContext) -> str:
        ctx.send("first ")
        return word

    @server.tool(thread=False)
    def on_loop(word: str) -> str:
        return f"{word} {threading.current_thread() is threading.main_thread()}"

    @server.tool
    async def stream(n: int) -> AsyncIterator[str]:
        for number in range(n):
            yield f"{number} "

    @server.tool
    def plain_stream(n: int) -> Iterator[str]:
        for number in range(n):
            yield f"{number} "

    @server.resource("note://{id}")
    async def note(id: str) -> str:
        return f"note {id}"

    @server.resource("long://text")
    async def text() -> AsyncIterator[str]:
        yield "one "
        yield "two"

    @server.prompt
    async def review(code: str) -> str:
        return f"Review {code}"

    return server


async def read(session: Any, uri: str) -> str:
    (contents,) = (await session.read_resource(uri)).contents
    return str(contents.text)


def test_calls_of_every_kind_pass_in_their_order(world: ServerWorld) -> None:
    server = shop()
    lines: list[str] = []

    @server.use
    async def outer(call: segue.Call, proceed: segue.Proceed) -> Any:
        lines.append(f"{call.method} {call.name} {call.arguments}")
        value = await proceed()
        lines.append(f"outer {value!r}")
        return value

    @server.use(methods=["tools/call"])
    async def inner(call: segue.Call, proceed: segue.Proceed) -> Any:
        value = await proceed()
        lines.append(f"inner {value!r}")
        return value

    async def work(session: Any) -> None:
        assert (await session.call("add", a=1, b=2)).structured == {"result": 3}
        assert lines == ["tools/call add {'a': 1, 'b': 2}", "inner 3", "outer 3"]
        lines.clear()
        assert (await session.call("plain", word="x")).text == "first x"
        assert lines == ["tools/call plain {'word': 'x'}", "inner 'x'", "outer 'x'"]
        lines.clear()
        assert (await session.call("on_loop", word="x")).text == "x True"
        for name in ("stream", "plain_stream"):
            assert (await session.call(name, n=3)).text == "0 1 2 "
        lines.clear()
        assert await read(session, "note://7") == "note 7"
        assert lines == ["resources/read note://7 {'id': '7'}", "outer 'note 7'"]
        lines.clear()
        assert await read(session, "long://text") == "one two"
        assert lines == ["resources/read long://text {}", "outer None"]
        lines.clear()
        prompt = await session.get_prompt("review", {"code": "x"})
        assert prompt.messages[0].content.text == "Review x"
        assert lines == ["prompts/get review {'code': 'x'}", "outer 'Review x'"]

    world.run(server, work)


def test_segments_are_not_gathered(world: ServerWorld) -> None:
    server = segue.Server("streams")
    read_one = asyncio.Event()

    @server.tool(task="may")
    async def stream() -> AsyncIterator[str]:
        yield "one "
        await read_one.wait()
        yield "two"

    seen: list[bool] = []

    @server.use
    async def watch(call: segue.Call, proceed: segue.Proceed) -> Any:
        seen.append(call.has_sent)
        value = await proceed()
        seen.append(call.has_sent)
        return value

    async def work(session: Any) -> None:
        texts = []
        async for segment in session.stream("stream"):
            texts.append(segment.text)
            read_one.set()  # so the first segment came before the handler went on
        assert "".join(texts) == "one two"
        assert seen == [False, True]

    world.run(server, work)


def test_a_middleware_changes_arguments_segments_and_values(world: ServerWorld) -> None:
    server = shop()

    @server.tool
    async def sends(ctx: segue.Context) -> str:
        await ctx.send("a secret ", ["secrets"])
        await ctx.extend(0, "secret ")
        return "secret end"

    @server.use
    async def stars(call: segue.Call, proceed: segue.Proceed) -> Any:
        call.on_segment(lambda value: f"*{value}*")
        return await proceed()

    @server.use
    async def hide(call: segue.Call, proceed: segue.Proceed) -> Any:
        def hidden(value: Any) -> Any:
            return str(value).replace("secret", "...")

        call.on_segment(hidden)
        if "a" in call.arguments:
            call.arguments["a"] = 40
        if call.name == "note://7":
            call.arguments = {"id": "eight"}
        value = await proceed()
        return hidden(value) if isinstance(value, str) else value

    async def work(session: Any) -> None:
        assert (await session.call("add", a=1, b=2)).structured == {"result": 42}
        assert await read(session, "note://7") == "note eight"
        for name in ("stream", "plain_stream"):
            assert (await session.call(name, n=2)).text == "*0 **1 *"
        assert (await session.call("plain", word="x")).text == "*first *x"
        assert await read(session, "long://text") == "*one **two*"
        found = (await session.call("sends")).text
        assert found == "*a ... **... **['...s']*... end"

    world.run(server, work)


def test_a_middleware_answers_itself_or_fails(world: ServerWorld) -> None:
    server = shop()
    ran: list[str] = []

    @server.use
    async def answer(call: segue.Call, proceed: segue.Proceed) -> Any:
        ran.append(call.name)
        if call.name == "add":
            raise segue.ToolError("not today")
        if call.name == "note://1":
            raise PermissionError("secret")
        if call.name == "review":
            raise segue.McpError(1, "who are you?")
        return "cached"

    async def work(session: Any) -> None:
        with pytest.raises(segue.ToolError, match=r"^not today$"):
            await session.call("add", a=1, b=2)
        with pytest.raises(segue.RemoteError, match="Internal error"):
            await read(session, "note://1")
        with pytest.raises(segue.RemoteError, match="who are you"):
            await session.get_prompt("review", {"code": "x"})
        assert (await session.call("stream", n=3)).text == "cached"
        assert (await session.call("plain", word="x")).text == "cached"
        assert await read(session, "long://text") == "cached"
        assert len(ran) == 6

    world.run(server, work)


def test_exceptions_pass_and_are_answered_once(world: ServerWorld) -> None:
    server = segue.Server("fails")
    seen: list[str] = []

    @server.tool
    def plain(n: int) -> str:
        raise KeyError("inside")

    @server.tool
    async def stops(n: int) -> str:
        raise StopAsyncIteration

    @server.use
    async def note(call: segue.Call, proceed: segue.Proceed) -> Any:
        try:
            return await proceed()
        except Exception as error:
            seen.append(type(error).__name__)
            raise

    async def work(session: Any) -> None:
        with pytest.raises(segue.ToolError, match=r"^The tool plain failed$"):
            await session.call("plain", n=1)
        with pytest.raises(segue.ToolError, match='unknown argument "m"'):
            await session.call("plain", m=1)
        with pytest.raises(segue.ToolError, match=r"^The tool stops failed$"):
            await session.call("stops", n=1)
        assert seen == ["KeyError", "BadArguments", "StopAsyncIteration"]

    world.run(server, work)


user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


def test_a_context_variable_reaches_the_handler(world: ServerWorld) -> None:
    server = segue.Server("users")

    @server.tool
    def plain() -> str:
        return user.get()

    @server.tool
    async def later() -> str:
        return user.get()

    @server.use
    async def set_user(call: segue.Call, proceed: segue.Proceed) -> Any:
        user.set(f"user of {call.name}")
        return await proceed()

    async def work(session: Any) -> None:
        for name in ("plain", "later"):
            assert (await session.call(name)).text == f"user of {name}"
        assert user.get() == "nobody"

    world.run(server, work)


def test_a_caller_that_goes(world: ServerWorld) -> None:
    server = segue.Server("waits")
    runs = {"later": asyncio.Event(), "plain": asyncio.Event()}
    left = {name: asyncio.Event() for name in runs}
    loop: list[asyncio.AbstractEventLoop] = []

    @server.tool
    async def later() -> None:
        runs["later"].set()
        await asyncio.Event().wait()

    @server.tool
    def plain(ctx: segue.SyncContext) -> None:
        loop[0].call_soon_threadsafe(runs["plain"].set)
        with ctx._room.bell:
            while not ctx.cancelled:
                ctx._room.bell.wait()  # a cancel sets the event

    @server.use
    async def note(call: segue.Call, proceed: segue.Proceed) -> Any:
        try:
            return await proceed()
        finally:
            left[call.name].set()

    async def work(session: Any) -> None:
        loop.append(asyncio.get_running_loop())
        for name, begun in runs.items():
            call = asyncio.ensure_future(session.call(name))
            await asyncio.wait_for(begun.wait(), SECONDS)
            call.cancel()
            await asyncio.wait_for(left[name].wait(), SECONDS)
            await asyncio.wait([call])

    world.run(server, work)


def test_a_server_that_ends_lets_the_middleware_end(nothing_left: None) -> None:
    lines: list[str] = []

    async def work() -> None:
        server = segue.Server("ends")
        begun, go = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        @server.tool
        def plain() -> None:
            loop.call_soon_threadsafe(begun.set)
            go.wait(SECONDS)

        @server.use
        async def note(call: segue.Call, proceed: segue.Proceed) -> Any:
            try:
                return await proceed()
            finally:
                lines.append(f"{call.name} left")

        async with server.serving(http="127.0.0.1:0", drain=0) as serving:
            session = await segue.connect(serving.url)
            call = asyncio.ensure_future(session.call("plain"))
            await asyncio.wait_for(begun.wait(), SECONDS)
        assert lines == ["plain left"]
        go.set()
        call.cancel()
        await asyncio.wait([call])
        await session.close()

    run(work)


def test_what_is_no_middleware_is_refused() -> None:
    server = segue.Server("checks")

    async def one(call: segue.Call) -> Any: ...
    async def three(call: segue.Call, proceed: segue.Proceed, more: int) -> Any: ...
    async def named(call: segue.Call, proceed: segue.Proceed, *, more: int) -> Any: ...
    async def open_end(call: segue.Call, proceed: segue.Proceed, more: int = 1) -> Any:
        return await proceed()

    class Logger:
        async def __call__(self, call: segue.Call, proceed: segue.Proceed) -> Any: ...

    wrong: list[Any] = [
        lambda call, proceed: proceed(),
        segue.middleware.log_calls,  # the function that makes a middleware
        Logger,
        None,
        "log_calls",
        one,
        three,
        named,
    ]
    for function in wrong:
        with pytest.raises(TypeError, match="middleware"):
            server._layers.add(function, None)

    def plain(call: segue.Call, proceed: segue.Proceed) -> Any: ...

    unfit: Any = plain
    with pytest.raises(TypeError, match=r"^plain is no middleware.*: make it async def$"):
        server.use(unfit)
    assert not any(server._layers.of.values())
    server.use(open_end)
    server.use(Logger())
    name: Any = "name"
    for make in (
        lambda: segue.middleware.log_calls(name),
        lambda: segue.middleware.time_calls(name),
        lambda: segue.middleware.limit_rate(1, key=name),
        lambda: segue.middleware.mask_errors(on_error=name),
        lambda: segue.middleware.mask_errors(ValueError),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="has to be"):
            make()
    with pytest.raises(TypeError, match=r"methods=\['name'\]"):
        server.use(segue.middleware.retry(), methods=name)
    unknown: Any = ["tasks/list"]
    with pytest.raises(ValueError, match="not 'tasks/list'"):
        server.use(segue.middleware.retry(), methods=unknown)


def test_what_a_middleware_forgets_is_told(
    world: ServerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    server = shop()

    @server.tool
    async def says_nothing() -> None: ...

    @server.use
    async def careless(call: segue.Call, proceed: segue.Proceed) -> Any:
        if call.name == "add":
            return proceed()
        if call.name == "on_loop":
            proceed()
            return "value"
        await proceed()
        return None

    async def work(session: Any) -> None:
        for name, given in (
            ("add", {"a": 1, "b": 2}),
            ("on_loop", {"word": "x"}),
            ("plain", {"word": "x"}),
        ):
            caplog.clear()
            with pytest.raises((segue.ToolError, segue.RemoteError)):
                await session.call(name, given)
            assert "the middleware careless has" in caplog.text
        assert (await session.call("says_nothing")).text == ""
        assert (await session.call("stream", n=2)).text == "0 1 "

    world.run(server, work)


# ---- middlewares that are ready


def test_calls_are_logged_and_timed(
    world: ServerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    server, clock = segue.Server("timed"), Clock()

    @server.tool
    async def work_for(seconds: float) -> str:
        clock.now += seconds
        if seconds > 5:
            raise segue.ToolError("too long")
        return "done"

    times: list[tuple[str, float, str]] = []

    def report(call: segue.Call, seconds: float, error: BaseException | None) -> None:
        times.append((call.name, seconds, str(error)))

    # only calls: clients of earlier revisions list the tools first
    logging_them = segue.middleware.log_calls(arguments=True, clock=clock)
    server.use(logging_them, methods=["tools/call"])
    timing_them = segue.middleware.time_calls(report, clock=clock)
    server.use(timing_them, methods=["tools/call"])
    caplog.set_level(logging.INFO, "segue.calls")

    async def work(session: Any) -> None:
        await session.call("work_for", seconds=2)
        with pytest.raises(segue.ToolError):
            await session.call("work_for", seconds=6)
        assert times == [("work_for", 2.0, "None"), ("work_for", 6.0, "too long")]
        assert [record.getMessage() for record in caplog.records] == [
            "tools/call work_for {'seconds': 2} ended after 2.000 s",
            "tools/call work_for {'seconds': 6} failed (ToolError) after 6.000 s",
        ]

    world.run(server, work)


def test_a_caller_that_calls_too_often_is_refused(world: ServerWorld) -> None:
    server, clock = segue.Server("limited"), Clock()

    @server.tool
    async def hello(who: str) -> str:
        return f"hello {who}"

    limit = segue.middleware.limit_rate(
        2, burst=3, key=lambda call: str(call.arguments["who"]), clock=clock
    )
    server.use(limit)

    async def work(session: Any) -> None:
        async def refused(who: str) -> segue.RemoteError:
            with pytest.raises(segue.RemoteError) as caught:
                await session.call("hello", who=who)
            return caught.value

        for _ in range(3):
            await session.call("hello", who="a")
        error = await refused("a")
        assert "Too many calls: at most 2 a second. Try again in 500 ms" in str(error)
        assert error.retryable
        assert error.data == {
            "reason": "limit",
            "limit": "calls_per_second",
            "value": 2,
            "retryAfterMs": 500,
        }
        await session.call("hello", who="b")
        clock.now += 0.5
        await session.call("hello", who="a")
        await refused("a")
        clock.now += 60
        for _ in range(3):
            await session.call("hello", who="a")
        await refused("a")

    world.run(server, work)
    with pytest.raises(ValueError, match="per_second"):
        segue.middleware.limit_rate(0)


def test_errors_are_masked(world: ServerWorld) -> None:
    server = segue.Server("masked")
    masked: list[str] = []

    @server.tool
    async def fail(kind: str) -> None:
        raise {
            "value": ValueError("a value"),
            "key": KeyError("a key"),
            "tool": segue.ToolError("a tool"),
        }[kind]

    @server.resource("file://none")
    async def none() -> str:
        raise FileNotFoundError("/etc/none")

    server.use(
        segue.middleware.mask_errors(
            "Ask the operator",
            show=(ValueError,),
            on_error=lambda call, error: masked.append(f"{call.name}: {error}"),
        )
    )

    async def work(session: Any) -> None:
        async def text_of(**arguments: str) -> str:
            with pytest.raises(segue.ToolError) as caught:
                await session.call("fail", **arguments)
            return caught.value.message

        assert await text_of(kind="value") == "a value"
        assert await text_of(kind="key") == "Ask the operator"
        assert await text_of(kind="tool") == "a tool"
        assert 'unknown argument "sort"' in await text_of(sort="key")
        with pytest.raises(segue.RemoteError, match="Resource not found"):
            await read(session, "file://none")
        assert masked == ["fail: 'a key'"]

    world.run(server, work)


def test_a_handler_runs_again_unless_it_has_sent(world: ServerWorld) -> None:
    server = segue.Server("again")
    runs: list[str] = []
    pauses: list[float] = []

    def count(name: str, until: int) -> None:
        runs.append(name)
        if runs.count(name) < until:
            raise ConnectionError(name)

    @server.tool
    def plain() -> str:
        count("plain", 3)
        return "plain"

    @server.tool
    async def never() -> str:
        count("never", 9)
        return "never"

    @server.tool
    async def stream() -> AsyncIterator[str]:
        count("stream", 2)
        yield "stream"

    @server.tool
    async def sends() -> AsyncIterator[str]:
        yield "begun"
        count("sends", 2)

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    server.use(segue.middleware.retry(2, delay=0.5, sleep=pause))

    async def work(session: Any) -> None:
        assert (await session.call("plain")).text == "plain"
        assert pauses == [0.5, 1.0]
        assert (await session.call("stream")).text == "stream"
        for name in ("never", "sends"):
            with pytest.raises(segue.ToolError):
                await session.call(name)
        assert [runs.count(name) for name in ("plain", "never", "stream", "sends")] == [
            3,
            3,
            2,
            1,
        ]

    world.run(server, work)
