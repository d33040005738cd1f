"""Opens sessions: from a target and options to a transport and a session."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import shutil
import socket
from collections.abc import Callable, Generator, Sequence
from types import TracebackType
from typing import Any, Protocol
from urllib.parse import parse_qs, urlencode, urlsplit
from weakref import WeakValueDictionary

from typing_extensions import Unpack

from .. import _runtime, _segue, errors
from .auth import Limit, OAuth, Redirects, browse
from .conversation import LEVELS, milliseconds
from .flow import Exchange
from .options import (
    ConnectOptions,
    answers_of,
    check,
    http_options,
    session_options,
    validator,
)
from .session import Session
from .task import Task, era_of

__all__ = [
    "ConnectOptions",
    "Connecting",
    "Resuming",
    "Target",
    "authorize",
    "connect",
    "resume",
]


class InProcess(Protocol):
    """A `segue.Server` of this process."""

    def _attach(self, transport: _segue.Transport) -> object: ...


class OwnTransport(Protocol):
    """A target that makes its own transport. Tests use such targets."""

    def _transport(self, runtime: _segue.Runtime) -> _segue.Transport: ...


Target = str | Sequence[str] | socket.socket | InProcess | OwnTransport
_PATIENCE = 30.0  # default limit for the first connection, in seconds
# How long `close` waits for the last lines of a child process, in seconds. A child has
# two seconds to end by itself and two after SIGTERM, and is then killed.
_CHILD_END = 5.0


# The connections for which a user decides about a login now, by their OAuth `state`.
_deciding: WeakValueDictionary[str, Line] = WeakValueDictionary()


def _hand_in(runtime: _runtime.Runtime, redirect: str) -> None:
    """Passes the browser's redirect to the library. The connection that waits for this
    redirect then continues.
    """
    _segue.runtime_authorize(runtime.handle, redirect)
    query = (redirect.partition("?")[2] or redirect).partition("#")[0]
    for state in parse_qs(query).get("state", ()):
        line = _deciding.pop(state, None)
        if line is not None and line.limit is not None:
            line.limit.go_on()


def _because(error: errors.Error, cause: Exception) -> errors.Error:
    error.__cause__ = cause
    return error


class Line:
    """The transport of a session, and the resources that live as long as the session."""

    def __init__(self, target: Target, options: ConnectOptions) -> None:
        self.runtime = _runtime.Runtime.current()
        self._target = target
        self._options = options
        self._redirects: Redirects | None = None
        self._browsing: set[asyncio.Task[None]] = set()
        self._stderr_end: asyncio.Event | None = None  # set = the child has ended
        self.limit: Limit | None = None  # the time limit of the first connection
        self._session: Session | None = None
        self._server: InProcess | None = None
        self._far_end: _segue.Transport | None = None

    def make(self, session: Session) -> _segue.Transport:
        """Makes the transport of the session without attaching it."""
        target = self._target
        self._session = session
        if isinstance(target, str):
            return self._http(target)
        if isinstance(target, (list, tuple)):
            return self._spawn([os.fspath(word) for word in target])
        if isinstance(target, socket.socket):
            number = os.dup(target.fileno())
            try:
                return _segue.transport_fds(self.runtime.handle, number, number)
            except BaseException:
                os.close(number)
                raise
        made: Any = target
        if hasattr(made, "_transport"):
            own: _segue.Transport = made._transport(self.runtime.handle)
            return own
        if hasattr(made, "_attach"):
            near, self._far_end = _segue.transport_pair(self.runtime.handle)
            self._server = made
            return near
        raise TypeError(
            f"a server is a URL, a command (a list) or a segue.Server, not {target!r}"
        )

    async def attach(self) -> None:
        """Lets a server in this process serve the other end of the transport."""
        if self._server is not None:
            assert self._far_end is not None
            given = self._server._attach(self._far_end)
            if inspect.isawaitable(given):
                await given

    # ---- a child process

    def _spawn(self, argv: list[str]) -> _segue.Transport:
        if not argv:
            raise ValueError("the command is empty")
        o = self._options
        told: _segue.SpawnOptions = {"argv": argv, "restart": o.get("restart", True)}
        env, cwd = o.get("env"), o.get("cwd")
        program = argv[0] if "/" not in argv[0] else os.path.join(cwd or "", argv[0])
        if shutil.which(program) is None:
            why = (
                "the file is not a program, or is not executable"
                if os.path.exists(program)
                else "the program does not exist"
            )
            raise errors.SpawnError(f"cannot start {argv[0]}: {why}")
        if env is not None:
            told["env"] = [f"{k}={v}" for k, v in {**os.environ, **env}.items()]
        if cwd is not None:
            told["working_dir"] = os.fspath(cwd)
        on_stderr = o.get("on_stderr")
        if on_stderr is None:
            return _segue.transport_spawn(self.runtime.handle, told)
        session = self._session
        assert session is not None
        end = self._stderr_end = asyncio.Event()

        def on_event(kind: int, line: str | None, b: Any, c: Any) -> None:
            if line is None:
                end.set()
            else:
                session.run(on_stderr, line)

        return _segue.transport_spawn(self.runtime.handle, told, on_event)

    # ---- HTTP

    def _http(self, url: str) -> _segue.Transport:
        o = self._options
        told = http_options(o)
        parts = urlsplit(url)
        # the form in which a listener reports its address: unix:/run/x.sock:/mcp
        if url.startswith("unix:"):
            path, _, endpoint = url[5:].rpartition(":")
            told["unix_socket"] = path
            url = "http://localhost" + endpoint
        elif parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"the URL has to begin with http:// or https://, not {url!r}; "
                "a command is a list of words"
            )
        auth = o.get("auth")
        ask = auth if callable(auth) and not isinstance(auth, OAuth) else None
        transport = _segue.transport_http(
            self.runtime.handle, url, told, _token_setter(ask) if ask else None
        )
        for name, value in (o.get("headers") or {}).items():
            _segue.transport_set_header(transport, name, value)
        if isinstance(auth, str):
            _segue.transport_set_header(transport, "Authorization", f"Bearer {auth}")
        elif isinstance(auth, OAuth):
            self._set_oauth(transport, auth)
        return transport

    def _set_oauth(self, transport: _segue.Transport, oauth: OAuth) -> None:
        redirect = oauth.redirect_uri
        if redirect is None and oauth.grant == "code":
            self._redirects = Redirects(oauth.port, self._came_back)
            redirect = self._redirects.url
        storage = oauth.storage
        _segue.transport_set_oauth(
            transport,
            oauth.options(redirect),
            self._on_authorize,
            oauth.assertion,
            storage.load if storage else None,
            storage.save if storage else None,
        )

    def _on_authorize(self, kind: int, url: Any, state: Any, c: Any) -> None:
        if self.limit is not None:
            self.limit.hold()
        _deciding[state] = self
        task = asyncio.ensure_future(self._browse(url, state))
        self._browsing.add(task)
        task.add_done_callback(self._browsing.discard)

    async def _browse(self, url: str, state: str) -> None:
        oauth = self._options.get("auth")
        assert isinstance(oauth, OAuth) and self._session is not None
        try:
            if self._redirects is not None:
                await self._redirects.serve()
            await browse(oauth, url)
        except Exception as error:
            # The user did not see the URL and so cannot agree. The authorization that
            # waits for the user is ended.
            if self.limit is not None:
                told = f"open_browser failed ({error!r}); to log in, visit {url}"
                self.limit.fail(_because(errors.UnauthorizedError(told), error))
                return
            self._session.failed("no browser can be opened for the user's consent", error)
            why = {"error": "no_browser", "error_description": repr(error)}
            with contextlib.suppress(errors.NotFoundError):
                _hand_in(self.runtime, urlencode({**why, "state": state}))

    def _came_back(self, path: str) -> bool:
        try:
            _hand_in(self.runtime, path.partition("?")[2])
        except (errors.NotFoundError, errors.InvalidError):
            return False
        return True

    # ---- closing

    def close(self) -> None:
        """Frees the resources when the session has ended."""
        for task in self._browsing:
            task.cancel()
        if self._redirects is not None:
            self._redirects.close()

    async def closed(self) -> None:
        if self._browsing:
            await asyncio.wait(list(self._browsing))
        if self._stderr_end is not None:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stderr_end.wait(), _CHILD_END)


def _token_setter(
    ask: Callable[[int], str | None],
) -> Callable[[_segue.Transport, int], None]:
    def on_headers(transport: _segue.Transport, status: int) -> None:
        token = ask(status)
        if token is not None:
            _segue.transport_set_header(transport, "Authorization", f"Bearer {token}")

    return on_headers


def begin(target: Target, o: ConnectOptions) -> tuple[Session, Line]:
    """Opens a session, which then begins to connect."""
    check(o)
    level = o.get("log_level", "info" if o.get("on_log") else None)
    if level is not None and level not in LEVELS:
        raise ValueError(
            f"unknown log level: {level!r}; the log levels are {', '.join(LEVELS)}"
        )
    answers = o.get("answers") or answers_of(o)
    validate = o.get("validate")
    line = Line(target, o)
    session = Session(
        line,
        answers=answers,
        on_log=o.get("on_log"),
        log_level=level,
        on_notification=o.get("on_notification"),
        on_reconnect=o.get("on_reconnect"),
        timeout=o.get("timeout"),
        raise_on_error=o.get("raise_on_error", True),
    )
    told = session_options(o, answers)
    try:
        transport = line.make(session)
        session.handle = _segue.session_open(
            line.runtime.handle,
            transport,
            told,
            session.on_event,
            -1,
            validator(validate) if validate else None,
        )
    except BaseException:
        line.close()
        raise
    return session, line


def _stand(session: Session) -> None:
    """Makes the session answer the server's questions that belong to no request, such as
    `roots/list`."""
    if session.answers:
        # `opened` reports the error to the caller
        with contextlib.suppress(errors.ClosedError):
            exchange = Exchange(session)
            exchange.handle = _segue.session_take_input(
                session.handle, exchange.on_event, exchange.mask_of_events()
            )


async def open_session(target: Target, o: ConnectOptions) -> Session:
    """Opens a session and waits for its connection."""
    patience = o.get("connect_timeout", _PATIENCE)
    milliseconds(patience)
    session, line = begin(target, o)
    try:
        _stand(session)
        await line.attach()
        line.limit = Limit(patience)
        await line.limit.wait(session.opened())
        line.limit = None
        is_legacy = session.peer.era == "legacy"
        if o.get("on_log") and is_legacy and "logging" in session.peer.capabilities:
            await session.set_log_level(o.get("log_level") or "info")
    except asyncio.TimeoutError as error:
        await session.close()
        if isinstance(error, errors.Error):
            raise
        name = target if isinstance(target, (str, list, tuple)) else "the server"
        why = f": {session.lost_by}" if session.lost_by else ""
        raise errors.RequestTimeoutError(
            f"{name} could not be reached within {patience:g} s{why}"
        ) from None
    except errors.UnauthorizedError as error:
        await session.close()
        if "auth" in o:
            raise
        told = f"{error}; give a token, or segue.OAuth() to log in, as auth="
        raise errors.UnauthorizedError(told) from error
    except BaseException:
        await session.close()
        raise
    return session


class Connecting:
    """The value that `connect` returns. `await` opens the session; `async with` also
    closes the session at the end.
    """

    def __init__(self, target: Target, options: ConnectOptions) -> None:
        self._target = target
        self._options = options
        self._session: Session | None = None

    def __await__(self) -> Generator[Any, None, Session]:
        return open_session(self._target, self._options).__await__()

    async def __aenter__(self) -> Session:
        self._session = await open_session(self._target, self._options)
        return self._session

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._session is not None
        await self._session.close()


class Resuming:
    """The value that `resume` returns: `async with` returns the `Task` and closes its
    session at the end."""

    def __init__(self, token: str, target: Target, options: ConnectOptions) -> None:
        self._token = token
        self._options = options
        self._connecting = Connecting(target, options)

    async def __aenter__(self) -> Task:
        if "era" not in self._options:
            self._options["era"] = era_of(_runtime.current().handle, self._token)
        session = await self._connecting.__aenter__()
        try:
            return session.resume(self._token)
        except BaseException:
            await session.close()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._connecting.__aexit__(kind, error, trace)


def connect(target: Target, /, **options: Unpack[ConnectOptions]) -> Connecting:
    """Connects to a server:

        async with segue.connect("http://127.0.0.1:8000/mcp") as session:
            print((await session.call("greet", name="Ada")).text)

    Without `async with`, use `session = await segue.connect(...)`, and
    `await session.close()` at the end. The client finds out which protocol revision the
    server speaks.

    Args:
        target: A URL (http, https, "unix:/run/x.sock:/mcp"); a command with its arguments
            as a list, which is started and connected by its standard input and output; a
            connected stream socket; or a `segue.Server` of this process.
        options: See `ConnectOptions`.

    Raises:
        ValueError, TypeError: The target or an option is invalid.
        SpawnError: The command cannot be started.
        UnauthorizedError: The server requires an authorization that the client could not
            get.
        NegotiationError: The server speaks no protocol revision that the client knows.
        RequestTimeoutError: No connection was made within `connect_timeout`.
    """
    return Connecting(target, options)


def resume(token: str, target: Target, /, **options: Unpack[ConnectOptions]) -> Resuming:
    """Connects and resumes a request of an earlier connection or process:

        async with segue.resume(token, url) as task:
            async for segment in task:
                ...

    The session is closed at the end of `async with`. A task that is still running
    continues on the server. The token chooses `era`, unless the options have it: a task
    of 2025-11-25 can only be resumed by that revision.

    Args:
        token: The token of the request.
        target: The server: a URL, a command or a `Server`.
        options: Those of `connect`.
    """
    return Resuming(token, target, options)


def authorize(redirect_url: str) -> None:
    """Passes the redirect URL of a browser to the connection that waits for it.

    A program with its own `redirect_uri` in `OAuth` must call this function, in the loop
    of that connection.

    Raises:
        NotFoundError: No connection waits for this URL, or the connection no longer
            waits.
        InvalidError: The text is not a redirect URL.
    """
    _hand_in(_runtime.current(), redirect_url)
