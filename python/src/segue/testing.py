"""Helpers for tests of servers and clients.

    async with segue.testing.Lab() as lab:
        session = await lab.connect(server)            # in memory
        served = await lab.serve(server)               # over HTTP, with a wire to cut
        session = await served.connect()
        served.cut()                                   # breaks all connections
        await served.kill()                            # ends the server as a crash does
        await served.start()                           # the next server on the same store
        clock = lab.fake_clock()
        await clock.advance(60)                        # a minute passes at once

The package brings a plug-in for pytest, whose fixtures are made of these classes; see
`segue.pytest_plugin`.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from .client.opening import connect
from .client.session import Session
from .server.server import Server

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .client.options import ConnectOptions
    from .server.options import ServeOptions
    from .server.serving import Serving

__all__ = ["Clock", "Lab", "Served"]

_PIECE = 65536  # bytes
_IDLE = 0.05  # seconds without a new sleeper after which none is expected
_PATIENCE = 10.0  # seconds for somebody to sleep
_STEP = 0.001  # seconds between two looks for a sleeper


class Clock:
    """The clock of an event loop, which stands still until a test moves it.

    It counts for `asyncio.sleep`, `asyncio.timeout` and everything else that uses the
    time of the loop, and for functions that get `clock.time` as their clock, such as
    those of `segue.middleware`. It does not count for `time.time`, and not for the timers
    of the library: limits of calls, `ttl` and `poll` of tasks.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = cast("Any", loop)  # its method `time` is replaced
        # The times of a test that counts in seconds are exact.
        self._now = float(math.ceil(loop.time()))
        if not hasattr(loop, "_scheduled"):
            raise RuntimeError(f"the clock of {type(loop).__name__} cannot be replaced")
        self._loop.time = self.time

    def time(self) -> float:
        """Returns the time of the clock, in seconds."""
        return self._now

    async def next(self) -> float:
        """Waits until somebody sleeps (`asyncio.sleep`), and moves the clock to the end
        of the shortest sleep.

        Returns:
            The seconds that have passed on the clock.

        Raises:
            TimeoutError: Nobody sleeps within 10 s of real time.
        """
        due = await self._sleeper(float("inf"), _PATIENCE)
        if due is None:
            raise TimeoutError(f"nobody has begun to sleep within {_PATIENCE:g} s")
        return await self._move(due)

    async def advance(self, seconds: float) -> None:
        """Lets time pass. Sleeps that end meanwhile end in their order, also those that
        begin after others have ended."""
        if seconds < 0:
            raise ValueError("a clock does not go back")
        until = self._now + seconds
        while (due := await self._sleeper(until, _IDLE)) is not None:
            await self._move(due)
        await self._move(until)

    def restore(self) -> None:
        """Lets the loop use the real time again."""
        with contextlib.suppress(AttributeError):
            del self._loop.time

    @contextlib.contextmanager
    def going(self) -> Iterator[None]:
        """Lets the clock go like a real one for a while."""
        now, begun = self._now, time.monotonic()
        self._loop.time = lambda: now + time.monotonic() - begun
        try:
            yield
        finally:
            self._now = self._loop.time()
            self._loop.time = self.time

    async def _move(self, to: float) -> float:
        passed = max(0.0, to - self._now)
        self._now += passed
        for _ in range(3):  # turns: the sleep ends, its task goes on
            await asyncio.sleep(0)
        return passed

    async def _sleeper(self, until: float, patience: float) -> float | None:
        """Waits, for at most `patience` seconds of real time, until a sleep ends before
        `until`. Returns the time of its end."""
        limit = time.monotonic() + patience
        while True:
            ends: list[float] = [
                handle.when()
                for handle in self._loop._scheduled
                if not handle.cancelled() and _is_sleep(handle)
            ]
            if ends and min(ends) <= until:
                return min(ends)
            if time.monotonic() > limit:
                return None
            await self._loop.run_in_executor(None, time.sleep, _STEP)


def _is_sleep(handle: Any) -> bool:
    called = getattr(handle, "_callback", None)
    return getattr(called, "__name__", "") == "_set_result_unless_cancelled"


