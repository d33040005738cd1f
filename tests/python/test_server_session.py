"""The session of a call, its state, and its end."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

import segue
from server_worlds import ServerWorld, nothing_left, run, world  # noqa: F401

# ruff: noqa: F811

SECONDS = 120
KEY = bytes(range(32))


class Cart(list[str]):
    """What a handler keeps for a session."""


class Shop:
    def __init__(self, **options: Any) -> None:
        self.lines: list[str] = []
        self.kept: list[weakref.ref[Cart]] = []
        self.ended = asyncio.Event()
        self.go = asyncio.Event()
        server = self.server = segue.Server("shop", options=options or None)

        @server.tool
        async def put(ctx: segue.Context, item: str) -> str:
            session = ctx.session
            if session is None:
                return "no session"
            assert ctx.session is session and not session.closed
            if "cart" not in session.state:
                session.state["cart"] = Cart()
                self.kept.append(weakref.ref(session.state["cart"]))
                session.on_end(lambda: self.close(session))
                session.on_end(lambda: self.lines.append("first"))
            session.state["cart"].append(item)
            return " ".join(session.state["cart"])

        @server.tool
        def seen(ctx: segue.SyncContext) -> list[str]:
            state = {} if ctx.session is None else ctx.session.state
            return list(state.get("cart", ["nothing"]))

        @server.tool
        async def who(ctx: segue.Context) -> dict[str, Any]:
            session = ctx.session
            assert session is not None
            name = session.client_info and session.client_info["name"]
            return {"revision": session.protocol_version, "name": name}

        @server.tool(task="may")
        async def late(ctx: segue.Context, reads_first: bool) -> str:
            before = ctx.session if reads_first else None
            await self.go.wait()
            self.lines.append(f"{before and before.closed} {ctx.session is before}")
            return "done"

    async def close(self, session: segue.ServerSession) -> None:
        assert session.closed
        await asyncio.sleep(0)
        self.lines.append(f"close {session.state['cart']}")
        self.ended.set()


async def text(session: Any, tool: str, **arguments: Any) -> str:
    return str((await session.call(tool, arguments)).text)


def test_each_session_has_its_state(nothing_left: None) -> None:
    async def work(era: str, way: str) -> None:
        shop = Shop()
        async with shop.server.serving(http="127.0.0.1:0", drain=0) as serving:
            to: Any = serving.url if way == "http" else shop.server
            async with segue.connect(to, era=era) as one:
                async with segue.connect(to, era=era) as two:
                    assert await text(one, "put", item="tea") == "tea"
                    assert await text(one, "put", item="milk") == "tea milk"
                    assert await text(two, "put", item="soap") == "soap"
                    seen = await one.call("seen")
                    assert seen.structured == {"result": ["tea", "milk"]}
                await asyncio.wait_for(shop.ended.wait(), SECONDS)
                assert shop.lines == ["first", "close ['soap']"]
                shop.ended.clear()
                assert await text(one, "put", item="jam") == "tea milk jam"
            await asyncio.wait_for(shop.ended.wait(), SECONDS)
            assert shop.lines[2:] == ["first", "close ['tea', 'milk', 'jam']"]
        gc.collect()
        assert [one() for one in shop.kept] == [None, None]

    for era, way in [("legacy", "http"), ("legacy", "pair"), ("modern", "pair")]:
        run(lambda era=era, way=way: work(era, way))


def test_over_http_2026_07_28_has_none(nothing_left: None) -> None:
    async def work() -> None:
        shop = Shop()
        async with shop.server.serving(http="127.0.0.1:0", drain=0) as serving:
            async with segue.connect(serving.url, era="modern") as session:
                assert await text(session, "put", item="tea") == "no session"
                seen = await session.call("seen")
                assert seen.structured == {"result": ["nothing"]}
        assert shop.lines == []

    run(work)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_who_the_client_is(nothing_left: None, era: str) -> None:
    async def work() -> None:
        shop = Shop()
        to: Any = shop.server
        async with segue.connect(to, era=era, name="till", version="1") as session:
            who = (await session.call("who")).structured
        revision = "2025-11-25" if era == "legacy" else "2026-07-28"
        assert who == {"revision": revision, "name": "till"}

    run(work)


def test_the_end_of_the_server_ends_sessions(nothing_left: None) -> None:
    """Before the lifespan ends, which may own what the state uses."""

    async def work() -> None:
        shop = Shop()
        serving = shop.server.serving(http="127.0.0.1:0", drain=0)
        await serving.start()
        session = await segue.connect(serving.url, era="legacy")
        await text(session, "put", item="tea")
        await serving.aclose()
        assert shop.lines == ["first", "close ['tea']"]
        await session.close()

    run(work)


def test_a_task_may_outlive_its_session(nothing_left: None) -> None:
    async def work() -> None:
        shop = Shop()
        async with shop.server.serving(http="127.0.0.1:0", drain=0) as serving:
            for reads in (True, False):
                shop.ended.clear()
                async with segue.connect(serving.url, era="legacy") as session:
                    await text(session, "put", item="tea")
                    await session.start("late", reads_first=reads)
                await asyncio.wait_for(shop.ended.wait(), SECONDS)
            shop.go.set()
            while len(shop.lines) < 6:
                await asyncio.sleep(0)
        assert sorted(shop.lines[4:]) == ["None True", "True True"]

    run(work)


def test_failures_of_the_end_are_logged(
    nothing_left: None, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        server, ended = segue.Server("sad"), asyncio.Event()
        found: list[segue.ServerSession] = []

        @server.tool
        async def begin(ctx: segue.Context) -> None:
            assert ctx.session is not None
            found.append(ctx.session)

            @ctx.session.on_end
            def last() -> None:
                ended.set()

            @ctx.session.on_end
            async def fails() -> None:
                raise ValueError("no luck")

        async with segue.connect(server) as session:
            await session.call("begin")
        await asyncio.wait_for(ended.wait(), SECONDS)
        with pytest.raises(RuntimeError, match="has ended"):
            found[0].on_end(ended.set)

    run(work)
    assert "a function for the end of session" in caplog.text
    assert "no luck" in caplog.text
    caplog.get_records("call").clear()


def test_another_server_has_a_state_of_its_own(nothing_left: None) -> None:
    """A session that continues on another server (seal_key) is empty there."""

    async def work() -> None:
        one, two = Shop(seal_key=KEY), Shop(seal_key=KEY)
        serving = one.server.serving(http="127.0.0.1:0", drain=0)
        await serving.start()
        port = serving.url.rsplit(":", 1)[1].split("/")[0]
        session = await segue.connect(serving.url, era="legacy")
        assert await text(session, "put", item="tea") == "tea"
        await serving.aclose()
        async with two.server.serving(http=f"127.0.0.1:{port}", drain=0):
            assert await text(session, "put", item="milk") == "milk"
            assert (await session.call("who")).structured == {
                "revision": "2025-11-25",
                "name": None,
            }
            await session.close()
            await asyncio.wait_for(two.ended.wait(), SECONDS)
        assert two.lines == ["first", "close ['milk']"]

    run(work)


def test_without_reads_the_world_is_the_same(world: ServerWorld) -> None:
    server = segue.Server("plain")

    @server.tool
    async def has(ctx: segue.Context) -> str:
        return str(ctx.session is not None)

    async def work(session: Any) -> None:
        wanted = not (world.way == "http" and world.era == "modern")
        assert (await session.call("has")).text == str(wanted)

    world.run(server, work)
