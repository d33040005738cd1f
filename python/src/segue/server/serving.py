"""One way to serve: a listener, or standard input and output.

    serving = server.serving(http="127.0.0.1:8000")
    async with serving: ...          start ... aclose

A serving ends in this order. First, new calls are refused, running calls may end within
`drain` seconds, and clients that lost their connection may come back for the rest of an
answer. Then the remaining connections are closed, and handlers that still run are
cancelled.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .. import _segue, errors
from ..names import nearest
from .auth import BearerAuth
from .lifespan import Lives
from .options import AsgiOptions, ServeOptions
from .stdio import Stdio
from .stores import store_of

if TYPE_CHECKING:
    from .hosting import Hosting
    from .server import Server

__all__ = ["Serving", "address_of"]

_KNOWN = frozenset(ServeOptions.__annotations__)
_OF_HTTP = sorted(_KNOWN - {"store", "drain"})
_KNOWN_MOUNT = frozenset(AsgiOptions.__annotations__)
_TEXTS = (
    *("path", "health_path", "metrics_path", "board_path", "tokens_file"),
    *("cert_file", "key_file", "client_ca_file"),
)
_MOST_PORT = 65535
# The time in seconds for cancelled handlers to end, and for the last answers to be sent.
GRACE = 1.0


def address_of(http: str | int) -> dict[str, Any]:
    """Converts an address to listener options: "host:port", ":port", a port,
    "unix:/path", "systemd:name" or the URL of the endpoint.

    Raises:
        TypeError: the address is neither a str nor a port.
        ValueError: the address has none of these forms.
    """
    if isinstance(http, bool) or not isinstance(http, (int, str)):
        raise TypeError(
            'http is the address to listen on, such as "127.0.0.1:8000", or a port, not '
            f"{http!r:.60}"
        )
    if isinstance(http, int):
        return {"port": _port(http, http)}
    if http.startswith(("unix:", "systemd")):
        return {"address": http}
    made: dict[str, Any] = {}
    if "://" in http:
        parts = urlsplit(http)
        if parts.path not in ("", "/"):
            made["path"] = parts.path
        http = parts.netloc
    host, colon, port = http.rpartition(":")
    if http.isdigit():
        host, colon, port = "", ":", http
    if http.endswith("]") or not colon or not port.isdigit():
        raise ValueError(
            f"the address to listen on is invalid: {http!r}; it has to be host:port, "
            "where port 0 means any free port"
        )
    host = {"localhost": "127.0.0.1", "*": "0.0.0.0"}.get(host, host.strip("[]"))
    if host:
        made["address"] = host
    return {**made, "port": _port(int(port), http)}


def _port(port: int, http: str | int) -> int:
    if not 0 <= port <= _MOST_PORT:
        raise ValueError(
            f"the address to listen on is invalid: {http!r}; a port is a number from 0 "
            f"to {_MOST_PORT}"
        )
    return port


def _joined(names: Sequence[str] | str | None) -> str | None:
    return names if isinstance(names, str) or names is None else ",".join(names)


def listen_options(http: str | int, options: ServeOptions) -> _segue.ListenOptions:
    """Makes the options of a listener."""
    return _made(address_of(http), options)


def mount_options(options: AsgiOptions) -> _segue.ListenOptions:
    """Makes the options of a listener without a socket."""
    return _made({}, options)  # type: ignore[arg-type]


def _made(made: dict[str, Any], options: ServeOptions) -> _segue.ListenOptions:
    told: dict[str, Any] = {
        key: options.get(key)
        for key in (
            "path",
            "health_path",
            "metrics_path",
            "board_path",
            "board_token",
            "cert_file",
            "key_file",
            "client_ca_file",
            "tokens_file",
        )
    }
    told["hosts"] = _joined(options.get("hosts"))
    told["origins"] = _joined(options.get("origins"))
    for key in ("cors", "board_read_only", "board_redact"):
        told[key] = options.get(key) or None
    made.update({key: value for key, value in told.items() if value is not None})
    made.update(options.get("options") or {})
    return made  # type: ignore[return-value]


def check(http: str | int | None, options: ServeOptions) -> None:
    """Refuses invalid options of `Server.serving`.

    Raises:
        TypeError, ValueError: an option is unknown, its value is invalid, or it has no
            effect without `http`.
    """
    _check("serving", _KNOWN, options)
    if http is None:
        given = [key for key in _OF_HTTP if options.get(key)]
        if given:
            raise ValueError(
                f"{given[0]}= is an option of HTTP: give http= too. Without http= the "
                "server serves standard input and output, where the option would have "
                "no effect"
            )


def check_mount(options: AsgiOptions) -> None:
    """Refuses invalid options of `Server.asgi`, as `check` does."""
    _check("asgi", _KNOWN_MOUNT, options)  # type: ignore[arg-type]
    tokens = options.get("tokens_file")
    if tokens is not None and not os.path.isfile(tokens):
        raise ValueError(f"tokens_file: there is no file {os.fspath(tokens)!r}")


def _check(name: str, known: frozenset[str], options: ServeOptions) -> None:
    unknown = sorted(set(options) - known)
    if unknown:
        meant = nearest(unknown[0], sorted(known))
        raise TypeError(
            f"{name}() has no option {unknown[0]!r}"
            + (f", did you mean {meant!r}?" if meant else "")
            + "; pass members of segue_listen_options as options={...}"
        )
    auth, store = options.get("auth"), options.get("store")
    if auth is not None and not isinstance(auth, BearerAuth):
        raise TypeError(f"auth has to be a segue.BearerAuth, not {auth!r}")
    _check_types(options)
    store_of(store)


def _check_types(options: ServeOptions) -> None:
    told: dict[str, Any] = {
        key: value for key, value in options.items() if value is not None
    }
    for key in _TEXTS:
        if not isinstance(told.get(key, ""), (str, os.PathLike)):
            raise TypeError(f"{key} has to be a str, not {told[key]!r}")
    for key in ("hosts", "origins"):
        value = told.get(key, "")
        is_list = isinstance(value, (list, tuple, set, frozenset))
        if not isinstance(value, str) and not (
            is_list and all(isinstance(one, str) for one in value)
        ):
            raise TypeError(f"{key} has to be a list of str, not {value!r}")
    drain = told.get("drain", 0.0)
    if isinstance(drain, bool) or not isinstance(drain, (int, float)):
        raise TypeError(f"drain has to be a number of seconds, not {drain!r}")
    if not drain >= 0:
        raise ValueError(f"drain has to be 0 s or more, not {drain!r}")


class Serving:
    """One transport on which a server serves, such as a listener. `Server.serving` makes
    it.

    Attributes:
        url: the URL of the endpoint; "" for standard input and output, and before
            `start`.
    """

    def __init__(
        self, server: Server, http: str | int | None, options: ServeOptions
    ) -> None:
        check(http, options)
        store = options.get("store")
        self.url = ""
        self.drain = options.get("drain", 10.0)
        self._server = server
        self._listen = None if http is None else listen_options(http, options)
        self._auth = options.get("auth")
        self._store = self._store_of(store)
        self._host: Hosting | None = None
        self._listener: _segue.Listener | None = None
        self._stdio: Stdio | None = None
        self._left: asyncio.Event | None = None
        self._closing: asyncio.Future[None] | None = None
        self._lives = Lives([])
        # called when the listener takes no new connections any more
        self._on_shut: Callable[[], None] | None = None

    _open_listener = staticmethod(_segue.server_listen)
    _store_of = staticmethod(store_of)

    async def start(self) -> Serving:
        """Begins to serve.

        Raises:
            InputOutputError: the address or a certificate cannot be used.
            StoreError: the store cannot be opened.
            Exception: the lifespan of the server cannot begin.
        """
        if self._host is not None:
            raise RuntimeError(
                "this Serving was started before: make a new one with server.serving()"
            )
        if self._listen is None:  # before the lifespan, which may print
            self._stdio = Stdio()
        try:
            lives = self._server._all_lives()
            await lives.enter()
            try:
                self._start()
            except BaseException:
                await lives.leave()
                raise
        except BaseException:
            self._restore()
            raise
        self._lives = lives
        return self

    def _restore(self) -> None:
        if self._stdio is not None:
            self._stdio.restore()

    def _start(self) -> None:
        own = object() if self._listen is None else None
        host = self._host = self._server._host(self._store, own)
        self._left = asyncio.Event()
        host.users += 1
        host.on_idle.append(self._on_idle)
        try:
            if self._stdio is not None:
                self._start_stdio(host, self._stdio)
            elif self._listen is not None:
                self._start_listener(host, self._listen)
        except BaseException:
            host.on_idle.remove(self._on_idle)
            self._leave(host)
            raise

    def _start_stdio(self, host: Hosting, stdio: Stdio) -> None:
        transport = _segue.transport_fds(host.runtime.handle, *stdio.take())
        _segue.server_attach(host.handle, transport)

    def _start_listener(self, host: Hosting, listen: _segue.ListenOptions) -> None:
        options: _segue.ListenOptions = {**listen}
        options.setdefault("drain_ms", round(self.drain * 1000))
        bearer = self._auth.bearer_options() if self._auth else None
        hook = self._auth.hook(host.spawn) if self._auth else None
        self._listener = self._open_listener(host.handle, options, bearer, hook)
        self.url = _segue.listener_url(self._listener)

    def _on_idle(self) -> None:
        if self._left is not None:
            self._left.set()

    def reload(self) -> None:
        """Reads the files of certificates, keys and tokens again.

        Raises:
            InputOutputError: a file cannot be used; the old contents stay in use.
            StateError: the listener has no such files.
        """
        if self._listener is not None:
            _segue.listener_reload(self._listener)

    async def wait_closed(self) -> None:
        """Waits until standard input has ended or `aclose` has finished."""
        assert self._left is not None, "this Serving has not been started"
        if self._listen is None:
            await self._left.wait()
        else:
            await asyncio.shield(self._end())

    def _end(self) -> asyncio.Future[None]:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_future()
        return self._closing

    async def aclose(self, drain: float | None = None) -> None:
        """Ends the serving. New calls are refused, and running calls may end within
        `drain` seconds. During this time, clients over HTTP may come back for their
        answers; clients that have gone are not waited for. Then the handlers are
        cancelled. Tasks are left to the next server on the store, which runs tasks of
        restartable tools again and fails all other tasks."""
        host, self._host = self._host, None
        if host is None:
            return
        patience = self.drain if drain is None else drain
        if self._listen is None and self._left is not None and self._left.is_set():
            patience = 0  # the client has left, so no client waits for the calls
        try:
            if self._listener is not None:
                _segue.listener_close(self._listener)
                if self._on_shut is not None:
                    self._on_shut()
            if host.users == 1 and patience > 0:
                await asyncio.wait_for(self._drained(host), patience)
        except (asyncio.TimeoutError, errors.ClosedError):
            pass
        finally:
            try:
                await self._finish(host)
            finally:
                try:
                    await self._lives.leave()
                finally:
                    self._restore()

    async def _crash(self) -> None:
        """Ends the serving as a crash does. Handlers are cancelled; those that continue
        can do nothing more to their calls."""
        if self._host is not None:
            self._host.crash()
        await self.aclose(0)

    async def _drained(self, host: Hosting) -> None:
        await host.drain(refuses=self._listener is None)
        if self._listener is not None and self._left is not None:
            # Clients that lost their connection may still fetch the answers of calls
            # that have ended. A call that was accepted earlier may still begin.
            await self._left.wait()
            await host.drain(refuses=False)

    async def _finish(self, host: Hosting) -> None:
        if self._listener is not None:
            _segue.listener_free(self._listener)
        self._leave(host)
        assert self._left is not None
        try:
            if host.is_closed:
                await host.cancel(GRACE)
            if host.is_closed and not self._left.is_set():
                await asyncio.wait_for(self._left.wait(), GRACE)
        except asyncio.TimeoutError:
            pass
        finally:
            host.on_idle.remove(self._on_idle)
            if not self._end().done():
                self._end().set_result(None)

    def _leave(self, host: Hosting) -> None:
        host.users -= 1
        if not host.users:
            self._server._forget(host)

    async def __aenter__(self) -> Serving:
        return await self.start()

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose(0 if exception[0] is asyncio.CancelledError else None)
