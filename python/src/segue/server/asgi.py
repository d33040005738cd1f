"""A server as an ASGI application, for apps that have an HTTP server already.

    app = FastAPI(lifespan=mcp.lifespan)
    app.mount("/mcp", mcp)

The HTTP server carries the requests; everything else is as with `Server.serving`. For
each event loop the application has one `Mounted`, a serving without a socket. It starts
with the lifespan, or with the first request. It ends with the lifespan, or with the loop.

A request is one exchange (`exchange_open`): this module passes the body in, and sends the
answer as the HTTP server takes it.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .. import _runtime, _segue, errors
from .._waits import Wait
from .options import AsgiOptions
from .serving import Serving, check_mount, mount_options

if TYPE_CHECKING:
    from .server import Server

__all__ = ["Asgi"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
PrincipalOf = Callable[[Scope], str | Awaitable[str | None] | None]

# Clients ask for the metadata of a protected resource at this path of the host
# (RFC 9728), wherever the application is mounted.
_METADATA = "/.well-known/oauth-protected-resource"
# The time in seconds after which a request that has no answer yet notices that its
# client has gone: at least this time, at most twice. Answers of most calls come earlier,
# and then no task must watch the client.
_WATCH_AFTER = 0.25
# Since Python 3.12 a handler that does not wait ends in the step that begins it, so its
# answer is there when the events of the request have been handled. Before, the handler
# runs in the next turn of the loop, and handling the events of all requests of a turn
# together costs less.
_ANSWERS_AT_ONCE = sys.version_info >= (3, 12)


class Mounted(Serving):
    """The serving of an ASGI application in one event loop."""

    def __init__(self, server: Server, options: AsgiOptions) -> None:
        super().__init__(server, None, {})
        self.runtime = _runtime.current()
        self.drain = options.get("drain", 10.0)
        self._listen = mount_options(options)
        self._auth = options.get("auth")
        self._store = self._store_of(options.get("store"))
        self._begun: asyncio.Future[Any] | None = None
        # whole requests whose clients nobody watches: those since the last ring of the
        # timer, and those before. One timer for all costs less than one for each.
        self._young: set[_Exchange] = set()
        self._old: set[_Exchange] = set()
        self._watch: asyncio.TimerHandle | None = None

    _open_listener = staticmethod(_segue.listener_open)

    @property
    def is_over(self) -> bool:
        """Whether the serving has started and ended."""
        return self._begun is not None and self._begun.done() and self._host is None

    @property
    def listener(self) -> _segue.Listener:
        assert self._listener is not None
        return self._listener

    async def begun(self) -> None:
        """Starts the serving, once. Later calls wait for the start."""
        if self._begun is None:
            self._begun = asyncio.ensure_future(self.start())
        await asyncio.shield(self._begun)

    def watch_later(self, exchange: _Exchange) -> None:
        """Has the client of a whole request watched if its answer takes long."""
        self._young.add(exchange)
        if self._watch is None:
            self._watch = self.runtime.loop.call_later(_WATCH_AFTER, self._watch_old)

    def answered(self, exchange: _Exchange) -> None:
        self._young.discard(exchange)
        self._old.discard(exchange)

    def _watch_old(self) -> None:
        self._watch = None
        old, self._old, self._young = self._old, self._young, set()
        if self._old:
            self._watch = self.runtime.loop.call_later(_WATCH_AFTER, self._watch_old)
        for exchange in old:
            exchange.watch(True)


class Asgi:
    """A server as an ASGI 3 application; `Server.asgi` makes it.

    It works alone in an ASGI server such as uvicorn or hypercorn, and mounted at a path
    of Starlette, FastAPI or another framework. It may serve in several event loops.
    """

    def __init__(
        self, server: Server, principal: PrincipalOf | None, options: AsgiOptions
    ) -> None:
        check_mount(options)
        if principal is not None and not callable(principal):
            raise TypeError(f"principal has to be a function, not {principal!r}")
        self._server = server
        self._principal = principal
        self._options = options
        self._mounts: dict[int, Mounted] = {}  # by the id of the loop's runtime
        self._last: Mounted | None = None  # the one that has served last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one scope of ASGI: a request ("http") or the "lifespan".

        Raises:
            RuntimeError: the scope has another type, such as "websocket".
        """
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            raise RuntimeError(
                f"a segue server serves the ASGI scopes http and lifespan, not "
                f"{scope['type']!r}: MCP has no such transport"
            )

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Starts the server, and ends it when the context is left: running calls may end
        within `drain` seconds. Pass it as the lifespan of the app that mounts the server,
        because frameworks do not pass the lifespan to mounted apps.
        """
        await self._begin()
        try:
            yield
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Ends the server in the running loop, as leaving the lifespan does."""
        mounted = self._mounts.get(id(_runtime.current()))
        if mounted is not None:
            await mounted.aclose()

    def reload(self) -> None:
        """Reads the files of keys and tokens again, in the running loop."""
        self._mount().reload()

    async def _begin(self) -> None:
        """Starts the server in the running loop, again if it has ended there."""
        key = id(_runtime.current())
        mounted = self._mounts.get(key)
        if mounted is not None and mounted.is_over:
            self._forget(key)
        await self._mount().begun()

    def _forget(self, key: int) -> None:
        if self._mounts.pop(key, None) is self._last:
            self._last = None

    def _mount(self) -> Mounted:
        last = self._last
        if last is not None and last.runtime.is_of(asyncio.get_running_loop()):
            return last
        runtime = _runtime.current()
        mounted = self._mounts.get(id(runtime))
        if mounted is None:
            mounted = Mounted(self._server, self._options)
            self._mounts[id(runtime)] = mounted
            runtime.before_close(lambda: self._forget(id(runtime)))
        self._last = mounted
        return mounted

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self._begin()
                except Exception as exception:
                    text = f"{type(exception).__name__}: {exception}"
                    await send({"type": "lifespan.startup.failed", "message": text})
                    raise
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        mounted = self._mount()
        if mounted._listener is None:
            await mounted.begun()
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        principal = None
        if self._principal is not None or "user" in scope:
            principal = await _principal_of(self._principal, scope)
        exchange = _Exchange(mounted, receive, send)
        is_whole = not message.get("more_body", False)
        try:
            handle = _segue.exchange_open(
                mounted.listener,
                scope["method"],
                _target(scope),
                scope["headers"],
                exchange.on_event,
                *_places(scope.get("client"), scope.get("server")),
                scope.get("scheme") == "https",
                principal,
                message.get("body", b""),
                is_whole,
                contextvars.copy_context(),
            )
        except (errors.InvalidError, ValueError) as exception:
            await _refuse(send, 400, f"The request is malformed: {exception}")
        except (errors.LimitError, errors.ClosedError) as exception:
            await _refuse(send, 503, f"The server cannot take the request: {exception}")
        else:
            await exchange.run(handle, is_whole)


