"""A Python server as an ASGI application: alone in uvicorn and hypercorn, mounted in
Starlette and FastAPI, and driven by hand."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import hypercorn.asyncio
import hypercorn.config
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.authentication import (
    AuthCredentials,
    AuthenticationBackend,
    SimpleUser,
)
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.routing import Mount

import segue
from client_worlds import run
from server_worlds import nothing_left  # noqa: F401

pytestmark = pytest.mark.usefixtures("nothing_left")


def simple(name: str = "web", **options: Any) -> segue.Server:
    server = segue.Server(name, **options)

    @server.tool
    async def who(ctx: segue.Context) -> str:
        return ctx.principal

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def name_of_server() -> str:
        return name

    @server.tool(task="may")
    async def story(ctx: segue.Context, n: int, pause: float = 0.0) -> str:
        for i in range(n):
            await ctx.send(f"{i};")
            await asyncio.sleep(pause)
        return "end"

    @server.tool
    async def big(size: int) -> str:
        return "x" * size

    @server.tool
    async def slow(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    return server


# ---- hosts


@asynccontextmanager
async def in_uvicorn(app: Any, **options: Any) -> AsyncIterator[int]:
    """Serves the app with uvicorn in this loop; gives the port."""
    config = uvicorn.Config(app, port=0, log_level="error", **options)
    host = uvicorn.Server(config)
    host.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.ensure_future(host._serve())
    while not host.started:
        await asyncio.sleep(0.01)
        if task.done():
            task.result()
    try:
        yield host.servers[0].sockets[0].getsockname()[1]
    finally:
        host.should_exit = True
        await task


@asynccontextmanager
async def in_hypercorn(app: Any) -> AsyncIterator[int]:
    bound = socket.create_server(("127.0.0.1", 0))
    port = bound.getsockname()[1]
    config = hypercorn.config.Config()
    config.bind = [f"fd://{bound.detach()}"]  # hypercorn closes it
    config.loglevel = "ERROR"
    config.graceful_timeout = 1
    stop = asyncio.Event()
    task = asyncio.ensure_future(
        hypercorn.asyncio.serve(app, config, shutdown_trigger=stop.wait)
    )
    try:
        yield port
    finally:
        stop.set()
        await task


HOSTS = {"uvicorn": in_uvicorn, "hypercorn": in_hypercorn}


def alone(mcp: Any) -> tuple[Any, str]:
    return mcp, "/"


def in_starlette(mcp: Any) -> tuple[Any, str]:
    return Starlette(routes=[Mount("/a/b", app=mcp)], lifespan=mcp.lifespan), "/a/b/"


def in_fastapi(mcp: Any) -> tuple[Any, str]:
    app = FastAPI(lifespan=mcp.lifespan)
    app.mount("/mcp", mcp)
    return app, "/mcp/"


def without_lifespan(mcp: Any) -> tuple[Any, str]:
    """Frameworks do not tell mounted apps about the lifespan."""
    return Starlette(routes=[Mount("/mcp", app=mcp)]), "/mcp/"


APPS = [alone, in_starlette, in_fastapi, without_lifespan]


@pytest.mark.parametrize("era", ["auto", "legacy"])
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("mounted", APPS, ids=lambda app: app.__name__)
def test_calls_streams_and_sessions(
    host: str, mounted: Callable[[Any], tuple[Any, str]], era: Any
) -> None:
    async def work() -> None:
        mcp = simple().asgi(drain=1.0)
        app, path = mounted(mcp)
        async with HOSTS[host](app) as port:
            url = f"http://127.0.0.1:{port}{path}"
            async with segue.connect(url, era=era) as session:
                assert (await session.call("add", a=1, b=2)).text == "3"
                stream = session.stream("story", n=5, pause=0.01)
                texts = [segment.text async for segment in stream]
                assert "".join(texts).startswith("0;1;2;3;4;")
                calls = [session.call("add", a=i, b=i) for i in range(20)]
                assert [int(r.text) for r in await asyncio.gather(*calls)] == [
                    2 * i for i in range(20)
                ]
        await mcp.aclose()

    run(work)


def test_two_servers_in_one_app() -> None:
    async def work() -> None:
        one, two = simple("one").asgi(), simple("two").asgi()
        app = FastAPI()
        app.mount("/one", one)
        app.mount("/two", two)

        @app.get("/plain")
        def plain() -> str:
            return "plain"

        async with in_uvicorn(app) as port:
            for name in ("one", "two"):
                url = f"http://127.0.0.1:{port}/{name}/"
                async with segue.connect(url) as session:
                    assert (await session.call("name_of_server")).text == name
        await one.aclose()
        await two.aclose()

    run(work)


def test_the_host_may_have_a_loop_of_its_own() -> None:
    config = uvicorn.Config(simple().asgi(), port=0, log_level="error")
    host = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(host._serve()))
    thread.start()

    async def work() -> None:
        while not host.started:
            await asyncio.sleep(0.01)
        port = host.servers[0].sockets[0].getsockname()[1]
        async with segue.connect(f"http://127.0.0.1:{port}/") as session:
            assert (await session.call("add", a=1, b=2)).text == "3"

    try:
        run(work)
    finally:
        host.should_exit = True
        thread.join()


# ---- streams


class Cutter:
    """Passes connections on, and cuts each one after some bytes of its answer, `cuts`
    times."""

    def __init__(self, port: int, after: int, cuts: int) -> None:
        self.port, self.after, self.cuts, self.done = port, after, cuts, 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()

    async def _pass(self, reader: Any, writer: Any) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        ways = [
            asyncio.ensure_future(self._copy(reader, back, None)),
            asyncio.ensure_future(self._copy(there, writer, self.after)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        writer.close()
        back.close()

    async def _copy(self, source: Any, sink: Any, limit: int | None) -> None:
        passed = 0
        while data := await source.read(256):
            passed += len(data)
            sink.write(data)
            if limit and passed > limit and self.done < self.cuts:
                self.done += 1
                sink.transport.abort()
                return


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_a_cut_stream_goes_on(era: Any) -> None:
    async def work() -> None:
        mcp = simple().asgi()
        async with in_uvicorn(mcp) as port:
            cutter = Cutter(port, 2000, 3)
            async with cutter.running() as cut:
                url = f"http://127.0.0.1:{cut}/"
                async with segue.connect(url, era=era) as session:
                    stream = session.stream("story", n=60, pause=0.01)
                    texts = [segment.text async for segment in stream]
            assert "".join(texts).startswith("".join(f"{i};" for i in range(60)))
            assert cutter.done > 0

    run(work)


def call_request(tool: str, **arguments: Any) -> tuple[list[Any], bytes]:
    """Returns the headers and the body of a call of 2026-07-28."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": tool,
            "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }
    headers = {
        "host": "localhost",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    pairs = [(k.encode(), v.encode()) for k, v in headers.items()]
    return pairs, json.dumps(body).encode()


def test_a_reader_that_is_slow_gets_all() -> None:
    async def work() -> None:
        async with in_uvicorn(simple().asgi()) as port:
            headers, body = call_request("big", size=3_000_000)
            head = b"POST / HTTP/1.1\r\n" + b"".join(
                k + b": " + v + b"\r\n" for k, v in headers
            )
            slow = socket.socket()
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", port))
            slow.setblocking(False)
            reader, writer = await asyncio.open_connection(sock=slow, limit=4096)
            writer.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            left = length
            while left:
                left -= len(await reader.read(65536))
                await asyncio.sleep(0)
            assert length > 3_000_000
            writer.close()

    run(work)


# ---- by hand


class Request:
    """One request that the test carries."""

    def __init__(self, tool: str = "add", **arguments: Any) -> None:
        headers, self.body = call_request(tool, **(arguments or {"a": 1, "b": 2}))
        self.scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/",
            "raw_path": b"/",
            "root_path": "",
            "query_string": b"",
            "headers": headers,
            "client": ("127.0.0.1", 4711),
            "server": ("127.0.0.1", 80),
        }
        self.pieces = [self.body]
        self.gone = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()
        self.sent: list[Any] = []

    async def receive(self) -> Any:
        if self.pieces:
            piece = self.pieces.pop(0)
            more = bool(self.pieces)
            return {"type": "http.request", "body": piece, "more_body": more}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.room.wait()
        self.sent.append(message)

    async def run(self, app: Any) -> Request:
        await app(self.scope, self.receive, self.send)
        return self

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def text(self) -> str:
        return b"".join(m["body"] for m in self.sent[1:]).decode()

    @property
    def is_complete(self) -> bool:
        return not self.sent[-1].get("more_body", False)


