"""A tool is called: results, errors, progress, log messages, time."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import msgspec
import pydantic
import pytest

import segue
from client_worlds import World, longer_and_longer, run
from programs import program, server_command
from segue import _segue
from segue._waits import go_on
from segue.client.flow import Callbacks, Exchange


class Person(msgspec.Struct):
    name: str


def test_a_call_and_its_result(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            result = await session.call("greet", name="Ada")
            assert result.text == "Hello, Ada!"
            assert not result.is_error and result.structured is None
            assert (await session.call("greet", {"name": "Bob"})).text == "Hello, Bob!"
            with pytest.raises(TypeError, match="argument 'name' is given twice"):
                await session.call("greet", {"name": "Cy"}, name="Di")
            model: Any = Person
            with pytest.raises(TypeError, match=r"not the class Person: pass Person\("):
                await session.call("greet", model)

    run(work)


def test_a_session_that_is_awaited(world: World) -> None:
    async def work() -> None:
        session = await segue.connect(world.target)
        assert (await session.call("greet")).text == "Hello, World!"
        await session.close()
        await session.close()
        with pytest.raises(segue.ClosedError):
            await session.call("greet")

    run(work)


def test_structured_results(world: World) -> None:
    class Sum(msgspec.Struct):
        sum: int

    async def work() -> None:
        async with world.session() as session:
            result = await session.call("add", a=2, b=40)
            assert result.structured == {"sum": 42}
            assert result.decode(Sum).sum == 42

    run(work)


def test_all_kinds_of_blocks(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            blocks = (await session.call("media")).content
            assert any(isinstance(block, segue.Image) and block.data for block in blocks)
            assert any(isinstance(block, segue.Audio) for block in blocks)

    run(work)


def test_a_tool_that_fails(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            with pytest.raises(segue.ToolError, match="failed on purpose") as caught:
                await session.call("fail")
            assert caught.value.result is not None and caught.value.result.is_error
            result = await session.call("fail", raise_on_error=False)
            assert result.is_error and result.text == "failed on purpose"
        async with world.session(raise_on_error=False) as session:
            assert (await session.call("fail")).is_error

    run(work)


def test_errors_of_the_server(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            with pytest.raises(segue.RemoteError) as caught:
                await session.call("no such tool")
            assert caught.value.code == -32602
            with pytest.raises(segue.RemoteError) as caught:
                await session.call("protocol_error_job")
            assert caught.value.code == -32603
            assert caught.value.data == {"hint": "on purpose"}
            with pytest.raises(segue.RemoteError) as caught:
                await session.request("no/such/method")
            assert caught.value.code == -32601
            assert (await session.call("greet")).text == "Hello, World!"

    run(work)


def test_progress_and_log(world: World) -> None:
    async def work() -> None:
        told: list[Any] = []
        logged: list[segue.LogMessage] = []

        async def on_progress(now: float, total: float | None, text: str | None) -> None:
            told.append((now, total, text))

        async with world.session(on_log=logged.append, log_level="debug") as session:
            await session.call("steps", n=3, on_progress=on_progress)
            assert [now for now, _, _ in told] == [1, 2, 3]
            await session.call("chatty", n=2)
            assert logged and all(isinstance(m, segue.LogMessage) for m in logged)

    run(work)


def test_what_was_told_comes_before_the_end(world: World) -> None:
    """This holds also when both come at once and the callback is a coroutine."""

    async def work() -> None:
        told: list[float] = []

        async def on_progress(now: float, total: float | None, text: str | None) -> None:
            told.append(now)

        async with world.session() as session:
            exchange = Exchange(session, Callbacks(progress=on_progress))
            runtime = session.runtime

            async def wait() -> list[float]:
                await exchange.wait()
                return list(told)

            def events() -> None:
                woken: list[Any] = []
                runtime._woken = woken
                exchange.on_event(_segue.PROGRESS, 1.0, None, None)
                exchange.on_event(_segue.COMPLETE, 0, b"{}", None)
                runtime._woken = None
                go_on(runtime.handle, woken)

            waiting = asyncio.ensure_future(wait())
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(events)
            assert await waiting == [1.0]

    run(work)


def test_time_is_over(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            with pytest.raises(TimeoutError) as caught:
                await session.call("hang_plain", timeout=0.05)
            assert isinstance(caught.value, segue.RequestTimeoutError)
            assert caught.value.retryable
            for none in (-1, float("nan"), "5"):
                with pytest.raises((TypeError, ValueError), match="a time has to be"):
                    await session.call("greet", timeout=none)  # type: ignore[arg-type]
            assert (await session.call("greet", timeout=float("inf"))).text
        async with world.session(timeout=0.05) as session:
            with pytest.raises(segue.RequestTimeoutError):
                await session.call("hang_plain")
            assert (await session.call("greet", timeout=None)).text

    run(work)


def test_a_task_goes_on_when_time_is_over(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            # on a busy machine the time may be over before the server has made the task
            for limit in longer_and_longer(0.05):
                with pytest.raises(segue.RequestTimeoutError) as caught:
                    await session.call("hang", timeout=limit)
                if caught.value.token is None:
                    continue
                task = session.resume(caught.value.token)
                try:
                    assert (await task.status()).status == "working"
                    break
                except segue.StateError:
                    await task.cancel()
            await task.cancel()
            with pytest.raises(segue.RequestCancelledError):
                await task.result()

    run(work)


def test_cancelled_by_asyncio(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            task = asyncio.ensure_future(session.call("hang_plain"))
            assert (await session.call("greet")).text  # the call is under way by now
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(session.call("hang"), 0.05)
            early = asyncio.ensure_future(session.call("greet"))
            early.cancel()
            with pytest.raises(asyncio.CancelledError):
                await early
            assert (await session.call("greet")).text == "Hello, World!"

    run(work)


def test_the_session_is_closed_under_a_call(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            hanging = asyncio.ensure_future(session.call("hang_plain"))
            await session.call("greet")
        with pytest.raises(segue.ClosedError):
            await hanging

    run(work)


def test_many_at_once(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            calls = [session.call("greet", name=str(i)) for i in range(500)]
            results = await asyncio.gather(*calls)
            assert [r.text for r in results] == [f"Hello, {i}!" for i in range(500)]

    run(work)


def test_a_callback_that_fails_is_reported(world: World) -> None:
    async def work() -> None:
        reported: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context["exception"])
        )

        def on_progress(*_: Any) -> None:
            raise LookupError("mine")

        async def later(*_: Any) -> None:
            raise LookupError("later")

        async with world.session() as session:
            await session.call("steps", n=1, on_progress=on_progress)
            await session.call("steps", n=1, on_progress=later)
        assert [str(e) for e in reported] == ["mine", "later"]
        asyncio.get_running_loop().set_exception_handler(None)

    run(work)


def test_a_key_makes_two_calls_one(world: World) -> None:
    """AS-38a: calls with the same key run once."""

    async def work() -> None:
        async with world.session() as session:
            start = {
                "ms": 100,
                "label": "once",
                "idempotency_key": "the-report-of-monday",
            }
            first = await session.start("slow_compute", **start)
            second = await session.start("slow_compute", **start)
            assert (await first).text == (await second).text
            if first.id is not None and world.era == "modern":
                assert first.id == second.id

    run(work)


# ---- the target and the options


def test_targets_that_are_none(nothing_left: None) -> None:
    async def work() -> None:
        for target, error in (
            ("example.com/mcp", ValueError),
            ("ftp://example.com/mcp", ValueError),
            ("", ValueError),
            ([], ValueError),
            (7, TypeError),
        ):
            with pytest.raises(error):
                await segue.connect(target)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="no option 'timeoutt'"):
            await segue.connect("http://127.0.0.1:1/mcp", timeoutt=1)  # type: ignore
        with pytest.raises(ValueError, match=r"unknown era: .*; the eras are"):
            await segue.connect("http://127.0.0.1:1/mcp", era="old")  # type: ignore
        with pytest.raises(segue.InvalidError):
            await segue.connect("http://127.0.0.1:1/mcp", headers={"a b": "c"})
        with pytest.raises(segue.SpawnError):
            await segue.connect(["/no/such/program"])

    run(work)


def test_a_server_that_is_not_there(nothing_left: None) -> None:
    async def work() -> None:
        with pytest.raises(segue.DisconnectedError, match="Failed to connect"):
            await segue.connect("http://127.0.0.1:1/mcp")
        with pytest.raises(segue.RequestTimeoutError, match="could not be reached"):
            await segue.connect(
                "http://127.0.0.1:1/mcp", connect_timeout=0.3, connect_attempts=100
            )
        with pytest.raises(segue.Error):
            await segue.connect(["true"])

    run(work)


def test_standard_error_of_a_child(nothing_left: None) -> None:
    async def work() -> None:
        lines: list[str] = []
        server = program("tools/fixture_server")
        script = f'echo "$GREETING from $PWD" >&2; exec "{server}"'
        async with segue.connect(
            ["sh", "-c", script],
            env={"GREETING": "hello"},
            cwd="/",
            on_stderr=lines.append,
        ) as session:
            assert (await session.call("greet")).text
        assert lines == ["hello from /"]

    run(work)


def test_the_last_lines_of_a_child_come_before_its_session_is_closed(
    nothing_left: None,
) -> None:
    async def work() -> None:
        lines: list[str] = []
        server = program("tools/fixture_server")
        script = f'"{server}"; sleep 0.3; seq 1000 >&2; printf unended >&2'
        session = await segue.connect(["sh", "-c", script], on_stderr=lines.append)
        await session.close()
        assert lines == [*map(str, range(1, 1001)), "unended"]

    run(work)


def test_a_child_that_does_not_end_is_not_waited_for(nothing_left: None) -> None:
    async def work() -> None:
        lines: list[str] = []
        server = program("tools/fixture_server")
        script = f'trap "echo told >&2" TERM; "{server}"; while :; do sleep 0.1; done'
        session = await segue.connect(["sh", "-c", script], on_stderr=lines.append)
        await asyncio.wait_for(session.close(), 20)
        assert lines == ["told"]

    run(work)


def test_a_command_that_is_no_server(nothing_left: None) -> None:
    async def work() -> None:
        with pytest.raises(segue.Error):
            await segue.connect(["cat"], connect_timeout=0.5)

    run(work)


def test_a_server_started_twice_from_one_loop(nothing_left: None) -> None:
    async def work() -> None:
        async with (
            segue.connect(server_command()) as one,
            segue.connect(server_command()) as other,
        ):
            a, b = await asyncio.gather(one.call("greet"), other.call("greet"))
            assert a.text == b.text

    run(work)


@dataclasses.dataclass
class Place:
    x: int
    name: str = "here"


class Route(pydantic.BaseModel):
    start: Place
    via: list[int] = pydantic.Field(default=[1], alias="through")


class Goal(msgspec.Struct):
    x: int


def test_models_are_arguments(nothing_left: None) -> None:
    server = segue.Server("models")
    given: list[Any] = []

    @server.tool
    def take(**arguments: Any) -> None:
        given.append(arguments)

    route = {"start": {"x": 1, "name": "here"}, "through": [1]}

    async def work() -> None:
        async with segue.connect(server) as session:
            await session.call("take", a=Route(start=Place(1)), b=Place(2), c=Goal(3))
            assert given.pop() == {
                "a": route,
                "b": {"x": 2, "name": "here"},
                "c": {"x": 3},
            }
            for whole, told in (
                (Route(start=Place(1)), route),
                (Place(2), {"x": 2, "name": "here"}),
                (Goal(3), {"x": 3}),
            ):
                await session.call("take", whole)
                assert given.pop() == told
                await session.call("take", whole, more=1)
                assert given.pop() == {**told, "more": 1}
                async for _ in session.stream("take", whole):
                    pass
                assert given.pop() == told
                await (await session.start("take", whole)).result()
                assert given.pop() == told
            wrong: Any = [1]
            with pytest.raises(TypeError, match="a mapping, a model or a dataclass"):
                await session.call("take", wrong)
            with pytest.raises(TypeError, match="cannot be encoded"):
                await session.call("take", a=object())

    run(work)
