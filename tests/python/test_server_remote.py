"""Remote servers inside a Python server."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

import segue
from server_worlds import ServerWorld, nothing_left, run, world  # noqa: F401
from test_server_mount import names, read, weather

# ruff: noqa: F811

SECONDS = 120


def far(ended: asyncio.Event | None = None) -> segue.Server:
    """The remote server: items of each kind, and tools that use the context."""
    server = weather()

    @server.tool
    async def report(pages: int, ctx: segue.Context) -> AsyncIterator[Any]:
        for page in range(1, pages + 1):
            ctx.progress(page, pages, f"page {page}")
            ctx.log(f"log {page}", "warning")
            yield f"page {page}\n"
        await ctx.extend(0, "and more\n")

    @server.tool
    async def redo(ctx: segue.Context) -> None:
        await ctx.send("first", "second")
        await ctx.replace("third")

    @server.tool
    async def book(ctx: segue.Context) -> str:
        return f"booked: {await ctx.ask('Really?', bool)}"

    @server.tool
    def total(ctx: int, given: list[int]) -> dict[str, int]:
        """Adds."""
        return {"total": ctx + sum(given)}

    @server.tool
    def fails() -> str:
        raise segue.ToolError("no luck")

    @server.tool
    def refuses() -> str:
        raise segue.McpError(4711, "not today", {"retry": 1})

    @server.tool
    async def traced(ctx: segue.Context) -> segue.Result:
        return segue.Result(["traced"], meta={"trace": ctx.meta("traceparent")})

    @server.tool
    async def waits(ctx: segue.Context) -> None:
        ctx.progress(1)
        try:
            await asyncio.sleep(SECONDS)
        finally:
            if ended is not None:
                ended.set()

    @server.resource("data://bytes", mime_type="image/png", ttl=60)
    def picture() -> bytes:
        return b"\x89PNG"

    return server


def before(url: str, **options: Any) -> segue.Server:
    """A server with the remote one inside, two levels deep."""
    outer, app = segue.Server("outer"), segue.Server("app")
    app.mount(segue.Remote(url, **options), prefix="far")
    outer.mount(app, prefix="app")
    return outer


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_everything_passes(world: ServerWorld, era: Any) -> None:
    async def work() -> None:
        ended = asyncio.Event()
        async with far(ended).serving(http="127.0.0.1:0", drain=0) as serving:
            outer = before(serving.url, era=era)
            seen: list[Any] = []
            async with world.session(
                outer,
                on_elicit=lambda asked: segue.ElicitResult("accept", {"value": True}),
                on_log=seen.append,
            ) as session:
                await items(session)
                await calls(session, seen)
                call = asyncio.ensure_future(
                    session.call("app_far_waits", on_progress=lambda *_: call.cancel())
                )
                with pytest.raises(asyncio.CancelledError):
                    await call
                await asyncio.wait_for(ended.wait(), SECONDS)

    run(work)


async def items(session: Any) -> None:
    listed = await session.list_tools()
    (total,) = [one for one in listed if one.name == "app_far_total"]
    assert total.description == "Adds." and total.output_schema["type"] == "object"
    assert set(total.input_schema["properties"]) == {"ctx", "given"}
    assert await read(session, "data://app/far/now") == "now"
    assert await read(session, "data://app/far/city/Bern%20a") == "city Bern a"
    assert await read(session, "file://app/far/notes/a") == "a file"
    picture = (await session.read_resource("data://app/far/bytes")).contents[0]
    assert (picture.blob, picture.mime_type) == (b"\x89PNG", "image/png")
    template = "data://app/far/city/{name}"
    assert (await session.complete(template, "name", "be")).values == ["Bern"]
    prompt = await session.get_prompt("app_far_ask", {"place": "Bern"})
    assert prompt.messages[0].content.text == "How is Bern?"
    with pytest.raises(segue.RemoteError, match="place"):
        await session.get_prompt("app_far_ask")


async def calls(session: Any, seen: list[Any]) -> None:
    call, steps = session.call, []
    stream = session.stream(
        "app_far_report", pages=2, on_progress=lambda *step: steps.append(step)
    )
    assert (await stream.collect()).text == "page 1\nand more\npage 2\n"
    assert steps == [(1, 2, "page 1"), (2, 2, "page 2")]
    assert [(one.level, one.data) for one in seen] == [
        ("warning", "log 1"),
        ("warning", "log 2"),
    ]
    assert (await call("app_far_redo")).text == "third"
    assert (await call("app_far_book")).text == "booked: True"
    added = await call("app_far_total", {"ctx": 1, "given": [2, 3]})
    assert added.structured == {"total": 6}
    traced = await call("app_far_traced", meta={"traceparent": "00-1-2-3"})
    assert traced.meta and traced.meta["trace"] == "00-1-2-3"
    with pytest.raises(segue.ToolError, match="no luck"):
        await call("app_far_fails")
    with pytest.raises(segue.ToolError, match='unknown argument "giv"'):
        await call("app_far_total", ctx=1, giv=[1])
    with pytest.raises(segue.RemoteError, match="not today") as refused:
        await call("app_far_refuses")
    assert (refused.value.code, refused.value.data) == (4711, {"retry": 1})


@pytest.mark.parametrize("tasks", [True, False])
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_progress_of_a_tool_that_may_be_a_task(
    world: ServerWorld, era: Any, tasks: bool
) -> None:
    inner = segue.Server("inner")

    @inner.tool(task="may")
    async def may(ctx: segue.Context) -> AsyncIterator[str]:
        for step in range(1, 4):
            ctx.progress(step, 3)
            ctx.log(f"log {step}", "warning")
            yield f"page {step}"
            await asyncio.sleep(0)

    @inner.tool(task="must")
    async def must() -> AsyncIterator[str]:
        yield "one"
        yield "two"

    async def work() -> None:
        seen: list[Any] = []
        async with inner.serving(http="127.0.0.1:0", drain=0) as serving:
            outer = before(serving.url, era=era)
            async with world.session(outer, tasks=tasks, log_level="info") as session:
                result = await session.call(
                    "app_far_may",
                    on_progress=lambda step, *_: seen.append(step),
                    on_log=lambda message: seen.append(message.data),
                )
                assert result.text == "page 1page 2page 3"
                for _ in range(2):  # the second call knows that it must be a task
                    told = await session.call("app_far_must", on_progress=lambda *_: None)
                    assert told.text == "onetwo"
        # A task of 2026-07-28 has no progress.
        is_task = world.era == "modern" and tasks
        assert seen == ([] if is_task else [1, "log 1", 2, "log 2", 3, "log 3"])

    run(work)


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_the_lists_are_live(nothing_left: None, era: Any) -> None:
    async def work() -> None:
        inner = segue.Server("inner")
        inner.tool(name="first")(lambda: "1")
        inner.resource("data://one")(lambda: "one")
        inner.prompt(name="first")(lambda: "1")
        async with inner.serving(http="127.0.0.1:0", drain=0) as serving:
            outer = before(serving.url, era=era)
            outer.tool(name="app_far_third")(lambda: "ours")
            async with (
                outer.serving(http="127.0.0.1:0") as ours,
                segue.connect(ours.url) as session,
                session.subscribe(tools=True, resources=True, prompts=True) as changes,
            ):

                async def until(wanted: set[str]) -> None:
                    while set(await names(session)) != wanted | {"app_far_third"}:
                        await anext(changes)

                async with asyncio.timeout(SECONDS):
                    first, one = "app_far_first", "data://app/far/one"
                    await until({first, one})
                    inner.tool(name="second")(lambda: "2")
                    inner.tool(name="third")(lambda: "theirs, which ours hides")
                    await until({first, one, "app_far_second"})
                    assert (await session.call("app_far_third")).text == "ours"
                    inner.remove_tool("first")
                    inner.prompt(name="again")(lambda: "2")
                    wanted = {first, one, "app_far_second", "app_far_again"}
                    await until(wanted)
                    inner.remove_prompt("first")
                    inner.resource("data://{name}/two")(lambda name: name)
                    wanted.add("data://app/far/{name}/two")
                    await until(wanted - {first})
                    inner.remove_resource("data://one")
                    await until(wanted - {first, one})

    run(work)


def test_a_command_that_comes_back(nothing_left: None) -> None:
    program = """