async def lifespan(app: Any, inside: Callable[[], Any]) -> list[str]:
    """Runs the lifespan of an app by hand."""
    to_app: asyncio.Queue[Any] = asyncio.Queue()
    sent: list[str] = []
    started = asyncio.Event()

    async def send(message: Any) -> None:
        sent.append(message["type"])
        started.set()

    await to_app.put({"type": "lifespan.startup"})
    task = asyncio.ensure_future(app({"type": "lifespan"}, to_app.get, send))
    await started.wait()
    await inside()
    await to_app.put({"type": "lifespan.shutdown"})
    await task
    return sent


def test_other_scopes_are_refused() -> None:
    async def work() -> None:
        mcp = simple().asgi()
        request = Request()
        request.scope["type"] = "websocket"
        with pytest.raises(RuntimeError, match="http and lifespan, not 'websocket'"):
            await request.run(mcp)

    run(work)


def test_options_are_checked() -> None:
    with pytest.raises(TypeError, match=r"asgi\(\) has no option 'http'"):
        simple().asgi(http=8000)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="BearerAuth"):
        simple().asgi(auth="x")  # type: ignore[arg-type]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"tokens_file": "nope"}, "tokens_file: there is no file 'nope'"),
        ({"tokens_file": 5}, "tokens_file has to be a str, not 5"),
        ({"principal": "bob"}, "principal has to be a function, not 'bob'"),
        ({"hosts": [1]}, r"hosts has to be a list of str, not \[1\]"),
        ({"origins": 1}, "origins has to be a list of str, not 1"),
        ({"drain": "5s"}, "drain has to be a number of seconds, not '5s'"),
        ({"drain": -1}, "drain has to be 0 s or more, not -1"),
        ({"path": 5}, "path has to be a str, not 5"),
    ]
    for options, why in wrong:
        with pytest.raises((TypeError, ValueError), match=why):
            simple().asgi(**options)


