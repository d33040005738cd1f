"""The Python SDK's client against Segue's server.  py_client.py ERA COMMAND...|URL"""
import base64
import os
import sys
import warnings

import anyio
from mcp import Client, StdioServerParameters
from mcp_types import EmptyResult, Request

import py_items
from cells import (
    Cells,
    Missing,
    cut_connections,
    equal,
    explain,
    rejection,
    run_cells,
    until,
)

warnings.simplefilter("ignore")  # the SDK's deprecation warnings for the old eras
era, command, *args = sys.argv[1:]
over_http = command.startswith("http")
server = command if over_http else StdioServerParameters(
    command=command, args=args, env=dict(os.environ))
modern = era == "modern"
mode = "2026-07-28" if modern else "legacy"
big = 8 * 1024 * 1024
logs = []
notes = []
cells = Cells()
asked = py_items.Asked()
client: Client


async def on_log(params):
    logs.append(params)


async def on_message(message):
    notes.append(getattr(message, "method", type(message).__name__))


def make_client(how, **options):
    return Client(server, mode=how, logging_callback=on_log, message_handler=on_message,
                  cache=None, **options)


async def call(name, /, **arguments):
    return await client.call_tool(name, arguments)


def text(result):
    return result.content[0].text


@cells.add("connect")
async def _():
    equal(client.protocol_version, "2026-07-28" if modern else "2025-11-25")
    equal(client.server_info is not None or modern, True, "the server's name")


@cells.add("connect: finds the era itself")
async def _():
    async with make_client("auto") as other:
        equal(other.protocol_version, "2026-07-28")
        equal(other.server_info.name, "segue-fixture")
        equal(other.instructions, "Call greet first.")
        equal(other.server_capabilities.tools.list_changed, True)


@cells.add("ping", when=not modern)
async def _():
    await client.send_ping()


@cells.add("tools/list: all pages")
async def _():
    names, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        page = await client.list_tools(cursor=cursor)
        names += [tool.name for tool in page.tools]
        cursor, pages = page.next_cursor, pages + 1
    equal(pages > 3, True, "more than 3 pages")
    equal(len(set(names)), len(names), "distinct names")
    equal({"greet", "add", "toggle"} <= set(names), True, "the known names")


@cells.add("tools/list: bad cursor")
async def _():
    error = await rejection(client.list_tools(cursor="nonsense"))
    equal(error.error.code, -32602)


@cells.add("tools/call")
async def _():
    equal(text(await call("greet", name="Ada")), "Hello, Ada!")


@cells.add("tools/call: unicode and control characters")
async def _():
    odd = "snow \u2603, emoji \U0001F600, tab\t, newline\n, nul \0, quote \" \\ \u2028"
    equal(text(await call("repeat", text=odd)), odd)


@cells.add("structuredContent")
async def _():
    equal((await call("add", a=40, b=2)).structured_content, {"sum": 42})


@cells.add("content: image, audio, resource, link")
async def _():
    result = await call("media")
    kinds = [block.type for block in result.content]
    equal(kinds, ["image", "audio", "resource", "resource_link"])
    equal(base64.b64decode(result.content[0].data), b"\x89PNG")
    equal(result.content[2].resource.text, "inside")


@cells.add("isError")
async def _():
    result = await call("fail")
    equal([result.is_error, text(result)], [True, "failed on purpose"])


@cells.add("error: unknown tool")
async def _():
    equal((await rejection(call("no_such_tool"))).error.code, -32602)


@cells.add("error: of the handler, with data")
async def _():
    error = (await rejection(call("protocol_error_job"))).error
    equal([error.code, error.data], [-32603, {"hint": "on purpose"}])


@cells.add("error: a tool that must be a task")
async def _():
    equal((await rejection(call("failing_job"))).error.code, -32021 if modern else -32601)


@cells.add("error: unknown method")
async def _():
    asking = Request(method="no/such_method", params=None)
    error = (await rejection(client.session.send_request(asking, EmptyResult))).error
    equal(error.code, -32601)


async def seen_progress(tool):
    seen = []

    async def on_progress(progress, total, message):
        seen.append((progress, total, message))

    await client.call_tool(tool, {"n": 3}, progress_callback=on_progress)
    await until(lambda: len(seen) >= 3, "progress")
    return seen


@cells.add("progress")
async def _():
    # Sorted, because a separate task handles each.
    equal(sorted(await seen_progress("steps")), [(n, 3, "a step") for n in (1, 2, 3)])


@cells.add("progress in one read with the result")
async def _():
    equal(sorted(await seen_progress("chatty")), [(n, 3, "working") for n in (1, 2, 3)])


@cells.add("log messages")
async def _():
    logs.clear()
    meta = None
    if modern:
        meta = {"io.modelcontextprotocol/logLevel": "info"}
    else:
        await client.set_logging_level("info")
    await client.call_tool("chatty", {"n": 2}, meta=meta)
    await until(lambda: logs, "a log message")
    equal([(log.level, log.data) for log in logs], [("info", "begin")])
    if not modern:
        await client.set_logging_level("emergency")
    await call("chatty")
    equal(len(logs), 1, "messages after they were not asked for")