import os, segue
server = segue.Server("child")
server.tool(name="pid")(lambda: str(os.getpid()))
server.tool(name="ends")(lambda: os._exit(1))
server.run()
"""

    async def work() -> None:
        outer = before([sys.executable, "-c", program])  # type: ignore[arg-type]
        async with outer.serving(http="127.0.0.1:0") as ours:
            async with segue.connect(ours.url) as session:
                first = (await session.call("app_far_pid")).text
                with pytest.raises(segue.RemoteError) as caught:
                    await session.call("app_far_ends")
                assert caught.value.message == "The remote server cannot be reached"
                assert (await session.call("app_far_pid")).text != first
        async with outer.serving(http="127.0.0.1:0") as ours:  # again
            async with segue.connect(ours.url) as session:
                assert (await session.call("app_far_pid")).text != first

    run(work)


def test_a_remote_that_is_not_there(nothing_left: None) -> None:
    async def work() -> None:
        async with far().serving(http="127.0.0.1:0") as serving:
            url = serving.url
        with pytest.raises(segue.Error, match=r"127\.0\.0\.1"):
            async with before(url).serving(http="127.0.0.1:0"):
                pass
        with pytest.raises(TypeError, match=r"mount a segue\.Server itself"):
            segue.Remote(far())
        with pytest.raises(TypeError, match=r"segue\.Remote makes one of a URL"):
            segue.Server("app").mount(url)  # type: ignore[arg-type]

    run(work)


def test_a_client_that_cannot_be_asked(nothing_left: None) -> None:
    async def work() -> None:
        async with far().serving(http="127.0.0.1:0", drain=0) as serving:
            async with segue.connect(before(serving.url)) as session:
                with pytest.raises(segue.Error):
                    await session.call("app_far_book")
                with contextlib.suppress(segue.Error):
                    await session.call("app_far_fails")
                assert (await session.call("app_far_today", city="Bern")).text

    run(work)


@contextlib.asynccontextmanager
async def official_server(gate: asyncio.Event, held: asyncio.Event) -> AsyncIterator[str]:
    """An official server, whose question names no call; gives its URL."""
    official = pytest.importorskip("mcp.server.mcpserver", reason="no official SDK")
    uvicorn = pytest.importorskip("uvicorn")
    server = official.MCPServer("official", log_level="ERROR")

    async def asks(ctx: Any) -> str:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        answer = await ctx.session.elicit_form("Who?", schema)
        return f"{answer.action} {answer.content}"

    async def holds() -> str:
        held.set()
        await gate.wait()
        return "held"

    asks.__annotations__["ctx"] = official.Context
    server.tool(structured_output=False)(asks)
    server.tool(structured_output=False)(holds)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        serving = uvicorn.Server(config)
        task = asyncio.ensure_future(serving.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            serving.should_exit = serving.force_exit = True
            await asyncio.wait([task])


def test_a_question_that_names_no_call_is_that_of_the_only_call() -> None:
    async def work() -> None:
        gate, held = asyncio.Event(), asyncio.Event()
        async with (
            official_server(gate, held) as url,
            before(url, era="legacy").serving(http="127.0.0.1:0") as ours,
            segue.connect(
                ours.url,
                on_elicit=lambda _: segue.ElicitResult("accept", {"name": "Ada"}),
            ) as session,
        ):
            answer = await session.call("app_far_asks")
            assert answer.text == "accept {'name': 'Ada'}"
            holds = asyncio.ensure_future(session.call("app_far_holds"))
            await held.wait()
            with pytest.raises(segue.Error, match="names no call, and 2 calls are open"):
                await session.call("app_far_asks")
            gate.set()
            assert (await holds).text == "held"

    run(work)


def test_a_result_of_another_server_passes(world: ServerWorld) -> None:
    """Its _meta names that server, and this server names itself."""
    far, near = segue.Server("far"), segue.Server("near")
    far.tool(name="traced")(lambda: segue.Result(["x"], meta={"trace": 1}))

    async def work(session: Any) -> None:
        result = await session.call("relay")
        assert (result.text, result.meta["trace"]) == ("x", 1)
        told = (result.meta or {}).get("io.modelcontextprotocol/serverInfo")
        assert told is None or told["name"] == "near"

    @near.tool
    async def relay() -> segue.Result:
        async with segue.connect(far) as session:
            return await session.call("traced")

    world.run(near, work)
