"""The matrix of tests/interop/run: starts each peer, prints its cells, counts them.
Runs from the top of the tree, in the Python that has the SDK.

Rows share nothing, and wait more than they compute, so several run at a time. The lines
of one row are not always together.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import desks
import peers
import through_upstreams

HERE = peers.HERE
OUT = peers.OUT
PYTHON = peers.PYTHON
RUN_SECONDS = 300
THROUGH_SECONDS = 1800
STOP_SECONDS = 20
DEAD = 3  # how the tool `die` ends a server
LANES = 1 + (os.cpu_count() or 1)
# How much of the logs is shown with failures: the number of rows, and for each the
# lines and taps.
EXPLAINED, ERROR_LINES, TAPS, TAP_LINES, LINE_LENGTH = 3, 12, 3, 2, 300


class Count:
    green = missing = failed = 0
    failures = []  # (row, line), printed again at the end
    cells = []  # (row, what, state, reason)
    lock = threading.Lock()


def show(row, what, state, reason=""):
    cell = " | ".join((*row, what))
    line = f"{cell:<78} {state}{': ' + reason if reason else ''}"
    with Count.lock:
        print(line, flush=True)
        Count.cells.append((row, what, state, reason))
        count(row, line, state)


def count(row, line, state):
    if state == "green":
        Count.green += 1
    elif state == "missing":
        Count.missing += 1
    else:
        Count.failed += 1
        Count.failures.append((row, line))


def prefix_of(row):
    """Returns the beginning of the names of a row's logs."""
    return os.path.join(OUT, "-".join(row).replace(" ", "_"))


def run(command, seconds, errors):
    """Runs a command; returns its output, and why it failed ("" when it did not)."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors,
                             start_new_session=True)
    try:
        out, _ = child.communicate(timeout=seconds)
        return out, f"it ended with {child.returncode}" if child.returncode else ""
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, _ = child.communicate()
        return out, f"it took longer than {seconds} s"


def errors_of(row):
    """Returns the file for the standard error of a row's peers."""
    return open(prefix_of(row) + "-errors", "ab")


def cells(row, command, seconds=RUN_SECONDS):
    with errors_of(row) as errors:
        out, problem = run(command, seconds, errors)
    last = None
    for line in out.splitlines():
        cell = json.loads(line)
        show(row, cell["what"], cell["state"], cell.get("reason", ""))
        last = cell["what"]
    if problem or not last:
        show(row, "ran to its end", "FAILED",
             f"{problem or 'nothing was printed'}, after {last}")


def finished_logs(prefix):
    """Returns the logs of a run, when the servers that wrote them have ended."""
    directory, name = os.path.split(prefix)
    end = time.monotonic() + 10
    while True:
        paths = sorted(os.path.join(directory, file) for file in os.listdir(directory)
                       if file.startswith(name + "."))
        done = [path for path in paths if last_line(path).startswith(b"= ")]
        if len(done) == len(paths) or time.monotonic() > end:
            return paths
        time.sleep(0.05)


def last_line(path):
    return end_of(path, 32).rstrip(b"\n").rpartition(b"\n")[2]


def end_of(path, size):
    with open(path, "rb") as log:
        log.seek(max(0, os.path.getsize(path) - size))
        return log.read()


def ends_of_logs(row):
    """Returns the last lines of a row's peers: on standard error, and in the latest
    taps."""
    prefix = prefix_of(row)
    directory, name = os.path.split(prefix)
    taps = sorted((entry for entry in os.scandir(directory)
                   if entry.name.startswith(name + ".") and entry.stat().st_size),
                  key=lambda entry: entry.stat().st_mtime)
    for path, count in ((prefix + "-errors", ERROR_LINES),
                        *((entry.path, TAP_LINES) for entry in taps[-TAPS:])):
        lines = end_of(path, 64 * 1024).decode(errors="replace").split("\n")
        for line in [line.rstrip() for line in lines if line.strip()][-count:]:
            yield f"{os.path.basename(path)}: {line[-LINE_LENGTH:]}"


def tell_failures():
    """Prints the failures again at the end: first what may explain them, then the
    failures."""
    for row in dict.fromkeys(row for row, _ in Count.failures[:EXPLAINED]):
        for line in ends_of_logs(row):
            print(f"  {line}")
    for _, line in Count.failures:
        print(line)


