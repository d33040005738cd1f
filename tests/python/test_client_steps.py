"""The steps of `async for` over segments: what a step takes, and what a loop that ends
early leaves behind. The server runs in the same process, so that many segments arrive
together."""

from __future__ import annotations

import asyncio
import collections.abc
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

import segue
from segue import _segue, testing

pytestmark = pytest.mark.usefixtures("nothing_left")

told: list[bool] = []  # not empty = the tool `fails` may fail
Work = Callable[[segue.Session], Coroutine[Any, Any, None]]


def run(work: Work) -> None:
    """Runs the work with a session of a server that has a few tools."""
    server = segue.Server("steps")
    told.clear()

    @server.tool
    async def count(n: int) -> AsyncIterator[str]:
        for i in range(1, n + 1):
            yield f"segment {i}"

    @server.tool
    async def fails(n: int) -> AsyncIterator[str]:
        for i in range(1, n + 1):
            yield f"segment {i}"
        while not told:  # until the client has the segments
            await asyncio.sleep(0)
        raise segue.McpError(4711, "broken")

    async def main() -> None:
        async with testing.Lab() as lab:
            await work(await lab.connect(server))

    asyncio.run(main())


async def arrived(stream: segue.Stream, count: int) -> Any:
    """Waits until this many segments are in the queue; returns the queue."""
    await stream.started()
    flow = stream._flow
    while len(flow.queue) < count:
        await flow.change()
    return flow.queue


def test_a_step_that_nobody_awaits_takes_nothing() -> None:
    async def work(session: segue.Session) -> None:
        stream = session.stream("count", n=3)
        queue = await arrived(stream, 3)
        step = stream.__anext__()
        assert isinstance(step, collections.abc.Coroutine)
        step.close()
        assert len(queue) == 3
        with pytest.raises(RuntimeError, match="already awaited"):
            await step
        assert [s.number async for s in stream] == [1, 2, 3]

    run(work)


def test_a_step_that_is_cancelled_takes_nothing() -> None:
    async def work(session: segue.Session) -> None:
        stream = session.stream("count", n=3)
        await arrived(stream, 3)
        task = asyncio.create_task(stream.__anext__())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await asyncio.create_task(stream.__anext__())).number == 1
        assert (await asyncio.wait_for(anext(stream), 60)).number == 2
        waits = session.stream("count", n=1)
        task = asyncio.create_task(waits.__anext__())
        await asyncio.sleep(0)  # the step waits, because nothing has come
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [s.number async for s in waits] == [1]

    run(work)


def test_two_loops_share_the_segments() -> None:
    async def work(session: segue.Session) -> None:
        stream = session.stream("count", n=400)

        async def read() -> list[int]:
            return [s.number async for s in stream]

        first, second = await asyncio.gather(read(), read())
        assert sorted(first + second) == [*range(1, 401)]

    run(work)


def test_a_step_is_for_one_await() -> None:
    async def work(session: segue.Session) -> None:
        stream = session.stream("count", n=3)
        await arrived(stream, 3)
        step = stream.__anext__()
        assert (await step).number == 1
        with pytest.raises(RuntimeError, match="already awaited"):
            await step
        with pytest.raises(RuntimeError, match="already awaited"):
            step.throw(ValueError())
        assert (await anext(stream)).number == 2

    run(work)


def test_a_break_in_a_batch_releases_the_rest() -> None:
    async def work(session: segue.Session) -> None:
        async with session.stream("count", n=100000) as stream:
            queue = await arrived(stream, 100)
            async for segment in stream:
                if segment.number == 10:
                    break
            assert len(queue) >= 90
        assert len(queue) == 0 and stream.done
        assert [s async for s in stream] == []

    run(work)


def test_the_window_bounds_what_waits() -> None:
    async def work(session: segue.Session) -> None:
        stream = session.stream("count", n=2000, window=16)
        most = 0
        async for segment in stream:
            most = max(most, len(stream._flow.queue))
            if segment.number % 100 == 0:
                for _ in range(5):  # a slow reader; the server has time for more
                    await session.ping()
                most = max(most, len(stream._flow.queue))
        assert 0 < most <= 16

    run(work)


def test_an_error_behind_a_batch_comes_behind_its_segments() -> None:
    async def work(session: segue.Session) -> None:
        stream = session.stream("fails", n=100)
        await arrived(stream, 100)
        told.append(True)
        numbers = []
        with pytest.raises(segue.RemoteError) as caught:
            async for segment in stream:
                numbers.append(segment.number)
        assert numbers == [*range(1, 101)]
        assert caught.value.code == 4711
        assert caught.value.partial.text.endswith("segment 100")

    run(work)


def test_cancelled_in_a_batch_the_stream_ends() -> None:
    async def work(session: segue.Session) -> None:
        stream = session.stream("count", n=100000, window=64)
        numbers = []
        async for segment in stream:
            numbers.append(segment.number)
            if segment.number == 10:
                await stream.cancel()
        assert numbers == [*range(1, 11)]
        assert len(stream._flow.queue) == 0

    run(work)


def test_the_queue_refuses_what_is_no_segment() -> None:
    queue = _segue.SegmentQueue(2)
    with pytest.raises(TypeError):
        queue.extend([1])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        queue.extend((1,))  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        queue.take()
    assert len(queue) == 0 and queue.take_all() == [] and queue.settle() == 0
    assert queue.last == 0 and queue.newest == 0 and not queue.is_due


def test_the_queue_keeps_the_order_while_it_grows() -> None:
    async def work(session: segue.Session) -> None:
        segments = [s async for s in session.stream("count", n=500)]
        queue = _segue.SegmentQueue(100)
        taken = []
        for at in range(0, 500, 50):  # the ring turns and grows
            queue.extend(segments[at : at + 50])
            taken += [queue.take() for _ in range(30)]
        assert queue.is_due and queue.settle() == 300 and not queue.is_due
        assert queue.newest == 500 and queue.last == 300
        taken += queue.take_all()
        assert taken == segments and len(queue) == 0
        queue.extend(segments)
        queue.clear()
        assert len(queue) == 0 and queue.newest == queue.last == 500

    run(work)
