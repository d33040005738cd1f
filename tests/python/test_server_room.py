"""Sends that wait for room: the sends of one handler keep their order, whichever of its
tasks or threads they come from, and every waiter goes on in the end."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import segue
from segue import _segue
from segue.server import context
from segue.server.room import Room, ThreadRoom, together
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811
SECONDS = 120


# ---- in handlers


class Library:
    """Refuses sends until it has room, and reports that later."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.has_room = False
        send_text = _segue.call_send_text

        def refusing(call: Any, text: str) -> bool:
            return self.has_room and send_text(call, text)

        monkeypatch.setattr(_segue, "call_send_text", refusing)
        monkeypatch.setattr(context, "_send_text", refusing)

    def make_room(self, ctx: segue.Context) -> None:
        self.has_room = True
        loop = asyncio.get_running_loop()
        loop.call_soon(ctx._on_event, _segue.DRAIN, None, None, None)


@pytest.fixture
def library(nothing_left: None, monkeypatch: pytest.MonkeyPatch) -> Library:
    return Library(monkeypatch)


def called(server: segue.Server, tool: str) -> str:
    text = ""

    async def work() -> None:
        nonlocal text
        async with segue.connect(server) as session:
            text = (await session.call(tool)).text

    run(work)
    return text


def test_sends_of_several_tasks_keep_their_order(library: Library) -> None:
    server = segue.Server("several")

    @server.tool
    async def several(ctx: segue.Context) -> None:
        first = asyncio.ensure_future(ctx.send("1", "2"))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(ctx.send("3"))  # runs before there is room
        # runs after there is room, before that is reported
        third = asyncio.ensure_future(ctx.replace("4", "5"))
        library.make_room(ctx)
        await asyncio.gather(first, second, third)
        await ctx.send("6")

    assert called(server, "several") == "456"

    @server.tool
    async def two(ctx: segue.Context) -> None:
        library.has_room = False
        first = asyncio.ensure_future(ctx.send("1", "2"))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(ctx.send("3"))
        library.make_room(ctx)
        await asyncio.gather(first, second)

    assert called(server, "two") == "123"


def test_what_is_yielded_comes_behind_what_waits(library: Library) -> None:
    server = segue.Server("mixed")

    @server.tool
    async def mixed(ctx: segue.Context) -> AsyncIterator[str]:
        sending = asyncio.ensure_future(ctx.send("1"))
        await asyncio.sleep(0)
        library.make_room(ctx)
        yield "2"
        await sending

    assert called(server, "mixed") == "12"


def test_a_send_that_nobody_awaits_ends_with_its_call(library: Library) -> None:
    server = segue.Server("left")
    left: list[asyncio.Future[None]] = []

    @server.tool
    async def leaves(ctx: segue.Context) -> str:
        left.append(asyncio.ensure_future(ctx.send("1")))
        await asyncio.sleep(0)
        library.has_room = True
        return "2"

    @server.tool
    async def look() -> str:
        (one,) = left
        with pytest.raises(segue.ClosedError):
            await one
        return "ended"

    async def work() -> None:
        async with segue.connect(server) as session:
            assert (await session.call("leaves")).text == "2"
            assert (await session.call("look")).text == "ended"

    run(work)


# ---- the queue alone


class Gate:
    """Refuses calls until it is open."""

    def __init__(self) -> None:
        self.is_open = False
        self.passed: list[Any] = []

    def __call__(self, name: Any) -> Callable[[], bool]:
        def attempt() -> bool:
            if self.is_open:
                self.passed.append(name)
            return self.is_open

        return attempt


def test_who_comes_later_waits_behind(nothing_left: None) -> None:
    async def work() -> None:
        room, gate = Room(), Gate()
        first = asyncio.ensure_future(room.take(together([gate("a"), gate("b")])))
        await asyncio.sleep(0)
        gate.is_open = True  # no waiter has been told yet
        second = asyncio.ensure_future(room.take(gate("c")))
        await asyncio.sleep(0)
        assert gate.passed == []
        room.flush()
        await asyncio.wait_for(asyncio.gather(first, second), SECONDS)
        await room.take(gate("d"))
        assert gate.passed == ["a", "b", "c", "d"] and not room.queue

    run(work)


def test_several_go_on_where_they_were_refused() -> None:
    room = [True, False, True, True]
    done: list[str] = []

    def step(name: str) -> Callable[[], bool]:
        def attempt() -> bool:
            has_room = room.pop(0)
            if has_room:
                done.append(name)
            return has_room

        return attempt

    attempt = together([step("a"), step("b"), step("c")])
    assert not attempt() and done == ["a"]
    assert attempt() and done == ["a", "b", "c"]


