"""Who may list tasks of 2025-11-25 on a Python server."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import segue
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811

PROGRAM = """
import asyncio
import segue
server = segue.Server("own")

@server.tool(task="must")
async def work(ctx: segue.Context, forever: bool = False) -> str:
    if forever:
        await asyncio.Event().wait()
    return ctx.principal

server.run()
"""


async def listed(session: Any) -> list[str]:
    answer = msgspec.json.decode(await session.request_raw("tasks/list", {}))
    return [one["taskId"] for one in answer["tasks"]]


async def count_of_running(session: Any) -> int:
    """Begins a task, and returns how many tasks are listed while it runs."""
    call = asyncio.ensure_future(session.call("work", forever=True))
    while not (found := await listed(session)):
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    return len(found)


def worker(principal: Any) -> segue.Server:
    server = segue.Server("named", principal=principal)

    @server.tool(task="must")
    async def work(ctx: segue.Context, forever: bool = False) -> str:
        if forever:
            await asyncio.Event().wait()
        return ctx.principal

    return server


def test_one_name_for_all_callers(nothing_left: None) -> None:
    server = worker("ann")

    async def work() -> None:
        async with server.serving(http="127.0.0.1:0") as serving:
            async with segue.connect(serving.url, era="legacy") as session:
                assert (await session.call("work")).text == "ann"
                assert await count_of_running(session) == 1

    run(work)


def test_without_a_name_a_session_lists_its_own_tasks(nothing_left: None) -> None:
    server = worker(None)

    async def work() -> None:
        async with server.serving(http="127.0.0.1:0") as serving:
            async with (
                segue.connect(serving.url, era="legacy") as session,
                segue.connect(serving.url, era="legacy") as other,
            ):
                assert (await session.call("work")).text == ""
                call = asyncio.ensure_future(session.call("work", forever=True))
                while not await listed(session):
                    await asyncio.sleep(0)
                assert await listed(other) == []
                assert await count_of_running(other) == 1
                assert len(await listed(session)) == 1
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call

    run(work)


def test_standard_input_has_one_caller(nothing_left: None, tmp_path: Path) -> None:
    program = tmp_path / "own.py"
    program.write_text(PROGRAM)

    async def work() -> None:
        command = [sys.executable, str(program)]
        async with segue.connect(command, era="legacy") as session:
            assert (await session.call("work")).text == ""
            assert await count_of_running(session) == 1

    run(work)


def test_a_name_is_not_empty() -> None:
    with pytest.raises(ValueError, match="not empty"):
        segue.Server("s", principal="")
