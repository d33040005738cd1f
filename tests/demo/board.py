"""make demo-board: the task board on a server whose tasks stream, with two buttons that
break what they can.

A page of the board comes through this program, which passes each request on. "Cut this
connection" closes all connections of the page, and lets it have no new one for a while.
"Kill the server" ends the server with kill -9 and starts it again on its store. The page
shows what happens, and that nothing is missing afterwards.

Prints the URL of the page, and ends at Ctrl-C. Usage: board.py [FILE]
  FILE   the text whose lines a task streams; by default the licence
"""

import contextlib
import http.client
import http.server
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("SEGUE_BUILD", ROOT / "build/release"))
CUT_S = 3  # how long a page gets no connection
TASK_MS = int(os.environ.get("SEGUE_DEMO_TASK_MS", "90000"))  # how long one text takes
HOP = {"connection", "keep-alive", "transfer-encoding"}  # headers of one connection
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {
        "extensions": {"io.modelcontextprotocol/tasks": {}}},
}


class Streams:
    """The server, and a task that streams a text; the next one follows."""

    def __init__(self, store, text):
        self.store = store
        self.text = text
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [BUILD / "tests/demo/demo_server", self.store, "0", str(os.getpid())],
            stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if line.startswith("server listens at "):
                self.url = f"http://127.0.0.1:{int(line.split()[-1])}/mcp"
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def kill(self):
        """Kills the server, and starts it again on its store. Runs on the main thread:
        the server ends with the thread that has started it."""
        self.process.kill()
        self.process.wait()
        self.start()

    def begin_task(self):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "read_text", "_meta": META,
            "arguments": {"path": self.text, "durationMs": TASK_MS}}}
        asked = urllib.request.Request(self.url, json.dumps(body).encode(), {
            "Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28",
            "Accept": "application/json, text/event-stream",
            "Mcp-Method": "tools/call", "Mcp-Name": "read_text"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            answer.read()

    def end(self):
        self.process.terminate()
        self.process.wait()


class Passage(http.server.BaseHTTPRequestHandler):
    """Passes the requests of a page on to the board."""

    protocol_version = "HTTP/1.1"
    board = None  # its port
    wanted = queue.Queue()  # for the main thread: events that a killed server sets
    open_sockets = set()
    closed_until = 0.0

    def setup(self):
        super().setup()
        self.open_sockets.add(self.connection)

    def finish(self):
        self.open_sockets.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def handle(self):
        if time.monotonic() >= self.closed_until:
            with contextlib.suppress(OSError, http.client.HTTPException):
                super().handle()

    def log_message(self, *_):
        pass

    def answer(self, status, headers, body):
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in HOP:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.command == "POST" and self.path.startswith("/demo/"):
            self.act(self.path)
            return
        board = http.client.HTTPConnection("127.0.0.1", self.board, timeout=30)
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in HOP}
        with contextlib.closing(board):
            board.request(self.command, self.path, body or None, headers)
            answer = board.getresponse()
            self.answer(answer.status, answer.getheaders(), answer.read())

    do_GET = do_POST = pass_on

    def act(self, path):
        # Only the page may: a page of another origin names its own, or cannot ask at all.
        if self.headers.get("Origin") != f"http://{self.headers.get('Host')}":
            self.answer(403, [("Content-Length", "0")], b"")
            return
        if path == "/demo/kill":
            killed = threading.Event()
            self.wanted.put(killed)
            killed.wait(30)
        self.answer(204, [], b"")
        if path == "/demo/cut":
            Passage.closed_until = time.monotonic() + CUT_S
            for one in list(self.open_sockets):
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)


def serve_board(store):
    """Starts the board; returns its process, its port and its token."""
    board = subprocess.Popen([BUILD / "proxy/segue-proxy", "board", store],
                             stdout=subprocess.PIPE, text=True)
    url, token = board.stdout.readline().strip().split("#token=")
    return board, int(url.rsplit(":", 1)[1].strip("/")), token


def play(streams, wanted):
    """Begins one task after the other, and kills the server when it is wanted."""
    while True:
        streams.begin_task()
        ends = time.monotonic() + TASK_MS / 1000
        while (left := ends - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                killed = wanted.get(timeout=left)
                if killed is None:
                    return
                streams.kill()
                killed.set()


def main():
    text = str(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "LICENSE").resolve())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: Passage.wanted.put(None))
    with tempfile.TemporaryDirectory() as place:
        store = str(Path(place) / "demo.db")
        streams = Streams(store, text)
        board, Passage.board, token = serve_board(store)
        passage = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Passage)
        passage.daemon_threads = True
        threading.Thread(target=passage.serve_forever, daemon=True).start()
        print(f"http://127.0.0.1:{passage.server_port}/#token={token}&demo", flush=True)
        print("Open this page, and a task there: it has a button that cuts the "
              "connection of the page, and one that kills the server. Ctrl-C ends the "
              "demo.", flush=True)
        play(streams, Passage.wanted)
        passage.shutdown()
        board.terminate()
        board.wait()
        streams.end()


if __name__ == "__main__":
    main()
