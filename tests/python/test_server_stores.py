"""How a server keeps its tasks: the options of a store."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import segue
from segue import _segue
from server_worlds import nothing_left, run  # noqa: F401
from shared_stores import store_of_kind

# ruff: noqa: F811


def large(store: Any) -> segue.Server:
    server = segue.Server("large", store=store)

    @server.tool(task="must")
    async def large(size: int) -> str:
        return "x" * size

    return server


def refused(store: Any) -> None:
    """Checks that the store cannot be opened."""

    async def work() -> None:
        with pytest.raises(segue.StoreError):
            async with large(store).serving(http="127.0.0.1:0"):
                pass

    run(work)


def test_a_store_in_memory_has_a_bound(nothing_left: None) -> None:
    """The client gets the reason: its server has no room."""

    async def work() -> None:
        async with segue.connect(large(segue.Store(max_bytes=20_000))) as session:
            assert len((await session.call("large", {"size": 100})).text) == 100
            with pytest.raises(segue.ServerStoreFullError) as raised:
                await session.call("large", {"size": 100_000})
            assert raised.value.data["reason"] == "store_full"
            assert "the store is full" in str(raised.value)

    run(work)


def test_a_principal_has_a_bound(nothing_left: None, tmp_path: Path) -> None:
    store = segue.Store(tmp_path / "tasks.db", "full", max_principal_operations=1)

    async def work() -> None:
        server = large(store)

        @server.tool(task="must")
        async def nested(ctx: segue.Context) -> None:
            async with segue.connect(server) as session:
                with pytest.raises(segue.ServerStoreFullError):
                    await session.call("large", {"size": 1})

        async with segue.connect(server) as session:
            await session.call("nested")

    run(work)


def told_to(opens: str, monkeypatch: pytest.MonkeyPatch) -> list[_segue.StoreOptions]:
    """Collects the options with which a function of the binding opens stores from now
    on."""
    told: list[_segue.StoreOptions] = []
    inner = getattr(_segue, opens)

    def opened(at: str, options: _segue.StoreOptions) -> _segue.Store:
        told.append(options)
        return inner(at, options)  # type: ignore[no-any-return]

    monkeypatch.setattr(_segue, opens, opened)
    return told


def test_a_file_that_is_held_is_waited_for_as_told(
    nothing_left: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tasks.db"
    told = told_to("store_sqlite", monkeypatch)
    holder = sqlite3.connect(path, isolation_level=None)
    try:
        holder.execute("BEGIN EXCLUSIVE")
        refused(segue.Store(path, busy_timeout=0.05))
        assert told[0]["busy_timeout_ms"] == 50
    finally:
        holder.close()


def test_a_silent_redis_is_waited_for_as_told(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = told_to("store_redis", monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        refused(segue.Store(url, timeout=0.1))
        assert told[0]["timeout_ms"] == 100


def test_a_lease_is_told_to_redis() -> None:
    """A lease that is too short is refused before the store connects."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"

        async def work() -> None:
            with pytest.raises(segue.InvalidError):
                server = large(segue.Store(url, lease=0.01))
                async with server.serving(http="127.0.0.1:0"):
                    pass

        run(work)


def test_a_store_is_what_it_names() -> None:
    assert segue.Server("s", store="a.db").store == segue.Store(Path("a.db"))
    assert segue.Server("s").store is None
    with pytest.raises(ValueError, match="''"):
        segue.Store("")
    with pytest.raises(ValueError, match="durability"):
        segue.Store("a.db", "fsync")  # type: ignore[arg-type]


@pytest.fixture
def kept(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """What a server accepts as a store of this kind."""
    if request.param == "memory":
        yield segue.Store(max_bytes=1 << 20)
    else:
        with store_of_kind(request.param, tmp_path) as name:
            yield name


@pytest.mark.parametrize("era", ["auto", "legacy"])
@pytest.mark.parametrize("kept", ["file", "redis", "postgres"], indirect=True)
def test_a_caller_that_goes_ends_its_call(
    nothing_left: None, kept: Any, era: Any
) -> None:
    """A store keeps a call whose connection closes, but not one that was given up."""
    ends: asyncio.Queue[bool] = asyncio.Queue()
    began = asyncio.Event()
    server = segue.Server("kept", store=kept)

    @server.tool
    async def wait(ctx: segue.Context) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ends.put_nowait(ctx.cancelled)

    async def goes(url: str, how: str) -> None:
        began.clear()
        async with segue.connect(url, era=era) as session:
            limit = 0.2
            while how == "timeout" and not began.is_set():
                limit *= 5  # a busy machine takes longer to start
                with pytest.raises(segue.RequestTimeoutError):
                    await session.call("wait", timeout=limit)
            if how != "timeout":
                call = asyncio.ensure_future(session.call("wait"))
                await began.wait()
                if how == "cancel":
                    call.cancel()
                else:
                    await session.close()
                with pytest.raises((asyncio.CancelledError, segue.Error)):
                    await call
            assert await ends.get(), how

    async def work() -> None:
        async with server.serving(http="127.0.0.1:0", drain=2.0) as serving:
            for how in ("cancel", "close", "timeout"):
                await goes(serving.url, how)

    run(work)


@pytest.mark.parametrize("kept", ["memory", "file", "redis", "postgres"], indirect=True)
def test_a_stranger_who_closes_cancels_unless_he_has_a_key(
    nothing_left: None, kept: Any
) -> None:
    """R-2557-11: a client of 2026-07-28 without the SDK, on the wire."""
    ends: asyncio.Queue[bool] = asyncio.Queue()
    began, go = asyncio.Event(), asyncio.Event()
    server = segue.Server("kept", store=kept)
    runs = 0

    @server.tool
    async def wait(ctx: segue.Context) -> str:
        nonlocal runs
        runs += 1
        began.set()
        try:
            await go.wait()
        finally:
            ends.put_nowait(ctx.cancelled)
        return "waited"

    async def call(
        port: int, **more: str
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        protocol = "io.modelcontextprotocol"
        meta = {
            f"{protocol}/protocolVersion": "2026-07-28",
            f"{protocol}/clientInfo": {"name": "raw", "version": "1"},
            f"{protocol}/clientCapabilities": {},
            **more,
        }
        params = {"name": "wait", "arguments": {}, "_meta": meta}
        said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        body = json.dumps(said)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = (
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            "MCP-Protocol-Version: 2026-07-28",
            "Mcp-Method: tools/call",
            "Mcp-Name: wait",
            "Connection: close",
            f"Content-Length: {len(body)}",
        )
        writer.write(("\r\n".join(head) + "\r\n\r\n" + body).encode())
        await began.wait()
        return reader, writer

    async def work() -> None:
        async with server.serving(http="127.0.0.1:0", drain=2.0) as serving:
            port = urlsplit(serving.url).port or 0
            _, writer = await call(port)
            writer.close()
            assert await ends.get()
            began.clear()
            key = {"dev.segue/idempotencyKey": "a key of a stranger"}
            _, writer = await call(port, **key)
            writer.close()
            reader, writer = await call(port, **key)
            go.set()
            assert b"waited" in await reader.read()
            writer.close()
            assert not await ends.get()

    run(work)
    assert runs == 2
