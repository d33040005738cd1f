#!/usr/bin/env python3
"""A server that handles one method well and fails another, for the tests of the SDKs.

Usage: misled_server.py SCENE [http]

It speaks 2026-07-28 and 2025-11-25, on its standard input and output or over HTTP; then
its first line is its URL. The tool "heard" returns how often each method came. The
scene answers each other call. It is a function of the request and of how often its
method came, and makes messages without `jsonrpc` and without the id of the request.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Message = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"
INFO = {"name": "misled", "version": "1"}
TASKS = "io.modelcontextprotocol/tasks"
EMPTY = 20_000  # more than a client accepts in a row


class Cut:
    """Breaks the connection here, over HTTP in the stream of the answer."""


class Http:
    """An HTTP answer that is no answer of MCP."""

    def __init__(self, status: int, body: bytes = b"", kind: str = "text/plain") -> None:
        self.status, self.body, self.kind = status, body, kind


Scene = Callable[[Message, int], Iterator[Any]]
SCENES: dict[str, Scene] = {}
heard: Counter[str] = Counter()
after: list[Any] = []  # `after` of each tasks/stream
lock = threading.Lock()


def scene(function: Scene) -> Scene:
    SCENES[function.__name__] = function
    return function


# ---- messages ----


def result(**members: Any) -> Message:
    return {"result": {"resultType": "complete", **members}}


def error(code: int, message: str = "no", **data: Any) -> Message:
    told: Message = {"code": code, "message": message}
    return {"error": {**told, "data": data} if data else told}


def texts(*parts: str) -> list[Message]:
    return [{"type": "text", "text": part} for part in parts]


def task(status: str, kind: str = "complete", **more: Any) -> Message:
    stamps = {"createdAt": NOW, "lastUpdatedAt": NOW}
    times = {"ttlMs": None, "pollIntervalMs": 20}
    told = {"taskId": "T", "status": status, **stamps, **times, **more}
    return {"result": {"resultType": kind, **told}}


def done(*parts: str) -> Message:
    return task("completed", result={"content": texts(*parts)})


def asking() -> Message:
    params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    question = {"method": "elicitation/create", "params": params}
    return task("input_required", inputRequests={"q": question})


def event(seq: int, *parts: str) -> Message:
    """Returns an event of a task. Without parts it has no payload."""
    kind = "dev.segue.content.partial"
    params: Message = {"taskId": "T", "seq": seq, "type": kind}
    if parts:
        params["payload"] = {"content": texts(*parts)}
    return {"method": "notifications/tasks/event", "params": params}


def told_piece(request: Message, seq: int, *parts: str) -> Message:
    token = request["params"]["_meta"].get("partialResultToken")
    params = {"partialResultToken": token, "seq": seq, "content": texts(*parts)}
    return {"method": "notifications/tools/partial_result", "params": params}


# ---- the scenes ----


@scene
def empty_pieces(request: Message, n: int) -> Iterator[Any]:
    """Endless pieces of PR #776 without content."""
    yield {"result": {"content": texts("a"), "_meta": {"hasMore": True}}}
    for _ in range(EMPTY):
        yield {"result": {"content": [], "_meta": {"hasMore": True}}}


@scene
def empty_notes(request: Message, n: int) -> Iterator[Any]:
    """Endless pieces of SEP-2998 without content."""
    yield told_piece(request, 0, "a")
    for seq in range(EMPTY):
        yield told_piece(request, seq + 1)


@scene
def pieces_then_cut(request: Message, n: int) -> Iterator[Any]:
    yield told_piece(request, 0, "a")
    yield told_piece(request, 1, "b")
    yield Cut()


@scene
def pieces_then_error(request: Message, n: int) -> Iterator[Any]:
    yield told_piece(request, 0, "a")
    yield told_piece(request, 1, "b")
    yield error(-32603, "broken")


def created(method: str) -> Iterator[Any]:
    if method == "tools/call":
        yield task("working", "task")


@scene
def refused_update(request: Message, n: int) -> Iterator[Any]:
    """A question whose answer is always refused."""
    method = request["method"]
    yield from created(method)
    if method == "tasks/get":
        yield asking()
    elif method == "tasks/update":
        yield error(-32603)


@scene
def misfit_update(request: Message, n: int) -> Iterator[Any]:
    """An answer is refused with -32602, although the task lives."""
    method = request["method"]
    yield from created(method)
    if method == "tasks/get":
        yield done("asked anew") if heard["tasks/update"] > 1 else asking()
    elif method == "tasks/update":
        yield error(-32602) if n == 1 else result()


@scene
def breaking_stream(request: Message, n: int) -> Iterator[Any]:
    """tasks/stream breaks four times, and works after that."""
    method = request["method"]
    yield from created(method)
    if method == "tasks/stream":
        if n > 4:
            yield event(0, "a")
            yield result(_meta={"dev.segue/final": {"status": "completed"}})
        else:
            yield Http(500) if n % 2 else Cut()
    elif method == "tasks/get":
        yield task("working")


