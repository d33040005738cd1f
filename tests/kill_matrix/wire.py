"""MCP over HTTP without the library, one connection per request: `Modern` speaks
2026-07-28, `Handshake` the earlier revisions."""
import contextlib
import http.client
import itertools
import json
import threading
import time

MODERN = "2026-07-28"
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}}
NAMED = {"tools/call": "name", "tasks/get": "taskId", "tasks/update": "taskId",
         "tasks/cancel": "taskId", "tasks/stream": "taskId"}
SECONDS = 20


class Unreachable(Exception):
    """The server is not there, or ended before the answer was whole."""


class Refused(Exception):
    """A JSON-RPC error."""

    def __init__(self, error):
        super().__init__(str(error))
        self.code = error.get("code")
        data = error.get("data")
        # after how many ms the same request may succeed; None = it will not
        self.again_ms = data.get("retryAfterMs") if isinstance(data, dict) else None


class Exchange:
    """A request whose answer is read message by message."""

    def __init__(self, port, method, body, headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        try:
            self.connection.request(method, "/mcp", body, headers)
            self.answer = self.connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Unreachable(str(error)) from error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.connection.close()

    def messages(self):
        """Yields each message as it comes, with the id of its event: (id or None,
        message)."""
        try:
            if "text/event-stream" in self.answer.headers.get("Content-Type", ""):
                yield from self.events()
            else:
                body = self.answer.read()
                if body:
                    yield None, json.loads(body)
        except (OSError, http.client.HTTPException, ValueError,
                # the last one: another thread closed the connection
                AttributeError) as error:
            raise Unreachable(f"{type(error).__name__}: {error}") from error

    def events(self):
        event, data, end = None, [], time.monotonic() + SECONDS
        for raw in self.answer:
            if time.monotonic() > end:  # an idle server sends comments
                raise OSError("it takes too long")
            line = raw.decode().rstrip("\r\n")
            if line.startswith("id:"):
                event = line[3:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif not line:
                if any(data):
                    yield event, json.loads("\n".join(data))
                data = []


def answer_of(exchange, number):
    """Returns the result of this request; other messages are skipped."""
    with exchange:
        for _, message in exchange.messages():
            if message.get("id") == number and "method" not in message:
                return result_of(message)
    raise Unreachable(f"no answer, status {exchange.answer.status}")


def result_of(message):
    if "error" in message:
        raise Refused(message["error"])
    return message["result"]


class Modern:
    """Has no session: each request names its client."""

    def __init__(self, port, capabilities=None):
        self.port = port
        self.meta = {"io.modelcontextprotocol/protocolVersion": MODERN,
                     "io.modelcontextprotocol/clientCapabilities":
                         TASKS if capabilities is None else capabilities}
        self.numbers = itertools.count(1)

    def open(self, method, params):
        number = next(self.numbers)
        body = {"jsonrpc": "2.0", "id": number, "method": method,
                "params": {**params, "_meta": {**params.get("_meta", {}), **self.meta}}}
        headers = {"Content-Type": "application/json", "Mcp-Method": method,
                   "Accept": "application/json, text/event-stream",
                   "MCP-Protocol-Version": MODERN}
        if method in NAMED:
            headers["Mcp-Name"] = params[NAMED[method]]
        exchange = Exchange(self.port, "POST", json.dumps(body), headers)
        exchange.number = number
        return exchange

    def ask(self, method, **params):
        exchange = self.open(method, params)
        return answer_of(exchange, exchange.number)


class Handshake:
    """A session of a revision that begins with initialize."""

    def __init__(self, port, version="2025-11-25", capabilities=None):
        self.port = port
        self.version = version
        self.session = None
        self.numbers = itertools.count(1)
        exchange = self.open("initialize", {
            "protocolVersion": version, "capabilities": capabilities or {},
            "clientInfo": {"name": "wire", "version": "1"}})
        self.session = exchange.answer.headers.get("Mcp-Session-Id")
        self.peer = answer_of(exchange, exchange.number)
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).close()

    def headers(self, message):
        headers = {"Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream"}
        if self.session:
            headers.update({"Mcp-Session-Id": self.session,
                            "MCP-Protocol-Version": self.version})
        if self.version.startswith("DRAFT") and "method" in message:
            headers["Mcp-Method"] = message["method"]
            if message["method"] in NAMED:
                headers["Mcp-Name"] = message["params"][NAMED[message["method"]]]
        return headers

    def post(self, message, extra=None):
        return Exchange(self.port, "POST", json.dumps(message),
                        {**self.headers(message), **(extra or {})})

    def open(self, method, params, number=None, extra=None):
        number = next(self.numbers) if number is None else number
        exchange = self.post({"jsonrpc": "2.0", "id": number, "method": method,
                              "params": params}, extra)
        exchange.number = number
        return exchange

    def ask(self, method, **params):
        exchange = self.open(method, params)
        return answer_of(exchange, exchange.number)

    def at(self, port):
        """Returns the same session, at another server."""
        other = Handshake.__new__(Handshake)
        other.__dict__.update(self.__dict__, port=port)
        return other


def reading(exchange, take):
    """Passes on the messages of an exchange, on a thread, which is returned."""

    def read():
        with contextlib.suppress(Unreachable):
            for event, message in exchange.messages():
                take(event, message)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread
