"""What a caller gets when the server was killed and has no store: the same error in both
eras, from each method."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import segue
from server_worlds import nothing_left, run  # noqa: F401
from test_server_running import Program, free_port

# ruff: noqa: F811

both = pytest.mark.parametrize("era", ["auto", "legacy"])


async def iterate(task: segue.Task) -> None:
    async for _ in task:
        pass


METHODS: dict[str, Callable[[segue.Task], Awaitable[Any]]] = {
    "result": lambda task: task.result(),
    "status": lambda task: task.status(),
    "iterate": iterate,
    "cancel": lambda task: task.cancel(),
}


@both
def test_a_lost_task_is_lost_for_each_method(nothing_left: None, era: Any) -> None:
    port = free_port()

    async def begin(program: Program) -> tuple[segue.Task, str, Any]:
        session = await segue.connect(program.url, era=era)
        task = await session.start("count", {"to": 2, "pause_at": 2})
        async for _ in task:
            break
        return task, str(task.token), session

    async def work() -> None:
        with Program(port=port) as program:
            task, token, session = await begin(program)
            assert task.id is not None
            program.child.kill()
        with Program(port=port):
            for method in METHODS.values():
                for again in (session.task(task.id), session.resume(token)):
                    with pytest.raises(segue.TaskLostError) as lost:
                        await method(again)
                    assert isinstance(lost.value.partial, segue.Result)
            with pytest.raises(segue.TaskLostError) as lost:
                await task.result()
            assert lost.value.partial.text == "1 "
            await session.close()

    run(work)


@both
@pytest.mark.parametrize("reads", [True, False], ids=["stream", "call"])
def test_a_cut_call_is_disconnected_with_what_came(
    nothing_left: None, era: Any, reads: bool
) -> None:
    async def work() -> None:
        options: Any = {"era": era, "tasks": False, "reconnect_timeout": 0.5}
        with Program() as program:
            async with segue.connect(program.url, **options) as session:
                stream = session.stream("count", to=3, pause_at=3)
                seen = [(await stream.__anext__()).text for _ in range(2)]
                call = asyncio.ensure_future(session.call("count", to=3, pause_at=1))
                await session.ping()  # the call has been sent
                program.child.kill()
                with pytest.raises(segue.DisconnectedError) as cut:
                    await (stream.collect() if reads else call)
                assert cut.value.retryable
                assert cut.value.partial.text == ("".join(seen) if reads else "")
                for other in (call, stream.collect()):
                    with pytest.raises(segue.DisconnectedError):
                        await other

    run(work)


async def cut(call: Awaitable[Any]) -> None:
    with pytest.raises(segue.DisconnectedError) as error:
        await call
    assert error.value.retryable
    assert isinstance(error.value.partial, segue.Result)


@both
def test_the_end_of_a_server_cuts_plain_calls_off(nothing_left: None, era: Any) -> None:
    """The handler is cancelled without a time to end."""

    async def work(program: Program) -> None:
        async with segue.connect(program.url, era=era, max_reconnects=-1) as session:
            begun = asyncio.Event()
            call = asyncio.ensure_future(
                session.call("gate", name="a", on_progress=lambda *_: begun.set())
            )
            await begun.wait()
            program.signal(signal.SIGTERM)
            await cut(call)

    with Program("--drain", "0") as program:
        run(lambda: work(program))


@both
def test_a_restart_with_a_store_disconnects_plain_calls(
    nothing_left: None, tmp_path: Path, era: Any
) -> None:
    """A task is lost, and a plain call is cut off, as without a store."""
    port = free_port()
    store = ("--store", str(tmp_path / "calls.db"))

    async def work() -> None:
        with Program(*store, port=port) as program:
            session = await segue.connect(program.url, era=era)
            begun = asyncio.Event()
            call = asyncio.ensure_future(
                session.call("gate", name="a", on_progress=lambda *_: begun.set())
            )
            task = await session.start("lost")
            await begun.wait()
            program.child.kill()
        with Program(*store, port=port):
            await cut(call)
            with pytest.raises(segue.TaskLostError):
                await task.result()
            await session.call("open", name="b")
            await session.close()

    run(work)


@both
def test_a_token_chooses_its_era(nothing_left: None, era: Any) -> None:
    async def work() -> None:
        with Program() as program:
            async with segue.connect(program.url, era=era) as session:
                task = await session.start("count", {"to": 2, "pause_at": 2})
                async for _ in task:
                    break
                token = str(task.token)
            async with segue.resume(token, program.url) as again:
                assert (await again.status()).status == "working"

    run(work)
