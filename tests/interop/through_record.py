"""A client of the Python SDK, of its version 1, or of FastMCP, that does what it is told
and prints what it gets.

    through_record.py [--fastmcp | --sdk1] ERA COMMAND...|URL <STEPS

STEPS is a JSON list of [method, argument...]. One JSON line is printed for each step:
{"result"} or {"error": text}. A step that lists reads all pages.
"""
import contextlib
import json
import os
import sys
import warnings

import anyio

warnings.simplefilter("ignore")
given = sys.argv[1:]
by_fastmcp = given[0] == "--fastmcp" and bool(given.pop(0))
by_sdk1 = given[0] == "--sdk1" and bool(given.pop(0))
era, command, *rest = given
over_http = command.startswith("http")
mode = "2026-07-28" if era == "modern" else "legacy"
# More than the SDKs' own minute: where the machine is busy, a server starts slowly.
STEP_SECONDS = 300
LISTS = {
    "tools/list": ("list_tools", "tools"),
    "prompts/list": ("list_prompts", "prompts"),
    "resources/list": ("list_resources", "resources"),
    "resources/templates/list": ("list_resource_templates", "resourceTemplates"
                                 if by_sdk1 else "resource_templates"),
}


def plain(value):
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


async def all_pages(client, name, member):
    if by_fastmcp:
        return plain(await getattr(client, name)())
    found, cursor = [], None
    while True:
        page = await getattr(client, name)(cursor=cursor)
        found += getattr(page, member)
        cursor = page.nextCursor if by_sdk1 else page.next_cursor
        if not cursor:
            return plain(found)


async def tool(client, *arguments):
    if by_fastmcp:
        return plain(await client.call_tool_mcp(*arguments))
    return plain(await client.call_tool(*arguments))


async def prompt(client, *arguments):
    return plain(await client.get_prompt(*arguments))


async def resource(client, uri):
    return plain(await client.read_resource(uri))


STEPS = {"tools/call": tool, "prompts/get": prompt, "resources/read": resource}


async def do(client, method, *arguments):
    if method == "hello":
        info = client.server_info
        return {"name": info.name if info else None, "instructions": client.instructions}
    if method in LISTS:
        return await all_pages(client, *LISTS[method])
    return await STEPS[method](client, *arguments)


class Greeted:
    """A session of version 1 with the members of a client of version 2."""

    def __init__(self, session, hello):
        self.session = session
        self.server_info, self.instructions = hello.serverInfo, hello.instructions

    def __getattr__(self, name):
        return getattr(self.session, name)


@contextlib.asynccontextmanager
async def client_of_version_1():
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
    opened = streamable_http_client(command) if over_http else stdio_client(
        StdioServerParameters(command=command, args=rest, env=dict(os.environ)))
    async with opened as (read, write, *_), ClientSession(read, write) as session:
        yield Greeted(session, await session.initialize())


def make_client():
    if by_sdk1:
        return client_of_version_1()
    if by_fastmcp:
        from fastmcp import Client
        from fastmcp.client.transports import StdioTransport
        return Client(command if over_http else StdioTransport(
            command=command, args=rest, env=dict(os.environ)))
    from mcp import Client, StdioServerParameters
    return Client(command if over_http else StdioServerParameters(
        command=command, args=rest, env=dict(os.environ)), mode=mode, cache=None)


def explain(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(str(error).split())[:300]


async def main():
    steps = json.load(sys.stdin)
    async with make_client() as client:
        for step in steps:
            try:
                with anyio.fail_after(STEP_SECONDS):
                    line = {"result": await do(client, *step)}
            except Exception as error:
                line = {"error": explain(error)}
            print(json.dumps(line), flush=True)


anyio.run(main)