def test_a_failure_is_that_of_its_own_send(nothing_left: None) -> None:
    async def work() -> None:
        room, gate = Room(), Gate()

        def fails() -> bool:
            raise segue.LimitError()

        waits = [
            asyncio.ensure_future(room.take(one)) for one in (gate(1), fails, gate(2))
        ]
        await asyncio.sleep(0)
        gate.is_open = True
        room.flush()
        told = await asyncio.gather(*waits, return_exceptions=True)
        assert [type(one) for one in told] == [type(None), segue.LimitError, type(None)]
        assert gate.passed == [1, 2]

    run(work)


def test_who_waits_for_room_is_cancelled_alone(nothing_left: None) -> None:
    async def work() -> None:
        room, gate = Room(), Gate()
        waits = [asyncio.ensure_future(room.take(gate(n))) for n in range(4)]
        await asyncio.sleep(0)
        waits[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits[0]
        waits[2].cancel()  # there is room, but the waiter does not know yet
        gate.is_open = True
        room.flush()
        await asyncio.wait(waits, timeout=SECONDS)
        assert [one.cancelled() for one in waits] == [True, False, True, False]
        assert gate.passed == [1, 3] and room.queue == []

    run(work)


def test_nothing_waits_after_the_end(nothing_left: None) -> None:
    async def work() -> None:
        room, gate = Room(), Gate()
        waits = [asyncio.ensure_future(room.take(gate(n))) for n in range(2)]
        await asyncio.sleep(0)
        room.end()
        waits.append(asyncio.ensure_future(room.take(gate(2))))
        for one in waits:
            with pytest.raises(segue.RequestCancelledError):
                await asyncio.wait_for(one, SECONDS)
        assert room.queue == []

    run(work)


# ---- threads


def begun(room: ThreadRoom, attempt: Callable[[], bool]) -> threading.Thread:
    """Starts a thread that waits."""
    waiting = len(room._queue)
    thread = threading.Thread(target=room.take, args=(attempt,), daemon=True)
    thread.start()
    while len(room._queue) == waiting:
        os.sched_yield()
    return thread


def joined(threads: list[threading.Thread]) -> bool:
    for thread in threads:
        thread.join(SECONDS)
    return not any(thread.is_alive() for thread in threads)


def test_threads_keep_their_order() -> None:
    room, gate = ThreadRoom(), Gate()
    threads = [begun(room, gate(n)) for n in range(3)]
    gate.is_open = True  # no thread has been told yet
    threads += [begun(room, gate(n)) for n in range(3, 6)]
    assert gate.passed == []
    room.flush()
    assert joined(threads) and gate.passed == [*range(6)]
    room.take(gate(6))
    assert gate.passed[-1] == 6 and not room._queue


def test_threads_are_let_go_at_the_end() -> None:
    room, gate = ThreadRoom(), Gate()
    ends: list[str] = []

    def waits(attempt: Callable[[], bool]) -> bool:
        try:
            room.take(attempt)
        except segue.RequestCancelledError:
            ends.append("cancelled")
        return True

    threads = [
        threading.Thread(target=waits, args=(gate(n),), daemon=True) for n in range(3)
    ]
    for thread in threads:
        thread.start()
    while len(room._queue) < len(threads):
        os.sched_yield()
    room.end()
    assert joined(threads) and ends == ["cancelled"] * 3
    waits(gate(3))
    assert ends == ["cancelled"] * 4 and not room._queue


def test_a_bell_rings_for_each_thread_that_waits() -> None:
    room = ThreadRoom()
    has_room = threading.Event()
    asked = threading.Barrier(3)

    def attempt() -> bool:
        """Refuses each thread once."""
        if not has_room.is_set():
            asked.wait(SECONDS)
            return False
        return True

    threads = [
        threading.Thread(target=room.take, args=(attempt,), daemon=True) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    asked.wait(SECONDS)
    has_room.set()
    room.flush()
    assert joined(threads)


def test_who_looks_later_takes_nobodys_bell() -> None:
    """A wake-up call for one thread reaches it, though another thread looks meanwhile."""
    room = ThreadRoom()
    looks: list[bool] = []

    def attempt() -> bool:
        looks.append(True)
        # refused; the wake-up call comes, and another thread looks, before this one
        # waits
        if len(looks) == 1:
            room.flush()
            room.take(lambda: True)
            return False
        return True

    thread = threading.Thread(target=room.take, args=(attempt,), daemon=True)
    thread.start()
    assert joined([thread]) and len(looks) == 2
