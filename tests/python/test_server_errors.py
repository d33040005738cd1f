"""Which exceptions of a handler reach the client, and which it only hears of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import segue
from server_worlds import ServerWorld, nothing_left, world  # noqa: F401

# ruff: noqa: F811

SECRET = "user-db.internal"


def _peer() -> segue.Error:
    return segue.RemoteError(f"no table in {SECRET}", code=-32602, data=b'{"at":1}')


# What sessions of the handler raise, and what the library says to the handler.
PRIVATE: dict[str, Callable[[], segue.Error]] = {
    "RemoteError": _peer,
    "DisconnectedError": lambda: segue.DisconnectedError(f"cannot resolve {SECRET}"),
    "SpawnError": lambda: segue.SpawnError(f"cannot start /{SECRET}"),
    "RequestTimeoutError": lambda: segue.RequestTimeoutError(f"{SECRET} is slow"),
    "ClosedError": lambda: segue.ClosedError(f"the session with {SECRET} is closed"),
    "EndedError": lambda: segue.EndedError(f"the operation of {SECRET} has ended"),
    "RequestCancelledError": lambda: segue.RequestCancelledError(f"not by {SECRET}"),
    "UnsupportedError": lambda: segue.UnsupportedError(f"{SECRET} cannot do this"),
    "InvalidError": lambda: segue.InvalidError(f"{SECRET} is no URL"),
    "StoreFullError": lambda: segue.StoreFullError(f"the store at {SECRET} is full"),
}


def leaky(**options: Any) -> segue.Server:
    server = segue.Server("leaky", **options)

    @server.tool(task="may")
    async def later(kind: str) -> None:
        raise PRIVATE[kind]()

    @server.tool
    def plain(kind: str) -> None:
        raise PRIVATE[kind]()

    @server.tool
    async def sends(kind: str) -> AsyncIterator[str]:
        yield "begun"
        raise PRIVATE[kind]()

    @server.resource("note://{kind}")
    async def note(kind: str) -> str:
        raise PRIVATE[kind]()

    @server.prompt
    async def write(kind: str) -> str:
        raise PRIVATE[kind]()

    @server.completion("write", "kind")
    async def kinds(typed: str) -> list[str]:
        raise PRIVATE[typed]()

    return server


async def failures_of(session: Any, kind: str) -> list[segue.Error]:
    """What the client gets when each kind of item fails."""
    failed = []
    calls: list[Callable[[], Any]] = [
        lambda: session.call("later", kind=kind),
        lambda: session.call("plain", kind=kind),
        lambda: session.call("sends", kind=kind),
        lambda: session.read_resource(f"note://{kind}"),
        lambda: session.get_prompt("write", {"kind": kind}),
        lambda: session.complete("write", "kind", kind),
    ]
    for call in calls:
        with pytest.raises(segue.Error) as caught:
            await call()
        failed.append(caught.value)
    with pytest.raises(segue.Error) as ended:
        task = await session.start("later", {"kind": kind})
        await task
    return [*failed, ended.value]


@pytest.mark.parametrize("wrapped", [False, True], ids=["bare", "middleware"])
def test_errors_of_inner_sessions_are_masked(
    world: ServerWorld, caplog: pytest.LogCaptureFixture, wrapped: bool
) -> None:
    caplog.set_level(logging.INFO, "segue.server")
    server = leaky()
    if wrapped:
        server.use(segue.middleware.mask_errors("It failed"))

    async def work(session: Any) -> None:
        for kind in PRIVATE:
            caplog.clear()
            failed = await failures_of(session, kind)
            for error in failed:
                assert SECRET not in f"{error} {error.data_json!r} {error.partial!r}"
                assert isinstance(error, (segue.ToolError, segue.RemoteError))
            while len(caplog.records) < len(failed):  # the last comes after the answer
                await asyncio.sleep(0)
            told = [str(one.exc_info and one.exc_info[1]) for one in caplog.records]
            assert all(SECRET in one for one in told), told
            assert len(told) == len(failed)

    world.run(server, work)


def test_they_are_shown_on_request(world: ServerWorld) -> None:
    async def work(session: Any) -> None:
        for kind in PRIVATE:
            for error in await failures_of(session, kind):
                assert SECRET in str(error)

    world.run(leaky(expose_errors=True), work)


def test_what_the_library_says_to_a_handler_is_masked(world: ServerWorld) -> None:
    server = segue.Server("fields")

    @server.tool
    async def sets(ctx: segue.Context) -> None:
        await ctx.set_field("isError", True)

    @server.tool
    def sets_plainly(ctx: segue.SyncContext) -> None:
        ctx.set_field("isError", True)

    async def work(session: Any) -> None:
        for name in ("sets", "sets_plainly"):
            with pytest.raises(segue.ToolError) as caught:
                await session.call(name)
            assert caught.value.message == f"The tool {name} failed"

    world.run(server, work)


def test_the_errors_for_clients_pass(
    world: ServerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    server = segue.Server("public")

    def error_of(kind: str) -> segue.Error:
        if kind == "tool":
            return segue.ToolError("for the model")
        return segue.McpError(17, "for the client", {"at": 1})

    @server.tool
    async def fails(kind: str) -> None:
        raise error_of(kind)

    @server.resource("note://{kind}")
    def note(kind: str) -> str:
        raise error_of(kind)

    @server.prompt
    def write(kind: str) -> str:
        raise error_of(kind)

    @server.completion("write", "kind")
    def kinds(typed: str) -> list[str]:
        raise error_of(typed)

    @server.tool
    async def asks(ctx: segue.Context) -> str:
        return await ctx.ask("Who?")

    async def work(session: Any) -> None:
        calls: list[Callable[[str], Any]] = [
            lambda kind: session.call("fails", kind=kind),
            lambda kind: session.read_resource(f"note://{kind}"),
            lambda kind: session.get_prompt("write", {"kind": kind}),
            lambda kind: session.complete("write", "kind", kind),
        ]
        for call in calls:
            with pytest.raises(segue.Error, match="for the model"):
                await call("tool")
            with pytest.raises(segue.RemoteError, match="for the client") as caught:
                await call("mcp")
            assert caught.value.code == 17 and caught.value.data == {"at": 1}
        with pytest.raises(segue.RemoteError, match="has not declared that it answers"):
            await session.call("asks")

    world.run(server, work)
    assert not caplog.records