@cells.add("cancel")
async def _():
    with anyio.move_on_after(0.1) as scope:
        await call("hang_plain")
    equal(scope.cancelled_caught, True, "cancelled")
    equal(text(await call("greet")), "Hello, World!")


@cells.add("timeout")
async def _():
    await rejection(client.call_tool("hang_plain", {}, read_timeout_seconds=0.1))
    equal(text(await call("greet")), "Hello, World!")


@cells.add("concurrency: 20 calls and a slow one")
async def _():
    texts = {}

    async def run(key, tool, /, **arguments):
        texts[key] = text(await call(tool, **arguments))

    # the slow call lasts until all the others have ended
    async with anyio.create_task_group() as slow:
        slow.start_soon(lambda: run("slow", "hang_plain"))
        async with anyio.create_task_group() as group:
            for i in range(20):
                group.start_soon(lambda i=i: run(i, "greet", name=f"n{i}"))
        slow.cancel_scope.cancel()
    equal(texts, {i: f"Hello, n{i}!" for i in range(20)})


@cells.add("large result, 8 MiB")
async def _():
    equal(len(text(await call("big", bytes=big))), big)


@cells.add("large arguments, 8 MiB")
async def _():
    equal(text(await call("echo", text="y" * big)), "y" * big)


@cells.add("list_changed", when=not modern)
async def _():
    notes.clear()
    await call("toggle")
    await until(lambda: "notifications/tools/list_changed" in notes, "list_changed")


@cells.add("subscriptions/listen", when=modern)
async def _():
    async with client.listen(tools_list_changed=True) as subscription:
        equal(subscription.honored.tools_list_changed, True)
        await call("toggle")
        event = await anext(subscription)
        equal(type(event).__name__, "ToolsListChanged")
    await call("toggle")
    equal(text(await call("greet")), "Hello, World!")


@cells.add("protocol version 2025-06-18, 2025-03-26 and others", when=not modern)
async def _():
    from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    connect = streamable_http_client if over_http else stdio_client
    async with connect(server) as (read, write), anyio.create_task_group() as group:
        peer = JSONRPCDispatcher(read, write)

        async def nothing(*_):
            return None

        await group.start(peer.run, nothing, nothing)
        for asked, got in (("2025-06-18",) * 2, ("2025-03-26",) * 2, ("2024-11-05",) * 2,
                           ("1999-01-01", "2025-11-25")):
            answer = await peer.send_raw_request("initialize", {
                "protocolVersion": asked, "capabilities": {},
                "clientInfo": {"name": "py-judge", "version": "1"}})
            equal(answer["protocolVersion"], got, f"the answer to {asked}")
        group.cancel_scope.cancel()


py_items.add_cells(cells, lambda: client, asked, notes, modern)


@cells.add("reconnect: a stream is cut", when=over_http)
async def _():
    outcome, steps = [], []

    async def on_progress(*progress):
        steps.append(progress)

    async def walk(other):
        try:
            outcome.append(text(await other.call_tool(
                "steps", {"n": 20, "delayMs": 100}, progress_callback=on_progress,
                read_timeout_seconds=5 if modern else 60)))
        except Exception as error:
            outcome.append(error)

    async with make_client(mode) as other:
        async with anyio.create_task_group() as group:
            group.start_soon(walk, other)
            await until(lambda: steps, "the first step")
            await cut_connections(server)
        equal(await greet_until_answered(other), None, "what ended the next calls")
    if not modern:
        equal(outcome, ["arrived"])
    elif "imed out" in str(outcome[0]):
        raise Missing("waits for an answer until its timeout")
    else:
        equal(isinstance(outcome[0], Exception), True, "the call is lost")


async def greet_until_answered(other):
    """Returns None, or why there was no answer. A call may be lost with its connection,
    or with a pooled connection whose end the client has not noticed yet."""
    for _ in range(20):
        try:
            result = await other.call_tool("greet", {}, read_timeout_seconds=5)
            return equal(text(result), "Hello, World!")
        except Exception as error:
            problem = error
            await anyio.sleep(0.1)
    return problem


async def greet_anew():
    """Returns None, or why new clients had no answer: the server may still be
    starting."""
    problem = None
    for _ in range(20):
        try:
            async with make_client(mode) as another:
                return await greet_until_answered(another)
        except Exception as error:
            problem = error
            await anyio.sleep(0.1)
    return problem


@cells.add("reconnect: the server dies")
async def _():
    try:
        async with make_client(mode) as other:
            await rejection(other.call_tool("die", {}, read_timeout_seconds=5))
            problem = await greet_until_answered(other)
    except ExceptionGroup as error:
        problem = error  # the client is over, too
    equal(await greet_anew(), None, "what ended the calls of new clients")
    if problem:
        raise Missing(f"the client stays without a session: {explain(problem)}")


async def main():
    global client
    async with make_client(mode, **asked.options) as client:
        await run_cells(cells)
    await run_cells([("close", anyio.lowlevel.checkpoint)])


anyio.run(main)
