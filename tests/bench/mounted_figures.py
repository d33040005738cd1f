"""What mounting in another HTTP server costs beside our own listener.

The C figures compare an exchange by hand with a call over a socket: instructions in user
space, if valgrind is there, and processor time with that of the kernel. The figures of
Python and Node compare the processor time of the server's process: mounted in an HTTP
server of the language, beside the SDK's own listener.

An HTTP server of Python or Node alone costs about as much as two calls over our own
listener, or more: `_bare_cpu` is the same HTTP server with an application that reads the
same JSON, checks nothing and answers with as much. So the goal is for what mounting adds
to it, `_over_bare`: at most the cost of a call over our own listener. core/docs/
benchmarks.md says more.

Needs .ci/python ready, .ci/setup-peers hosts and .ci/node ready.
"""
import os
import re
import shutil
import subprocess

import node_figures
import python_figures
from figures import ROOT, alternate, column, run
from sdk_figures import pinned

CALLS = 20000
COUNTED = 500
BUSY = 16
ROUNDS = 5
GOAL = 2
GOAL_OVER_BARE = 1
# The first one has the goal: uvicorn with its usual extras, httptools and uvloop.
PYTHON_HOSTS = ("uvicorn", "uvicorn-asyncio", "hypercorn", "granian")
HOSTS = os.path.join(ROOT, "build", "deps", "hosts")


def instructions_of(program, way, calls):
    """Runs the program in valgrind; returns what its own process has executed."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program,
               way, str(calls)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True)
    _, said = child.communicate()
    found = re.search(rf"^=={child.pid}== Collected : (\d+)", said, re.MULTILINE)
    if child.returncode != 0 or not found:
        raise SystemExit(f"failed: {' '.join(command)}\n{said}")
    return int(found[1])


def count_instructions(programs, way):
    program = programs.path("bench_exchange")
    few, many = (instructions_of(program, way, calls) for calls in (COUNTED, 3 * COUNTED))
    return (many - few) / (2 * COUNTED)


def measure_c(programs, report):
    if shutil.which("valgrind"):
        report.add("mounted_c_instructions", [count_instructions(programs, "hand")],
                   "per call", [count_instructions(programs, "socket")],
                   ("ratio", "<=", GOAL))
    hand, own = alternate(
        ROUNDS, *(lambda way=way: run(programs.server("bench_exchange", way, CALLS))
                  for way in ("hand", "socket")))
    report.add("mounted_c_cpu", column(hand, "server_cpu_us"), "us/call",
               column(own, "server_cpu_us"), ("ratio", "<=", GOAL))


def measure_sdk(programs, report, plan, name, program, warm_ms, hosts, whole=None):
    """program: makes a command line of ("segue", "own" or "bare", host). The figures of
    one host stand in one run with those of the own listener. whole: the goal for the
    whole cost."""
    def load(kind, host):
        return programs.load("bench_http_load", "calls", BUSY, plan.run_ms, "--warm",
                             warm_ms, *pinned(programs.server_cpu, program(kind, host)))

    for place, host in enumerate(hosts):
        rows = alternate(ROUNDS, *(lambda kind=kind: load(kind, host)
                                   for kind in ("segue", "own", "bare")))
        mounted, own, bare = (column(row, "server_cpu_us") for row in rows)
        goal = ("ratio", "<=", GOAL_OVER_BARE) if place == 0 else None
        row = "_".join(("mounted", name, *host.split("-")[place == 0:]))
        report.add(f"{row}_cpu", mounted, "us/call", own, whole)
        report.add(f"{row}_bare_cpu", bare, "us/call", own)
        over = [one - other for one, other in zip(mounted, bare)]
        report.add(f"{row}_over_bare", over, "us/call", own, goal)


def measure_python(programs, report, plan):
    here = os.path.join(ROOT, "tests", "bench", "python", "mounted_server.py")
    libraries = os.path.join(HOSTS, "lib")
    if not os.path.isdir(libraries):
        raise SystemExit(f"{libraries} is not there: run .ci/setup-peers hosts")
    minor = sorted(os.listdir(libraries))[0]
    site = os.path.join(libraries, minor, "site-packages")
    measure_sdk(programs, report, plan, "python",
                lambda kind, host: [python_figures.OURS, "-B", here, kind, host, site],
                1000, PYTHON_HOSTS)


def measure_node(programs, report, plan):
    here = os.path.join(node_figures.PROGRAMS, "mounted_server.js")
    measure_sdk(programs, report, plan, "node", lambda kind, _: ["node", here, kind],
                3000, ("node",), ("ratio", "<=", GOAL))


def measure(programs, report, plan):
    measure_c(programs, report)
    measure_python(programs, report, plan)
    measure_node(programs, report, plan)
