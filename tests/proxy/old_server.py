"""An MCP server of the transport HTTP+SSE of 2024-11-05, for tests: GET /sse opens a
stream whose first event names the endpoint for messages, and each stream has its own
program, upstream.py. Used as a module, or as a program that prints its URL."""

import http.server
import json
import subprocess
import sys
import threading
import uuid
from pathlib import Path

PROGRAM = [sys.executable, "-B", str(Path(__file__).resolve().parent / "upstream.py")]
OLDEST = "2024-11-05"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, text=""):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if body:
            self.wfile.write(body)

    def do_GET(self):
        server = self.server
        if self.path != "/sse":
            self.answer(404)
            return
        name = uuid.uuid4().hex
        program = subprocess.Popen(server.program, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, bufsize=0)
        server.programs[name] = program
        server.streams += 1
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.event("endpoint", server.endpoint.format(name=name))
        try:
            for line in program.stdout:
                message = json.loads(line)
                result = message.get("result", {})
                if "protocolVersion" in result:
                    result["protocolVersion"] = OLDEST
                self.event("message", json.dumps(message))
        except OSError:
            pass
        server.programs.pop(name, None)
        program.kill()
        program.wait()
        program.stdin.close()
        program.stdout.close()
        self.close_connection = True

    def event(self, kind, data):
        self.wfile.write(f": x\r\nevent: {kind}\r\ndata: {data}\r\n\r\n".encode())
        self.wfile.flush()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, _, name = self.path.partition("?session=")
        program = self.server.programs.get(name)
        if path != "/messages":
            self.server.refused += 1
            self.answer(405)
        elif not program:
            self.answer(404, "no such session")
        else:
            program.stdin.write(body + b"\n")
            self.answer(202, "Accepted")


class OldServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    cuts = 0  # connections that the client has cut
    refused = 0  # messages that were posted to another path than that of the endpoint

    def handle_error(self, request, address):
        self.cuts += 1

    def __init__(self, *options, endpoint="/messages?session={name}"):
        super().__init__(("127.0.0.1", 0), Handler)
        self.program = [*PROGRAM, *options]
        self.programs = {}
        self.streams = 0
        self.endpoint = endpoint
        self.url = f"http://127.0.0.1:{self.server_port}/sse"
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()

    def cut(self):
        """Ends all streams, as a server does that is restarted."""
        for program in list(self.programs.values()):
            program.kill()

    def __exit__(self, *exception):
        self.cut()
        self.shutdown()
        self.thread.join()
        self.server_close()


if __name__ == "__main__":
    with OldServer(*sys.argv[1:]) as old:
        print(old.url, flush=True)
        sys.stdin.read()
