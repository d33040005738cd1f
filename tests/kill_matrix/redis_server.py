"""A redis-server for the test, and the network between it and one of its clients."""
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import players

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "interop", "proxies"))
import fronts  # noqa: E402


class Redis:
    """A server on a free port of loopback; it syncs its file before each answer."""

    def __init__(self, directory):
        self.directory = f"{directory}/redis"
        os.mkdir(self.directory)
        self.holder = players.hold_port()
        self.port = self.holder.getsockname()[1]
        self.output = open(f"{directory}/redis.err", "ab")
        self.process = None
        self.start()

    def url(self, port):
        return f"redis://127.0.0.1:{port}/0"

    def start(self):
        said = os.fstat(self.output.fileno()).st_size
        self.process = subprocess.Popen(
            [fronts.find_program("redis-server"), "--port", str(self.port),
             "--bind", "127.0.0.1", "--dir", self.directory, "--appendonly", "yes",
             "--appendfsync", "always", "--save", "", "--maxmemory-policy", "noeviction"],
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
            preexec_fn=lambda: fronts.die_with_parent(signal.SIGKILL))
        end = time.monotonic() + players.START_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise players.Failed("Redis does not start")
            time.sleep(0.01)
        with open(self.output.name, "rb") as told:
            told.seek(said)
            if b"short read while loading" in told.read():
                self.write_file_anew(end)

    def write_file_anew(self, end):
        """Makes the server write its file anew. A server that is killed in the middle of
        a transaction cuts off its last command only (Redis up to 8, mended by Valkey in
        pull request 4342). The file then has a MULTI without an EXEC. The next start
        discards the transaction that follows, although it was acknowledged. See
        "Store restarted" in core/docs/promises.md."""
        self.ask(b"BGREWRITEAOF")
        while (b"aof_rewrite_in_progress:0" not in (told := self.ask(b"INFO persistence"))
               or b"aof_rewrite_scheduled:0" not in told):
            if time.monotonic() > end:
                raise players.Failed("Redis does not write its file anew")
            time.sleep(0.01)

    def ask(self, command):
        """Returns the first bytes of the server's answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as link:
            link.sendall(command + b"\r\n")
            return link.recv(65536)

    def answers(self):
        """Returns whether the server answers; it does not while it loads its file."""
        try:
            return self.ask(b"PING").startswith(b"+PONG")
        except OSError:
            return False

    def end(self, number):
        self.process.send_signal(number)
        try:
            self.process.wait(players.START_SECONDS)
        except subprocess.TimeoutExpired:
            raise players.Failed("Redis does not end") from None

    def close(self):
        if self.process and self.process.poll() is None:
            self.end(signal.SIGKILL)
        self.holder.close()
        self.output.close()


class Link:
    """Passes bytes on to a server, unless the network is cut. In one kind of cut nothing
    arrives any more, in neither direction, and everything comes at once when the cut is
    repaired. In the other kind connections are broken and no new ones are made."""

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.flows = threading.Event()
        self.flows.set()
        self.refuses = False
        self.lock = threading.Lock()
        self.ends = set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                here, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.refuses:
                    raise OSError("the network is cut")
                there = socket.create_connection(("127.0.0.1", self.target), timeout=5)
                there.settimeout(None)
            except OSError:
                here.close()
                continue
            for end in here, there:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.ends |= {here, there}
            for pair in (here, there), (there, here):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(65536):
                self.flows.wait()
                sink.sendall(data)
        except OSError:
            pass
        for end in source, sink:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self.lock:
            self.ends.discard(source)
        source.close()

    @contextlib.contextmanager
    def silent(self):
        self.flows.clear()
        try:
            yield
        finally:
            self.flows.set()

    @contextlib.contextmanager
    def broken(self):
        self.refuses = True
        with self.lock:
            ends = list(self.ends)
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        try:
            yield
        finally:
            self.refuses = False

    def close(self):
        self.flows.set()
        self.listener.close()
        with self.broken():
            pass
