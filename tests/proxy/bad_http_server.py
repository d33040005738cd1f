"""An MCP server over Streamable HTTP whose tools misbehave on the wire, for tests. It is
for one session of 2025-06-18, and answers what it must answer well."""

import http.server
import json
import threading

MANY = 100 * 1024 * 1024  # bytes
TOOLS = ("good", "never", "html", "no_json", "no_answer", "server_error", "cut",
         "cut_stream", "large_body", "large_event", "endless_line", "flood", "drip")
GOOD = {"content": [{"type": "text", "text": "good"}]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    # ---- what a server sends ----

    def begin(self, status=200, kind="application/json", length=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is None:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def send(self, text, status=200, kind="application/json"):
        body = text.encode()
        self.begin(status, kind, len(body))
        self.wfile.write(body)

    def result(self, number, value):
        self.send(json.dumps({"jsonrpc": "2.0", "id": number, "result": value}))

    def repeat(self, piece, total):
        for _ in range(total // len(piece)):
            self.wfile.write(piece)

    # ---- requests ----

    def do_GET(self):
        self.send("", 405)

    do_DELETE = do_GET

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, number = message["method"], message.get("id")
        if number is None:
            self.send("", 202)
        elif method == "initialize":
            self.result(number, {
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "bad", "version": "1"}})
        elif method == "tools/list":
            self.result(number, {"tools": [
                {"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]})
        elif method == "tools/call":
            try:
                getattr(self, "tool_" + message["params"]["name"])(number)
            except OSError:  # the proxy has had enough
                self.close_connection = True
        else:
            self.send(json.dumps({"jsonrpc": "2.0", "id": number, "error": {
                "code": -32601, "message": "Method not found"}}))

    def tool_good(self, number):
        self.result(number, GOOD)

    def tool_never(self, _):
        self.server.over.wait()
        self.close_connection = True

    def tool_html(self, _):
        self.send("<html>Sign in</html>", kind="text/html")

    def tool_no_json(self, _):
        self.send("this is no JSON")

    def tool_no_answer(self, _):
        self.send("", 202)

    def tool_server_error(self, _):
        self.send("out of order", 500, "text/plain")

    def tool_cut(self, number):
        self.begin(length=1000)
        self.wfile.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[' % number)
        self.close_connection = True

    def tool_cut_stream(self, _):
        self.begin(kind="text/event-stream")
        self.wfile.write(b": nothing follows\n\n")

    def tool_large_body(self, number):
        self.begin(length=MANY * 2)
        self.wfile.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text",'
                         b'"text":"' % number)
        self.repeat(b"x" * 65536, MANY)

    def tool_large_event(self, number):
        self.begin(kind="text/event-stream")
        self.wfile.write(b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":'
                         b'"text","text":"' % number)
        self.repeat(b"x" * 65536, MANY)
        self.wfile.write(b'"}]}}\n\n')

    def tool_endless_line(self, _):
        self.begin(kind="text/event-stream")
        self.repeat(b"x" * 65536, 2 * MANY)

    def tool_flood(self, _):
        self.begin(kind="text/event-stream")
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message",
                           "params": {"level": "debug", "data": "x" * 1000}})
        while not self.server.over.is_set():
            self.wfile.write(f"data: {note}\n\n".encode())

    def tool_drip(self, _):
        self.begin(kind="text/event-stream")
        while not self.server.over.wait(0.02):
            self.wfile.write(b":\n\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.over = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.over.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, *_):
        pass  # a connection that the proxy has closed