@scene
def broken_stream(request: Message, n: int) -> Iterator[Any]:
    """tasks/stream always breaks, and tasks/get works."""
    method = request["method"]
    yield from created(method)
    if method == "tasks/stream":
        yield Cut()
    elif method == "tasks/get":
        yield done("polled") if n > 2 else task("working")


@scene
def staying_gap(request: Message, n: int) -> Iterator[Any]:
    """Event 1 never comes."""
    method = request["method"]
    yield from created(method)
    if method == "tasks/stream":
        start = request["params"].get("after", -1)
        for seq, text in ((0, "a"), (2, "c"), (3, "d")):
            if seq > start:
                yield event(seq, text)
        yield result(_meta={"dev.segue/final": {"status": "completed"}})
    elif method == "tasks/get":
        yield done("a", "b", "c", "d")


@scene
def event_without_payload(request: Message, n: int) -> Iterator[Any]:
    method = request["method"]
    yield from created(method)
    if method == "tasks/stream":
        yield event(0, "a")
        yield event(1)
        yield event(2, "c")
        yield result(_meta={"dev.segue/final": {"status": "completed"}})
    elif method == "tasks/get":
        yield done("a", "b", "c")


@scene
def events_gone(request: Message, n: int) -> Iterator[Any]:
    """Events below 5 are gone when the stream is opened for a second time."""
    method = request["method"]
    yield from created(method)
    if method == "tasks/stream":
        start = request["params"].get("after", -1)
        if n == 1:
            yield event(0, "a")
            yield Cut()
        elif start < 4:
            yield error(-32603, reason="events_gone", taskId="T", earliestSeq=5)
        else:
            yield event(5, "f")
            yield result(_meta={"dev.segue/final": {"status": "completed"}})
    elif method == "tasks/get":
        yield done("a", "b", "f")


# set when the stream of GET has sent its messages, which come before the answer
spoke_first = threading.Event()
listening = threading.Event()
FIRST: list[Message] = []


@scene
def early_end(request: Message, n: int) -> Iterator[Any]:
    """A task of 2025-11-25 whose end comes on the stream of GET before the answer that
    creates the task."""
    method = request["method"]
    stamps = {"createdAt": NOW, "lastUpdatedAt": NOW}
    told = {"taskId": "T", **stamps, "ttl": 60_000, "pollInterval": 1000}
    if method == "tools/list":
        tool = {"name": "t", "inputSchema": {"type": "object"}}
        yield result(tools=[{**tool, "execution": {"taskSupport": "optional"}}])
    elif method == "tools/call":
        params = {**told, "status": "completed"}
        FIRST.append({"method": "notifications/tasks/status", "params": params})
        listening.set()
        spoke_first.wait()
        yield {"result": {"task": {**told, "status": "working"}}}
    elif method == "tasks/get":
        yield {"result": {**told, "status": "completed"}}
    elif method == "tasks/result":
        related = {"io.modelcontextprotocol/related-task": {"taskId": "T"}}
        yield {"result": {"content": texts("early"), "_meta": related}}


@scene
def slow_poll(request: Message, n: int) -> Iterator[Any]:
    """A task of 2025-11-25 with a long poll interval. tasks/result is answered at the
    end, and tasks/get reports the end only after that."""
    method = request["method"]
    stamps = {"createdAt": NOW, "lastUpdatedAt": NOW}
    told = {"taskId": "T", **stamps, "ttl": None, "pollInterval": 3_600_000}
    if method == "tools/list":
        tool = {"name": "t", "inputSchema": {"type": "object"}}
        yield result(tools=[{**tool, "execution": {"taskSupport": "optional"}}])
    elif method == "tools/call":
        yield {"result": {"task": {**told, "status": "working"}}}
    elif method == "tasks/get":
        status = "completed" if heard["tasks/result"] else "working"
        yield {"result": {**told, "status": status}}
    elif method == "tasks/result":
        related = {"io.modelcontextprotocol/related-task": {"taskId": "T"}}
        yield {"result": {"content": texts("waited"), "_meta": related}}


def until_cancelled() -> None:
    sys.stdout.buffer.flush()
    for line in sys.stdin.buffer:
        if json.loads(line).get("method") == "notifications/cancelled":
            return


@scene
def late_task(request: Message, n: int) -> Iterator[Any]:
    """The answer that creates the task comes after the call was cancelled. Over stdio
    only."""
    method = request["method"]
    if method == "tools/call":
        token = request["params"]["_meta"]["progressToken"]
        params = {"progressToken": token, "progress": 1}
        yield {"method": "notifications/progress", "params": params}
        until_cancelled()
        yield task("working", "task")
    elif method == "tasks/cancel":
        yield result()


