"""The response modes of SEP-1905: chosen for a session and for a call, declared,
listed, and followed by the server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import segue
from client_worlds import World, run
from raw_peer import RawPeer

SERVER: Any = {
    "tools": {},
    "tasks": {
        "requests": {"tools": {"call": {}}},
        "responses": {"modes": ["task", "immediate", "streaming"]},
    },
}
TOOL: Any = {
    "name": "t",
    "inputSchema": {"type": "object"},
    "execution": {"taskSupport": "optional"},
}


def answer(peer: RawPeer, request: dict[str, Any], result: dict[str, Any]) -> None:
    peer.say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))


async def heard(peer: RawPeer, method: str) -> dict[str, Any]:
    request: dict[str, Any] = json.loads(await peer.hear())
    assert request["method"] == method
    return request


def test_what_is_chosen_is_declared_and_listed(nothing_left: None) -> None:
    async def work() -> None:
        peer = RawPeer()
        connecting = asyncio.ensure_future(
            segue.connect(
                peer,  # type: ignore[arg-type]
                era="legacy",
                response_modes=["streaming", "task"],
            )
        )
        hello = await heard(peer, "initialize")
        declared = hello["params"]["capabilities"]["tasks"]["responses"]["modes"]
        assert declared == ["task", "streaming"]
        told: dict[str, Any] = {
            "protocolVersion": "2025-11-25",
            "capabilities": SERVER,
            "serverInfo": {"name": "x", "version": "1"},
        }
        answer(peer, hello, told)
        await heard(peer, "notifications/initialized")
        session = await connecting
        stream = session.stream("t", response_modes=["streaming"])
        for waiting, listed in (
            (session.call("t"), ["task", "streaming"]),
            (session.call("t", response_modes=["task"]), ["task"]),
            (session.start("t", response_modes=("streaming",)), ["streaming"]),
            (anext(stream), ["streaming"]),
        ):
            call = asyncio.ensure_future(waiting)  # type: ignore[arg-type]
            request: dict[str, Any] = json.loads(await peer.hear())
            if request["method"] == "tools/list":
                answer(peer, request, {"tools": [TOOL]})
                request = json.loads(await peer.hear())
            assert request["params"]["task"]["responseModes"] == listed
            answer(peer, request, {"content": [{"type": "text", "text": "a"}]})
            await call
        await session.close()

    run(work)


@pytest.mark.parametrize("era", ["legacy"])
def test_the_server_keeps_to_what_is_chosen(world: World) -> None:
    """`fields` ends at once; `story` sends one segment after the other."""

    async def work() -> None:
        async with world.session() as session:
            task = await session.start("fields", response_modes=["immediate"])
            assert task.id is None and (await task.result()).text == "right"
            task = await session.start("fields", response_modes=["task"])
            assert task.id and (await task.result()).text == "right"
            task = await session.start("fields", response_modes=["streaming"])
            assert task.id and (await task.result()).text == "right"
            story = {"n": 9000, "delayMs": 20}
            task = await session.start("story", story, response_modes=["streaming"])
            assert (await anext(task)).number == 1
            assert (await task.status()).status == "working"
            await task.cancel()
            story = {"n": 3, "delayMs": 20}
            task = await session.start("story", story, response_modes=["task"])
            assert (await anext(task)).number == 1
            assert (await task.status()).is_final
            assert len((await task.result()).content) == 3
        async with world.session(response_modes=["task"]) as session:
            task = await session.start("fields")
            assert task.id and (await task.result()).text == "right"
            with pytest.raises(segue.InvalidError, match='mode "immediate"'):
                await session.call("fields", response_modes=["immediate"])

    run(work)


def test_a_choice_that_cannot_be(world: World) -> None:
    async def work() -> None:
        wrong: list[tuple[Any, type[Exception], str]] = [
            (
                ["streming"],
                ValueError,
                "unknown response mode: 'streming'; the modes are",
            ),
            ([], ValueError, "response_modes is empty"),
            ("task", TypeError, "response_modes has to be a list of names"),
        ]
        async with world.session() as session:
            for modes, kind, match in wrong:
                with pytest.raises(kind, match=match):
                    await session.call("fields", response_modes=modes)
                with pytest.raises(kind, match=match):
                    session.stream("fields", response_modes=modes)
                with pytest.raises(kind, match=match):
                    await session.start("fields", response_modes=modes)
                with pytest.raises(kind, match=match):
                    await segue.connect(world.target, response_modes=modes)
            # Without a request for a task the choice has no effect.
            if world.era == "modern":
                result = await session.call("fields", response_modes=["immediate"])
                assert result.text == "right"

    run(work)
