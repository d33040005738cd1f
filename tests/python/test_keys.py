"""Calls with an idempotency key that another server, or an earlier one, has run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import segue
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811

KEY = "the-report-of-monday"


class Teller:
    """Servers on one file, with a tool that is never a task and waits in the middle."""

    def __init__(self, store: Path) -> None:
        self.store = str(store)
        self.runs = 0
        self.gate = asyncio.Event()

    def server(self) -> segue.Server:
        server = segue.Server("teller", store=self.store)

        @server.tool
        async def tell(ctx: segue.Context) -> None:
            self.runs += 1
            await ctx.send("1 ")
            await ctx.send("2 ")
            await self.gate.wait()
            await ctx.send("3 ")

        return server


async def some(stream: segue.Stream, count: int) -> list[str | None]:
    """Reads the first segments; the rest is still to come."""
    texts: list[str | None] = []
    async for segment in stream:
        texts.append(segment.text)
        if len(texts) == count:
            break
    return texts


async def all_of(session: segue.Session) -> Any:
    stream = session.stream("tell", idempotency_key=KEY)
    texts = [segment.text async for segment in stream]
    assert "".join(text or "" for text in texts) == stream.result.text
    return stream.result.text


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_key_finds_its_call_at_another_server(
    nothing_left: None, era: Any, tmp_path: Path
) -> None:
    """AS-38a: with a stream and without, while the call runs and after its end."""

    async def work() -> None:
        teller = Teller(tmp_path / "tasks.db")
        async with (
            teller.server().serving(http="127.0.0.1:0") as here,
            teller.server().serving(http="127.0.0.1:0") as there,
            segue.connect(here.url, era=era) as first,
            segue.connect(there.url, era=era) as second,
        ):
            begun = first.stream("tell", idempotency_key=KEY)
            assert await some(begun, 2) == ["1 ", "2 "]
            joined = second.stream("tell", idempotency_key=KEY)
            whole = asyncio.ensure_future(second.call("tell", idempotency_key=KEY))
            assert await some(joined, 2) == ["1 ", "2 "]
            teller.gate.set()
            assert await some(joined, 1) == ["3 "]
            assert (await whole).text == "1 2 3 "
            assert await some(begun, 1) == ["3 "]
            assert await all_of(second) == "1 2 3 "
            assert (await second.call("tell", idempotency_key=KEY)).text == "1 2 3 "
        assert teller.runs == 1

    run(work)


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_key_finds_its_call_after_a_restart(
    nothing_left: None, era: Any, tmp_path: Path
) -> None:
    """AS-38a: with a stream and without."""

    async def work() -> None:
        teller = Teller(tmp_path / "tasks.db")
        teller.gate.set()
        for _ in range(3):
            async with (
                teller.server().serving(http="127.0.0.1:0") as here,
                segue.connect(here.url, era=era) as session,
            ):
                assert await all_of(session) == "1 2 3 "
                again = await session.call("tell", idempotency_key=KEY)
                assert again.text == "1 2 3 "
        assert teller.runs == 1

    run(work)
