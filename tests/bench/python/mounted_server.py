"""A server of the Python SDK that an HTTP server of Python carries, and what it is
compared with. Prints its port.

    mounted_server.py segue|own|bare HOST [DIRECTORY]

segue: `server.asgi()` in the HTTP server. own: the listener of the SDK. bare: an ASGI
application that reads the same call as JSON, checks nothing, and answers with its text.
HOST: uvicorn (with httptools and uvloop, as `uvicorn[standard]`), uvicorn-asyncio (with
httptools), uvicorn-h11 (with neither), hypercorn or granian. DIRECTORY: has the HTTP
servers, if the interpreter has none.
"""

import asyncio
import json
import socket
import sys
from urllib.parse import urlsplit

KIND, HOST = sys.argv[1:3]
sys.path.extend(sys.argv[3:4])


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


def listen():
    # with the number of the protocol, as asyncio makes it; without that asyncio leaves
    # Nagle's algorithm on
    listening = socket.socket(proto=socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(1024)
    print(listening.getsockname()[1], flush=True)
    return listening


def serve_with_uvicorn(app):
    import uvicorn

    loop = "uvloop" if HOST == "uvicorn" else "asyncio"
    http = "h11" if HOST == "uvicorn-h11" else "httptools"
    config = uvicorn.Config(app, log_level="warning", access_log=False, loop=loop,
                            http=http)
    uvicorn.Server(config).run(sockets=[listen()])


def serve_with_hypercorn(app):
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    config = Config()
    listening = listen()
    config.bind = [f"fd://{listening.detach()}"]
    config.loglevel = "ERROR"
    config.keep_alive_max_requests = 1 << 62
    asyncio.run(serve(app, config))


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def serve_with_granian(app):
    from granian.constants import Interfaces
    from granian.server.embed import Server

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]  # granian takes no socket
    server = Server(app, address="127.0.0.1", port=port, interface=Interfaces.ASGI,
                    log_enabled=False)

    async def serve():
        serving = asyncio.ensure_future(server.serve())
        while not await asyncio.to_thread(answers, port):
            await asyncio.sleep(0.01)
        print(port, flush=True)
        await serving

    asyncio.run(serve())


if KIND == "own":
    asyncio.run(serve_own())
else:
    app = bare if KIND == "bare" else make_server().asgi()
    serve = {"hypercorn": serve_with_hypercorn, "granian": serve_with_granian}
    serve.get(HOST, serve_with_uvicorn)(app)
