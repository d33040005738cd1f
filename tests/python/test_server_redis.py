"""Servers whose tasks are on a Redis server, which they share."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import segue
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    """The URL of one of our own, which keeps nothing."""
    socket = tmp_path / "redis"
    command = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", ""]
    command += ["--dir", str(tmp_path), "--logfile", "redis.log"]
    with subprocess.Popen(command) as process:
        try:
            while not socket.exists():
                assert process.poll() is None
            yield f"unix://{socket}"
        finally:
            process.kill()


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
