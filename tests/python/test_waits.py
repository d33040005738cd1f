"""Tasks that go on in the same turn of the loop that brings what they wait for, and
output that is held back until then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import segue
from segue import _runtime, _segue, _waits, errors
from segue._waits import Wait, go_on
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811
SECONDS = 120


def new_wait() -> Wait:
    return Wait(loop=asyncio.get_running_loop())


async def from_loop(call: Callable[[], Any]) -> Any:
    """Calls the function from the loop, outside of any task."""
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def work() -> None:
        try:
            done.set_result(call())
        except Exception as error:
            done.set_exception(error)

    asyncio.get_running_loop().call_soon(work)
    return await asyncio.wait_for(done, SECONDS)


def nothing_is_corked(runtime: _runtime.Runtime) -> bool:
    try:
        _segue.runtime_uncork(runtime.handle)
    except errors.StateError:
        return True
    return False


class Tasks:
    """Tasks that wait, note when they go on, and then do something."""

    def __init__(self, *acts: Callable[[], object]) -> None:
        self.said: list[int] = []
        self.waits = [new_wait() for _ in acts]
        self.tasks = [
            asyncio.ensure_future(self.one(number, act))
            for number, act in enumerate(acts)
        ]

    async def one(self, number: int, act: Callable[[], object]) -> None:
        await self.waits[number]
        self.said.append(number)
        act()

    async def ended(self) -> list[object]:
        return await asyncio.wait_for(
            asyncio.gather(*self.tasks, return_exceptions=True), SECONDS
        )


def nothing() -> None:
    pass


def test_tasks_go_on_at_once_and_in_order(nothing_left: None) -> None:
    async def work() -> None:
        runtime = _runtime.current()
        tasks = Tasks(nothing, nothing, nothing)
        await asyncio.sleep(0)

        def wake() -> list[int]:
            go_on(runtime.handle, tasks.waits)
            return list(tasks.said)

        assert await from_loop(wake) == [0, 1, 2]
        assert nothing_is_corked(runtime)
        await tasks.ended()

    run(work)


def test_none_goes_on_within_another(nothing_left: None) -> None:
    async def work() -> None:
        runtime = _runtime.current()
        tasks = Tasks(nothing, nothing)
        await asyncio.sleep(0)
        go_on(runtime.handle, tasks.waits)
        assert tasks.said == []
        await tasks.ended()
        assert tasks.said == [0, 1]

    run(work)


def test_one_that_is_cancelled_is_nobody_elses_end(nothing_left: None) -> None:
    async def work() -> None:
        runtime = _runtime.current()
        tasks = Tasks(nothing, nothing, nothing)
        await asyncio.sleep(0)
        tasks.tasks[1].cancel()
        await from_loop(lambda: go_on(runtime.handle, tasks.waits))
        ends = await tasks.ended()
        assert [type(one) for one in ends] == [
            *(type(None), asyncio.CancelledError, type(None))
        ]
        assert tasks.said == [0, 2]
        tasks = Tasks(lambda: tasks.tasks[1].cancel(), nothing)
        await asyncio.sleep(0)
        await from_loop(lambda: go_on(runtime.handle, tasks.waits))
        assert type((await tasks.ended())[1]) is asyncio.CancelledError

    run(work)


def test_one_that_is_awaited_when_it_is_over(nothing_left: None) -> None:
    async def work() -> None:
        wait = new_wait()
        wait.wake()
        wait.wake()
        await asyncio.wait_for(wait, SECONDS)
        wait = new_wait()
        wait.wake_now()
        await wait

    run(work)


def test_an_interrupt_leaves_nothing_corked_and_nobody_waiting(
    nothing_left: None,
) -> None:
    """KeyboardInterrupt of one task ends the loop; others go on when it runs again."""
    loop = asyncio.new_event_loop()
    made: list[Any] = []

    def interrupt() -> None:
        raise KeyboardInterrupt

    async def begin() -> None:
        runtime = _runtime.current()
        tasks = Tasks(nothing, interrupt, nothing)
        made.extend((runtime, tasks))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(go_on, runtime.handle, tasks.waits)
        await asyncio.Event().wait()

    async def end() -> None:
        runtime, tasks = made
        assert nothing_is_corked(runtime)
        await asyncio.wait_for(tasks.tasks[2], SECONDS)
        assert tasks.said == [0, 1, 2]
        with pytest.raises(KeyboardInterrupt):
            tasks.tasks[1].result()
        await runtime.aclose()

    try:
        begun = loop.create_task(begin())
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(begun)
        begun.cancel()
        loop.run_until_complete(end())
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def test_a_task_that_ends_the_runtime(nothing_left: None) -> None:
    async def work() -> None:
        runtime = _runtime.current()
        tasks = Tasks(runtime.close, nothing)
        await asyncio.sleep(0)
        await from_loop(lambda: go_on(runtime.handle, tasks.waits))
        assert await tasks.ended() == [None, None]

    run(work)


def test_calls_that_are_answered_together_leave_together(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages that the tasks of one batch send are held back until all tasks have gone
    on."""
    server = segue.Server("echo")
    told: list[str] = []

    def noted(name: str) -> Callable[[Any], None]:
        function = getattr(_segue, name)

        def call(runtime: Any) -> None:
            told.append(name)
            function(runtime)

        return call

    class Noted:
        runtime_cork = staticmethod(noted("runtime_cork"))
        runtime_uncork = staticmethod(noted("runtime_uncork"))

    monkeypatch.setattr(_waits, "_segue", Noted)

    @server.tool(thread=False)
    def echo(n: int) -> int:
        return n

    async def work() -> None:
        async with segue.connect(server) as session:
            start = _segue.request_start
            corked: list[bool] = []

            def starting(*args: Any) -> Any:
                corked.append(told[-1:] == ["runtime_cork"])
                return start(*args)

            async def several(n: int) -> None:
                for _ in range(20):
                    assert (await session.call("echo", n=n)).text == str(n)

            monkeypatch.setattr(_segue, "request_start", starting)
            await asyncio.gather(*(several(n) for n in range(20)))
            assert any(corked) and not corked[0]
            assert nothing_is_corked(session.runtime)

    run(work)
    assert told == ["runtime_cork", "runtime_uncork"] * (len(told) // 2)
