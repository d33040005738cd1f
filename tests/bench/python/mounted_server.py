"""A server of the Python SDK that uvicorn carries, and what it is compared with. Prints
its port.

    mounted_server.py segue|own|bare [DIRECTORY]

segue: `server.asgi()` in uvicorn. own: the listener of the SDK. bare: an ASGI application
in uvicorn that reads the same call as JSON, checks nothing, and answers with its text.
DIRECTORY: has uvicorn, if the interpreter has none.
"""

import asyncio
import json
import socket
import sys
from urllib.parse import urlsplit

KIND = sys.argv[1]
sys.path.extend(sys.argv[2:3])


async def bare(scope, receive, send):
    if scope["type"] != "http":
        return
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    call = json.loads(body)
    text = call["params"]["arguments"]["text"]
    answer = {"jsonrpc": "2.0", "id": call["id"],
              "result": {"content": [{"type": "text", "text": text}],
                         "isError": False, "resultType": "complete"}}
    body = json.dumps(answer, separators=(",", ":")).encode()
    headers = [(b"content-type", b"application/json"),
               (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def make_server():
    import segue

    server = segue.Server("bench")

    @server.tool
    async def echo(text: str) -> str:
        return text

    return server


async def serve_own():
    async with make_server().serving(http="127.0.0.1:0") as serving:
        print(urlsplit(serving.url).port, flush=True)
        await asyncio.Event().wait()


def serve_with_uvicorn(app):
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


if KIND == "own":
    asyncio.run(serve_own())
else:
    serve_with_uvicorn(bare if KIND == "bare" else make_server().asgi())
