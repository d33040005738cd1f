"""Servers that share their tasks on a Redis or a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path

import pytest

import segue
from ports import free_port
from server_worlds import nothing_left, run  # noqa: F401
from shared_stores import store  # noqa: F401

# ruff: noqa: F811


def counting(store: str) -> segue.Server:
    server = segue.Server("counting", store=store)

    @server.tool(task="may", restartable=True)
    async def count(ctx: segue.Context, upto: int) -> None:
        for number in range(1, upto + 1):
            await ctx.send(f"{number} ")

    return server


@pytest.mark.parametrize("store", ["redis", "postgres"], indirect=True)
def test_two_servers_share_their_tasks(nothing_left: None, store: str) -> None:
    async def work() -> None:
        one, other = counting(store), counting(store)
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


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_no_server_of_a_store_is_an_error_at_once(
    nothing_left: None, tmp_path: Path, kind: str
) -> None:
    missing, words = f"unix://{tmp_path}/nothing", "No such file"
    if kind == "postgres":
        missing = f"postgresql://u:secret@127.0.0.1:{free_port()}/d"
        words = "Connection refused"

    async def work() -> None:
        server = counting(missing)
        with pytest.raises(segue.StoreError, match=words) as caught:
            async with server.serving(http="127.0.0.1:0"):
                raise AssertionError
        assert "secret" not in str(caught.value)

    run(work)
