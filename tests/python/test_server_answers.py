"""A user's answer reaches the question that was asked, with several servers behind one
address: each knows the session, and only one of them has asked."""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import segue
from balancer import Balancer
from programs import free_port
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "raw", "version": "1"},
}


class Exchange:
    """One POST of a client without the SDK: its status, its session, and its events."""

    def __init__(self, url: str, session: str | None, body: dict[str, Any]) -> None:
        at = urlsplit(url)
        assert at.hostname
        self.link = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        if session:
            headers |= {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        self.link.request("POST", at.path, json.dumps({"jsonrpc": "2.0"} | body), headers)
        self.reply = self.link.getresponse()
        self.session = self.reply.getheader("mcp-session-id")

    def next(self) -> Any:
        """Returns the next message."""
        if "event-stream" not in (self.reply.getheader("content-type") or ""):
            return json.loads(self.reply.read())
        while line := self.reply.readline():
            if line.startswith(b"data:") and line[5:].strip():
                return json.loads(line[5:])
        raise EOFError("the stream has ended")

    def close(self) -> None:
        self.link.close()


def asking(store: Path, ran: list[segue.Server] | None = None) -> segue.Server:
    """ran: collects the server of each call."""
    server = segue.Server("asks", store=store, options={"seal_key": bytes(range(32))})

    async def approve(what: str, ctx: segue.Context) -> str:
        if ran is not None:
            ran.append(server)
        told = await ctx.elicit(f"Approve {what}?", {"type": "object", "properties": {}})
        return f"{what} got {told.content}"

    server.tool(approve)
    server.tool(approve, name="approve_task", task="must", restartable=True)
    return server


def test_a_yes_to_one_never_approves_another(nothing_left: None, tmp_path: Path) -> None:
    async def post(url: str, session: str | None, body: dict[str, Any]) -> Exchange:
        return await asyncio.to_thread(Exchange, url, session, body)

    async def answer(url: str, session: str | None, id: Any, word: str) -> int:
        result = {"action": "accept", "content": {"for": word}}
        sent = await post(url, session, {"id": id, "result": result})
        sent.close()
        return sent.reply.status

    async def work() -> None:
        store = tmp_path / "tasks.db"
        async with (
            asking(store).serving(http="127.0.0.1:0") as one,
            asking(store).serving(http="127.0.0.1:0") as two,
        ):
            params: dict[str, Any] = INITIALIZE
            hello = await post(
                one.url, None, {"id": 0, "method": "initialize", "params": params}
            )
            hello.close()
            calls: dict[str, Exchange] = {}
            ids: dict[str, Any] = {}
            for url, word in ((one.url, "a"), (two.url, "b")):
                params = {"name": "approve", "arguments": {"what": word}}
                body = {"id": word, "method": "tools/call", "params": params}
                calls[word] = await post(url, hello.session, body)
                asked = await asyncio.to_thread(calls[word].next)
                assert asked["params"]["message"] == f"Approve {word}?"
                ids[word] = asked["id"]
            assert ids["a"] != ids["b"]
            # Sent to the other server: it goes to the one that asked, and B is not
            # approved.
            assert await answer(two.url, hello.session, ids["a"], "a") == 202
            # no question has this id
            assert await answer(two.url, hello.session, 1, "a") == 202
            assert await answer(two.url, hello.session, ids["b"], "b") == 202
            for word, call in calls.items():
                told = await asyncio.to_thread(call.next)
                text = told["result"]["content"][0]["text"]
                assert text == f"{word} got {{'for': '{word}'}}"
                call.close()

    run(work)


def answer_of(asked: segue.ElicitRequest) -> segue.ElicitResult[Any]:
    word = asked.message.removeprefix("Approve ").removesuffix("?")
    return segue.ElicitResult("accept", {"for": word})


def test_a_client_behind_a_balancer_answers_each_call(
    nothing_left: None, tmp_path: Path
) -> None:
    """Both servers ask all questions before any answer comes; an answer may go to
    either."""
    words = ("a", "b", "c", "d")

    async def work() -> None:
        asked: set[str] = set()
        all_asked = asyncio.Event()

        async def on_elicit(request: segue.ElicitRequest) -> segue.ElicitResult[Any]:
            asked.add(request.message)
            if len(asked) == len(words):
                all_asked.set()
            await all_asked.wait()
            return answer_of(request)

        store = tmp_path / "tasks.db"
        ran: list[segue.Server] = []
        async with (
            asking(store, ran).serving(http="127.0.0.1:0") as one,
            asking(store, ran).serving(http="127.0.0.1:0") as two,
            Balancer(one.url, two.url).serving() as url,
            segue.connect(url, era="legacy", on_elicit=on_elicit) as session,
        ):
            calls = [session.call("approve", what=word) for word in words]
            for word, told in zip(words, await asyncio.gather(*calls), strict=True):
                assert told.text == f"{word} got {{'for': '{word}'}}"
            assert len(ran) == len(words) and len(set(ran)) == 2
            all_asked.clear()
            asked.clear()
            tasks = [session.call("approve_task", what=word) for word in words]
            for word, told in zip(words, await asyncio.gather(*tasks), strict=True):
                assert told.text == f"{word} got {{'for': '{word}'}}"

    run(work)


async def begin(store: Path, port: int) -> subprocess.Popen[bytes]:
    """Starts the server as a process and waits until it listens."""
    command = [sys.executable, "-B", __file__, str(store), str(port)]
    child = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert child.stderr is not None
    assert b"http" in await asyncio.to_thread(child.stderr.readline)
    return child


def kill(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    assert child.stderr is not None
    child.stderr.close()


def test_a_task_is_answered_after_its_server_was_killed(
    nothing_left: None, tmp_path: Path
) -> None:
    """The user is asked again, and the new decision reaches the task."""
    store, port = tmp_path / "tasks.db", free_port()

    async def work() -> None:
        asked: asyncio.Queue[str] = asyncio.Queue()

        async def on_elicit(request: segue.ElicitRequest) -> segue.ElicitResult[Any]:
            asked.put_nowait(request.message)
            if not can_decide:
                await asyncio.Event().wait()  # the user does not decide
            return answer_of(request)

        can_decide = False
        child = await begin(store, port)
        try:
            async with segue.connect(
                f"http://127.0.0.1:{port}/mcp",
                era="legacy",
                on_elicit=on_elicit,
                max_reconnects=1000,
                reconnect_timeout=math.inf,
            ) as session:
                task = await session.start("approve_task", what="x")
                assert await asked.get() == "Approve x?"
                can_decide = True
                kill(child)
                child = await begin(store, port)
                assert await asked.get() == "Approve x?"
                assert (await task.result()).text == "x got {'for': 'x'}"
        finally:
            kill(child)

    run(work)


if __name__ == "__main__":
    asking(Path(sys.argv[1])).run(http=f"127.0.0.1:{sys.argv[2]}", store=sys.argv[1])
