"""Text that crosses the binding keeps its length, and two different names never become
equal. NUL and half a surrogate pair are refused in names and accepted in payloads."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import segue
from binding_worlds import Pair, Recorder, run, runtime, tool_json
from segue import _segue

NAMES: dict[str, Callable[[Any, Any], object]] = {
    "name of a server": lambda rt, _: _segue.server_new(rt, {"name": BAD}),
    "instructions": lambda rt, _: _segue.server_new(rt, {"instructions": BAD}),
    "argv": lambda rt, _: _segue.transport_spawn(rt, {"argv": ["true", BAD]}),
    "env": lambda rt, _: _segue.transport_spawn(
        rt, {"argv": ["true"], "env": [f"A={BAD}"]}
    ),
    "working_dir": lambda rt, _: _segue.transport_spawn(
        rt, {"argv": ["true"], "working_dir": BAD}
    ),
    "URL": lambda rt, _: _segue.transport_http(rt, f"http://127.0.0.1/{BAD}"),
    "proxy": lambda rt, _: _segue.transport_http(rt, "http://[::1]/", {"proxy": BAD}),
    "name of a header": lambda rt, _: _segue.transport_set_header(
        _segue.transport_http(rt, "http://[::1]/"), BAD, "x"
    ),
    "header": lambda rt, _: _segue.transport_set_header(
        _segue.transport_http(rt, "http://[::1]/"), "X-Name", BAD
    ),
    "method": lambda _, pair: _segue.request_start(pair.session, BAD, None, None, None),
    "key": lambda _, pair: _segue.request_start(
        pair.session, "tools/call", None, {"idempotency_key": BAD}, None
    ),
    "token": lambda _, pair: _segue.request_resume(pair.session, BAD, None, None),
    "id of a task": lambda _, pair: _segue.task_attach(pair.session, BAD),
    "item that goes": lambda _, pair: _segue.server_remove(pair.server, 1, BAD),
    "URI": lambda _, pair: _segue.server_resource_updated(pair.server, BAD),
    "file of a store": lambda rt, _: _segue.store_sqlite(BAD),
    "URL of a store": lambda rt, _: _segue.store_redis(f"redis://{BAD}"),
}
BAD = ""


@pytest.mark.parametrize("what", NAMES)
@pytest.mark.parametrize("bad", ["a\0b", "a\ud800", "\udc01b"])
def test_names_are_refused(
    what: str, bad: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(globals(), "BAD", bad)

    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle)
            with pytest.raises(ValueError, match=r"NUL|surrogates"):
                NAMES[what](made.handle, pair)
        assert list(tmp_path.iterdir()) == []

    run(main())


def ask(url: str, user: bytes) -> tuple[int, Any]:
    """Makes one call of `who` without the SDK, with a header of bytes."""
    at = urlsplit(url)
    assert at.hostname
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "who",
            "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }
    link = http.client.HTTPConnection(at.hostname, at.port, timeout=120)
    headers: dict[str, Any] = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "who",
        "x-user": user,
    }
    link.request("POST", at.path, json.dumps(body), headers)
    reply = link.getresponse()
    told = reply.read()
    link.close()
    return reply.status, json.loads(told) if reply.status == 200 else None


def test_a_principal_is_who_the_hook_names() -> None:
    """A principal never equals one whose name is a prefix of its own, and a name that
    is not UTF-8 is refused."""
    names = {"nul": "alice\0mallory", "half": "a\ud800", "bytes": b"alice", "ok": "alice"}
    lost: list[Any] = []

    def principal(peer: segue.server.Peer) -> Any:
        user = peer.header("X-User")
        return names.get(user or "", user)

    server = segue.Server("web", principal=principal)

    @server.tool
    async def who(ctx: segue.Context) -> str:
        return ctx.principal

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, told: lost.append(told["exception"]))
        async with server.serving(http="127.0.0.1:0") as serving:

            async def named(user: bytes) -> Any:
                status, told = await asyncio.to_thread(ask, serving.url, user)
                return told["result"]["content"][0]["text"] if told else status

            assert await named(b"ok") == "alice"
            assert await named("ä".encode()) == "ä"
            for user in (b"nul", b"half", b"bytes", b"a\xff", b"a\xfe"):
                assert await named(user) == 401, user

    asyncio.run(asyncio.wait_for(main(), 120))
    assert [type(one) for one in lost] == [
        ValueError,
        UnicodeEncodeError,
        TypeError,
        UnicodeDecodeError,
        UnicodeDecodeError,
    ]


def test_payloads_and_errors_are_whole() -> None:
    """A NUL in a text or in an error hides nothing behind it."""

    def told(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        _segue.call_send_text(call, "a\0b")
        _segue.call_reply(call, "c\0d", None, b'"e\\u0000f"')

    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle)
            _segue.server_add(pair.server, 1, tool_json("told"), None, told)
            done = Recorder()
            params = '{"name":"told","arguments":{"x":"g\\u0000h"}}'
            _segue.request_start(pair.session, "tools/call", params, None, done)
            _, told_json, _ = await done.get(_segue.COMPLETE)
            result = json.loads(told_json)
            assert [one["text"] for one in result["content"]] == ["a\0b", "c\0d"]
            assert result["structuredContent"] == "e\0f"

    run(main())
    server = segue.Server("failures")

    @server.tool
    async def fails() -> None:
        raise segue.McpError(1, "a\0b")

    async def work() -> None:
        async with segue.connect(server) as session:
            with pytest.raises(segue.RemoteError) as caught:
                await session.call("fails")
            assert caught.value.message == "a\ufffdb"

    asyncio.run(asyncio.wait_for(work(), 120))


def test_what_goes_on_is_whole() -> None:
    """A NUL in a text that goes on, of a tool or a resource, hides nothing behind it."""
    server = segue.Server("extends")

    @server.tool
    async def extends(ctx: segue.Context) -> None:
        await ctx.send("a\0b")
        await ctx.extend(0, "c\0d")

    @server.resource("note://long")
    def long() -> Iterator[str]:
        yield "e\0f"
        yield "\0g"

    async def work() -> None:
        async with segue.connect(server) as session:
            assert (await session.call("extends")).text == "a\0bc\0d"
            (contents,) = (await session.read_resource("note://long")).contents
            assert contents.text == "e\0f\0g"

    asyncio.run(asyncio.wait_for(work(), 120))
