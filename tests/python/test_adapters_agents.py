"""The adapters for frameworks of agents, with the real packages and a model that only
says what it was told to say."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import segue
from agents_worlds import RUNS
from segue.testing import Lab

SERVER = segue.Server("shop")
PIXEL = b"\x89PNG"


@SERVER.tool
def price(item: str, count: int = 1) -> dict[str, int]:
    """Tells a price."""
    return {"total": len(item) * count}


@SERVER.tool(task="may", restartable=True)
async def report(ctx: segue.Context) -> AsyncIterator[str]:
    begun = ctx.resumed
    for page in range(begun.segments if begun else 0, 3):
        yield f"page {page}\n"
        if page == 1 and begun is None:
            await asyncio.Event().wait()


@SERVER.tool
def picture() -> list[Any]:
    return ["a dot", segue.Image(PIXEL, "image/png")]


@SERVER.tool
async def told(ctx: segue.Context) -> dict[str, int]:
    await ctx.send("line 0\n", "line 1\n")
    return {"lines": 2}


@SERVER.tool
def fail() -> str:
    raise segue.ToolError("sold out")


framework = pytest.mark.parametrize("name", RUNS)


@framework
def test_a_call(name: str) -> None:
    async def work() -> None:
        async with Lab() as lab:
            session = await lab.connect(SERVER)
            got = await RUNS[name](
                session, "price", "c1", {"item": "tea", "count": 2}, []
            )
            assert got in ('{"total":6}', {"total": 6})
            got = await RUNS[name](session, "picture", "c2", {}, [])
            assert "a dot" in str(got)
            if name != "pydantic_ai":
                assert "iVBORw==" in str(got)
            got = await RUNS[name](session, "told", "c4", {}, [])
            assert got == 'line 0\nline 1\n{"lines":2}'
            failed = await RUNS[name](session, "fail", "c3", {}, [])
            assert "sold out" in str(failed)

    asyncio.run(asyncio.wait_for(work(), 120))


@framework
def test_segments_come_at_once_and_survive_a_crash(name: str) -> None:
    async def work() -> None:
        async with Lab() as lab:
            served = await lab.serve(SERVER)
            session = await served.connect()
            heard: list[str] = []
            running = asyncio.ensure_future(
                RUNS[name](session, "report", "c1", {}, heard)
            )
            while len(heard) < 2 and not running.done():
                await asyncio.sleep(0)
            await served.restart()
            got = await running
            assert heard == ["page 0\n", "page 1\n", "page 2\n"]
            assert got == "page 0\npage 1\npage 2\n"

    asyncio.run(asyncio.wait_for(work(), 120))


@framework
def test_another_run_continues_a_call(name: str) -> None:
    """The agent ends in the middle; one with the same ids gets the whole result."""

    async def work() -> None:
        async with Lab() as lab:
            served = await lab.serve(SERVER)
            tokens: dict[str, str] = {}
            heard: list[str] = []
            first = await served.connect()
            running = asyncio.ensure_future(
                RUNS[name](first, "report", "c1", {}, heard, tokens=tokens)
            )
            while len(heard) < 2 and not running.done():
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await first.close()
            assert list(tokens) == ["c1"]
            await served.restart()
            second = await served.connect()
            got = await RUNS[name](second, "report", "c1", {}, heard, tokens=tokens)
            assert got == "page 0\npage 1\npage 2\n"
            assert heard[-1] == "page 2\n"
            assert tokens == {}

    asyncio.run(asyncio.wait_for(work(), 120))


@pytest.mark.parametrize("said", ['{"item": "tea", "count"', "no json", "[1]"])
def test_broken_arguments_go_to_the_model(said: str) -> None:
    from segue.adapters import openai_agents

    async def work() -> None:
        async with Lab() as lab:
            session = await lab.connect(SERVER)
            tools = {one.name: one for one in await openai_agents.tools(session)}
            context: Any = SimpleNamespace(tool_call_id="c1")
            told = await tools["price"].on_invoke_tool(context, said)
            assert told.startswith("The arguments are not a JSON object: "), told

    asyncio.run(asyncio.wait_for(work(), 120))


@pytest.mark.parametrize(
    ("module", "blocked", "package"),
    [
        ("mcp", "anyio", "mcp"),
        ("langchain", "langchain_core", "langchain-core"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai-slim"),
        ("openai_agents", "agents", "openai-agents"),
        ("opentelemetry", "opentelemetry", "opentelemetry-api"),
    ],
)
def test_a_framework_that_is_missing(module: str, blocked: str, package: str) -> None:
    program = (
        f"import sys; sys.modules[{blocked!r}] = None\n"
        "import segue.adapters\n"
        f"try: segue.adapters.{module}\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    wanted = f"segue.adapters.{module} needs the package {package}: pip install {package}"
    assert done.stdout.startswith(wanted), done


@pytest.mark.parametrize("module", RUNS)
def test_an_adapter_is_short(module: str) -> None:
    adapters = Path(segue.__file__).with_name("adapters")
    assert len((adapters / f"{module}.py").read_text().splitlines()) <= 60
