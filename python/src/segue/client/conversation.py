"""The base class of a session: its state, its requests and the events it receives.

    connecting --> open <--> lost --> closed

`session.py` adds the methods for users.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from .. import _runtime, _segue, errors, schema
from . import items
from .changes import Changes, read_change
from .flow import OK, Callbacks, Exchange, Progress
from .peer import Peer, read_peer
from .questions import Answers

if TYPE_CHECKING:
    from typing_extensions import Self

    from .opening import Line

__all__ = ["Conversation", "LogMessage", "Reconnect", "milliseconds"]

Log = Callable[["LogMessage"], object]
Notified = Callable[[str, "dict[str, Any]"], object]
Reconnecting = Callable[["Reconnect"], object]

_encode = schema.encode
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class _Unset:
    """The type of UNSET. An option with the value UNSET has the value that is set for the
    whole session.
    """

    def __repr__(self) -> str:
        return "..."


UNSET: Any = _Unset()


class LogMessage(msgspec.Struct, frozen=True):
    """A log message of a server. `level` is one of debug, info, notice, warning, error,
    critical, alert and emergency. `data` is any JSON value."""

    level: str = "info"
    data: Any = None
    logger: str | None = None
    """Name of the logger of the server."""


class Reconnect(msgspec.Struct, frozen=True):
    """Reports that the server was lost or not reached, and that the client will try
    again.

    Attributes:
        attempt: The number of the next attempt. Attempts in a row are counted from 1.
        delay: Seconds until the next attempt.
        reason: Why the last attempt failed. Over HTTP the reason also names the request
            that tries again.
    """

    attempt: int
    delay: float
    reason: str


def milliseconds(seconds: float | None) -> int | None:
    """Converts a time limit for the library: at least 1 ms. None stays None.

    Raises:
        TypeError, ValueError: The value is not a number, or it is negative.
    """
    if seconds is None:
        return None
    if not isinstance(seconds, (int, float)):
        raise TypeError(f"a time has to be a number of seconds, not {seconds!r}")
    if not seconds >= 0:
        raise ValueError(f"a time has to be a number of seconds, not {seconds!r}")
    return max(1, round(min(seconds, 1 << 43) * 1000))


class Conversation:
    """A session without the methods for users; see `Session`."""

    peer: Peer
    handle: _segue.Session

    def __init__(
        self,
        line: Line,
        *,
        answers: Answers,
        on_log: Log | None,
        log_level: str | None,
        on_notification: Notified | None,
        on_reconnect: Reconnecting | None,
        timeout: float | None,
        raise_on_error: bool,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.runtime = _runtime.current()
        self.answers = answers
        self.changes: list[Changes] = []
        self.connections = 0
        self.is_closed = False
        self.lost_by = ""  # the reason why the last attempt to reach the server failed
        self._line = line
        self._on_log = on_log
        self._log_level = log_level
        self._on_notification = on_notification
        self._on_reconnect = on_reconnect
        self._timeout_ms = milliseconds(timeout)
        self._raises = raise_on_error
        self._running: set[asyncio.Future[Any]] = set()
        self._waiters: list[asyncio.Future[None]] = []
        self._error: errors.Error | None = None

    # ---- called by the binding

    def on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
        if kind == _segue.OPEN:
            self.peer = read_peer(_segue.session_peer(self.handle))
            self.connections += 1
            self._wake()
        elif kind == _segue.NOTIFICATION:
            self._notified(a, b)
        elif kind == _segue.RECONNECT:
            self.lost_by = c
            if self._on_reconnect is not None:
                self.run(self._on_reconnect, Reconnect(a, b / 1000, c))
        elif kind == _segue.CLOSED:
            self.is_closed = True
            self._error = errors.from_info(a, a[0]) if a else None
            for changes in list(self.changes):
                changes.closed(self._error)
            self._line.close()
            self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _change(self) -> None:
        waiter = self.loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:  # the wait was cancelled
                self._waiters.remove(waiter)

    def _notified(self, method: str, raw: bytes | None) -> None:
        try:
            params = msgspec.json.decode(raw, type=dict[str, Any]) if raw else {}
        except (msgspec.DecodeError, msgspec.ValidationError):
            params = {}
        if method == "notifications/message":
            self.tell_log(None, raw or b"{}")
        change = read_change(method, params)
        for changes in list(self.changes):
            changes.notified(method, change)
        if self._on_notification is not None:
            self.run(self._on_notification, method, params)

    def tell_log(self, callback: Log | None, raw: bytes) -> None:
        """Delivers a log message. `callback` is the callback of the request to which the
        message belongs.
        """
        callback = callback or self._on_log
        if callback is None:
            return
        try:
            message = msgspec.json.decode(raw, type=LogMessage)
        except msgspec.ValidationError:
            message = LogMessage(data=msgspec.json.decode(raw))
        self.run(callback, message)

    # ---- callbacks of the user

    def run(self, callback: Callable[..., object], *args: Any) -> None:
        """Runs a callback of the user. If the callback returns an awaitable, the
        awaitable runs as a task, and this method does not wait for it.
        """
        try:
            given = callback(*args)
        except Exception as error:
            self.failed(f"the callback {callback!r} failed", error)
            return
        if inspect.isawaitable(given):
            task = asyncio.ensure_future(self._finish(callback, given))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def begun(self) -> None:
        """Lets the async callbacks of earlier events start before a request ends. Without
        this step, the caller that waits for the end could continue first, because the
        end may come in the same turn of the loop.
        """
        if self._running:
            await asyncio.sleep(0)

    async def _finish(self, callback: object, given: Awaitable[Any]) -> None:
        try:
            await given
        except Exception as error:
            self.failed(f"the callback {callback!r} failed", error)

    def failed(self, message: str, error: BaseException) -> None:
        """Reports a failure to the loop's exception handler, because no caller waits for
        it.
        """
        self.loop.call_exception_handler({"message": message, "exception": error})

    # ---- the session's life

    async def opened(self) -> None:
        """Waits for the first connection.

        Raises:
            Error: The connection could not be made.
        """
        while self.connections == 0:
            if self.is_closed:
                raise self._error or errors.ClosedError()
            await self._change()

    async def reconnected(self, connections: int) -> None:
        """Waits until the session has connected more than `connections` times, or has
        ended."""
        while self.connections <= connections and not self.is_closed:
            await self._change()

    async def close(self) -> None:
        """Ends the session and waits until it has ended. Running calls end with
        `ClosedError`, and a child process is shut down. Tasks on the server continue. A
        second call only waits."""
        if not self.is_closed:
            _segue.session_close(self.handle)
        while not self.is_closed:
            await self._change()
        for task in list(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(list(self._running))
        await self._line.closed()

    async def wait_closed(self) -> None:
        """Waits until the session has ended, by this side or by the server.

        Raises:
            Error: The error that ended the session, if this side did not close it.
        """
        while not self.is_closed:
            await self._change()
        if self._error is not None:
            raise self._error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        if self.is_closed:
            return "<segue.Session closed>"
        if not self.connections:
            return "<segue.Session connecting>"
        peer = self.peer
        return f"<segue.Session {peer.server.name!r} {peer.protocol_version}>"

    # ---- requests

    def send(
        self,
        exchange: Exchange,
        method: str,
        params: Mapping[str, Any] | bytes | None,
        options: _segue.RequestOptions | None = None,
    ) -> None:
        """Sends a request. The exchange receives the events of the request."""
        if params is not None and not isinstance(params, bytes):
            params = _encode(params)
        exchange.handle = _segue.request_start(
            self.handle,
            method,
            params,
            options,
            exchange.on_event,
            exchange.mask_of_events(),
        )

    async def exchange(
        self,
        exchange: Exchange,
        method: str,
        params: Mapping[str, Any] | bytes | None,
        options: _segue.RequestOptions | None,
    ) -> bytes:
        """Sends a request and returns its result. Raises if the request failed."""
        self.send(exchange, method, params, options)
        outcome = exchange.outcome or await exchange.wait()
        if outcome[0] != OK:
            raise exchange.failure()
        return outcome[1] or b"{}"

    async def request_raw(
        self,
        method: str,
        params: Mapping[str, Any] | bytes | None = None,
        *,
        timeout: float | None = UNSET,
        on_progress: Progress | None = None,
        on_log: Log | None = None,
        no_cache: bool = False,
    ) -> bytes:
        """Sends any request and returns its result as JSON text.

        Args:
            method: The method's name, such as "tools/list" or a name of your own.
            params: The library adds the `_meta` members that the protocol needs.
            timeout: The limit in seconds; None = no limit. Default: the limit of the
                session.
            no_cache: True = ask the server even if a cached result is still fresh.

        Raises:
            RemoteError: The server answered with an error.
            Error: Any other failure.
        """
        options = self._options(timeout)
        if no_cache:
            options["no_cache"] = True
        log = on_log or (self._on_log if self._log_level else None)
        callbacks = Callbacks(on_progress, log) if on_progress or log else None
        exchange = Exchange(self, callbacks)
        return await self.exchange(exchange, method, params, options)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = UNSET,
    ) -> dict[str, Any]:
        """Sends any request and returns its result, decoded."""
        raw = await self.request_raw(method, params, timeout=timeout)
        told: dict[str, Any] = items.decode(raw, dict[str, Any], method)
        return told

    def _options(self, timeout: float | None) -> _segue.RequestOptions:
        options: _segue.RequestOptions = {}
        ms = self._timeout_ms if timeout is UNSET else milliseconds(timeout)
        if ms is not None:
            options["timeout_ms"] = ms
        if self._log_level is not None:
            options["log_level"] = self._log_level
        return options
