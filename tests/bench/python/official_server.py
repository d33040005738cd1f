"""The official Python SDK as a server over HTTP, with the same tool, configured for
speed: no sessions, plain JSON answers, no log. Prints its port."""

import socket

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("bench", log_level="ERROR")


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    return text


# with the number of the protocol: without that, asyncio leaves Nagle's algorithm on
listening = socket.socket(proto=socket.IPPROTO_TCP)
listening.bind(("127.0.0.1", 0))
listening.listen(1024)
print(listening.getsockname()[1], flush=True)
app = server.streamable_http_app(stateless_http=True, json_response=True)
config = uvicorn.Config(app, log_level="error", access_log=False)
uvicorn.Server(config).run(sockets=[listening])