class _Exchange:
    """One request and its answer."""

    __slots__ = (
        "_events",
        "_handle",
        "_has_head",
        "_is_gone",
        "_is_over",
        "_is_whole",
        "_mounted",
        "_pump",
        "_receive",
        "_room",
        "_send",
        "_waiter",
    )
    _handle: _segue.Exchange

    def __init__(self, mounted: Mounted, receive: Receive, send: Send) -> None:
        self._mounted = mounted
        self._receive = receive
        self._send = send
        self._events: deque[tuple[int, Any, Any, Any]] = deque()
        self._waiter: Wait | None = None
        self._room: asyncio.Event | None = None
        self._pump: asyncio.Task[None] | None = None
        self._is_whole = False  # the whole body has been passed in
        self._is_gone = False
        self._is_over = False  # the library has ended the exchange
        self._has_head = False

    def on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
        if kind == _segue.ANSWER_ROOM:
            if self._room is not None:
                self._room.set()
            return
        if c or kind == _segue.ANSWER_END:
            self._is_over = True
        self._events.append((kind, a, b, c))
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            self._mounted.runtime.wake(waiter)

    async def run(self, handle: _segue.Exchange, is_whole: bool) -> None:
        """Sends the answer, and waits for each part of it until the server takes it."""
        self._handle = handle
        self._is_whole = is_whole
        if not is_whole:
            self.watch(False)
        elif _ANSWERS_AT_ONCE:
            self._mounted.runtime.deliver()  # the call
            self._mounted.runtime.deliver()  # its answer
        events = self._events
        try:
            while True:
                while not events:
                    await self._wait()
                kind, a, b, is_last = events.popleft()
                if kind == _segue.ANSWER_END:
                    await self._finish(a)
                    return
                if a is not None:
                    self._has_head = True
                    head = {"status": a[0], "headers": a[1]}
                    await self._send({"type": "http.response.start", **head})
                await self._send(
                    {
                        "type": "http.response.body",
                        "body": b or b"",
                        "more_body": not is_last,
                    }
                )
                if is_last:
                    return
                if b:
                    self._sent(len(b))
        finally:
            self._mounted.answered(self)
            if self._pump is not None:
                self._pump.cancel()
            self._leave()

    def _wait(self) -> Wait:
        """Returns what is done when the next event comes."""
        if self._is_whole and self._pump is None:
            self._mounted.watch_later(self)
        self._waiter = Wait(loop=self._mounted.runtime.loop)
        return self._waiter

    def _close(self) -> None:
        try:
            _segue.exchange_closed(self._handle)
        except errors.ClosedError:  # the exchange has ended meanwhile
            pass

    def _leave(self) -> None:
        if not self._is_over:
            self._close()
        try:
            _segue.exchange_free(self._handle)
        except errors.ClosedError:  # the runtime has ended
            pass

    async def _finish(self, status: int) -> None:
        if status == 0:
            await self._send({"type": "http.response.body", "body": b""})
        elif not self._has_head and not self._is_gone:
            await _refuse(self._send, 503, "The server has ended before it answered")
        # otherwise the application returns without the end of the answer: the HTTP
        # server then cuts the connection, and the client comes back for the rest

    def _sent(self, count: int) -> None:
        try:
            _segue.exchange_sent(self._handle, count)
        except errors.ClosedError:  # the runtime has ended
            pass

    # ---- the body of the request, and the end of the connection

    def watch(self, is_whole: bool) -> None:
        self._pump = asyncio.ensure_future(self._receive_all(is_whole))

    async def _receive_all(self, is_whole: bool) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._is_gone = True
                self._close()
                return
            try:
                if not is_whole:
                    is_whole = await self._feed(message)
            except errors.ClosedError:
                is_whole = True  # the answer needs no more of the body

    async def _feed(self, message: Message) -> bool:
        """Passes a piece of the body in. Returns whether it was the last one."""
        body = message.get("body", b"")
        self._room = self._room or asyncio.Event()
        while body:
            self._room.clear()
            if _segue.exchange_feed(self._handle, body):
                break
            await self._room.wait()
        if message.get("more_body", False):
            return False
        _segue.exchange_end(self._handle)
        return True


