"""The official SDK's client and a Python server of Segue, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest

import segue
from segue.server import Complete
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811
pytest.importorskip("mcp")
from mcp import ClientSession, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client

PROGRAM = str(Path(__file__).with_name("server_program.py"))


def make_server() -> segue.Server:
    server = segue.Server("ours", "1")

    @server.tool
    async def add(a: int, b: int, ctx: segue.Context) -> dict[str, int]:
        """Adds.

        Args:
            a: the first
        """
        ctx.progress(1, 2, "half")
        return {"sum": a + b}

    @server.tool
    def media() -> list[Any]:
        return ["text", segue.Image(b"\1"), segue.Audio(b"\2")]

    @server.tool
    def fails() -> None:
        raise segue.ToolError("no")

    @server.tool
    async def asks(ctx: segue.Context) -> str:
        agreed = await ctx.ask("Really?", bool)
        said = await ctx.sample("hello", max_tokens=9)
        roots = await ctx.roots()
        return f"{agreed} {said.text} {len(roots)}"

    @server.resource("note://{id}")
    def note(id: Annotated[str, Complete(["one", "two"])]) -> str:
        return f"note {id}"

    @server.prompt
    def hello(name: str) -> str:
        return f"Hello, {name}"

    return server


@asynccontextmanager
async def official(url: str, **callbacks: Any) -> AsyncIterator[ClientSession]:
    async with (
        streamable_http_client(url) as streams,
        ClientSession(streams[0], streams[1], **callbacks) as session,
    ):
        await session.initialize()
        yield session


def over_http(work: Callable[[ClientSession], Coroutine[Any, Any, None]]) -> None:
    async def elicit(context: Any, params: Any) -> Any:
        return types.ElicitResult(action="accept", content={"value": True})

    async def sample(context: Any, params: Any) -> Any:
        said = types.TextContent(type="text", text="hi")
        return types.CreateMessageResult(role="assistant", content=said, model="m")

    async def roots(context: Any) -> Any:
        return types.ListRootsResult(roots=[])

    async def whole() -> None:
        serving = make_server().serving(http="127.0.0.1:0", drain=1.0)
        callbacks: dict[str, Any] = {
            "elicitation_callback": elicit,
            "sampling_callback": sample,
            "list_roots_callback": roots,
        }
        async with serving, official(serving.url, **callbacks) as session:
            await work(session)

    run(whole)


def wire(model: Any) -> Any:
    return model.model_dump(by_alias=True, exclude_none=True, mode="json")


def test_tools(nothing_left: None) -> None:
    async def work(session: ClientSession) -> None:
        tools = {tool["name"]: tool for tool in wire(await session.list_tools())["tools"]}
        assert tools["add"]["inputSchema"]["required"] == ["a", "b"]
        assert tools["add"]["description"] == "Adds."
        progress: list[Any] = []

        async def on_progress(*told: Any) -> None:
            progress.append(told)

        result = wire(
            await session.call_tool(
                "add", {"a": 1, "b": 2}, progress_callback=on_progress
            )
        )
        assert result["structuredContent"] == {"sum": 3}
        assert progress == [(1.0, 2.0, "half")]
        media = wire(await session.call_tool("media", {}))
        assert [one["type"] for one in media["content"]] == ["text", "image", "audio"]
        failed = wire(await session.call_tool("fails", {}))
        assert failed["isError"] and failed["content"][0]["text"] == "no"
        bad = wire(await session.call_tool("add", {"a": "x", "b": 2}))
        assert bad["isError"] and "$.a" in bad["content"][0]["text"]
        many = [session.call_tool("add", {"a": n, "b": n}) for n in range(50)]
        sums = [
            wire(one)["structuredContent"]["sum"] for one in await asyncio.gather(*many)
        ]
        assert sums == [2 * n for n in range(50)]

    over_http(work)


def test_questions(nothing_left: None) -> None:
    async def work(session: ClientSession) -> None:
        asked = wire(await session.call_tool("asks", {}))
        assert asked["content"][0]["text"] == "True hi 0"

    over_http(work)


def test_resources_and_prompts(nothing_left: None) -> None:
    async def work(session: ClientSession) -> None:
        read = wire(await session.read_resource("note://7"))
        assert read["contents"][0]["text"] == "note 7"
        prompt = wire(await session.get_prompt("hello", {"name": "Ada"}))
        assert prompt["messages"][0]["content"]["text"] == "Hello, Ada"
        reference = types.ResourceTemplateReference(
            type="ref/resource", uri="note://{id}"
        )
        found = wire(await session.complete(reference, {"name": "id", "value": "t"}))
        assert found["completion"]["values"] == ["two"]

    over_http(work)


def test_over_stdio(nothing_left: None) -> None:
    async def work() -> None:
        parameters = StdioServerParameters(
            command=sys.executable, args=["-B", PROGRAM], env=dict(os.environ)
        )
        async with (
            stdio_client(parameters) as (read, write),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            result = wire(await session.call_tool("noisy", {"text": "x"}))
            assert result["content"][0]["text"] == "x ''"

    run(work)
