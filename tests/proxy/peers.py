"""What the tests of segue-proxy share: a client that speaks JSON-RPC over the pipes of a
program, and the paths of the programs. Nothing here waits by sleeping: each wait is for a
line, for the end of a process, or for the end of a pipe."""

import json
import os
import queue
import select
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / os.environ.get("SEGUE_BUILD", "build/debug")
PROXY = str(BUILD / "proxy" / "segue-proxy")
CLOCKED = str(BUILD / "tests" / "tools" / "clocked_proxy")
FIXTURE = str(BUILD / "tests" / "tools" / "fixture_server")
UPSTREAM = [sys.executable, "-B", str(HERE / "upstream.py")]
LEGACY = "2025-06-18"
PATIENCE = 60  # seconds; a limit for tests that hang


class Client:
    """A client of the handshake revisions, or of none: it sends what it is told."""

    def __init__(self, command, capabilities=None, start=True, **options):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, encoding="utf-8", **options)
        self.lines = queue.Queue()
        self.errors = []
        self.error_lines = queue.Queue()  # the same, for a test that waits for a line
        self.notes = []  # messages for which no call has waited
        self.answers = {}  # method -> function(params) that answers the server
        self.last_id = 0
        self.readers = [threading.Thread(target=self._read), threading.Thread(
            target=self._read_errors)]
        for reader in self.readers:
            reader.daemon = True
            reader.start()
        if start:
            self.hello = self.call("initialize", {
                "protocolVersion": LEGACY, "capabilities": capabilities or {},
                "clientInfo": {"name": "test", "version": "1"}})["result"]
            self.send({"method": "notifications/initialized"})

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.rstrip("\n"))
            self.error_lines.put(line)

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def begin(self, method, params=None):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params or {}})
        return self.last_id

    def next(self):
        """Returns the next message that is no question, and answers questions."""
        while True:
            message = self.lines.get(timeout=PATIENCE)
            if message is None:
                raise EOFError("\n".join(self.errors))
            if "method" not in message or "id" not in message:
                return message
            answer = self.answers[message["method"]](message.get("params"))
            self.send({"id": message["id"], **answer})

    def wait(self, number):
        """Returns the answer to a request, and keeps the messages before it."""
        for index, note in enumerate(self.notes):
            if note.get("id") == number:
                return self.notes.pop(index)
        while True:
            message = self.next()
            if message.get("id") == number:
                return message
            self.notes.append(message)

    def call(self, method, params=None):
        return self.wait(self.begin(method, params))

    def tool(self, name, arguments=None, **more):
        params = {"name": name, "arguments": arguments or {}, **more}
        return self.call("tools/call", params)

    def wait_note(self, method):
        for index, note in enumerate(self.notes):
            if note.get("method") == method:
                return self.notes.pop(index)
        while True:
            message = self.next()
            if message.get("method") == method:
                return message
            self.notes.append(message)

    def close(self):
        """Closes the input and returns the exit status."""
        self.process.stdin.close()
        status = self.process.wait(PATIENCE)
        for reader in self.readers:
            reader.join(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.process.kill()
        if not self.process.stdin.closed:
            try:
                self.close()
            except BrokenPipeError:
                pass


class Pipe:
    """A named pipe that both the test and an upstream open: the lines that an upstream
    writes (--log), or the bytes that let its tool "later" answer."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path = str(path)
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self.rest = b""
        self.lines = []  # all that were read

    def close(self):
        os.close(self.fd)

    def let(self):
        """Lets one call of "later" answer."""
        os.write(self.fd, b"x")

    def take(self):
        """Reads the lines that are there, and returns all lines so far."""
        try:
            while data := os.read(self.fd, 65536):
                self.rest += data
        except BlockingIOError:
            pass
        *whole, self.rest = self.rest.split(b"\n")
        self.lines += [json.loads(line) for line in whole]
        return self.lines

    def wait_bytes(self, number):
        while number > 0:
            ready, _, _ = select.select([self.fd], [], [], PATIENCE)
            assert ready, f"{number} bytes were expected"
            number -= len(os.read(self.fd, number))

    def wait(self, number):
        """Waits until there are so many lines, and returns the last of them."""
        while len(self.take()) < number:
            ready, _, _ = select.select([self.fd], [], [], PATIENCE)
            assert ready, f"{number} lines were expected, not {self.lines}"
        return self.lines[number - 1]


def proxy(*options, upstream=UPSTREAM, program=PROXY, **more):
    return Client([program, *options, "--", *upstream], **more)


class Clock:
    """The clock of a clocked_proxy, which stands still until the test moves it."""

    def __init__(self, place):
        self.moves, self.done = Pipe(place / "clock"), Pipe(place / "clock_done")
        self.environment = {**os.environ, "SEGUE_CLOCK": self.moves.path,
                            "SEGUE_CLOCK_DONE": self.done.path}
        self.seconds = 0

    def advance(self, seconds):
        """Returns when the proxy has done what became due."""
        self.seconds += seconds
        os.write(self.moves.fd, b"%d\n" % (seconds * 1000))
        self.done.wait_bytes(1)

    def close(self):
        self.moves.close()
        self.done.close()


def wait_until_gone(pid):
    """Waits for the end of a process that need not be a child."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    gone, _, _ = select.select([fd], [], [], PATIENCE)
    os.close(fd)
    assert gone, f"process {pid} still runs"
