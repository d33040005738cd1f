"""Reads a connection that http_tap.py has recorded, with h11, the parser that the
Python SDK uses, and checks what only HTTP has: types, headers, framing, events."""
import contextlib
import json

import h11

MODERN = "2026-07-28"
PLAIN, EVENTS = "application/json", "text/event-stream"


class Exchange:
    """One request and its answer, as far as they were recorded."""

    def __init__(self, request):
        self.method = request.method.decode()
        self.asked = headers_of(request)
        self.body = b""
        self.status = None
        self.answered = {}
        self.answer = b""
        self.is_whole = False  # neither side left in the middle
        self.up = []
        self.down = []

    @property
    def session(self):
        return self.asked.get("mcp-session-id")

    @property
    def handshake_version(self):
        """Returns None for a request of the modern era, or one without a version."""
        version = self.asked.get("mcp-protocol-version")
        return version if version != MODERN else None

    @property
    def new_session(self):
        return self.answered.get("mcp-session-id")

    @property
    def type(self):
        return self.answered.get("content-type", "").partition(";")[0]

    def sent(self, method):
        return any(message.get("method") == method for message in self.up)

    def __str__(self):
        return f"{self.method} {self.body[:200]} -> {self.status} {self.answer[:300]}"


def headers_of(event):
    return {name.decode().lower(): value.decode() for name, value in event.headers}


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def events_of(role, data, method=None):
    """Returns the events of one side. A side that was cut off is read up to the cut."""
    peer = h11.Connection(role, max_incomplete_event_size=64 * 1024)
    while data:
        if role == h11.CLIENT:
            asked = method()  # the framing of the answer depends on the method
            if asked is None:
                return
            peer.send(h11.Request(method=asked, target="/", headers=[("Host", "x")]))
            peer.send(h11.EndOfMessage())
        peer.receive_data(data)
        peer.receive_data(b"")
        while True:
            try:
                event = peer.next_event()
            except h11.RemoteProtocolError as error:
                if "closed" not in str(error):
                    raise
                return
            if event in (h11.NEED_DATA, h11.PAUSED) or isinstance(
                    event, h11.ConnectionClosed):
                break
            yield event
        data, _ = peer.trailing_data
        peer = h11.Connection(role, max_incomplete_event_size=64 * 1024)


def read(path):
    """Returns all exchanges of a connection."""
    exchanges = []
    for event in events_of(h11.SERVER, contents(path + ".up")):
        if isinstance(event, h11.Request):
            exchanges.append(Exchange(event))
        elif isinstance(event, h11.Data):
            exchanges[-1].body += bytes(event.data)
    at = iter(exchanges)
    now = None

    def next_method():
        nonlocal now
        now = next(at, None)
        return now and now.method

    for event in events_of(h11.CLIENT, contents(path + ".down"), next_method):
        if isinstance(event, h11.Response):
            now.status = event.status_code
            now.answered = headers_of(event)
        elif isinstance(event, h11.Data):
            now.answer += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            now.is_whole = True
    for exchange in exchanges:
        parse(exchange)
    return exchanges


def parse(exchange):
    if exchange.body:
        with contextlib.suppress(ValueError):  # a body that is no JSON is no message
            said = json.loads(exchange.body)
            exchange.up = said if isinstance(said, list) else [said]
    if exchange.type == EVENTS:
        exchange.down = [json.loads(text) for text in texts(exchange.answer) if text]
    elif exchange.answer and exchange.type == PLAIN and exchange.is_whole:
        exchange.down = [json.loads(exchange.answer)]


def texts(stream):
    """Yields the data of each complete event."""
    whole, _, _ = stream.decode().replace("\r\n", "\n").rpartition("\n\n")
    for event in whole.split("\n\n"):
        lines = [line for line in event.split("\n") if line]
        for line in lines:
            if line.partition(":")[0] not in ("", "id", "data", "retry", "event"):
                raise AssertionError(f"an event has the line {line[:80]}")
        yield "\n".join(line[5:].removeprefix(" ") for line in lines
                        if line.startswith("data:"))


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def judge(exchange, role):
    if exchange.status is None:
        return  # the exchange was given up
    if role == "server":
        judge_answer(exchange)
    else:
        judge_question(exchange)


def judge_answer(exchange):
    answered = exchange.answered
    expect("date" in answered, "no Date")
    if exchange.answer:
        expect(exchange.type in (PLAIN, EVENTS), f"Content-Type {exchange.type}")
    if exchange.type == EVENTS:
        expect(answered.get("x-accel-buffering") == "no", "no X-Accel-Buffering")
        expect("no-" in answered.get("cache-control", ""), "no Cache-Control")
    if exchange.method == "POST" and exchange.up and "id" not in exchange.up[0]:
        expect(exchange.status == 202 and not exchange.answer,
               f"a notification is answered {exchange.status}")
    asked = {json.dumps(message["id"]) for message in exchange.up
             if "method" in message and "id" in message}
    for message in exchange.down:
        if exchange.method == "POST" and "method" not in message:
            expect(json.dumps(message.get("id")) in asked or exchange.status >= 400,
                   "an answer to another request")


def judge_question(exchange):
    asked = exchange.asked
    if exchange.method == "POST":
        expect(asked.get("content-type") == PLAIN, "Content-Type of a request")
        expect({PLAIN, EVENTS} <= {part.strip() for part in asked["accept"].split(",")},
               f"Accept {asked['accept']}")
        expect(len(exchange.up) == 1, "one message")
        message = exchange.up[0]
        if asked.get("mcp-protocol-version") == MODERN and "id" in message:
            expect(asked.get("mcp-method") == message["method"], "Mcp-Method")
            if message["method"] == "tools/call":
                expect(asked.get("mcp-name") == message["params"]["name"], "Mcp-Name")
        elif message.get("method") != "initialize":
            expect("mcp-protocol-version" in asked, "MCP-Protocol-Version")
    elif exchange.method == "GET":
        expect(EVENTS in asked["accept"], "Accept of a GET")
