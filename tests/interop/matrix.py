"""The matrix of tests/interop/run: starts each peer, prints its cells, counts them. Runs
from the top of the tree, in the Python that has the SDK."""
import json
import os
import signal
import subprocess
import sys
import time

HERE = "tests/interop"
OUT = os.path.abspath("build/interop")
NODE = os.path.abspath("build/deps/peers/interop")
PYTHON = [sys.executable, "-B"]
RUN_SECONDS = 300


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


def judge(row, command, server, role, cut):
    """Runs one peer with a tap between client and server; role: which side is ours."""
    prefix = os.path.join(OUT, "-".join(row).replace(" ", "_"))
    tap = [sys.executable, "-E", "-S", f"{HERE}/tap.py", *["--cut"] * cut, prefix]
    cells(row, [*command, *tap, *server])
    cells(row, [*PYTHON, f"{HERE}/wire_check.py", role, *finished_logs(prefix)])


def round_of(cut):
    store = ["--store", os.path.join(OUT, "store.db")] if cut else []
    fixture = [f"{OUT}/fixture_server", "--page", "4", *store]
    client = f"{OUT}/client"
    ts_server = ["node", f"{NODE}/ts_server.mjs"]
    ts_client = ["node", f"{NODE}/ts_client.mjs"]
    ts_tasks = ["node", f"{NODE}/ts_tasks.mjs"]
    py_server = [*PYTHON, f"{HERE}/py_server.py"]
    py_client = [*PYTHON, f"{HERE}/py_client.py"]

    def ours_serves(peer, era, command):
        judge((peer, era + " cut" * cut), command, fixture, "server", cut)

    def ours_asks(peer, era, command):
        judge((peer, era + " cut" * cut), [client, era], command, "client", cut)

    for era in ("modern", "legacy"):
        ours_serves("typescript client", era, [*ts_client, era])
        ours_serves("python client", era, [*py_client, era])
    ours_serves("typescript tasks client", "modern", ts_tasks)
    for era in ("modern", "legacy"):
        ours_asks("typescript server", era, ts_server)
        ours_asks("python server", era, py_server)
    ours_asks("typescript server", "fallback", [*ts_server, "--legacy"])


def main():
    if sys.argv[1:] not in ([], ["--short"]):
        sys.exit("usage: tests/interop/run [--short]")
    round_of(cut=False)
    if not sys.argv[1:]:
        round_of(cut=True)
    print(f"interop: {Count.green} green, {Count.missing} missing in the peer, "
          f"{Count.failed} failed")
    return Count.failed > 0


sys.exit(main())
