"""Tools that fail before they have waited for anything. `start` has a task in both eras,
which then fails, and the error is the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

import segue
from server_worlds import ServerWorld, nothing_left  # noqa: F401

# ruff: noqa: F811

ROUNDS = 10


def failing() -> segue.Server:
    """A server whose tools fail in their first turn, each in its own way."""
    server = segue.Server("fails", options={"first_turn_ms": 60_000})

    @server.tool(task="may", poll=0.05)
    async def late() -> str:
        raise segue.McpError(-32603, "broken", {"a": 1})

    @server.tool(task="may", poll=0.05)
    def plain() -> str:
        raise segue.McpError(-32603, "broken", {"a": 1})

    @server.tool(task="may", poll=0.05, incremental=True)
    async def growing() -> str:
        raise segue.McpError(-32603, "broken", {"a": 1})

    @server.tool(task="may", poll=0.05)
    async def behind() -> AsyncIterator[str]:
        yield "one"
        raise segue.McpError(-32603, "broken", {"a": 1})

    @server.tool(task="may", poll=0.05)
    async def wrong() -> str:
        raise segue.ToolError("oops")

    return server


@pytest.mark.parametrize("way", ["pair", "http"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_tool_that_fails_at_once_makes_a_task_that_fails(
    nothing_left: None, way: str, era: str
) -> None:
    """AS-11: `start` returns the task, and its result is the error."""

    async def work(session: Any) -> None:
        await session.list_tools()
        for tool in ("late", "plain", "growing", "behind") * ROUNDS:
            task = await session.start(tool)
            assert task.id is not None, tool
            with pytest.raises(segue.RemoteError) as caught:
                await task.result()
            error = caught.value
            assert (error.code, error.data) == (-32603, {"a": 1}), tool
            assert error.message == "broken", tool
            if tool == "behind":
                assert error.partial is not None and error.partial.text == "one"
            assert (await task.status()).status == "failed", tool

    ServerWorld(way, era).run(failing(), work)


@pytest.mark.parametrize("way", ["pair", "http"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_result_that_is_an_error_is_raised_by_the_task(
    nothing_left: None, way: str, era: str
) -> None:
    """AS-1: it may be the answer itself, and is raised later all the same."""

    async def work(session: Any) -> None:
        await session.list_tools()
        for _ in range(ROUNDS):
            task = await session.start("wrong")
            with pytest.raises(segue.ToolError, match="oops"):
                await task.result()

    ServerWorld(way, era).run(failing(), work)


@pytest.mark.parametrize("way", ["pair", "http"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_what_the_server_refuses_is_no_task(
    nothing_left: None, way: str, era: str
) -> None:
    """AS-11: `start` raises, because no tool was called."""

    async def work(session: Any) -> None:
        await session.list_tools()
        with pytest.raises(segue.RemoteError) as caught:
            await session.start("nobody")
        assert caught.value.code == -32602

    ServerWorld(way, era).run(failing(), work)
