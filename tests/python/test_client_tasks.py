"""Tasks: ids, tokens, states; resuming them; servers and connections that die."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import segue
from client_worlds import World, is_cancelled, longer_and_longer, run
from programs import HttpServer, Proxy, server_command
from raw_peer import RawPeer


def story(*numbers: int) -> str:
    return "".join(f"segment {n} of the story" for n in numbers)


def test_a_task_from_its_start_to_its_result(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            for seconds in longer_and_longer(0.1):
                ms = round(1000 * seconds)
                task = await session.start("slow_compute", ms=ms, label="x")
                assert task.id and task.token
                status = await task.status()
                assert status.id == task.id
                assert status.raw["taskId"] == task.id and status.ttl_ms
                if status.status == "working":
                    break
            assert (await task.result()).text == "Computed: x"
            assert (await task).text == "Computed: x"
            status = await task.status()
            assert status.status == "completed" and status.is_final

    run(work)


def test_a_call_that_became_no_task(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            task = await session.start("greet", name="Ada")
            assert task.id is None
            assert [s.text async for s in task] == ["Hello, Ada!"]
            assert (await task.result()).text == "Hello, Ada!"
            # With a slow server the call could have been resumed, and has ended by now.
            try:
                assert (await task.status()).is_final
            except (segue.StateError, segue.RemoteError):
                pass
            with pytest.raises(segue.RemoteError):
                await session.start("no such tool")

    run(work)


def test_the_status_of_a_call_that_can_be_resumed(world: World) -> None:
    """R-975-21: by its token, in another session, before and while it is resumed."""

    async def work() -> None:
        async with world.session(tasks=False) as session:
            stream = session.stream("story", n=9000, delayMs=20, on_leave="detach")
            async for _ in stream:
                if stream._flow is not None and not stream._flow.queue:
                    break  # everything that arrived was read: this is the newest token
            token = stream.token
            assert token is not None
            stream.detach()
            for task in (session.task(token), session.resume(token)):
                status = await task.status()
                assert (status.id, task.id, status.is_final) == (None, None, False)
                assert status.status == "working"
                assert status.raw["hasInputRequest"] is False

    if world.era == "legacy":
        run(work)


def test_a_task_is_read(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            task = await session.start("story", n=5, delayMs=5)
            assert [s.number async for s in task] == [1, 2, 3, 4, 5]
            assert (await task.result()).text == story(1, 2, 3, 4, 5)

    run(work)


def test_a_task_whose_segments_nobody_reads(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            task = await session.start("story", n=200, window=2)
            result = await task.result()
            assert result.text == story(*range(1, 201))

    run(work)


def test_a_task_that_fails(world: World) -> None:
    """AS-41: tool errors and RPC errors."""

    async def work() -> None:
        async with world.session() as session:
            task = await session.start("failing_job", ms=50)
            with pytest.raises(segue.ToolError, match="The job failed"):
                await task.result()
            with pytest.raises(segue.RemoteError) as caught:
                await (await session.start("protocol_error_job")).result()
            assert caught.value.code == -32603

    run(work)


def test_a_task_is_cancelled(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            task = await session.start("hang")
            await task.cancel()
            with pytest.raises(segue.RequestCancelledError):
                await task.result()
            assert await is_cancelled(task)
            other = await session.start("hang")
            assert other.id
            await session.task(other.id).cancel()
            with pytest.raises(segue.Error):
                await other.result()

    run(work)


@pytest.mark.parametrize("tool", ["hang", "hang_plain"])
def test_the_second_cancel_is_quiet(world: World, tool: str) -> None:
    """AS-54: a second cancel by the same handle, by another one, and by a stream."""

    async def work() -> None:
        async with world.session() as session:
            stream = session.stream(tool)
            begun = asyncio.ensure_future(stream.started())
            await asyncio.sleep(0)
            if tool == "hang":
                await begun
            await stream.cancel()
            await stream.cancel()
            await begun
            if tool == "hang":
                task = await session.start(tool)
                assert task.id
                others = [session.task(task.id), session.task(task.id)]
                await task.cancel()
                for one in (task, *others, *others):
                    await one.cancel()

    run(work)


def test_waiting_is_cancelled_but_not_the_task(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            task = await session.start("hang")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(task.result(), 0.03)
            assert (await task.status()).status == "working"
            await task.cancel()
            with pytest.raises(segue.RequestCancelledError):
                await task.result()

    run(work)


def test_two_wait_for_one_task(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            task = await session.start("slow_compute", ms=50, label="x")
            one, other = await asyncio.gather(task.result(), task.result())
            assert one is other

    run(work)


def test_a_task_is_found_by_its_id(world: World) -> None:
    async def work() -> None:
        async with world.session() as session:
            task = await session.start("story", n=5, delayMs=1)
            await task.result()
            assert task.id
            again = session.task(task.id)
            numbers = [s.number async for s in again]
            assert numbers == [1, 2, 3, 4, 5]
            assert (await again.result()).text == story(1, 2, 3, 4, 5)
            with pytest.raises((segue.RemoteError, segue.TaskLostError)):
                await session.task("no-such-task").result()

    run(work)


def test_detached_and_resumed_in_another_session(tmp_path: Path) -> None:
    """Over stdio: the other server process finds the task in the store."""

    async def work() -> None:
        command = server_command("--store", str(tmp_path / "tasks.db"))
        async with segue.connect(command) as session:
            task = await session.start("story", n=8, delayMs=10)
            async for segment in task:
                if segment.number == 3:
                    break
            token = task.detach()
            assert task.detach() == token
        async with segue.resume(token, command) as task:
            assert [s.number async for s in task] == [4, 5, 6, 7, 8]
            assert (await task).text == story(*range(1, 9))
        with pytest.raises(segue.InvalidError):
            async with segue.resume(token[:-1] + "?", command):
                pass

    run(work)


def test_a_call_that_is_no_task_yet_is_left_and_resumed(nothing_left: None) -> None:
    """The call is found by its key: the answer that would name a task has not come."""
    discovered = {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "extensions": {"dev.segue/idempotency": {}}},
        "ttlMs": 0,
        "cacheScope": "private",
    }

    async def work() -> None:
        peer = RawPeer()

        async def hear(method: str) -> dict[str, Any]:
            heard: dict[str, Any] = json.loads(await peer.hear())
            assert heard["method"] == method
            return heard

        def say(request: dict[str, Any], result: dict[str, Any]) -> None:
            told = {"jsonrpc": "2.0", "id": request["id"], "result": result}
            peer.say(json.dumps(told))

        target: Any = peer
        connecting = asyncio.ensure_future(segue.connect(target))
        say(await hear("server/discover"), discovered)
        async with await connecting as session:
            stream = session.stream("t")
            reading = asyncio.ensure_future(anext(stream))
            first = await hear("tools/call")
            token = stream.detach()
            with pytest.raises(StopAsyncIteration):
                await reading
            result = asyncio.ensure_future(session.resume(token).result())
            again = await hear("tools/call")
            key = "dev.segue/idempotencyKey"
            assert again["params"]["_meta"][key] == first["params"]["_meta"][key]
            say(again, {"content": [{"type": "text", "text": "a"}]})
            assert (await result).text == "a"

    run(work)


def test_leaving_the_session_leaves_the_task(server: HttpServer) -> None:
    async def work() -> None:
        async with segue.connect(server.url) as session:
            task = await session.start("slow_compute", ms=50, label="x")
            token = task.token
        assert token
        with pytest.raises(segue.ClosedError):
            await task.result()
        async with segue.resume(token, server.url) as again:
            assert (await again).text == "Computed: x"

    run(work)


@pytest.mark.parametrize("era, other", [("modern", "legacy"), ("legacy", "modern")])
def test_a_token_chooses_its_era_and_a_session_names_it(
    server: HttpServer, era: Any, other: Any
) -> None:
    async def work() -> None:
        async with segue.connect(server.url, era=era) as session:
            task = await session.start("slow_compute", ms=50, label="x")
            token = task.token
        assert token
        told = f'does not speak: connect with the era "{era}"$'
        async with segue.connect(server.url, era=other) as second:
            with pytest.raises(segue.NotResumableError, match=told):
                await second.resume(token)
            with pytest.raises(segue.NotResumableError, match=told):
                await second.task(token).status()
        with pytest.raises(segue.NotResumableError):
            async with segue.resume(token, server.url, era=other) as wrong:
                await wrong
        async with segue.resume(token, server.url) as again:
            assert (await again).text == "Computed: x"
        nothing: Any = 7
        with pytest.raises(TypeError, match="a token has to be a str"):
            async with segue.resume(nothing, server.url):
                pass
        with pytest.raises(segue.InvalidError):
            async with segue.resume("sg1.no", server.url):
                pass

    run(work)


def test_a_server_that_dies_and_comes_back(server: HttpServer) -> None:
    """AS-93b: a task goes on after a crash, and its reader notices nothing."""

    async def work() -> None:
        async with segue.connect(server.url) as session:
            task = await session.start("story", n=40, delayMs=20)
            numbers = []
            async for segment in task:
                numbers.append(segment.number)
                if segment.number == 5:
                    await asyncio.to_thread(server.kill)
                    await asyncio.to_thread(server.start)
            assert numbers == [*range(1, 41)]
            assert (await task).text == story(*range(1, 41))

    run(work)


def test_a_session_lists_its_tasks_after_a_crash(server: HttpServer) -> None:
    """The store keeps the key of the server, so the session of 2025-11-25 goes on."""

    async def work() -> None:
        async with segue.connect(server.url, era="legacy") as session:
            task = await session.start("slow_compute", ms=50, label="x")
            assert (await task.result()).text == "Computed: x"
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            answer = msgspec.json.decode(await session.request_raw("tasks/list", {}))
            assert [one["taskId"] for one in answer["tasks"]] == [task.id]

    run(work)


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_server_that_stays_away_is_given_up(server: HttpServer, era: str) -> None:
    """Each retry is reported, and the final error can be resumed from."""

    async def work() -> None:
        told: list[segue.Reconnect] = []
        async with segue.connect(
            server.url, era=era, reconnect_timeout=1.0, on_reconnect=told.append
        ) as session:
            task = await session.start("story", n=40, delayMs=20)
            with pytest.raises(segue.DisconnectedError) as failed:
                async for segment in task:
                    if segment.number == 5:
                        await asyncio.to_thread(server.kill)
            assert failed.value.retryable and failed.value.token
            assert "1000 ms (reconnect_timeout_ms)" in str(failed.value)
        assert told
        assert all(t.delay <= 1.1 and t.reason for t in told)

    run(work)


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_connections_that_are_cut(server: HttpServer, how: str) -> None:
    """AS-28: a stream that breaks goes on behind the last segment."""

    async def work() -> None:
        with Proxy(server) as proxy:
            async with segue.connect(proxy.url) as session:
                stream = session.stream("story", n=30, delayMs=10)
                numbers = []
                async for segment in stream:
                    numbers.append(segment.number)
                    if segment.number % 7 == 0:
                        assert proxy.say(f"cut {how}").startswith("cut")
                assert numbers == [*range(1, 31)]
                assert stream.result.text == story(*range(1, 31))

    run(work)


def test_a_child_that_dies_is_started_again(tmp_path: Path) -> None:
    """Only the calls that the child was running cannot go on."""

    async def work() -> None:
        command = server_command("--store", str(tmp_path / "tasks.db"))
        async with segue.connect(command) as session:
            task = await session.start("story", n=30, delayMs=10)
            numbers = []
            async for segment in task:
                numbers.append(segment.number)
                if segment.number == 5:
                    with pytest.raises(segue.Error):
                        await session.call("die")
            assert numbers == [*range(1, 31)]
            assert (await session.call("greet")).text == "Hello, World!"
            assert session.connections == 2

    run(work)
