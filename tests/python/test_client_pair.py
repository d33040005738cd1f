"""A server and its client in one process, without a network or a child process."""

from __future__ import annotations

import asyncio
import socket
import sys
import types
from collections.abc import AsyncIterator
from typing import Any

import pytest

import segue
from client_worlds import run
from programs import server_command


def make_server() -> segue.Server:
    server = segue.Server("in-process", version="2")

    @server.tool
    def greet(name: str = "World") -> str:
        return f"Hello, {name}!"

    @server.tool(task="may")
    async def story(n: int = 3) -> AsyncIterator[str]:
        for i in range(1, n + 1):
            yield f"{i} "

    @server.tool
    async def hang(context: segue.Context) -> str:
        await asyncio.get_running_loop().create_future()
        return "never"

    return server


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_server_of_this_process(nothing_left: None, era: Any) -> None:
    async def work() -> None:
        server = make_server()
        async with segue.connect(server, era=era) as session:
            assert session.peer.server.name == "in-process"
            assert (await session.call("greet", name="Ada")).text == "Hello, Ada!"
            stream = session.stream("story", n=4)
            assert "".join([str(s) async for s in stream]) == "1 2 3 4 "
            task = asyncio.ensure_future(session.call("hang"))
            await session.call("greet")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with segue.connect(server) as other:
                assert (await other.call("greet")).text == "Hello, World!"

    run(work)


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_burst_of_calls(nothing_left: None, era: Any) -> None:
    """The defaults of a client and of a server go together: 5,000 calls run at once."""
    most = 5000
    server = segue.Server("burst")
    begun: list[int] = []
    all_run = asyncio.Event()

    @server.tool
    async def wait(i: int) -> int:
        begun.append(i)
        if len(begun) == most:
            all_run.set()
        await all_run.wait()
        return i

    async def work() -> None:
        async with segue.connect(server, era=era) as session:
            calls = [session.call("wait", i=i) for i in range(most)]
            results = await asyncio.gather(*calls)
        assert [result.structured["result"] for result in results] == [*range(most)]

    run(work)


def test_a_socket(nothing_left: None) -> None:
    async def work() -> None:
        one, other = socket.socketpair()
        with one, other:
            child = await asyncio.create_subprocess_exec(
                *server_command(), stdin=other, stdout=other
            )
            other.close()
            async with segue.connect(one) as session:
                assert (await session.call("greet")).text == "Hello, World!"
            one.close()
            assert await child.wait() == 0

    run(work)


def test_a_thread_without_a_loop_of_asyncio_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """trio tells its name by sniffio."""

    async def serve() -> None:
        async with make_server().serving(http="127.0.0.1:0"):
            pass

    async def connect() -> None:
        await segue.connect(make_server())

    for begin in (serve, connect):
        with pytest.raises(RuntimeError, match=r"inside asyncio\.run\(\), or use segue"):
            begin().send(None)
    running = types.SimpleNamespace(name="trio")
    sniffio = types.SimpleNamespace(thread_local=running)
    monkeypatch.setitem(sys.modules, "sniffio", sniffio)
    for begin in (serve, connect):
        with pytest.raises(RuntimeError, match=r"runs trio: use segue\.sync on a thread"):
            begin().send(None)
