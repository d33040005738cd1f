"""The other end of a session, played by the test, message by message and without a
network.

A `RawPeer` is a target of `segue.connect`. `hear` returns what the client wrote, line
by line; `say` gives the client a line to read. `settle` returns when the client has
done everything that it can do without time passing: it has answered a ping, and so has
handled all earlier lines.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Any

import segue
from segue import _segue

SECONDS = 60.0


class RawPeer:
    """See the top of the module. With `reopen` the client may connect again after a
    cut."""

    def __init__(self, *, reopen: bool = False) -> None:
        self.lines: deque[bytes] = deque()  # received lines that were not read yet
        self.reopens = 0
        self.is_closed = False
        self._reopen = reopen
        self._rest = b""
        self._waiters: list[asyncio.Future[None]] = []
        self._pings = 0
        self._wire: _segue.Wire | None = None

    def _transport(self, runtime: _segue.Runtime) -> _segue.Transport:
        return _segue.transport_custom(runtime, self._on_event, self._reopen)

    def _on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
        if kind == _segue.TRANSPORT_START:
            self._wire = a
        elif kind == _segue.TRANSPORT_SEND:
            assert self._wire is not None
            _segue.transport_took(self._wire, len(a))
            *lines, self._rest = (self._rest + a).split(b"\n")
            self.lines.extend(lines)
        elif kind == _segue.TRANSPORT_CLOSE:
            assert self._wire is not None
            with contextlib.suppress(segue.ClosedError):  # the runtime is being freed
                _segue.transport_closed(self._wire)
            self.is_closed = True
        elif kind == _segue.TRANSPORT_REOPEN:
            self._rest = b""
            self.reopens += 1
        elif kind == _segue.TRANSPORT_FREE:
            self.is_closed = True
            self._wire = None
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def change(self) -> None:
        """Waits until something happens on the line."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await asyncio.wait_for(waiter, SECONDS)

    def say(self, line: str | bytes) -> None:
        """Sends one line to the client; after the client has left it is dropped."""
        if self.is_closed:
            return
        assert self._wire is not None
        raw = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        while not _segue.transport_feed(self._wire, raw + b"\n"):
            raise AssertionError("the client takes no more")

    async def hear(self) -> bytes:
        """Waits for the next line of the client."""
        while not self.lines:
            await self.change()
        return self.lines.popleft()

    async def settle(self) -> None:
        """Waits until the client has handled all lines."""
        while self._wire is None:
            await self.change()
        self._pings += 1
        id = f"ping-{self._pings}"
        mark = f'"{id}"'.encode()
        self.say(f'{{"jsonrpc":"2.0","id":"{id}","method":"ping"}}')
        while True:
            found = [line for line in self.lines if mark in line]
            if found:  # the client may have answered and left in one turn
                self.lines.remove(found[0])
            if found or self.is_closed:
                break
            await self.change()
        # Lines that came with it are handled in the same turns of the loop.
        for _ in range(3):
            await asyncio.sleep(0)

    def cut(self) -> None:
        """Breaks the connection; lines that were not read are lost."""
        assert self._wire is not None
        self.lines.clear()
        self._rest = b""
        _segue.transport_closed(self._wire)