async def _refuse(send: Send, status: int, text: str) -> None:
    body = text.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
    ]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _target(scope: Scope) -> str:
    """Returns the path below the place where the application is mounted, with the
    query."""
    raw: bytes | None = scope.get("raw_path")
    if raw and not scope.get("root_path") and not scope.get("query_string"):
        return raw.decode("latin-1")
    path = raw.decode("latin-1") if raw else quote(scope["path"], safe="/:@!$&'()*+,;=~")
    root = quote(scope.get("root_path", "").rstrip("/"), safe="/:@!$&'()*+,;=~")
    if root and (path == root or path.startswith(root + "/")):
        below = path[len(root) :] or "/"
        path = path if path.startswith(_METADATA) else below
    query: bytes = scope.get("query_string", b"")
    return f"{path or '/'}?{query.decode('latin-1')}" if query else path or "/"


def _place(address: Any) -> str | None:
    if not address:
        return None
    host, port = address
    if port is None:
        return "unix"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _places(client: Any, server: Any) -> tuple[str | None, str | None]:
    """Returns the addresses of the client and of the server."""
    try:
        return _known_places(client, server)
    except TypeError:  # the HTTP server makes lists of them
        return _find_places(client, server)


def _find_places(client: Any, server: Any) -> tuple[str | None, str | None]:
    local = _place(server)
    peer = _place(client)
    return (peer or "unix" if local == "unix" else peer), local


# many requests come over one connection
_known_places = functools.lru_cache(maxsize=256)(_find_places)


async def _principal_of(principal: PrincipalOf | None, scope: Scope) -> str | None:
    """Returns the caller that the host app has found; None = it has found none."""
    if principal is not None:
        found = principal(scope)
        if inspect.isawaitable(found):
            found = await found
        if found is not None and not isinstance(found, str):
            raise TypeError(
                f"principal has to return a str or None, not {type(found).__name__}"
            )
        return found
    user = scope.get("user")
    if user is None or getattr(user, "is_authenticated", False) is not True:
        return None
    return _identity_of(user)


def _identity_of(user: Any) -> str:
    """Returns what identifies a user of Starlette's authentication."""
    for name in ("identity", "username"):
        try:
            value = getattr(user, name, None)
        except NotImplementedError:  # as starlette.authentication.SimpleUser
            continue
        if isinstance(value, str) and value:
            return value
    raise TypeError(
        "scope['user'] has neither an identity nor a username: tell who calls with "
        "server.asgi(principal=...)"
    )