def test_a_body_in_pieces() -> None:
    async def work() -> None:
        mcp = simple().asgi()
        request = Request()
        request.pieces = [bytes([byte]) for byte in request.body]
        await request.run(mcp)
        assert request.status == 200
        assert "3" in request.text
        assert request.is_complete
        await mcp.aclose()

    run(work)


def test_the_end_of_the_lifespan_waits_for_calls() -> None:
    async def work() -> None:
        mcp = simple().asgi(drain=5.0)
        request = Request("slow", seconds=0.2)
        tasks = []

        async def inside() -> None:
            tasks.append(asyncio.ensure_future(request.run(mcp)))
            while (
                not mcp._server._hosts
                or not next(iter(mcp._server._hosts.values())).running
            ):
                await asyncio.sleep(0.01)

        sent = await lifespan(mcp, inside)
        assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        await tasks[0]
        assert request.status == 200
        assert "done" in request.text
        late = await Request().run(mcp)
        assert late.status == 503
        assert (b"retry-after", b"1") in late.sent[0]["headers"]
        assert await lifespan(mcp, inside_nothing) == sent  # again, in the same loop

    run(work)


async def inside_nothing() -> None:
    pass


def test_a_lifespan_that_fails_is_told() -> None:
    @asynccontextmanager
    async def broken(server: segue.Server) -> AsyncIterator[None]:
        raise OSError("no database")
        yield

    async def work() -> None:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "lifespan.startup"}

        mcp = simple(lifespan=broken).asgi()
        with pytest.raises(OSError, match="no database"):
            await mcp({"type": "lifespan"}, receive, send)
        assert sent[0]["type"] == "lifespan.startup.failed"
        assert "no database" in sent[0]["message"]

    run(work)


def test_a_client_that_goes_ends_its_call() -> None:
    async def work() -> None:
        server = segue.Server("x")
        ended = asyncio.Event()

        @server.tool
        async def hang() -> str:
            try:
                await asyncio.sleep(1000)
            finally:
                ended.set()
            return ""

        mcp = server.asgi()
        request = Request("hang", none=None)
        request.body = request.body.replace(b'{"none": null}', b"{}")
        request.pieces = [request.body]
        task = asyncio.ensure_future(request.run(mcp))
        await asyncio.sleep(0)
        request.gone.set()
        await task
        await ended.wait()
        await mcp.aclose()

    run(work)


def test_a_host_that_cancels_a_request_ends_its_call() -> None:
    async def work() -> None:
        mcp = simple().asgi()
        task = asyncio.ensure_future(Request("slow", seconds=1000).run(mcp))
        while not mcp._server._hosts:
            await asyncio.sleep(0.01)
        host = next(iter(mcp._server._hosts.values()))
        while not host.running:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while host.running:
            await asyncio.sleep(0.01)
        await mcp.aclose()

    run(work)


WINDOW = 128 * 1024  # exchange_window_bytes of the library


def held_by(exchange: Any) -> int:
    return sum(len(body or b"") for _, _, body, _ in exchange._events)


