"""One load for all proxies: JSON-RPC of 2025-11-25 over pipes, or over HTTP with plain
sockets, so that what differs is the proxy. It is slower than the loads in C: the time of
the load is in each latency, and in that of the call without a proxy too.
"""
import json
import os
import selectors
import socket
import statistics
import subprocess
import time

INIT = {"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "bench", "version": "0"}}
ECHO = {"name": "echo", "arguments": {"text": "The quick brown fox"}}
START_SECONDS = 60


def line(number, method, params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method,
                       "params": params}).encode() + b"\n"


def figures(latencies, seconds):
    latencies.sort()
    return {"p50_us": statistics.median(latencies) * 1e6,
            "p99_us": latencies[len(latencies) * 99 // 100] * 1e6,
            "calls_per_s": len(latencies) / seconds}


class Pipes:
    """A server on standard input and output."""

    def __init__(self, command):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.number = 0
        self.send("initialize", INIT)
        self.take()
        self.child.stdin.write(
            b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self.child.stdin.flush()

    def send(self, method, params):
        self.number += 1
        self.child.stdin.write(line(self.number, method, params))
        self.child.stdin.flush()
        return self.number

    def take(self):
        """Returns the id of the next answer."""
        for text in self.child.stdout:
            message = json.loads(text)
            if "result" in message:
                return message["id"]
            if "error" in message:
                raise RuntimeError(text.decode())
        raise EOFError("the server has ended")

    def calls(self, window, seconds):
        sent, latencies = {}, []
        end = (begin := time.perf_counter()) + seconds
        for _ in range(window):
            sent[self.send("tools/call", ECHO)] = time.perf_counter()
        while sent:
            number = self.take()
            now = time.perf_counter()
            latencies.append(now - sent.pop(number))
            if now < end:
                sent[self.send("tools/call", ECHO)] = time.perf_counter()
        return figures(latencies, time.perf_counter() - begin)

    def close(self):
        self.child.stdin.close()
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.child.stdout.close()


class Line:
    """A session over one connection of HTTP."""

    def __init__(self, port, path="/mcp"):
        self.port, self.path, self.session = port, path, b""
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(line(1, "initialize", INIT))
        head = self.take().partition(b"\r\n\r\n")[0]
        for text in head.split(b"\r\n"):
            if text.lower().startswith(b"mcp-session-id:"):
                self.session = text + b"\r\n"
        self.session += b"MCP-Protocol-Version: 2025-11-25\r\n"
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        self.take()
        self.call = line(2, "tools/call", ECHO)

    def send(self, body):
        self.sent = time.perf_counter()
        self.rest = b""
        self.socket.sendall(
            b"POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json"
            b"\r\nAccept: application/json, text/event-stream\r\n%s"
            b"Content-Length: %d\r\n\r\n%s" % (
                self.path.encode(), self.port, self.session, len(body), body))

    def is_whole(self):
        head, found, body = self.rest.partition(b"\r\n\r\n")
        if not found:
            return False
        lower = head.lower()
        if b"content-length:" in lower:
            return len(body) >= int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
        return body.endswith(b"0\r\n\r\n") if b"chunked" in lower else True

    def read_some(self):
        """Returns whether the answer is whole."""
        part = self.socket.recv(65536)
        if not part:
            raise EOFError("the connection was closed")
        self.rest += part
        return self.is_whole()

    def take(self):
        while not self.read_some():
            pass
        if not self.rest.startswith((b"HTTP/1.1 200", b"HTTP/1.1 202")):
            raise RuntimeError(self.rest[:200].decode())
        return self.rest

    def close(self):
        self.socket.close()


def http_calls(port, connections, seconds):
    lines = [Line(port) for _ in range(connections)]
    latencies = []
    end = (begin := time.perf_counter()) + seconds
    with selectors.DefaultSelector() as waiting:
        for one in lines:
            waiting.register(one.socket, selectors.EVENT_READ, one)
            one.send(one.call)
        open_ = len(lines)
        while open_:
            for key, _ in waiting.select():
                one = key.data
                if not one.read_some():
                    continue
                now = time.perf_counter()
                if b'"result"' not in one.rest:
                    raise RuntimeError(one.rest[-300:].decode())
                latencies.append(now - one.sent)
                if now < end:
                    one.send(one.call)
                else:
                    open_ -= 1
    for one in lines:
        one.close()
    return figures(latencies, time.perf_counter() - begin)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def await_port(port, child):
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and child.poll() is None:
        try:
            Line(port).close()
            return
        except (OSError, EOFError, RuntimeError):
            time.sleep(0.1)
    raise RuntimeError("it does not serve")


def kib_of(pid):
    """Returns what a process has for itself, and what it shares, in KiB."""
    own = shared = 0
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for text in file:
            if text.startswith("Private_"):
                own += int(text.split()[1])
            elif text.startswith("Shared_"):
                shared += int(text.split()[1])
    return own, shared


def resident_mib(pid, without):
    """Returns the memory of a process and its descendants, without the programs of a
    name, the upstreams. What the processes share counts once: that of the process that
    shares the most."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as stat:
                parents[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    total, most, open_ends = 0, 0, [pid]
    while open_ends:
        one = open_ends.pop()
        open_ends += [child for child, parent in parents.items() if parent == one]
        try:
            with open(f"/proc/{one}/cmdline", encoding="utf-8", errors="replace") as file:
                program = file.read().split("\0")[0]
            if not program.endswith(without):
                own, shared = kib_of(one)
                total, most = total + own, max(most, shared)
        except OSError:
            continue
    return (total + most) / 1024