def is_wanted(row):
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    return all(word in " ".join(row) for word in words)


def is_of_this_half(needs_more):
    """Returns whether the row belongs to this half; needs_more: it needs more than
    packages of npm and pip."""
    return ("--packages" if needs_more else "--others") not in sys.argv


def judge(row, command, server, role, cut):
    """Runs one peer with a tap between client and server; role: which side is
    Segue's."""
    row = (row[0], "stdio " + row[1])
    if not is_wanted(row):
        return
    prefix = prefix_of(row)
    tap = [sys.executable, "-E", "-S", f"{HERE}/tap.py", *["--cut"] * cut, prefix]
    cells(row, [*command, *tap, *server])
    cells(row, [*PYTHON, f"{HERE}/wire_check.py", role, *finished_logs(prefix)])


@contextlib.contextmanager
def child_that_prints(command, errors=None):
    """Starts a child whose first line of output is needed: returns (child, line)."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stderr=errors)
    try:
        yield child, child.stdout.readline().strip()
    finally:
        child.terminate()
        child.wait(STOP_SECONDS)


class Served:
    """A server over HTTP that is started again on the same port when it dies."""

    def __init__(self, command, port_option, errors):
        self.command, self.port_option, self.errors = command, port_option, errors
        self.over = False
        self.child = self.start("0")
        self.url = self.child.stdout.readline().strip()
        self.port = self.url.partition("//")[2].partition("/")[0].partition(":")[2]
        self.keeper = threading.Thread(target=self.keep)
        self.keeper.start()

    def start(self, port):
        return subprocess.Popen([*self.command, self.port_option, port], text=True,
                                stdout=subprocess.PIPE, stderr=self.errors)

    def keep(self):
        while self.child.wait() == DEAD and not self.over:
            self.child = self.start(self.port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over = True
        self.child.terminate()
        self.keeper.join()
        self.child.stdout.close()


def judge_http(row, command, server, role, cut):
    """Does what judge does, over HTTP. server: the command, and its option for the
    port."""
    row = (row[0], "http " + row[1])
    if not is_wanted(row):
        return
    prefix = prefix_of(row)
    with errors_of(row) as errors, Served(*server, errors) as served:
        tap = [sys.executable, "-E", "-S", f"{HERE}/http_tap.py", *["--cut"] * cut,
               prefix, served.port]
        with child_that_prints(tap) as (_, port):
            cells(row, [*command, f"http://127.0.0.1:{port}/mcp"])
    if role == "server" and served.child.returncode:
        show(row, "the server ends well", "FAILED", f"with {served.child.returncode}")
    logs = sorted(os.path.join(OUT, file) for file in os.listdir(OUT)
                  if file.startswith(os.path.basename(prefix) + "."))
    cells(row, [*PYTHON, f"{HERE}/wire_check.py", role, *logs])


def transports_of(at, peer, era):
    """Returns all transports in the long form. In the short form the eras that only
    differ in their handshake take turns, so that each peer has all eras and each
    transport some."""
    others = [name for name in peer.server_eras if name not in peers.BOTH]
    if "--short" not in sys.argv or era not in others:
        return ("stdio", "http")
    return (("stdio", "http")[(at + others.index(era)) % 2],)


def round_of(cut):
    """Yields the rows; each one can be called."""
    over_http = ["--http", "127.0.0.1", "--drain", "1000"]

    def ours(row, peer, transport):
        name = prefix_of((*row, transport)) + "-store.db"
        return [f"{OUT}/fixture_server", "--page", "4", *peer.ours,
                *(["--store", name] if cut else [])]

    def ours_serves(peer, era):
        row = (f"{peer.name} client", era + " cut" * cut)
        command = [*peer.client, era]
        yield partial(judge, row, command, ours(row, peer, "stdio"), "server", cut)
        http = [*ours(row, peer, "http"), *over_http]
        yield partial(judge_http, row, command, (http, "--port"), "server", cut)

    def ours_asks(peer, era, options, transports):
        row = (f"{peer.name} server", era + " cut" * cut)
        command, client = [*peer.server, *options], [f"{OUT}/client", era]
        if "stdio" in transports:
            yield partial(judge, row, client, command, "client", cut)
        if "http" in transports:
            yield partial(judge_http, row, client, (command, "--http"), "client", cut)

    for at, peer in enumerate(peers.PEERS):
        if not is_of_this_half(peer.place is not None):
            continue
        if peer.lack:
            if is_wanted((peer.name,)):
                show((peer.name,), "all cells", "missing", peer.lack)
            continue
        for era in peer.client_eras if peer.client else ():
            yield from ours_serves(peer, era)
        for era, options in peer.server_eras.items() if peer.server else ():
            yield from ours_asks(peer, era, options, transports_of(at, peer, era))


def with_authorization():
    """Tests one authorization server with Segue's server, Segue's client, and the
    peers."""
    rows = [(name, "client", command) for name, command in
            peers.AUTHORIZED_CLIENTS.items()]
    rows += [(name, "server", command) for name, command in
             peers.AUTHORIZING_SERVERS.items()]
    rows = [((f"{name} {role}", "http authorization"), role, command)
            for name, role, command in rows]
    rows = [row for row in rows if is_wanted(row[0]) and is_of_this_half(False)]
    if not rows:
        return
    with child_that_prints(peers.AUTHORIZATION_SERVER) as (_, issuer):
        ours = [f"{OUT}/fixture_server", "--http", "127.0.0.1", "--drain", "1000",
                "--issuer", issuer, "--jwks", issuer + "jwks.json", "--scopes", "mcp"]
        for row, role, command in rows:
            server = ours if role == "client" else [*command, issuer]
            client = command if role == "client" else [f"{OUT}/auth_client"]
            with errors_of(row) as errors, \
                    child_that_prints(server, errors) as (_, url):
                cells(row, [*client, url])


def segue_with_itself():
    """Tests Segue's server and client with things between them."""
    for row, script, needs_more in (
            (("segue", "http behind proxies"), "proxies/segue_test.py", True),
            (("segue", "http in operation"), "operation.py", False),
            (("segue", "http in a browser"), "browser.py", True)):
        if is_wanted(row) and is_of_this_half(needs_more):
            yield partial(cells, row, [*PYTHON, f"{HERE}/{script}", OUT])


