"""Tasks at a server that handles one method well and fails another; the test plays it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

import segue
from client_worlds import run
from raw_peer import RawPeer

NOW = "2026-01-01T00:00:00Z"
INFO = {"name": "x", "version": "1"}
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
    "serverInfo": INFO,
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
}
Answer = Callable[[str], dict[str, Any]]


def task(status: str, **more: Any) -> dict[str, Any]:
    told = {"taskId": "T", "status": status, "createdAt": NOW, "lastUpdatedAt": NOW}
    result = {"resultType": "complete", "ttlMs": None, "pollIntervalMs": 100}
    return {"result": {**result, **told, **more}}


def error(code: int) -> dict[str, Any]:
    return {"error": {"code": code, "message": "no"}}


async def serve(peer: RawPeer, answer: Answer) -> None:
    while True:
        heard = msgspec.json.decode(await peer.hear())
        method = heard["method"]
        told: dict[str, Any] = {}
        if method == "server/discover":
            told = {"result": DISCOVERED}
        elif method == "tools/call":
            told = task("working")
            told["result"]["resultType"] = "task"
        elif "id" in heard:
            told = answer(method)
        if told:
            peer.say(msgspec.json.encode({"jsonrpc": "2.0", "id": heard["id"], **told}))


@contextlib.asynccontextmanager
async def misled(answer: Answer, **options: Any) -> AsyncIterator[Any]:
    peer = RawPeer()
    target: Any = peer
    serving = asyncio.ensure_future(serve(peer, answer))
    try:
        async with segue.connect(target, **options) as session:
            yield session
    finally:
        serving.cancel()


def test_an_answer_that_stays_refused_ends_the_call() -> None:
    heard: list[str] = []

    def answer(method: str) -> dict[str, Any]:
        heard.append(method)
        if method != "tasks/get":
            return error(-32603)
        form = {"type": "object", "properties": {}}
        params = {"message": "?", "requestedSchema": form}
        question = {"method": "elicitation/create", "params": params}
        return task("input_required", inputRequests={"q": question})

    def on_elicit(_: Any) -> Any:
        return {"action": "accept", "content": {}}

    async def work() -> None:
        async with misled(answer, on_elicit=on_elicit, max_reconnects=2) as session:
            with pytest.raises(
                segue.RemoteError, match="tasks/update failed 3 times"
            ) as it:
                await session.call("t")
            assert it.value.code == -32603
            assert heard.count("tasks/update") == 3

    run(work)


def test_an_end_that_was_told_stays_the_answer() -> None:
    states = iter(["working", "completed", "working", "cancelled"])

    async def work() -> None:
        async with misled(lambda _: task(next(states))) as session:
            found = session.task("T")
            told = [(await found.status()).status for _ in range(4)]
            assert told == ["working", "completed", "completed", "completed"]

    run(work)


def test_a_question_of_an_unknown_kind_does_not_cancel_the_task() -> None:
    heard: list[str] = []
    asked = {"method": "future/ask", "params": {}}

    def answer(method: str) -> dict[str, Any]:
        heard.append(method)
        if method == "tasks/update":
            return {"result": {"resultType": "complete"}}
        if "tasks/update" in heard or heard.count("tasks/get") > 3:
            result = {"content": [{"type": "text", "text": "without it"}]}
            return task("completed", result=result)
        return task("input_required", inputRequests={"q": asked})

    async def work() -> None:
        async with misled(answer, on_elicit=lambda _: None) as session:
            assert (await session.call("t")).text == "without it"
            assert "tasks/cancel" not in heard

    run(work)


@pytest.mark.parametrize("first", ["answer", "refusal"])
def test_a_server_that_starts_slowly_is_found_out(first: str) -> None:
    """A server of 2026-07-28 alone takes longer to start than `probe_timeout`. It finds
    both requests, answers one and refuses the other."""
    old = {"supported": ["2026-07-28"], "requested": "2025-11-25"}
    refusal = {"error": {"code": -32022, "message": "no", "data": old}}

    async def work() -> None:
        peer = RawPeer()
        target: Any = peer

        async def start() -> None:
            asked = {}
            while len(asked) < 2:
                heard = msgspec.json.decode(await peer.hear())
                asked[heard["method"]] = heard["id"]
            told = {"server/discover": {"result": DISCOVERED}, "initialize": refusal}
            lines = [
                msgspec.json.encode({"jsonrpc": "2.0", "id": asked[one], **told[one]})
                for one in sorted(told, reverse=first == "answer")
            ]
            # sent together, because a refusal waits only for a short time
            peer.say(b"\n".join(lines))

        starting = asyncio.ensure_future(start())
        async with segue.connect(target, probe_timeout=0.05) as session:
            await starting
            assert session.peer.protocol_version == "2026-07-28"

    run(work)
