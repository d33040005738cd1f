"""Optional rows (`make bench-peers`): the same stateless requests of 2026-07-28 to other
SDKs, each in turn with Segue. A peer that this machine cannot build is left out, and the
output says why. The last figure of a row is Segue's rate over that of the peer."""
import os
import subprocess

from figures import ROOT, alternate, column
from http_figures import BUSY, PEERS as NODE_PEERS, TS_SERVER

DEPS = os.path.join(ROOT, "build", "deps")
PYTHON_SERVER = os.path.join(ROOT, "tests", "bench", "python", "peer_server.py")
PEERS = {
    "rmcp": [f"{DEPS}/rust/release/bench"],
    "go": [f"{DEPS}/go/bench"],
    "typescript": ["node", TS_SERVER, NODE_PEERS],
    "python": [f"{DEPS}/venv/bin/python", PYTHON_SERVER, "sdk"],
    "fastmcp": [f"{DEPS}/servers/venv/bin/python", PYTHON_SERVER, "fastmcp"],
}
REPORTS = 10000
REPORT_CALLS = 5
QUEUE_BYTES = 16 << 20  # all reports of a call; the peers have no limit
WARM_MS = 3000  # until V8 has compiled the hot code


def lack_of(command):
    """Returns why a peer cannot be measured on this machine, or None."""
    missing = [word for word in command
               if word.startswith(DEPS) and not os.path.exists(word)]
    if not missing:
        return None
    place = os.path.relpath(missing[0], DEPS).split("/")[0]
    reason = os.path.join(DEPS, place, "missing")
    if os.path.exists(reason):
        with open(reason, encoding="utf-8") as file:
            return file.read().strip()
    return f"{missing[0]} is not there: make bench-peers"


def version_of(command):
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            process.stdout.readline()  # the port
            return process.stdout.readline().strip()
        finally:
            process.kill()


def measure_one(programs, report, plan, name, peer):
    pin = ["taskset", "-c", str(programs.server_cpu)] if programs.pinned else []

    def load(command, *arguments):
        return programs.load("bench_http_load", *arguments, *command)

    def calls(command):
        return load(command, "calls", BUSY, plan.run_ms, "--warm", WARM_MS)

    def reports(command):
        return load(command, "reports", REPORTS, REPORT_CALLS)

    peer = [*pin, *peer]
    ours, theirs = alternate(
        plan.rounds, lambda: calls(programs.server("bench_http_server")),
        lambda: calls(peer))
    report.add(f"echo_beside_{name}", column(ours, "calls_per_s"), "calls/s",
               column(theirs, "calls_per_s"))
    ours, theirs = alternate(
        plan.rounds,
        lambda: reports(programs.server("bench_http_server", "--queue", QUEUE_BYTES)),
        lambda: reports(peer))
    report.add(f"reports_beside_{name}", column(ours, "events_per_s"), "events/s",
               column(theirs, "events_per_s"))
    report.add(f"reports_{name}_arrived", column(theirs, "arrived"), "share",
               column(ours, "arrived"))


def measure(programs, report, plan):
    for name, command in PEERS.items():
        lack = lack_of(command)
        if lack:
            print(f"no figures of {name}: {lack}")
            continue
        print(version_of(command))
        measure_one(programs, report, plan, name, command)
