"""Servers that share their tasks on a Redis server."""

from __future__ import annotations

from pathlib import Path

import pytest

import segue
from redis_server import redis  # noqa: F401
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811


def counting(store: str) -> segue.Server:
    server = segue.Server("counting", store=store)

    @server.tool(task="may", restartable=True)
    async def count(ctx: segue.Context, upto: int) -> None:
        for number in range(1, upto + 1):
            await ctx.send(f"{number} ")

    return server


def test_two_servers_share_their_tasks(nothing_left: None, redis: str) -> None:
    async def work() -> None:
        one, other = counting(redis), counting(redis)
        async with (
            one.serving(http="127.0.0.1:0") as here,
            other.serving(http="127.0.0.1:0") as there,
        ):
            async with segue.connect(here.url) as session:
                task = await session.start("count", {"upto": 4})
                token = task.token
                assert token is not None
                task.detach()
            async with segue.connect(there.url) as session:
                result = await session.resume(token).result()
                assert result.text == "1 2 3 4 "

    run(work)


def test_no_redis_is_an_error_at_once(nothing_left: None, tmp_path: Path) -> None:
    async def work() -> None:
        server = counting(f"unix://{tmp_path}/nothing")
        with pytest.raises(segue.StoreError, match="No such file"):
            async with server.serving(http="127.0.0.1:0"):
                raise AssertionError

    run(work)
