"""R-0-8: another server goes on with a session of 2025-11-25.
The client repeats its settings there."""

from __future__ import annotations

from typing import Any

import segue
from ports import free_port
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811

WATCHED = "note://today"


def service() -> segue.Server:
    server = segue.Server("service", options={"seal_key": bytes(range(32))})

    @server.resource(WATCHED)
    async def today() -> str:
        return "nothing planned"

    @server.tool
    async def talk(ctx: segue.Context) -> None:
        ctx.log("said", "info")

    return server


def test_subscriptions_and_the_log_level_are_set_again(nothing_left: None) -> None:
    heard: list[Any] = []
    address = f"127.0.0.1:{free_port()}"

    async def work() -> None:
        serving = service().serving(http=address, drain=0.1)
        await serving.__aenter__()
        session = await segue.connect(
            serving.url, era="legacy", log_level="info", on_log=heard.append
        )
        watching = session.subscribe(WATCHED, tools=True)
        async with session, watching as changes:
            await session.call("talk")
            await serving.__aexit__(None, None, None)
            next_one = service()
            serving = next_one.serving(http=address, drain=0.1)
            await serving.__aenter__()
            told = {await anext(changes), await anext(changes)}
            assert {change.kind for change in told} == {"resource", "tools"}
            next_one.resource_updated(WATCHED)
            # the new server says, too, that its tools may be others
            while (change := await anext(changes)).kind == "tools":
                pass
            assert change.uri == WATCHED
            heard.clear()
            await session.call("talk")
            assert len(heard) == 1
        await serving.__aexit__(None, None, None)

    run(work)
