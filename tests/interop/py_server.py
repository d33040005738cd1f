"""A server on the Python SDK for Segue's client.  py_server.py [--http PORT] Over HTTP
it prints its URL."""
import os
import socket
import sys
import warnings

import anyio
import mcp_types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.streamable_http import EventMessage, EventStore

import py_fixtures
import py_server_items

warnings.simplefilter("ignore")  # the SDK's deprecation warnings for the old eras
server = MCPServer("judged", version="1.0.0", log_level="ERROR")
py_fixtures.add_fixtures(server, mcp_types)


@server.tool(structured_output=False)
def big(bytes: int) -> str:
    return "x" * bytes


@server.tool(structured_output=False)
async def steps(n: int, delayMs: int, ctx: Context) -> str:
    for at in range(1, n + 1):
        await anyio.sleep(delayMs / 1000)
        await ctx.info({"step": at})
        await ctx.report_progress(at, n)
    return "arrived"


@server.tool(structured_output=False)
async def hang() -> str:
    await anyio.sleep_forever()
    return ""


@server.tool(structured_output=False)
def die() -> str:
    os._exit(3)


def extra() -> str:
    return "extra"


@server.tool(structured_output=False)
async def toggle(ctx: Context) -> str:
    if any(tool.name == "extra" for tool in await server.list_tools()):
        server.remove_tool("extra")
    else:
        server.add_tool(extra)
    if ctx.protocol_version == "2026-07-28":
        await ctx.notify_tools_changed()
    else:
        await ctx.session.send_tool_list_changed()
    return "changed"


py_server_items.add_items(server)


class Events(EventStore):
    """Keeps all events of all streams, which is enough for one run. A priming event has
    no message."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id, send_callback):
        last = int(last_event_id)
        if not 0 < last <= len(self.events):
            return None
        stream = self.events[last - 1][0]
        for at, (of, message) in enumerate(self.events[last:], last + 1):
            if of == stream and message:
                await send_callback(EventMessage(message, str(at)))
        return stream


def serve_http(port):
    import uvicorn

    listener = socket.create_server(("127.0.0.1", port))
    app = server.streamable_http_app(max_request_body_size=16 * 1024 * 1024,
                                     event_store=Events(), retry_interval=100)
    # An open event stream would otherwise delay the end.
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if "--http" in sys.argv:
    serve_http(int(sys.argv[sys.argv.index("--http") + 1]))
else:
    server.run("stdio")
