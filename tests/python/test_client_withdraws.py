"""A cancelled call is withdrawn by its key until the server accepts that. The test
plays a server over HTTP that refuses the first withdrawal."""

from __future__ import annotations

import asyncio
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

import segue
from client_worlds import run

SECONDS = 60.0
INFO = {"name": "x", "version": "1"}
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}, "extensions": {"dev.segue/idempotency": {}}},
    "serverInfo": INFO,
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
}


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.heard: queue.Queue[dict[str, Any]] = queue.Queue()
        self.turned_away = 0
        self.ends = threading.Event()

    async def next(self) -> dict[str, Any]:
        return await asyncio.to_thread(self.heard.get, timeout=SECONDS)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        message = msgspec.json.decode(self.rfile.read(length))
        if message["method"] == "server/discover":
            told = {"jsonrpc": "2.0", "id": message["id"], "result": DISCOVERED}
            self.answer(200, msgspec.json.encode(told))
            return
        self.server.heard.put(message)
        if message["method"] == "tools/call":
            self.server.ends.wait(SECONDS)  # a call is never answered
            self.close_connection = True
        elif not self.server.turned_away:
            self.server.turned_away = 1
            self.answer(503, b"")
        else:
            self.answer(202, b"")

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


def key_of(message: dict[str, Any]) -> str:
    return str(message["params"]["_meta"]["dev.segue/idempotencyKey"])


def test_a_withdrawal_that_is_turned_away_is_said_again() -> None:
    server = Server()
    url = f"http://127.0.0.1:{server.server_address[1]}/mcp"

    async def work() -> None:
        async with segue.connect(url) as session:
            call = asyncio.ensure_future(session.call("t"))
            key = key_of(await server.next())
            call.cancel()
            for _ in range(2):
                heard = await server.next()
                assert heard["method"] == "notifications/cancelled"
                assert key_of(heard) == key

    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        run(work)
    finally:
        server.ends.set()
        server.shutdown()
        server.server_close()
    assert server.turned_away == 1
