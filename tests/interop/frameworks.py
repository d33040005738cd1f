"""Frameworks of agents in Python and a server.  frameworks.py FRAMEWORK adapter|own
SERVER COMMAND...
adapter: by Segue's client and its adapter; own: by the framework's own client of MCP."""
import contextlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))

import anyio
from agents_worlds import ROUNDS, RUNS

from cells import Cells, Missing, equal, run_cells

framework, way, server, command, *args = sys.argv[1:]
env = dict(os.environ)
cells = Cells()
desk = server.startswith("desk")
# How an agent is made with the tools of the server, for a round with it.
given: dict


@contextlib.asynccontextmanager
async def langchain():
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_mcp_adapters.tools import load_mcp_tools

    told = {"transport": "stdio", "command": command, "args": args, "env": env}
    async with MultiServerMCPClient({"desk": told}).session("desk") as session:
        yield {"tools": await load_mcp_tools(session)}


@contextlib.asynccontextmanager
async def pydantic_ai():
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset

    async with MCPToolset(StdioTransport(command, args, env)) as toolset:
        yield {"toolsets": [toolset]}


@contextlib.asynccontextmanager
async def openai_agents():
    from agents.mcp import MCPServerStdio

    params = {"command": command, "args": args, "env": env}
    async with MCPServerStdio(params, client_session_timeout_seconds=60) as own:
        yield {"mcp_servers": [own]}


OWN = {"langchain": langchain, "pydantic_ai": pydantic_ai, "openai_agents": openai_agents}


async def call(name, arguments):
    return await ROUNDS[framework](given, name, "c1", arguments, [])


@cells.add("a structured result", desk)
async def _():
    found = str(await call("offer", {"nights": 2, "arrives": "2026-12-01"}))
    for part in ("160", "2026-12-03"):
        equal(part in found, True, f"{part} in {found}")


@cells.add("a report", desk)
async def _():
    found = str(await call("report", {"city": "Bern"}))
    equal("Day 3 in Bern" in found, True, f"its end in {found}")


@cells.add("an error that the model reads", desk)
async def _():
    found = str(await call("cancel", {"trip": "7"}))
    equal("There is no trip 7" in found, True, f"the reason in {found}")


@cells.add("a call", not desk)
async def _():
    found = str(await call("echo", {"message": "hello"}))
    equal("hello" in found, True, f"the message in {found}")


@cells.add("an image", not desk)
async def _():
    found = await call("get-tiny-image", {})
    text = json.dumps(found, default=str) + str(found)
    equal("iVBOR" in text or framework == "pydantic_ai" and "image" in text, True,
          f"the image in {text[:200]}")


@contextlib.asynccontextmanager
async def by_adapter():
    """Yields nothing that an agent takes: the adapter makes the tools of each round."""
    import segue

    global call
    async with segue.connect([command, *args]) as session:
        async def call(name, arguments):
            return await RUNS[framework](session, name, "c1", arguments, [])

        yield {}


async def loads():
    """Says why the framework's own client does not load."""
    try:
        async with OWN[framework]():
            pass
    except ImportError as error:
        raise Missing(f"its client does not load: {error}") from None


async def main():
    global given
    if way == "own" and framework == "langchain":
        # Its package of November 2026 wants version 1 of the SDK.
        return await run_cells([("its own client loads", loads)])
    async with OWN[framework]() if way == "own" else by_adapter() as given:
        await run_cells(cells)


anyio.run(main)
