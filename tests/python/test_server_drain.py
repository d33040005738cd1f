"""A server that ends in good order: a client that was cut off from a running call comes
back for the rest, and new calls go to the next server."""

from __future__ import annotations

import asyncio
import http.client
import json
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import segue
from balancer import Balancer
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811
SECONDS = 600.0


class Gates:
    """A server whose calls wait for the test."""

    def __init__(self, name: str) -> None:
        self.server = segue.Server(name, options={"seal_key": bytes(range(32))})
        self.began, self.go = asyncio.Event(), asyncio.Event()

        @self.server.tool(task="may")
        async def gate(ctx: segue.Context) -> AsyncIterator[str]:
            yield "first, "
            self.began.set()
            await self.go.wait()
            yield "rest"

        @self.server.tool
        async def where() -> str:
            return name


async def heard(url: str) -> None:
    """Waits until the server has handled everything before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
    writer.write(b"GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b" 404 " in await reader.readline()
    writer.close()


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_a_client_comes_back_while_the_server_drains(
    nothing_left: None, era: Any
) -> None:
    async def work() -> None:
        gates = Gates("one")
        serving = gates.server.serving(http="127.0.0.1:0", drain=SECONDS)
        await serving.start()
        balancer = Balancer(serving.url)
        async with balancer.serving() as url, segue.connect(url, era=era) as session:
            task = await session.start("gate")
            pieces = [await anext(aiter(task))]
            await gates.began.wait()
            closing = asyncio.ensure_future(serving.aclose())
            (host,) = gates.server._hosts.values()
            while not host.is_draining:
                await asyncio.sleep(0)
            before = balancer.count
            balancer.cut()
            while balancer.count == before:  # the client comes back
                await asyncio.sleep(0.01)
            await heard(serving.url)  # the server has noticed that the client went
            gates.go.set()
            assert (await task.result()).text == "first, rest", pieces
            await closing

    run(work)


def test_refused_calls_go_to_the_next_server(nothing_left: None) -> None:
    """The first server drains, because a task runs there. A call that reaches it is
    sent again, and a new client finds the next server."""

    async def work() -> None:
        one, two = Gates("one"), Gates("two")
        first = one.server.serving(http="127.0.0.1:0", drain=SECONDS)
        second = two.server.serving(http="127.0.0.1:0", drain=0.1)
        await first.start()
        await second.start()
        keeper = await segue.connect(first.url)
        task = await keeper.start("gate")
        await one.began.wait()
        closing = asyncio.ensure_future(first.aclose())
        balancer = Balancer(first.url, second.url)
        (host,) = one.server._hosts.values()
        while not host.is_draining:
            await asyncio.sleep(0)
        async with balancer.serving() as url:
            for era in ("auto", "legacy", "auto", "legacy"):
                async with segue.connect(url, era=era) as session:
                    assert (await session.call("where")).text == "two"
            assert balancer.count > 5  # the first one was asked, too
        one.go.set()
        assert (await task.result()).text == "first, rest"
        await keeper.close()
        await closing
        await second.aclose()

    run(work)


def call_as_task(url: str, tool: str) -> http.client.HTTPConnection:
    """Sends a call that becomes a task, and does not wait for the answer. The server
    looks for the key of the call in its store before it begins the call."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {
            "extensions": {"io.modelcontextprotocol/tasks": {}}
        },
        "dev.segue/idempotencyKey": "a key of this call",
    }
    params = {"name": tool, "arguments": {}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(url).port)
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    connection.request("POST", "/mcp", json.dumps(message), headers)
    return connection


def test_a_call_that_came_before_the_end_runs(nothing_left: None, tmp_path: Path) -> None:
    """The store still looks for the key of the call when the server begins to end, and
    the handler begins later. A refusal would be the result of the task."""

    async def work() -> None:
        gates, path = Gates("one"), tmp_path / "tasks.db"
        store = segue.Store(path, busy_timeout=SECONDS)
        serving = gates.server.serving(http="127.0.0.1:0", drain=SECONDS, store=store)
        await serving.start()
        (host,) = gates.server._hosts.values()
        await heard(serving.url)  # the server has looked for tasks of earlier servers
        lock = sqlite3.connect(path, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        connection = call_as_task(serving.url, "gate")
        await heard(serving.url)
        closing = asyncio.ensure_future(serving.aclose())
        while not host.is_draining:
            await asyncio.sleep(0)
        lock.close()
        began = asyncio.ensure_future(gates.began.wait())
        await asyncio.wait([closing, began], return_when=asyncio.FIRST_COMPLETED)
        assert began.done(), connection.getresponse().read()
        gates.go.set()
        answer = await asyncio.to_thread(lambda: connection.getresponse().read())
        assert b"server_ending" not in answer
        connection.close()
        await closing

    run(work)


def test_a_client_that_has_gone_is_not_waited_for(nothing_left: None) -> None:
    """Only this process has the result of the task, and nobody fetches it. The end takes
    about the poll interval, and not all of `drain`."""

    async def work() -> None:
        gates = Gates("one")
        serving = gates.server.serving(http="127.0.0.1:0", drain=SECONDS)
        await serving.start()
        connection = call_as_task(serving.url, "gate")
        answer = await asyncio.to_thread(lambda: connection.getresponse().read())
        assert b'"taskId"' in answer
        connection.close()
        await gates.began.wait()
        gates.go.set()
        began = time.monotonic()
        await serving.aclose()
        assert time.monotonic() - began < SECONDS / 10

    run(work)