def test_little_is_held_for_a_host_that_does_not_send() -> None:
    async def work() -> None:
        mcp = simple().asgi()
        request = Request("big", size=2_000_000)
        request.room.clear()
        exchanges: list[Any] = []
        came = asyncio.Event()
        from segue.server import asgi

        class Seen(asgi._Exchange):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                exchanges.append(self)

            def on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
                super().on_event(kind, a, b, c)
                # One event is with the host already, so that less is held than came.
                if held_by(exchanges[0]) >= WINDOW // 2:
                    came.set()

        original, asgi._Exchange = asgi._Exchange, Seen  # type: ignore[misc]
        try:
            task = asyncio.ensure_future(request.run(mcp))
            await asyncio.wait_for(came.wait(), 60)
            # Another call has its answer, so the library could have sent more here.
            await Request("add", a=1, b=2).run(mcp)
            held = held_by(exchanges[0])
            assert held <= 256 * 1024
        finally:
            asgi._Exchange = original  # type: ignore[misc]
        request.room.set()
        await task
        assert request.is_complete
        assert len(request.text) > 2_000_000
        await mcp.aclose()

    run(work)


def test_a_client_that_leaves_an_answer_that_has_ended_is_asked_about_once() -> None:
    """A host says at once, and again and again, that the client has gone: who asks it in
    a loop stops the whole event loop."""

    class Leaving(Request):
        asked = 0

        async def receive(self) -> Any:
            message = await super().receive()
            self.asked += message["type"] == "http.disconnect"
            if self.asked > 3:
                raise AssertionError("asked again and again")
            return message

    async def work() -> None:
        mcp = simple().asgi()
        request = Leaving("add", a=1, b=2)
        request.pieces = [request.body[:9], request.body[9:]]  # so the client is watched
        request.room.clear()
        task = asyncio.ensure_future(request.run(mcp))
        await Request("slow", seconds=0.1).run(mcp)  # the answer waits for the host
        request.gone.set()
        await asyncio.sleep(0)
        await Request("add", a=1, b=2).run(mcp)
        request.room.set()
        await task
        assert request.asked == 1
        await mcp.aclose()

    run(work)


def test_a_small_answer_comes_with_its_end_in_one_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from segue import _segue
    from segue.server import asgi

    seen: list[tuple[int, Any]] = []

    class Seen(asgi._Exchange):
        def on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
            seen.append((kind, c))
            super().on_event(kind, a, b, c)

    monkeypatch.setattr(asgi, "_Exchange", Seen)

    async def work() -> None:
        mcp = simple().asgi()
        request = await Request("add", a=1, b=2).run(mcp)
        assert seen == [(_segue.ANSWER, True)]
        assert request.is_complete and len(request.sent) == 2
        await mcp.aclose()

    run(work)


def test_what_is_handled_in_place_does_not_run_in_the_context_of_who_asks() -> None:
    """A request handles the events that are due, which may be those of others."""
    from segue import _runtime

    caller = contextvars.ContextVar("caller", default="nobody")
    server = segue.Server("web")
    found: list[str] = []

    @server.tool(thread=False)
    def look() -> None:
        found.append(caller.get())

    async def work() -> None:
        async with segue.connect(server) as session:
            calling = asyncio.ensure_future(session.call("look"))
            await asyncio.sleep(0)
            caller.set("someone else")
            end = time.monotonic() + 60
            while not found and time.monotonic() < end:
                _runtime.current().deliver()
            assert found == ["nobody"]
            await calling

    run(work)


def test_where_the_app_is_mounted() -> None:
    cases: list[tuple[dict[str, Any], int]] = [
        ({"root_path": "/a", "path": "/a/mcp", "raw_path": b"/a/mcp"}, 200),
        ({"root_path": "/a/", "path": "/a/mcp", "raw_path": None}, 200),
        ({"root_path": "/b c", "path": "/b c/mcp", "raw_path": b"/b%20c/mcp"}, 200),
        ({"root_path": "", "path": "/mcp", "raw_path": b"/mcp"}, 200),
        ({"root_path": "/proxy", "path": "/mcp", "raw_path": b"/mcp"}, 200),
        ({"root_path": "/a", "path": "/amcp", "raw_path": b"/amcp"}, 404),
        ({"root_path": "/a", "path": "/a", "raw_path": b"/a"}, 404),
    ]

    async def work() -> None:
        mcp = simple().asgi(path="/mcp")
        for scope, status in cases:
            request = Request()
            request.scope.update(scope)
            await request.run(mcp)
            assert (scope, request.status) == (scope, status)
        await mcp.aclose()

    run(work)


