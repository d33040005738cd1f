"""What an operator does to a server that clients use over HTTP: inherited sockets, a
shared port, new certificates, an end while calls run, kill -9 and a new start.

    operation.py BIN [NAME]

BIN holds fixture_server and watcher. One JSON line per check, as cells.py prints them.
With a NAME only the checks run that begin with it. Standard library only.
"""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "proxies"))
import fronts  # noqa: E402
from segue_test import Watched, expect, expect_story, story  # noqa: E402

PLACE = sys.argv[1]
WAIT_SECONDS = 20
RUN_SECONDS = 60
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


class Server:
    """A fixture_server over HTTP."""

    def __init__(self, *options, address="127.0.0.1", inherited=None, name=""):
        command = [f"{PLACE}/fixture_server", "--http", address, "--drain", "3000",
                   *options]
        self.child = subprocess.Popen(
            inheriting(command, name) if inherited else command,
            stdout=subprocess.PIPE, text=True,
            stdin=inherited or subprocess.DEVNULL)  # the shell makes it descriptor 3
        self.url = self.child.stdout.readline().strip()
        port = re.search(r":(\d+)/", self.url)
        self.port = int(port[1]) if port else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.terminate()
        self.end()

    def end(self):
        code = self.child.wait(WAIT_SECONDS)
        self.child.stdout.close()
        expect(code in (0, -signal.SIGKILL), f"the server ended with {code}")

    def reload(self):
        self.child.send_signal(signal.SIGHUP)
        return self.child.stdout.readline().strip()


def inheriting(command, name):
    """Starts a command as systemd starts a service with one socket
    (sd_listen_fds(3))."""
    script = (f"export LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_FDNAMES={name};"
              ' exec 3<&0 </dev/null "$@"')
    return ["sh", "-c", script, "sh", *command]


@contextlib.contextmanager
def directory():
    path = tempfile.mkdtemp(prefix="segue-operation.")
    yield path
    shutil.rmtree(path)


def watch(url, *words):
    return Watched([f"{PLACE}/watcher", *words[:-2], url, *words[-2:]])


class Watching:
    """A watcher that is still running."""

    def __init__(self, url, *words):
        self.child = subprocess.Popen([f"{PLACE}/watcher", *words[:-2], url, *words[-2:]],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True)
        self.lines = []

    def until(self, part):
        limit = threading.Timer(RUN_SECONDS, self.child.kill)
        limit.start()
        try:
            for line in self.child.stdout:
                self.lines.append((0, line.strip()))
                if part in line:
                    return
        finally:
            limit.cancel()
        raise AssertionError(f"{part} was not seen in {self.lines[-3:]}")

    def finish(self):
        limit = threading.Timer(RUN_SECONDS, self.child.kill)
        limit.start()
        self.lines += [(0, line.strip()) for line in self.child.stdout]
        limit.cancel()
        self.child.stdout.close()
        self.child.wait()
        seen = Watched.__new__(Watched)
        seen.lines, seen.code = self.lines, self.child.returncode
        return seen


def eventually(condition, text):
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        expect(time.monotonic() < end, text)
        time.sleep(0.02)


