"""The messages of a Python server over HTTP, as a client sees them that was written
from the proposals alone, without code of Segue. tests/node/server_wire.test.ts does the
same."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

import segue
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811

SECONDS = 60
RELATED = "io.modelcontextprotocol/related-task"
TRACKING = 2  # SEGUE_WAY_TRACKING
DRAFT_TASKS = 4  # SEGUE_DIALECT_DRAFT_TASKS
Answer = tuple[int, list[dict[str, Any]]]


class Wire:
    """A session of 2025-11-25. It blocks, so it runs on a thread."""

    def __init__(self, url: str) -> None:
        self.host = url.split("/")[2]
        self.headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        modes = {"modes": ["task", "immediate", "streaming"]}
        tasks = {"requests": {"tools": {"call": {}}}, "responses": modes}
        self.said: dict[str, Any] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tasks": tasks},
            "clientInfo": {"name": "wire", "version": "1"},
        }

    def begin(self) -> None:
        self.post(1, "initialize", self.said)
        self.headers["MCP-Protocol-Version"] = self.said["protocolVersion"]
        if self.said["protocolVersion"] != "2025-11-25":
            self.headers["Mcp-Method"] = "notifications/initialized"
        self.post(None, "notifications/initialized")

    def send(
        self, id: Any, method: str, params: Any = None
    ) -> http.client.HTTPConnection:
        body = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        told = body if id is None else {**body, "id": id}
        connection = http.client.HTTPConnection(self.host, timeout=SECONDS)
        connection.request("POST", "/mcp", json.dumps(told), self.headers)
        return connection

    def take(self, connection: http.client.HTTPConnection) -> Answer:
        """Returns the status, and every message until the answer has ended."""
        response = connection.getresponse()
        session = response.getheader("Mcp-Session-Id")
        if session:
            self.headers["Mcp-Session-Id"] = session
        text = response.read().decode()
        connection.close()
        if response.getheader("Content-Type", "").startswith("text/event-stream"):
            lines = text.splitlines()
            parts = [line[5:] for line in lines if line.startswith("data:")]
        else:
            parts = [text]
        return response.status, [json.loads(part) for part in parts if part.strip()]

    def post(self, id: Any, method: str, params: Any = None) -> Answer:
        return self.take(self.send(id, method, params))

    def result(self, id: Any, method: str, params: Any) -> dict[str, Any]:
        """Sends a request that is answered at once; checks that there is one message."""
        status, messages = self.post(id, method, params)
        assert status == 200 and len(messages) == 1, messages
        assert messages[0]["id"] == id
        told: dict[str, Any] = messages[0]["result"]
        return told

    def named(self, id: Any, method: str, name: str, params: Any) -> dict[str, Any]:
        """The same for later revisions: headers repeat the subject of the request."""
        self.headers |= {"Mcp-Method": method, "Mcp-Name": name}
        return self.result(id, method, params)


def greeter(**options: Any) -> segue.Server:
    server = segue.Server("greeter", options=options or None)

    @server.tool(task="may")
    async def greet(name: str) -> str:
        return f"Hello, {name}!"

    @server.tool(task="may")
    def greet_plainly(name: str) -> str:
        return f"Hello, {name}!"

    return server


def greeted(tool: str) -> dict[str, Any]:
    task = {"ttl": 60000, "responseModes": ["immediate"]}
    return {"name": tool, "arguments": {"name": "X"}, "task": task}


both = pytest.mark.parametrize("tool", ["greet", "greet_plainly"])


@both
def test_a_tool_that_is_done_at_once_is_answered_at_once(
    nothing_left: None, tool: str
) -> None:
    """AS-1: the plain result, without any member of a task."""

    def ask(url: str) -> None:
        wire = Wire(url)
        wire.begin()
        result = wire.result(2, "tools/call", greeted(tool))
        assert result["content"][0]["text"] == "Hello, X!"
        signs = {"task", "partial-content", "isComplete"}
        assert not signs & result.keys()
        assert RELATED not in result.get("_meta", {})

    async def work() -> None:
        server = greeter(first_turn_ms=SECONDS * 1000)
        async with server.serving("127.0.0.1:0") as serving:
            await asyncio.to_thread(ask, serving.url)

    run(work)


@both
def test_a_result_that_is_tracked_has_a_task_that_has_ended(
    nothing_left: None, tool: str
) -> None:
    """AS-31: the answer names its task, which has the same result."""

    def ask(url: str) -> None:
        wire = Wire(url)
        wire.begin()
        result = wire.result(2, "tools/call", greeted(tool))
        signs = {"task", "partial-content", "isComplete"}
        assert not signs & result.keys()
        id = result["_meta"][RELATED]["taskId"]
        assert wire.result(3, "tasks/get", {"taskId": id})["status"] == "completed"
        again = wire.result(4, "tasks/result", {"taskId": id})
        assert again["_meta"][RELATED] == {"taskId": id}
        del result["_meta"], again["_meta"]
        assert again == result
        assert result["content"][0]["text"] == "Hello, X!"

    async def work() -> None:
        server = greeter(first_turn_ms=SECONDS * 1000, draft_ways=TRACKING)
        async with server.serving("127.0.0.1:0") as serving:
            await asyncio.to_thread(ask, serving.url)

    run(work)


def test_segments_in_quick_succession_go_out_together(nothing_left: None) -> None:
    """R-1905-28: the next response waits 2 ms for more, unless it is full."""
    many = 2000

    def ask(url: str) -> None:
        wire = Wire(url)
        wire.begin()
        task = {"ttl": 60000, "responseModes": ["streaming"]}
        params = {"name": "count", "arguments": {}, "task": task}
        began = time.monotonic()
        _, messages = wire.post(2, "tools/call", params)
        ms = (time.monotonic() - began) * 1000
        told = [one["result"] for one in messages if one.get("id") == 2]
        parts = [result.get("partial-content", []) for result in told]
        numbers = [block["seqNr"] for part in parts for block in part]
        assert numbers == list(range(1, many + 2))
        assert len(told) <= ms + 10

    async def work() -> None:
        server = segue.Server("counter")

        @server.tool(task="may")
        async def count() -> AsyncIterator[str]:
            yield "first"
            await asyncio.sleep(0.01)  # this one goes out alone
            for number in range(many):
                await asyncio.sleep(0)
                yield f"{number} "

        async with server.serving("127.0.0.1:0") as serving:
            await asyncio.to_thread(ask, serving.url)

    run(work)


def test_what_was_pushed_stays_in_the_result(nothing_left: None) -> None:
    """R-1905-34: this client has not declared dev.segue/replace."""

    def ask(url: str) -> None:
        wire = Wire(url)
        wire.begin()
        task = {"ttl": 60000, "responseModes": ["streaming"]}
        params = {"name": "draft", "arguments": {}, "task": task}
        _, messages = wire.post(2, "tools/call", params)
        told = [one["result"] for one in messages if one.get("id") == 2]
        parts = [result.get("partial-content", []) for result in told]
        pushed = [block["text"] for part in parts for block in part]
        assert pushed == ["wrong", "right"]
        id = told[0]["task"]["taskId"]
        fetched = wire.result(3, "tasks/result", {"taskId": id})
        assert [block["text"] for block in fetched["content"]] == pushed

    async def work() -> None:
        server = segue.Server("replacing")

        @server.tool(task="may")
        async def draft(ctx: segue.Context) -> None:
            await ctx.send("wrong")
            await ctx.replace("right")

        async with server.serving("127.0.0.1:0") as serving:
            await asyncio.to_thread(ask, serving.url)

    run(work)


def waiting() -> segue.Server:
    server = segue.Server("waiting", options={"dialects_on": DRAFT_TASKS})

    @server.tool(task="may")
    async def wait(ctx: segue.Context) -> None:
        await asyncio.Event().wait()

    @server.tool(task="must")
    async def ask(ctx: segue.Context) -> str:
        return await ctx.ask("Your name?")

    return server


def test_tasks_of_2025_are_shown_to_who_knows_no_other(nothing_left: None) -> None:
    """R-2557-17: a client of 2026-07-28 that declares only the legacy tasks."""

    def ask(url: str) -> None:
        old, new = Wire(url), Wire(url)
        old.begin()
        made = {"name": "wait", "arguments": {}, "task": {"ttl": 60000}}
        task = {"taskId": old.result(2, "tools/call", made)["task"]["taskId"]}
        protocol = "io.modelcontextprotocol"
        meta = {
            f"{protocol}/protocolVersion": "2026-07-28",
            f"{protocol}/clientInfo": {"name": "wire", "version": "1"},
            f"{protocol}/clientCapabilities": {"tasks": {}},
        }
        new.headers["MCP-Protocol-Version"] = "2026-07-28"
        for method, status in (("tasks/get", "working"), ("tasks/cancel", "cancelled")):
            told = new.named(3, method, task["taskId"], {**task, "_meta": meta})
            assert told["taskId"] == task["taskId"]
            assert told["status"] == status
        assert old.result(4, "tasks/get", task)["status"] == "cancelled"

    async def work() -> None:
        async with waiting().serving("127.0.0.1:0") as serving:
            await asyncio.to_thread(ask, serving.url)

    run(work)


def test_a_question_of_the_draft_names_its_task(nothing_left: None) -> None:
    """R-2557-22: in the draft answers travel in tasks/get."""

    def ask(url: str) -> None:
        wire = Wire(url)
        elicits: dict[str, Any] = {"elicitation": {}}
        wire.said |= {"protocolVersion": "DRAFT-2026-v1", "capabilities": elicits}
        wire.begin()
        call = {"name": "ask", "arguments": {}}
        id = wire.named(2, "tools/call", "ask", call)["task"]["taskId"]
        task = {"taskId": id}
        told = wire.named(3, "tasks/get", id, task)
        while told["status"] == "working":
            told = wire.named(3, "tasks/get", id, task)
        (question,) = told["inputRequests"].values()
        assert question["method"] == "elicitation/create"
        assert question["params"]["_meta"][RELATED] == task
        assert wire.named(4, "tasks/cancel", id, task)["status"] == "cancelled"

    async def work() -> None:
        async with waiting().serving("127.0.0.1:0") as serving:
            await asyncio.to_thread(ask, serving.url)

    run(work)


def test_a_long_list_comes_in_pieces(nothing_left: None) -> None:
    """R-776-26: nothing more is sent for its id, whatever its tool does later."""
    server = segue.Server("long")
    uris = [f"test://item{i}" for i in range(600)]
    for uri in uris:
        server.resource(uri)(lambda: "text")

    async def work() -> None:
        async with server.serving("127.0.0.1:0") as serving:
            wire = Wire(serving.url)
            await asyncio.to_thread(wire.begin)
            allowed = {"_meta": {"allowPartial": True}}
            took = await asyncio.to_thread(wire.post, 2, "resources/list", allowed)
            results = [one["result"] for one in took[1]]
            assert len(results) == 3
            more = [one.get("_meta", {}).get("hasMore", False) for one in results]
            assert more == [True, True, False]
            assert [one["uri"] for part in results for one in part["resources"]] == uris
            whole = await asyncio.to_thread(wire.result, 3, "resources/list", {})
            assert [one["uri"] for one in whole["resources"]] == uris
            async with segue.connect(serving.url, era="legacy") as session:
                assert [one.uri for one in await session.list_resources()] == uris

    run(work)


def test_the_text_of_a_resource_comes_in_pieces(nothing_left: None) -> None:
    """R-776-32: each piece leaves when it is made, and names the place of its text."""
    server = segue.Server("texts")
    go_on: asyncio.Event

    @server.resource("test://slow")
    async def slow() -> AsyncIterator[str]:
        yield "con"
        await go_on.wait()
        yield "tent"

    async def work() -> None:
        nonlocal go_on
        go_on = asyncio.Event()
        async with server.serving("127.0.0.1:0") as serving:
            wire = Wire(serving.url)
            await asyncio.to_thread(wire.begin)
            params = {"uri": "test://slow", "_meta": {"allowPartial": True}}
            sent = wire.send(2, "resources/read", params)
            go_on.set()
            _, messages = await asyncio.to_thread(wire.take, sent)
            results = [one["result"] for one in messages if one.get("id") == 2]
            pieces = [one for result in results for one in result["contents"]]
            assert [one["text"] for one in pieces] == ["con", "tent"]
            places = [one["_meta"]["index"] for one in results if one["contents"]]
            assert places == [0, 0]
            plain = {"uri": "test://slow"}
            whole = await asyncio.to_thread(wire.result, 3, "resources/read", plain)
            assert [one["text"] for one in whole["contents"]] == ["content"]

    run(work)


def test_a_cancelled_call_gets_no_answer(nothing_left: None) -> None:
    """R-776-26: nothing more is sent for its id, whatever its tool does then."""
    begun: asyncio.Event

    async def work() -> None:
        nonlocal begun
        begun, ended = asyncio.Event(), asyncio.Event()
        server = segue.Server("waiter")

        @server.tool
        async def wait(how: str) -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if how == "give up":
                    raise
                return "too late"
            finally:
                ended.set()
            return "never"

        async with server.serving("127.0.0.1:0") as serving:
            wire = Wire(serving.url)
            await asyncio.to_thread(wire.begin)
            for id, how in ((2, "give up"), (3, "answer")):
                begun.clear()
                ended.clear()
                params = {"name": "wait", "arguments": {"how": how}}
                sent = wire.send(id, "tools/call", params)
                await begun.wait()
                cancel = {"requestId": id}
                took = await asyncio.to_thread(
                    wire.post, None, "notifications/cancelled", cancel
                )
                assert took == (202, [])
                _, messages = await asyncio.to_thread(wire.take, sent)
                assert not [one for one in messages if one.get("id") == id]
                await ended.wait()

    run(work)


# An authorization server that only publishes its keys.


class Keys:
    """A flood of tokens with invented keys causes a bounded number of fetches. A client
    with a new key after a rotation is accepted, or asked to come again, and never
    refused."""

    def __init__(self) -> None:
        self.looks = 0
        self.is_away = False
        self.kid = "one"
        self.key = ec.generate_private_key(ec.SECP256R1())
        keys = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                keys.looks += 1
                body = json.dumps({"keys": [keys.public()]}).encode()
                self.send_response(503 if keys.is_away else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever)

    def __enter__(self) -> Keys:
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def public(self) -> dict[str, Any]:
        made = jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {**made, "kid": self.kid, "alg": "ES256", "use": "sig"}

    def rotate(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.kid = "two"

    def token(self, resource: str, **changes: Any) -> str:
        now = int(time.time())
        claims = {"iss": self.url, "sub": "ann", "aud": resource, "client_id": "c"}
        stamps = {"iat": now, "exp": now + 3600, "jti": "1"}
        header = {"kid": changes.pop("kid", self.kid), "typ": "at+jwt"}
        told = {**claims, **stamps, **changes}
        return jwt.encode(told, self.key, "ES256", header)


def test_unknown_keys_do_not_shut_out_who_is_honest(nothing_left: None) -> None:
    """Segue's client comes again when it is asked to."""
    found: list[tuple[int, str | None]] = []

    def ask(url: str, token: str) -> int:
        wire = Wire(url)
        wire.headers["Authorization"] = f"Bearer {token}"
        connection = wire.send(1, "initialize", wire.said)
        response = connection.getresponse()
        response.read()
        found.append((response.status, response.getheader("Retry-After")))
        connection.close()
        return response.status

    async def work() -> None:
        with Keys() as keys:
            auth = segue.BearerAuth(keys.url, jwks_url=f"{keys.url}/keys")
            server = segue.Server("guarded")
            async with server.serving("127.0.0.1:0", auth=auth) as serving:
                url = serving.url
                assert await asyncio.to_thread(ask, url, keys.token(url)) == 200
                strange = keys.token(url, sub="ann\n")
                assert await asyncio.to_thread(ask, url, strange) == 401
                for n in range(20):
                    expired = keys.token(url, kid=f"bad{n}", exp=1)
                    assert await asyncio.to_thread(ask, url, expired) == 401
                before = keys.looks
                keys.rotate()
                assert await asyncio.to_thread(ask, url, keys.token(url)) == 200
                assert keys.looks == before + 1
                for n in range(20):
                    invented = keys.token(url, kid=f"new{n}")
                    await asyncio.to_thread(ask, url, invented)
                assert keys.looks <= before + 2
                status, wait = found[-1]
                assert status == 503 and wait is not None and int(wait) > 0
                assert await asyncio.to_thread(ask, url, keys.token(url)) == 200

    run(work)


def test_who_comes_before_the_keys_comes_again(nothing_left: None) -> None:
    """Our client does, where it is asked to."""

    async def work() -> None:
        with Keys() as keys:
            keys.is_away = True
            auth = segue.BearerAuth(keys.url, jwks_url=f"{keys.url}/keys")
            server = segue.Server("guarded")
            async with server.serving("127.0.0.1:0", auth=auth) as serving:
                token = keys.token(serving.url)
                connecting = asyncio.ensure_future(
                    segue.connect(serving.url, auth=token, connect_timeout=SECONDS)
                )
                while not keys.looks:
                    await asyncio.sleep(0.01)
                keys.is_away = False
                async with await connecting as session:
                    assert session.peer.server.name == "guarded"

    run(work)


def test_a_key_set_is_that_of_one_issuer(nothing_left: None) -> None:
    async def work() -> None:
        with Keys() as keys:
            issuers = [keys.url, "https://other.example"]
            auth = segue.BearerAuth(issuers, jwks_url=f"{keys.url}/keys")
            serving = segue.Server("guarded").serving("127.0.0.1:0", auth=auth)
            with pytest.raises(segue.InvalidError, match="a key set belongs to one"):
                await serving.start()

    run(work)