class _Wire:
    """A port before the port of a server. Its connections can be broken."""

    def __init__(self) -> None:
        self.to: int | None = None  # None = every connection breaks at once
        self._open: set[asyncio.StreamWriter] = set()
        self._quiet = asyncio.Event()
        self._listener: asyncio.Server | None = None

    async def begin(self) -> int:
        self._listener = await asyncio.start_server(self._take, "127.0.0.1", 0)
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def _take(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._open.add(writer)
        try:
            if self.to is None:
                writer.transport.abort()
                return
            far_reader, far = await asyncio.open_connection("127.0.0.1", self.to)
            self._open.add(far)
            try:
                await asyncio.gather(_pump(reader, far), _pump(far_reader, writer))
            finally:
                self._open.discard(far)
                far.close()
        except OSError:
            writer.transport.abort()
        finally:
            self._open.discard(writer)
            writer.close()
            self._quiet.set()

    def cut(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def end(self) -> None:
        self.to = None
        if self._listener is not None:
            self._listener.close()
        self.cut()
        while self._open:
            self._quiet.clear()
            await self._quiet.wait()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        writer.write_eof()


class Served:
    """A server over HTTP on this machine, behind a wire that a test can cut.

    Attributes:
        server: The server.
        url: The URL of the wire, which stays the same when the server is started again.
    """

    def __init__(
        self, lab: Lab, server: Server, wire: _Wire, url: str, options: ServeOptions
    ) -> None:
        self.server = server
        self.url = url
        self._lab = lab
        self._wire = wire
        self._options = options
        self._client_options: ConnectOptions = {}
        self._serving: Serving | None = None

    async def connect(self, **options: Unpack[ConnectOptions]) -> Session:
        """Connects a client. The session is closed with the lab. With the fixture
        `segue_served`, the options of the fixture `segue_options` hold, too."""
        return await self._lab._opened(self.url, {**self._client_options, **options})

    def cut(self) -> None:
        """Breaks all connections, as a network does. New ones can be made at once."""
        self._wire.cut()

    async def kill(self) -> None:
        """Ends the server as a crash does: connections break, no call gets an answer, and
        handlers are cancelled. A handler that goes on, such as a function in a thread,
        can send nothing more: its sends and checkpoints raise, and reach neither the
        store nor a client. Tasks are left in the store as they are. Clients cannot reach
        the server until `start`."""
        serving, self._serving = self._serving, None
        self._wire.to = None
        self._wire.cut()
        if serving is not None:
            with self._lab._real_time():
                await serving._crash()

    async def start(self) -> None:
        """Starts the server again, with the same URL and the same store. Tasks of
        restartable tools go on."""
        if self._serving is None:
            self._serving = self.server.serving(http="127.0.0.1:0", **self._options)
            await self._serving.start()
            self._wire.to = urlsplit(str(self._serving.url)).port

    async def restart(self) -> None:
        """Does `kill` and `start`."""
        await self.kill()
        await self.start()


class Lab:
    """What a test has opened in one event loop. `aclose` ends all of it."""

    def __init__(self) -> None:
        self._clock: Clock | None = None
        self._sessions: list[Session] = []
        self._served: list[Served] = []
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    async def connect(
        self, server: Server, /, **options: Unpack[ConnectOptions]
    ) -> Session:
        """Connects to a server in memory, without a network. The session is closed with
        the lab."""
        return await self._opened(server, options)

    async def _opened(self, target: Any, options: ConnectOptions) -> Session:
        with self._real_time():
            session = await connect(target, **options)
        self._sessions.append(session)
        return session

    async def serve(self, server: Server, /, **options: Unpack[ServeOptions]) -> Served:
        """Serves over HTTP on a free port, behind a wire.

        Args:
            server: The server.
            options: Those of `Server.serving`. By default tasks are in a file of their
                own, so they survive `Served.kill`.
        """
        if server.store is None and options.get("store") is None:
            if self._directory is None:
                self._directory = tempfile.TemporaryDirectory(prefix="segue-lab-")
            name = f"tasks-{len(self._served)}.db"
            options["store"] = str(Path(self._directory.name) / name)
        wire = _Wire()
        port = await wire.begin()
        path = options.get("path") or "/mcp"
        url = f"http://127.0.0.1:{port}{path}"
        served = Served(self, server, wire, url, options)
        self._served.append(served)
        await served.start()
        return served

    def fake_clock(self) -> Clock:
        """Returns the clock of the running loop, which stands still from the first call
        on."""
        if self._clock is None:
            self._clock = Clock(asyncio.get_running_loop())
        return self._clock

    def _real_time(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._clock is None else self._clock.going()

    async def aclose(self) -> None:
        """Closes the sessions and ends the servers."""
        if self._clock is not None:
            self._clock.restore()
        self._clock = None
        for session in self._sessions:
            await session.close()
        for served in self._served:
            await served.kill()
            await served._wire.end()
        if self._directory is not None:
            self._directory.cleanup()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()
