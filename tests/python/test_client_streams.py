"""Results that are read while they are made."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

import segue
from client_worlds import World, is_cancelled, longer_and_longer, run


def story(*numbers: int) -> list[str]:
    return [f"segment {n} of the story" for n in numbers]


def test_segments_come_in_order(world: World) -> None:
    """AS-4: segments come as they are made."""

    async def work() -> None:
        async with world.session() as session:
            stream = session.stream("story", n=5)
            with pytest.raises(segue.StateError):
                _ = stream.result
            assert stream.token is None and stream.task_id is None
            segments = [segment async for segment in stream]
            assert [s.number for s in segments] == [1, 2, 3, 4, 5]
            assert [s.text for s in segments] == story(1, 2, 3, 4, 5)
            assert [s.index for s in segments] == [0, 1, 2, 3, 4]
            assert all(s.type == "text" and not s.replaces for s in segments)
            assert stream.done
            assert stream.result.text == "".join(story(1, 2, 3, 4, 5))

    run(work)


def test_a_plain_result_is_segments_too(world: World) -> None:
    async def work() -> None:
        async with world.session() as session, session.stream("greet") as stream:
            assert [s.text async for s in stream] == ["Hello, World!"]
            assert stream.result.text == "Hello, World!"
            assert stream.task_id is None

    run(work)


def test_a_slow_reader_holds_up_the_server(world: World) -> None:
    """AS-4: a slow reader."""

    async def work() -> None:
        async with world.session() as session:
            stream = session.stream("story", n=300, window=4)
            texts = []
            async for segment in stream:
                assert len(stream._flow.queue) <= 4  # type: ignore[union-attr]
                texts.append(segment.text)
                if segment.number % 50 == 0:
                    await session.call("greet")  # other requests go on
            assert texts == story(*range(1, 301))
            with pytest.raises(ValueError):
                session.stream("story", window=0)

    run(work)


def test_blocks_of_all_kinds(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            stream = session.stream("media")
            blocks = [segment.content async for segment in stream]
            assert [type(block) for block in blocks] == [
                type(block) for block in stream.result.content
            ]
            assert any(isinstance(block, segue.Image) for block in blocks)
            greeting = [segment async for segment in session.stream("greet")]
            assert greeting[0].content == segue.Text("Hello, World!")
            assert str(greeting[0]) == "Hello, World!"

    run(work)


def test_batches(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            stream = session.stream("story", n=500)
            batches = [batch async for batch in stream.batches()]
            assert [s.number for batch in batches for s in batch] == [*range(1, 501)]
            assert stream.result.text.endswith("segment 500 of the story")

    run(work)


def test_results_that_are_not_collected(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            stream = session.stream("story", n=20, delayMs=1, collect=False)
            assert len([s async for s in stream]) == 20
            assert stream.result.content == []
            assert (await session.stream("story", n=20).collect()).text

    run(work)


def test_a_tool_that_fails_behind_segments(world: World) -> None:
    """AS-11: a failure ends in a result with isError."""

    async def work() -> None:
        async with world.session() as session:
            seen = []
            stream = session.stream("fail_after", n=2)
            with pytest.raises(segue.ToolError, match="The job failed"):
                async for segment in stream:
                    seen.append(segment.text)
            assert seen[:2] == story(1, 2)
            stream = session.stream("fail_after", n=2, raise_on_error=False)
            async for _ in stream:
                pass
            assert stream.result.is_error

    run(work)


def test_large_results_are_decoded_when_asked_for(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            stream = session.stream("story", n=40, chunk=4000)
            assert len([s async for s in stream]) == 40
            assert stream._result is None
            assert len(stream.result.text) > 100_000
            with pytest.raises(segue.ToolError):
                async for _ in session.stream("fail_after", n=40, chunk=4000):
                    pass

    run(work)


def test_an_error_of_the_server_has_what_came(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            with pytest.raises(segue.RemoteError) as caught:
                async for _ in session.stream("no such tool"):
                    pass
            assert caught.value.code == -32602
            count = 0
            for limit in longer_and_longer(0.1):
                stream = session.stream("story", n=100000, delayMs=20, timeout=limit)
                with pytest.raises(segue.RequestTimeoutError) as late:
                    async for _ in stream:
                        count += 1
                if count:
                    break
            assert isinstance(late.value.partial, segue.Result)
            assert late.value.partial.text.startswith("segment 1 of the story")

    run(work)


def test_who_leaves_early_cancels(world: World) -> None:
    """AS-10: a stream that is cancelled."""

    async def work() -> None:
        async with world.session() as session:
            async with session.stream("story", n=100000, delayMs=5) as stream:
                async for segment in stream:
                    if segment.number == 2:
                        break
            assert stream.done and not [s async for s in stream]
            if stream.task_id is not None:
                assert await is_cancelled(session.task(stream.task_id))

    run(work)


@pytest.mark.parametrize("era", ["legacy"])
def test_a_call_that_can_be_resumed_has_started(world: World) -> None:
    """The token is there before anything else."""

    async def work() -> None:
        async with world.session() as session:
            stream = await session.stream("hang_plain").started()
            assert stream.task_id is None and stream.take() is None and not stream.done
            assert stream.token is not None
            task = await session.start("hang_plain")
            assert task.id is None and (await task.status()).status == "working"
            await task.cancel()
            await stream.cancel()

    run(work)


def test_a_stream_that_nobody_holds_is_cancelled(world: World) -> None:
    async def work() -> None:
        told: list[str | None] = []

        def on_task(stream: segue.Stream) -> None:
            told.append(stream.task_id)

        async with world.session() as session:
            async for segment in session.stream(
                "story", n=100000, delayMs=5, on_task=on_task
            ):
                if segment.number == 2:
                    break
            gc.collect()
            if told and told[0] is not None:
                assert await is_cancelled(session.task(told[0]))

    run(work)


def test_who_leaves_may_come_back(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            async with session.stream(
                "story", n=10, delayMs=20, on_leave="detach"
            ) as stream:
                async for segment in stream:
                    if segment.number == 3:
                        break
                token = stream.token
            assert (token is not None and not stream.done) or stream.token == token
            task = session.resume(token)
            assert [s.text async for s in task] == story(*range(4, 11))
            assert (await task).text == "".join(story(*range(1, 11)))

    run(work)


def test_a_break_is_no_end_while_the_stream_is_held(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            stream = session.stream("story", n=6)
            async for segment in stream:
                if segment.number == 3:
                    break
            assert [s.text async for s in stream] == story(4, 5, 6)

    run(work)


def test_looking_with_a_time_limit(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            late = 0
            for limit in longer_and_longer(0.01):
                delay = round(3000 * limit)
                stream = session.stream("story", n=4, delayMs=delay)
                texts: list[Any] = []
                while True:
                    try:
                        segment = await asyncio.wait_for(anext(stream), limit)
                    except asyncio.TimeoutError:
                        late += bool(texts)
                        continue
                    except StopAsyncIteration:
                        break
                    texts.append(segment.text)
                assert texts == story(1, 2, 3, 4)
                if late:
                    break

    run(work)


def test_a_cancelled_reader_ends_the_stream(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            ids: list[str | None] = []

            async def read() -> None:
                async with session.stream("story", n=100000, delayMs=5) as stream:
                    async for _ in stream:
                        ids.append(stream.task_id)

            reader = asyncio.ensure_future(read())
            while len(ids) < 3:
                await session.call("greet")
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
            if ids[-1] is not None:
                assert await is_cancelled(session.task(ids[-1]))

    run(work)


def test_many_streams_at_once(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:

            async def read(n: int) -> int:
                return len([s async for s in session.stream("story", n=n)])

            counts = await asyncio.gather(*(read(n) for n in range(1, 60)))
            assert counts == [*range(1, 60)]

    run(work)


def test_segments_in_any_order_have_a_token_all_the_same(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            stream = session.stream("story", n=20, unordered=True)
            numbers, token = [], None
            async for segment in stream:
                numbers.append(segment.number)
                token = stream.token or token
            assert sorted(numbers) == [*range(1, 21)] and token is not None
            again = [s.number async for s in session.resume(token)]
            assert again[-1:] in ([20], []) and stream.result.text

    run(work)


@pytest.mark.parametrize("number", [1, 5, 17, 40])
def test_a_token_covers_what_was_read(world: World, number: int) -> None:
    """C-9: this holds also when more had arrived than was read."""

    async def work() -> None:
        async with world.session() as session:
            stream = session.stream("story", n=60, delayMs=1, window=64)
            read = 0
            token = None
            async for segment in stream:
                read = segment.number
                token = stream.token
                if read >= number and token is not None:
                    break
            assert token is not None
            task = session.resume(token)
            numbers = [s.number async for s in task]
            assert numbers == [*range(read + 1, 61)]
            assert (await task).text == "".join(story(*range(1, 61)))
            await stream.aclose()

    run(work)


FORMS: dict[str, dict[str, Any]] = {
    "task": {},
    "draft": {"draft_tasks": True},
    "keyed": {"tasks": False, "resumable": False},
    "resumable": {"tasks": False},
}


@pytest.mark.parametrize("number", [1, 13])
@pytest.mark.parametrize("form", FORMS)
def test_a_token_covers_what_was_read_when_all_has_come(
    world: World, form: str, number: int
) -> None:
    """The end has arrived, too; another session goes on behind what was read."""

    async def work() -> None:
        async with world.session(**FORMS[form]) as session:
            stream = session.stream("story", n=40, delayMs=1, window=64)
            read = [(await anext(stream)).number for _ in range(number)]
            assert stream._flow is not None
            while stream._flow.outcome is None:
                await asyncio.sleep(0.01)
            token = stream.token
            assert token is not None
            await stream.aclose()
        async with world.session(**FORMS[form]) as session:
            task = session.resume(token)
            read += [s.number async for s in task]
            assert read == [*range(1, 41)]
            assert (await task).text == "".join(story(*range(1, 41)))

    if form != "draft" or world.era == "legacy":
        run(work)
