"""Implements `Server.run`: an event loop, its signals, and an end in good order.

    serve ──(the input ends | a signal)──> drain ──(done | time | another signal)──> end

At the end handlers are cancelled, and tasks are released in the store: the next process
on the same store continues them.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .. import _runtime

if TYPE_CHECKING:
    from .server import Server
    from .serving import Serving

__all__ = ["Served", "kept_from_serving", "let_serve", "run"]

Started = Callable[["Server", "Serving"], object]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# A loop that has not handled a signal for this long, in seconds, counts as blocked.
_STUCK = 0.2
# The time in seconds for the end of the lifespan after a second signal.
_AT_ONCE = 1.0


class Served(BaseException):
    """A file that is loaded for its server has begun to serve it.

    Attributes:
        server: the server.
    """

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.server = server


_is_kept = False


@contextlib.contextmanager
def kept_from_serving() -> Iterator[None]:
    """Makes servers raise `Served` instead of serving, while a file is loaded."""
    global _is_kept
    _is_kept = True
    try:
        yield
    finally:
        _is_kept = False


def let_serve(server: Server) -> None:
    """Raises `Served` while servers are kept from serving."""
    if _is_kept:
        raise Served(server)


class _Signals:
    """Counts signals: the first asks the server to end, the second ends it at once.

    The loop handles a signal between two steps. A handler that blocks the loop keeps
    signals waiting. In this case a second signal raises SystemExit inside the blocking
    handler.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.asked = asyncio.Event()
        self.demanded = asyncio.Event()
        self.last: int = 0
        self._taken: list[signal.Signals] = []
        self._waiting = 0
        self._since = 0.0
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self.loop.add_signal_handler(number, self._on_signal, number)
                signal.signal(number, self._comes)
                signal.siginterrupt(number, False)
                self._taken.append(number)

    def _comes(self, number: int, frame: object) -> None:
        now = time.monotonic()
        if self._waiting and now - self._since > _STUCK:
            raise SystemExit(128 + number)
        if not self._waiting:
            self._since = now
        self._waiting += 1

    def _on_signal(self, number: signal.Signals) -> None:
        self._waiting = 0
        self.last = number
        (self.demanded if self.asked.is_set() else self.asked).set()

    def restore(self) -> None:
        for number in self._taken:
            self.loop.remove_signal_handler(number)


async def _first(*events: asyncio.Event | asyncio.Task[Any]) -> None:
    waits = [
        one if isinstance(one, asyncio.Task) else asyncio.ensure_future(one.wait())
        for one in events
    ]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one, wait in zip(events, waits, strict=True):
            if one is not wait:
                wait.cancel()


def announce(server: Server, serving: Serving) -> None:
    """Says on standard error where the server is. Over stdio there is nothing to say."""
    if serving.url:
        print(f"The server {server.name} listens on {serving.url}", file=sys.stderr)


async def _serve(server: Server, serving: Serving, started: Started) -> int:
    """Serves until the input ends or a signal arrives. Returns the number of the signal,
    or 0 when the input has ended."""
    signals = _Signals()
    try:
        starting = asyncio.ensure_future(serving.start())
        await _first(signals.asked, starting)
        if not starting.done():  # a signal has come while the lifespan begins
            starting.cancel()
            await asyncio.wait([starting])
            return 0
        starting.result()
        started(server, serving)
        closed = asyncio.ensure_future(serving.wait_closed())
        await _first(signals.asked, closed)
        closing = asyncio.ensure_future(serving.aclose())
        await _first(signals.demanded, closing)
        if not closing.done():
            closing.cancel()
        await asyncio.wait([closing], timeout=_AT_ONCE)
        closed.cancel()
        if closing.done() and not closing.cancelled():
            closing.result()
        return signals.last if signals.demanded.is_set() else 0
    finally:
        signals.restore()
        runtime = _runtime.current()
        await server._end(patience=0 if signals.demanded.is_set() else 1.0)
        await runtime.aclose()


def run(server: Server, serving: Serving, started: Started = announce) -> None:
    """Serves until the input ends or a signal arrives. Raises SystemExit after a second
    signal. `started` is called when clients can connect."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError("this thread runs an event loop: use await server.serve(...)")
    number = asyncio.run(_serve(server, serving, started))
    if number:
        raise SystemExit(128 + number)
