"""The surroundings of tests of the client: the fixture server over stdio and over HTTP,
as a server of 2026-07-28 and of 2025-11-25. After a test nothing of the library may be
left."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import segue
from programs import HttpServer, server_command
from segue import _segue

SECONDS = 120


class World:
    """One transport and one era of the server."""

    def __init__(self, transport: str, era: str, directory: Path) -> None:
        self.transport = transport
        self.era = era
        self.store = str(directory / "tasks.db")
        self._server: HttpServer | None = None

    @property
    def target(self) -> Any:
        """The target for `connect`."""
        if self.transport == "stdio":
            return server_command("--store", self.store)
        return self.server.url

    @property
    def server(self) -> HttpServer:
        """The server over HTTP; it starts when it is first needed."""
        if self._server is None:
            self._server = HttpServer("--store", self.store)
        return self._server

    @asynccontextmanager
    async def session(self, **options: Any) -> AsyncIterator[segue.Session]:
        """Opens a session of the world's era."""
        era = "legacy" if self.era == "legacy" else "auto"
        async with segue.connect(self.target, era=era, **options) as session:
            assert session.peer.era == self.era
            yield session

    def end(self) -> None:
        if self._server is not None:
            self._server.__exit__(None, None, None)


def open_descriptors() -> dict[str, str]:
    """Returns the open descriptors, and what each one is."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # that of listdir itself
            found[name] = os.readlink(f"/proc/self/fd/{name}")
    return found


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Checks that every handle is freed and every descriptor closed after a test."""
    gc.collect()
    before, handles = open_descriptors(), _segue.live_handles()
    yield
    gc.collect()
    now = _segue.live_handles()
    left = {kind: n for kind, n in now.items() if n > handles.get(kind, 0)}
    assert not left, left
    opened = {
        name: what for name, what in open_descriptors().items() if name not in before
    }
    assert not opened, opened


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    """Each transport."""
    return str(request.param)


@pytest.fixture(params=["modern", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    """Each era."""
    return str(request.param)


@pytest.fixture
def world(
    nothing_left: None, transport: str, era: str, tmp_path: Path
) -> Iterator[World]:
    """Every transport with every era."""
    made = World(transport, era, tmp_path)
    yield made
    made.end()


@pytest.fixture
def server(nothing_left: None, tmp_path: Path) -> Iterator[HttpServer]:
    """A server over HTTP whose tasks outlive it."""
    with HttpServer("--store", str(tmp_path / "tasks.db")) as made:
        yield made


def longer_and_longer(first: float) -> Iterator[float]:
    """Gives time limits, in seconds, for events that must come before other events. A
    busy machine may be too slow for a limit; then the test tries again with a longer
    one. `run` ends the tries."""
    while True:
        yield first
        first *= 4


async def is_cancelled(task: segue.Task) -> bool:
    """Returns whether the server has cancelled the task: in 2026-07-28 that may take
    time."""
    while (status := await task.status()).status == "working":
        pass
    return status.status == "cancelled" and status.is_final


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Runs a test in a loop; a failure that nobody awaits fails the test."""
    failures: list[dict[str, Any]] = []

    async def guarded() -> Any:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(context))
        result = await asyncio.wait_for(work(), SECONDS)
        assert not failures, failures
        return result

    return asyncio.run(guarded())
