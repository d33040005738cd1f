"""The connection of Segue under the official SDK's `ClientSession`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import segue
from client_worlds import World, run
from programs import HttpServer, Proxy, server_command

mcp = pytest.importorskip("mcp")
from mcp import ClientSession, types  # noqa: E402

import segue.adapters.mcp  # noqa: E402


@asynccontextmanager
async def client(
    target: Any, *, callbacks: Any = None, **options: Any
) -> AsyncIterator[Any]:
    async with (
        segue.adapters.mcp.transport(target, **options) as (read, write),
        ClientSession(read, write, **(callbacks or {})) as session,
    ):
        await session.initialize()
        yield session


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


def option_of(era: str) -> str:
    return "legacy" if era == "legacy" else "auto"


def test_calls_lists_and_errors(world: World) -> None:
    async def work() -> None:
        async with client(world.target, era=option_of(world.era)) as session:
            assert (
                text_of(await session.call_tool("greet", {"name": "Ada"}))
                == "Hello, Ada!"
            )
            assert (await session.call_tool("fail", {})).model_dump(by_alias=True)[
                "isError"
            ]
            tools = [tool.name for tool in (await session.list_tools()).tools]
            assert "story" in tools
            resources = (await session.list_resources()).resources
            assert "test://static-text" in [str(one.uri) for one in resources]
            read = await session.read_resource("test://static-text")
            assert read.contents[0].text
            prompt = await session.get_prompt("simple")
            assert prompt.messages
            with pytest.raises(Exception, match="Unknown tool"):
                await session.call_tool("no such tool", {})
            await session.send_ping()

    run(work)


def test_a_result_in_pieces_is_one(world: World) -> None:
    async def work() -> None:
        async with client(world.target, era=option_of(world.era)) as session:
            text = text_of(await session.call_tool("story", {"n": 20, "delayMs": 2}))
            assert text.count("segment") == 20
            late = await session.call_tool("slow_compute", {"ms": 50, "label": "x"})
            assert text_of(late) == "Computed: x"

    run(work)


def test_progress_and_many_at_once(world: World) -> None:
    async def work() -> None:
        told: list[float] = []

        async def on_progress(now: float, total: float | None, text: str | None) -> None:
            told.append(now)

        async with client(world.target, era=option_of(world.era)) as session:
            await session.call_tool("steps", {"n": 3}, progress_callback=on_progress)
            assert told == [1, 2, 3]
            calls = [session.call_tool("greet", {"name": str(i)}) for i in range(100)]
            results = await asyncio.gather(*calls)
            assert [text_of(r) for r in results] == [f"Hello, {i}!" for i in range(100)]

    run(work)


def test_the_server_asks(world: World) -> None:
    async def work() -> None:
        async def on_elicit(context: Any, params: Any) -> Any:
            return types.ElicitResult(action="accept", content={"name": "Ada"})

        async def on_sample(context: Any, params: Any) -> Any:
            block = types.TextContent(type="text", text="something")
            return types.CreateMessageResult(role="assistant", content=block, model="m")

        callbacks = {"elicitation_callback": on_elicit, "sampling_callback": on_sample}
        target, option = world.target, option_of(world.era)
        async with client(target, era=option, callbacks=callbacks) as session:
            assert "Ada" in text_of(await session.call_tool("ask_name", {}))
            assert "something" in text_of(await session.call_tool("ask_model", {}))
        async with client(target, era=option) as session:
            assert "cannot ask" in text_of(await session.call_tool("ask_name", {}))

    run(work)


def test_a_cancelled_call(world: World) -> None:
    async def work() -> None:
        async with client(world.target, era=option_of(world.era)) as session:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(session.call_tool("hang_plain", {}), 0.1)
            assert text_of(await session.call_tool("greet", {})) == "Hello, World!"

    run(work)


def test_changes_and_log_are_told(world: World) -> None:
    async def work() -> None:
        heard: asyncio.Queue[str] = asyncio.Queue()

        async def on_message(message: Any) -> None:
            inner = getattr(message, "root", message)
            heard.put_nowait(getattr(inner, "method", ""))

        callbacks = {"message_handler": on_message}
        option = option_of(world.era)
        async with client(world.target, era=option, callbacks=callbacks) as session:
            await session.call_tool("toggle", {})
            while await heard.get() != "notifications/tools/list_changed":
                pass

    run(work)


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_a_connection_that_is_cut_in_the_middle(server: HttpServer, how: str) -> None:
    """The call goes on, and ClientSession notices nothing."""

    async def work() -> None:
        with Proxy(server) as proxy:
            async with client(proxy.url) as session:
                call = asyncio.ensure_future(
                    session.call_tool("story", {"n": 30, "delayMs": 20})
                )
                for _ in range(3):
                    await session.call_tool("steps", {"n": 2, "delayMs": 50})
                    assert proxy.say(f"cut {how}").startswith("cut")
                assert text_of(await call).count("segment") == 30

    run(work)


def test_a_server_that_dies_in_the_middle(server: HttpServer) -> None:
    async def work() -> None:
        async with client(server.url) as session:
            call = asyncio.ensure_future(
                session.call_tool("story", {"n": 40, "delayMs": 20})
            )
            await session.call_tool("steps", {"n": 3, "delayMs": 50})
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            assert text_of(await call).count("segment") == 40

    run(work)


def test_no_server(nothing_left: None, tmp_path: Path) -> None:
    async def work() -> None:
        with pytest.raises(Exception) as caught:
            async with client("http://127.0.0.1:1/mcp"):
                pass
        error: Any = caught.value
        while hasattr(error, "exceptions"):  # the exception group of ClientSession
            error = error.exceptions[0]
        assert "Failed to connect" in str(error)
        with pytest.raises(LookupError):
            async with segue.adapters.mcp.transport(server_command()):
                raise LookupError
        with pytest.raises(TypeError, match="the option on_log is not allowed"):
            async with segue.adapters.mcp.transport(server_command(), on_log=print):
                pass

    run(work)