def test_hosts_are_checked() -> None:
    async def work() -> None:
        mcp = simple().asgi()
        listed = simple().asgi(hosts=["api.example"])
        for app, scope, host, status in (
            (mcp, {}, b"evil.example", 403),
            (mcp, {"server": ("192.0.2.1", 80)}, b"192.0.2.1", 200),
            (mcp, {"server": ("192.0.2.1", 80)}, b"evil.example", 403),
            (mcp, {"server": ("testserver", 80)}, b"testserver", 200),
            (mcp, {"server": None, "client": None}, b"evil.example", 403),
            (mcp, {"server": ["/run/x.sock", None]}, b"localhost", 200),
            (listed, {}, b"api.example", 200),
            (listed, {}, b"localhost", 403),
        ):
            request = Request()
            request.scope.update(scope)
            request.scope["headers"][0] = (b"host", host)
            await request.run(app)
            assert (scope, host, request.status) == (scope, host, status)
        await mcp.aclose()
        await listed.aclose()

    run(work)


def test_a_malformed_request_is_refused() -> None:
    async def work() -> None:
        mcp = simple().asgi()
        request = Request()
        request.scope["headers"].append((b"x-a", b"b\r\nc: d"))
        await request.run(mcp)
        assert request.status == 400
        await mcp.aclose()

    run(work)


# ---- principals


async def ask_who(app: Any, **scope: Any) -> str:
    request = Request("who")
    request.body = request.body.replace(b'{"a": 1, "b": 2}', b"{}")
    request.pieces = [request.body]
    request.scope.update(scope)
    await request.run(app)
    if request.status != 200:
        return str(request.status)
    return str(json.loads(request.text)["result"]["content"][0]["text"])


class User:
    is_authenticated = True

    def __init__(self, **names: Any) -> None:
        self.__dict__.update(names)


def test_the_host_tells_who_calls(tmp_path: Path) -> None:
    async def later(scope: Any) -> str | None:
        await asyncio.sleep(0)
        return scope.get("state", {}).get("name")

    async def work() -> None:
        plain = simple().asgi()
        assert await ask_who(plain) == ""
        assert await ask_who(plain, user=SimpleUser("ada")) == "ada"
        assert await ask_who(plain, user=User(identity="id-7", username="x")) == "id-7"
        assert await ask_who(plain, user=User(is_authenticated=False)) == ""
        with pytest.raises(TypeError, match="neither an identity nor a username"):
            await ask_who(plain, user=User(display_name="x"))
        await plain.aclose()

        asked = simple().asgi(principal=later)
        assert await ask_who(asked, state={"name": "eve"}) == "eve"
        assert await ask_who(asked, user=SimpleUser("ada")) == ""
        with pytest.raises(TypeError, match="str or None, not int"):
            await ask_who(asked, state={"name": 7})
        await asked.aclose()

        by_server = simple(principal=lambda peer: peer.header("x-name")).asgi()
        named = [*Request().scope["headers"], (b"x-name", b"bob")]
        named = [
            (name, b"who" if name == b"mcp-name" else value) for name, value in named
        ]
        assert await ask_who(by_server, user=SimpleUser("ada")) == "ada"
        assert await ask_who(by_server, headers=named) == "bob"
        await by_server.aclose()

        tokens = tmp_path / "tokens"
        tokens.write_text(f"ada {hashlib.sha256(b'secret').hexdigest()}\n")
        guarded = simple().asgi(tokens_file=str(tokens))
        assert await ask_who(guarded) == "401"
        assert await ask_who(guarded, user=SimpleUser("bob")) == "bob"
        await guarded.aclose()

    run(work)


def test_users_of_starlette() -> None:
    class Backend(AuthenticationBackend):
        async def authenticate(self, conn: HTTPConnection) -> Any:
            name = conn.headers.get("x-name")
            return (AuthCredentials(), SimpleUser(name)) if name else None

    async def work() -> None:
        mcp = simple().asgi()
        app = Starlette(
            routes=[Mount("/mcp", app=mcp)],
            middleware=[Middleware(AuthenticationMiddleware, backend=Backend())],
            lifespan=mcp.lifespan,
        )
        async with in_uvicorn(app) as port:
            url = f"http://127.0.0.1:{port}/mcp/"
            async with segue.connect(url, headers={"x-name": "ada"}) as session:
                assert (await session.call("who")).text == "ada"
            async with segue.connect(url) as session:
                assert (await session.call("who")).text == ""

    run(work)
