"""Waits that are cancelled again and again must leave nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import segue
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811


async def given_up(wait: Callable[[], Awaitable[Any]], times: int = 50) -> None:
    """Starts to wait, and is cancelled in the middle."""
    for _ in range(times):
        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


def test_waits_that_are_given_up_leave_nothing(nothing_left: None) -> None:
    server = segue.Server("waits")
    go = asyncio.Event()

    @server.tool
    async def numbers(ctx: segue.Context) -> None:
        await ctx.send("one")
        await go.wait()
        await ctx.send("two")

    async def work() -> None:
        async with segue.connect(server) as session:
            stream = session.stream("numbers")
            assert (await anext(stream)).text == "one"
            flow = stream._flow
            assert flow is not None
            await given_up(flow.change)
            assert flow._waiters == []
            await given_up(session.wait_closed)
            assert session._waiters == []
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            go.set()
            assert (await waiting).text == "two"

    run(work)


def test_changes_that_are_given_up_leave_nothing(nothing_left: None) -> None:
    server = segue.Server("changes")

    @server.tool
    def plain() -> str:
        return "done"

    async def work() -> None:
        async with segue.connect(server) as session:
            changes = session.subscribe(tools=True)
            async with changes:
                await given_up(changes.__anext__)
                assert changes._waiters == []
                server.tool(plain, name="another")
                assert await anext(changes) == segue.Change("tools")

    run(work)
