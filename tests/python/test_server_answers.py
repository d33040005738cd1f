"""What a user answers reaches the question that was asked, with several servers behind
one address: each has the session, and only one of them has asked."""

from __future__ import annotations

import asyncio
import http.client
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import segue
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "raw", "version": "1"},
}


class Exchange:
    """One POST of a client that is nobody's: its status, its session, and its events."""

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
        """The next message."""
        if "event-stream" not in (self.reply.getheader("content-type") or ""):
            return json.loads(self.reply.read())
        while line := self.reply.readline():
            if line.startswith(b"data:") and line[5:].strip():
                return json.loads(line[5:])
        raise EOFError("the stream has ended")

    def close(self) -> None:
        self.link.close()


def asking(store: Path) -> segue.Server:
    server = segue.Server("asks", store=store, options={"seal_key": bytes(range(32))})

    @server.tool
    async def approve(what: str, ctx: segue.Context) -> str:
        told = await ctx.elicit(f"Approve {what}?", {"type": "object", "properties": {}})
        return f"{what} got {told.content}"

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
            # at the other server: it goes to the one that asked, and B is not approved
            assert await answer(two.url, hello.session, ids["a"], "a") == 202
            # nobody asked that
            assert await answer(two.url, hello.session, 1, "a") == 202
            assert await answer(two.url, hello.session, ids["b"], "b") == 202
            for word, call in calls.items():
                told = await asyncio.to_thread(call.next)
                text = told["result"]["content"][0]["text"]
                assert text == f"{word} got {{'for': '{word}'}}"
                call.close()

    run(work)
