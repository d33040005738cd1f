"""The surroundings of tests of the server: in the process of its client, and over HTTP,
for clients of 2026-07-28 and of 2025-11-25. After a test nothing of the library is
left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import segue
from client_worlds import nothing_left, run

__all__ = ["ServerWorld", "nothing_left", "run", "world"]


class ServerWorld:
    """One transport and one era for a server of the test."""

    def __init__(self, way: str, era: str) -> None:
        self.way = way
        self.era = era

    @asynccontextmanager
    async def session(self, server: segue.Server, **options: Any) -> AsyncIterator[Any]:
        """Opens a session with the server."""
        options["era"] = "legacy" if self.era == "legacy" else "auto"
        if self.way == "pair":
            async with segue.connect(server, **options) as session:
                yield session
        else:
            serving = server.serving(http="127.0.0.1:0", drain=2.0)
            async with serving, segue.connect(serving.url, **options) as session:
                yield session

    def run(
        self,
        server: segue.Server,
        work: Callable[[Any], Coroutine[Any, Any, None]],
        **options: Any,
    ) -> None:
        """Runs a test with a session."""

        async def whole() -> None:
            async with self.session(server, **options) as session:
                await work(session)

        run(whole)


# The fourth combination, HTTP with legacy clients, is covered by tests/conformance.
WORLDS = [("pair", "modern"), ("pair", "legacy"), ("http", "modern")]


@pytest.fixture(params=WORLDS, ids="-".join)
def world(
    nothing_left: None, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> Iterator[ServerWorld]:
    """Every transport and era."""
    yield ServerWorld(*request.param)
    caplog.get_records("call").clear()  # Tracebacks keep the failed objects alive.
