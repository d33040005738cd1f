"""The matrix of tests/interop/run: starts each peer, prints its cells, counts them. Runs
from the top of the tree, in the Python that has the SDK."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import peers

HERE = peers.HERE
OUT = os.path.abspath("build/interop")
PYTHON = peers.PYTHON
RUN_SECONDS = 300
STOP_SECONDS = 20
DEAD = 3  # how the tool `die` ends a server


class Count:
    green = missing = failed = 0


def show(row, what, state, reason=""):
    cell = " | ".join((*row, what))
    print(f"{cell:<78} {state}{': ' + reason if reason else ''}", flush=True)
    if state == "green":
        Count.green += 1
    elif state == "missing":
        Count.missing += 1
    else:
        Count.failed += 1


def run(command, seconds):
    """Its output, and why it did not end well ("" when it did)."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    try:
        out, _ = child.communicate(timeout=seconds)
        return out, f"it ended with {child.returncode}" if child.returncode else ""
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, _ = child.communicate()
        return out, f"it took longer than {seconds} s"


def cells(row, command, seconds=RUN_SECONDS):
    out, problem = run(command, seconds)
    seen = 0
    for line in out.splitlines():
        cell = json.loads(line)
        show(row, cell["what"], cell["state"], cell.get("reason", ""))
        seen += 1
    if problem or not seen:
        show(row, "ran to its end", "FAILED", problem or "no cell was printed")


def finished_logs(prefix):
    """The logs of a run, when the servers that wrote them have ended."""
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
    with open(path, "rb") as log:
        log.seek(max(0, os.path.getsize(path) - 32))
        return log.read().rstrip(b"\n").rpartition(b"\n")[2]


def is_wanted(row):
    return all(word in " ".join(row) for word in sys.argv[1:] if word != "--short")


def judge(row, command, server, role, cut):
    """Runs one peer with a tap between client and server; role: which side is ours."""
    row = (row[0], "stdio " + row[1])
    if not is_wanted(row):
        return
    prefix = os.path.join(OUT, "-".join(row).replace(" ", "_"))
    tap = [sys.executable, "-E", "-S", f"{HERE}/tap.py", *["--cut"] * cut, prefix]
    cells(row, [*command, *tap, *server])
    cells(row, [*PYTHON, f"{HERE}/wire_check.py", role, *finished_logs(prefix)])


@contextlib.contextmanager
def child_that_prints(command):
    """A child of which the first line of output is wanted: (child, line)."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield child, child.stdout.readline().strip()
    finally:
        child.terminate()
        child.wait(STOP_SECONDS)


class Served:
    """A server over HTTP that is started again, on the same port, when it dies."""

    def __init__(self, command, port_option):
        self.command, self.port_option = command, port_option
        self.over = False
        self.child = self.start("0")
        self.url = self.child.stdout.readline().strip()
        self.port = self.url.partition("//")[2].partition("/")[0].partition(":")[2]
        self.keeper = threading.Thread(target=self.keep)
        self.keeper.start()

    def start(self, port):
        return subprocess.Popen([*self.command, self.port_option, port], text=True,
                                stdout=subprocess.PIPE)

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
    """As judge, over HTTP. server: the command, and its option for the port."""
    row = (row[0], "http " + row[1])
    if not is_wanted(row):
        return
    prefix = os.path.join(OUT, "-".join(row).replace(" ", "_"))
    with Served(*server) as served:
        tap = [sys.executable, "-E", "-S", f"{HERE}/http_tap.py", *["--cut"] * cut,
               prefix, served.port]
        with child_that_prints(tap) as (_, port):
            cells(row, [*command, f"http://127.0.0.1:{port}/mcp"])
    if role == "server" and served.child.returncode:
        show(row, "the server ends well", "FAILED", f"with {served.child.returncode}")
    logs = sorted(os.path.join(OUT, file) for file in os.listdir(OUT)
                  if file.startswith(os.path.basename(prefix) + "."))
    cells(row, [*PYTHON, f"{HERE}/wire_check.py", role, *logs])


def round_of(cut):
    store = ["--store", os.path.join(OUT, "store.db")] if cut else []
    fixture = [f"{OUT}/fixture_server", "--page", "4", *store]
    over_http = ["--http", "127.0.0.1", "--drain", "1000"]

    def ours_serves(peer, era):
        row = (f"{peer.name} client", era + " cut" * cut)
        command, ours = [*peer.client, era], [*fixture, *peer.ours]
        judge(row, command, ours, "server", cut)
        judge_http(row, command, ([*ours, *over_http], "--port"), "server", cut)

    def ours_asks(peer, era, options):
        row = (f"{peer.name} server", era + " cut" * cut)
        command, client = [*peer.server, *options], [f"{OUT}/client", era]
        judge(row, client, command, "client", cut)
        judge_http(row, client, (command, "--http"), "client", cut)

    for peer in peers.PEERS:
        if peer.lack:
            if is_wanted((peer.name,)):
                show((peer.name,), "all cells", "missing", peer.lack)
            continue
        for era in peer.client_eras if peer.client else ():
            ours_serves(peer, era)
        for era, options in peer.server_eras.items() if peer.server else ():
            ours_asks(peer, era, options)


def segue_with_itself():
    """Our server and our client, with what stands or happens between them."""
    for row, script in ((("segue", "http behind proxies"), "proxies/segue_test.py"),
                        (("segue", "http in operation"), "operation.py"),
                        (("segue", "http in a browser"), "browser.py")):
        if is_wanted(row):
            cells(row, [*PYTHON, f"{HERE}/{script}", OUT])


def main():
    segue_with_itself()
    round_of(cut=False)
    if "--short" not in sys.argv:
        round_of(cut=True)
    print(f"interop: {Count.green} green, {Count.missing} missing in the peer, "
          f"{Count.failed} failed")
    return Count.failed > 0 or not Count.green


sys.exit(main())