def travel_desks():
    """Tests one server, written for five libraries, with the clients of four, and with
    frameworks of agents."""
    is_short = "--short" in sys.argv
    for row, command in (*desks.rows(is_short), *desks.agent_rows(is_short)):
        if is_wanted(row) and is_of_this_half(True):
            yield partial(cells, row, command)


def check_page():
    """Compares the page about the travel desks with what was seen, if all of it was."""
    row = ("desk", "page")
    if is_of_this_half(True):
        desks.write_facts(Count.cells)
        cells(row, [*PYTHON, f"{desks.SAME}/page.py", desks.FACTS])


def through_the_proxy():
    """Tests servers and clients that nobody here wrote with segue-proxy between them."""
    proxy = os.environ.get("SEGUE_PROXY")
    for upstream in through_upstreams.UPSTREAMS:
        row = (f"segue-proxy before {upstream.name}", "through")
        if "--short" in sys.argv and not upstream.short or not is_wanted(row):
            continue
        if upstream.place and not is_of_this_half(True):
            continue
        options = [word for word in sys.argv[1:] if word.startswith("--")]
        yield partial(cells, row, [*PYTHON, f"{HERE}/through.py", proxy, *options,
                                   upstream.name], THROUGH_SECONDS)


def main():
    rows = [*segue_with_itself(), with_authorization, *travel_desks(),
            *through_the_proxy(), *round_of(cut=False)]
    if "--short" not in sys.argv:
        rows += round_of(cut=True)
    with ThreadPoolExecutor(LANES) as lanes:
        for row in [lanes.submit(row) for row in rows]:
            row.result()
    if all(word.startswith("--") for word in sys.argv[1:]):
        check_page()
    tell_failures()
    print(f"interop: {Count.green} green, {Count.missing} missing in the peer, "
          f"{Count.failed} failed")
    return Count.failed > 0 or not Count.green


sys.exit(main())
