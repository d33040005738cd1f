"""A server over HTTP with the tools echo and report, on the official SDK or on FastMCP.

    peer_server.py sdk|fastmcp

It prints its port, and then its version. It runs on uvicorn, as both projects advise.
"""
import importlib.metadata
import socket
import sys

import uvicorn

if sys.argv[1] == "fastmcp":
    from fastmcp import Context, FastMCP
    server, package = FastMCP("bench"), "fastmcp"
    tool = server.tool
else:
    from mcp.server.mcpserver import Context, MCPServer
    server, package = MCPServer("bench", log_level="ERROR"), "mcp"
    tool = server.tool()


@tool
def echo(text: str) -> str:
    return text


@tool
async def report(n: int, ctx: Context) -> str:
    for at in range(1, n + 1):
        await ctx.report_progress(at, n)
    return "done"


def make_app():
    if package == "fastmcp":
        return server.http_app(stateless_http=True)
    return server.streamable_http_app(stateless_http=True)


listener = socket.create_server(("127.0.0.1", 0))
print(f"{listener.getsockname()[1]}\n{package} {importlib.metadata.version(package)}",
      flush=True)
uvicorn.Server(uvicorn.Config(make_app(), log_level="error")).run(sockets=[listener])