def is_refused(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return False
    except ConnectionRefusedError:
        return True


# ---- sockets ----


@check
def an_inherited_socket_is_served():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        waiting = Watching(f"http://127.0.0.1:{port}/mcp", "greet", '{"name":"Ada"}')
        time.sleep(0.2)  # the connection is in the backlog before a server accepts
        with Server(address="systemd", inherited=listener) as server:
            expect(server.port == port, f"it says {server.url}")
            seen = waiting.finish()
        seen.expect_good()
        again = Watching(f"http://127.0.0.1:{port}/mcp", "greet", "{}")
        with Server(address="systemd:web", inherited=listener, name="web"):
            again.finish().expect_good()


@check
def a_unix_socket_is_served():
    with directory() as path:
        with Server(address=f"unix:{path}/s") as server:
            expect(server.url == f"unix:{path}/s:/mcp", f"it says {server.url}")
            seen = watch("http://localhost/mcp", "--unix", f"{path}/s", *story(3, 20))
            expect_story(seen, 3)
            expect(os.stat(f"{path}/s").st_mode & 0o777 == 0o600, "its mode")
        expect(not os.path.exists(f"{path}/s"), "the file is left behind")


@check
def two_processes_share_a_port():
    with Server("--reuse-port", "1") as one:
        with Server("--reuse-port", "1", "--port", str(one.port)) as two:
            writers = set()
            for _ in range(40):
                seen = watch(one.url, "--plain", "1", "signed_story", '{"n":1}')
                seen.expect_good()
                writers.add(int(seen.rests("segment")[0].rpartition(" ")[2]))
            expect(writers == {one.child.pid, two.child.pid},
                   f"{writers} wrote, of {one.child.pid} and {two.child.pid}")
        # the other server ends, this one stays
        watch(one.url, "greet", "{}").expect_good()


# ---- certificates ----


def renew(path, name):
    place = os.path.join(path, name)
    os.mkdir(place)
    fronts.make_certificate(place)
    for file in ("certificate.pem", "key.pem"):
        shutil.copy(os.path.join(place, file), os.path.join(path, file))
    return os.path.join(place, "certificate.pem")


@check
def certificates_are_read_again():
    with directory() as path:
        first = renew(path, "first")
        with Server("--cert", f"{path}/certificate.pem",
                    "--key", f"{path}/key.pem") as server:
            expect(server.url.startswith("https:"), f"it says {server.url}")
            running = Watching(server.url, "--ca", first, *story(5, 400))
            running.until("segment 1")
            second = renew(path, "second")
            expect(server.reload() == "reloaded", "it could not")
            watch(server.url, "--ca", second, "greet", "{}").expect_good()
            expect(watch(server.url, "--ca", first, "greet", "{}").code != 0,
                   "the old certificate is still shown")
            expect_story(running.finish(), 5)  # the client's connection goes on
            with open(f"{path}/certificate.pem", "w", encoding="ascii") as file:
                file.write("nonsense")
            said = server.reload()
            expect(said != "reloaded" and "certificate" in said, f"it says {said}")
            watch(server.url, "--ca", second, "greet", "{}").expect_good()


# ---- the end ----


@check
def calls_end_before_the_server_does():
    with Server() as server:
        running = Watching(server.url, "--plain", "1", "slow_compute", '{"seconds":1}')
        running.until("open")
        time.sleep(0.3)  # the call has arrived
        server.child.terminate()
        eventually(lambda: is_refused(server.port), "it still accepts")
        expect(server.child.poll() is None, "it does not wait for the call")
        running.finish().expect_good()
        begin = time.monotonic()
        server.end()
        expect(time.monotonic() - begin < 2, "it waits for nobody")


@check
def an_idle_keep_alive_connection_does_not_hold_up_the_end():
    with Server("--health", "/health") as server:
        idle = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        idle.request("GET", "/health")
        expect(idle.getresponse().read() == b"ok\n", "its health")
        server.child.terminate()
        expect(idle.sock.recv(1) == b"", "it is not closed")
        idle.close()


@check
def a_task_goes_on_in_the_next_process():
    with directory() as path:
        store = ["--store", f"{path}/store.db"]
        with Server(*store) as server:
            running = Watching(server.url, *story(8, 300))
            running.until("segment 2")
            server.child.terminate()
            server.end()
        with Server(*store, "--port", str(server.port)):
            expect_story(running.finish(), 8)


@check
def nothing_is_lost_by_kill_9_under_load():
    calls, lines, kills = 40, 30, 4
    with directory() as path:
        store = ["--store", f"{path}/store.db"]
        server = Server(*store)
        running = Watching(server.url, "--calls", str(calls), *story(lines, 100))
        for number in range(1, kills + 1):
            running.until(f"0 segment {number * 5} ")
            server.child.kill()
            server.end()
            server = Server(*store, "--port", str(server.port))
        with server:
            seen = running.finish()
    seen.expect_good()
    wanted = [f"{i} segment {i} of the story" for i in range(1, lines + 1)]
    for call in range(calls):
        start = f"{call} segment "
        got = [line[len(start):] for _, line in seen.lines if line.startswith(start)]
        expect(got == wanted, f"request {call} saw {got}")
    ends = [line for _, line in seen.lines if " complete SEGUE_OK " in line]
    expect(len({line.partition(" ")[0] for line in ends}) == calls == len(ends),
           f"{len(ends)} results")
    for line in ends:
        result = json.loads(line.partition("SEGUE_OK ")[2])
        expect(len(result["content"]) == lines, f"{len(result['content'])} blocks")


def main():
    wanted = " ".join(sys.argv[2:])
    for function in CHECKS:
        line = {"what": function.__name__.replace("_", " "), "state": "green"}
        if not line["what"].startswith(wanted):
            continue
        try:
            function()
        except Exception as error:
            line.update(state="FAILED", reason=f"{type(error).__name__}: {error}"[:600])
        print(json.dumps(line), flush=True)


main()
