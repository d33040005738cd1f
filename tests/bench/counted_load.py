"""Loads that make an exact number of calls, for servers that valgrind makes slow."""
import itertools
import json
import re
import select
import socket
import subprocess

from callgrind import terminate

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {
            "extensions": {"io.modelcontextprotocol/tasks": {}}}}
WAIT_S = 60


def body_of(number, method, meta=None, **params):
    params["_meta"] = {**META, **(meta or {})}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method,
                       "params": params}, separators=(",", ":")).encode()


def call_of(number, name, **arguments):
    return body_of(number, "tools/call", name=name, arguments=arguments)


def echo_of(number, how=""):
    """how: "varied" = each call has another text than the call before, of another length;
    "keyed" = each call has an idempotency key of its own."""
    fox = f" jumps {number} times over {'-' * (number % 23)}" if how == "varied" else ""
    meta = {"dev.segue/idempotencyKey": f"key-{number:016}"} if how == "keyed" else None
    return body_of(number, "tools/call", meta, name="echo",
                   arguments={"text": "The quick brown fox" + fox})


def check(is_right, what):
    if not is_right:
        raise SystemExit(f"not what it should be: {what[:400]!r}")


# ---- pipes ----

class Piped:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, bufsize=0)
        self.rest = b""

    def send(self, bodies):
        self.process.stdin.write(b"".join(body + b"\n" for body in bodies))

    def take(self):
        """Returns the lines that have come: at least one."""
        while b"\n" not in self.rest:
            got = self.process.stdout.read(1 << 18)
            check(got, "the server has ended")
            self.rest += got
        *lines, self.rest = self.rest.split(b"\n")
        return lines

    def end(self):
        self.process.stdin.close()
        self.process.stdout.read()
        check(self.process.wait(WAIT_S) == 0, "the server's end")


def echo_in_pipes(command, count, window):
    server = Piped(command)
    sent = done = 0
    while done < count:
        more = min(count - sent, window - (sent - done))
        server.send(echo_of(sent + i) for i in range(more))
        sent += more
        lines = server.take()
        check(all(b'"text":"The quick' in line for line in lines), lines[0])
        done += len(lines)
    server.end()


def stream_in_pipes(command, count, size):
    """One task of `count` segments, read by tasks/stream."""
    server = Piped(command)
    server.send([call_of(1, "stream", n=count, bytes=size)])
    task = json.loads(server.take()[0])["result"]["taskId"]
    server.send([body_of(2, "tasks/stream", taskId=task)])
    lines = []
    while not lines or b'"id":2' not in lines[-1]:
        lines += server.take()
    check(len(lines) >= count, lines[-1])
    server.end()


# ---- HTTP ----

def request_of(port, method, name, body):
    return (f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            "Content-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n"
            f"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n"
            f"Mcp-Name: {name}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


class Listening:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), WAIT_S)

    def call(self, line, method, name, body):
        line.sendall(request_of(self.port, method, name, body))

    def end(self):
        terminate(self.process)


def read_answer(line):
    """Reads one answer; returns its body. On a busy machine an answer may come late, and
    is an event stream then."""
    got = line.recv(1 << 16)
    check(got.startswith(b"HTTP/1.1 200 ") and b"\r\n\r\n" in got, got)
    head, body = got.split(b"\r\n\r\n", 1)
    length = re.search(rb"content-length: *(\d+)", head.lower())
    while len(body) < int(length[1]) if length else not body.endswith(b"0\r\n\r\n"):
        got = line.recv(1 << 16)
        check(got, body)
        body += got
    return body


def open_stream(server):
    """Returns a connection with a stream that stays open and idle."""
    line = server.connect()
    server.call(line, "subscriptions/listen", "", body_of(
        1, "subscriptions/listen", notifications={"toolsListChanged": True}))
    got = line.recv(1 << 16)
    check(b"text/event-stream" in got, got)
    return line


def echo_over_http(command, count, connections, how="", streams=0):
    """Sends a call on each connection, reads all answers, and begins again. streams:
    number of idle streams that are open beside them."""
    numbers = itertools.count(1)
    server = Listening(command)
    idle = [open_stream(server) for _ in range(streams)]
    lines = [server.connect() for _ in range(connections)]
    for _ in range(count // connections):
        for line in lines:
            server.call(line, "tools/call", "echo", echo_of(next(numbers), how))
        for line in lines:
            body = read_answer(line)
            check(b'"text":"The quick' in body, body)
    server.end()
    for line in idle:
        line.close()


def stream_over_http(command, count, size):
    server = Listening(command)
    line = server.connect()
    server.call(line, "tools/call", "stream",
                call_of(1, "stream", n=count, bytes=size))
    task = json.loads(read_answer(line))["result"]["taskId"]
    server.call(line, "tasks/stream", task, body_of(2, "tasks/stream", taskId=task))
    tail, events = b"", 0
    while not tail.endswith(b"\r\n0\r\n\r\n"):
        check(select.select([line], [], [], WAIT_S)[0], "no event comes")
        got = line.recv(1 << 18)
        check(got, "the stream ends early")
        events += (tail[-1:] + got).count(b"\n\n")
        tail = (tail + got)[-7:]
    check(events >= count, tail)
    server.end()


# ---- a client on the library ----

def run_client(command):
    """Runs bench_stream under valgrind; the server that it starts runs as it is."""
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