def looked(method: str, n: int, *failures: Any) -> Iterator[Any]:
    """tasks/get fails in these ways, and then reports the end."""
    yield from created(method)
    if method == "tasks/get":
        yield failures[n - 1] if n <= len(failures) else done("looked again")


@scene
def failing_look(request: Message, n: int) -> Iterator[Any]:
    page = Http(200, b"<html>busy</html>", "text/html")
    broken = Http(200, b"{oops", "application/json")
    yield from looked(request["method"], n, Http(500), Http(404), page, broken)


def never(failure: Any) -> Scene:
    def play(request: Message, n: int) -> Iterator[Any]:
        yield from created(request["method"])
        if request["method"] == "tasks/get":
            yield failure

    return play


SCENES["always_500"] = never(Http(500))
SCENES["always_404"] = never(Http(404))
SCENES["always_text"] = never(Http(200, b"busy", "text/plain"))
SCENES["always_broken"] = never(Http(200, b"{oops", "application/json"))
SCENES["no_method"] = never(error(-32601))
SCENES["no_capability"] = never(error(-32021))


# ---- the server ----


def begin(method: str, name: str) -> Message | None:
    """The answers that all scenes share."""
    streams = name in ("breaking_stream", "broken_stream", "staying_gap")
    streams = streams or name in ("event_without_payload", "events_gone")
    capabilities: Message = {"tools": {}}
    if name in ("early_end", "slow_poll"):
        calls = {"requests": {"tools": {"call": {}}}, "cancel": {}, "list": {}}
        capabilities["tasks"] = calls
    if method == "server/discover" and name != "empty_pieces":
        capabilities["extensions"] = {TASKS: {"eventStreams": {}} if streams else {}}
        capabilities = capabilities if "notes" not in name else {"tools": {}}
        versions = {"supportedVersions": ["2026-07-28"], "serverInfo": INFO}
        kept = {"ttlMs": 0, "cacheScope": "private"}
        return result(capabilities=capabilities, **versions, **kept)
    if method == "server/discover":
        return error(-32601)
    if method == "initialize":
        told = {"capabilities": capabilities, "serverInfo": INFO}
        return {"result": {"protocolVersion": "2025-11-25", **told}}
    if method == "ping":
        return {"result": {}}
    return None


def answers(name: str, request: Message) -> Iterator[Any]:
    method, params = request["method"], request.get("params", {})
    told = begin(method, name)
    if told is not None:
        yield told
    elif method == "tools/call" and params["name"] == "heard":
        yield result(content=texts(json.dumps({**heard, "after": after})))
    else:
        with lock:
            heard[method] += 1
            n = heard[method]
            if method == "tasks/stream":
                after.append(params.get("after"))
        made = False
        for one in SCENES[name](request, n):
            made = True
            yield one
        if not made:
            yield error(-32601)


def framed(request: Message, message: Message) -> bytes:
    whole: Message = {"jsonrpc": "2.0", **message}
    if "method" not in message:
        whole["id"] = request["id"]
    return json.dumps(whole).encode()


def over_stdio(name: str) -> None:
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "id" not in request or "method" not in request:
            continue
        for one in answers(name, request):
            if isinstance(one, (Cut, Http)):
                sys.exit(1)
            sys.stdout.buffer.write(framed(request, one) + b"\n")
        sys.stdout.buffer.flush()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    name = ""

    def log_message(self, *_: Any) -> None:
        pass

    def say(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        if body:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.name != "early_end":
            self.say(405, "", b"")
            return
        self.begin_stream()
        listening.wait()
        for one in FIRST:
            self.say_event(framed({}, one))
        spoke_first.set()
        self.rfile.read(1)  # until the client leaves

    def do_DELETE(self) -> None:
        self.say(405, "", b"")

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in request or "method" not in request:
            self.say(202, "", b"")
            return
        try:
            self.answer(request)
        except OSError:
            self.close_connection = True  # the client has left

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def say_event(self, message: bytes) -> None:
        data = b"data: " + message + b"\n\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def answer(self, request: Message) -> None:
        is_open = False
        for one in answers(self.name, request):
            if isinstance(one, Http):
                self.say(one.status, one.kind, one.body)
                return
            if not is_open:
                is_open = True
                self.begin_stream()
            if isinstance(one, Cut):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.say_event(framed(request, one))
        self.wfile.write(b"0\r\n\r\n")


def over_http(name: str) -> None:
    Handler.name = name
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()  # until the test ends


def main() -> None:
    name = sys.argv[1]
    if name not in SCENES or not re.fullmatch(r"[a-z0-9_]+", name):
        sys.exit(f"{name}: no scene; there are {', '.join(SCENES)}")
    if sys.argv[2:] == ["http"]:
        over_http(name)
    else:
        over_stdio(name)


main()
