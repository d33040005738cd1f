"""What mounting in another HTTP server costs beside our own listener.

The C figures compare an exchange by hand with a call over a socket: instructions in user
space, if valgrind is there, and processor time with that of the kernel. The figures of
Python and Node compare the processor time of the server's process: mounted in uvicorn and
in node:http, beside the SDK's own listener. The bare server under the same uvicorn or
node:http shows what is not ours: `_over_bare` is what mounting adds to it.

Needs .ci/python ready and setup, and .ci/node ready.
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
ROUNDS = 3
GOAL = 2


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


def measure_sdk(programs, report, plan, name, program, warm_ms):
    """program: makes a command line of "segue", "own" or "bare"."""
    def load(kind):
        return programs.load("bench_http_load", "calls", BUSY, plan.run_ms, "--warm",
                             warm_ms, *pinned(programs.server_cpu, program(kind)))

    rows = alternate(ROUNDS, *(lambda kind=kind: load(kind)
                               for kind in ("segue", "own", "bare")))
    mounted, own, bare = (column(row, "server_cpu_us") for row in rows)
    report.add(f"mounted_{name}_cpu", mounted, "us/call", own, ("ratio", "<=", GOAL))
    report.add(f"mounted_{name}_bare_cpu", bare, "us/call", own)
    over = [one - other for one, other in zip(mounted, bare)]
    report.add(f"mounted_{name}_over_bare", over, "us/call", own, ("ratio", "<=", GOAL))


def measure_python(programs, report, plan):
    here = os.path.join(ROOT, "tests", "bench", "python", "mounted_server.py")
    tools = os.path.join(ROOT, "build", "deps", "python", "lib")
    minor = sorted(os.listdir(tools))[0]
    site = os.path.join(tools, minor, "site-packages")
    measure_sdk(programs, report, plan, "python",
                lambda kind: [python_figures.OURS, "-B", here, kind, site], 1000)


def measure_node(programs, report, plan):
    here = os.path.join(node_figures.PROGRAMS, "mounted_server.js")
    measure_sdk(programs, report, plan, "node", lambda kind: ["node", here, kind], 3000)


def measure(programs, report, plan):
    measure_c(programs, report)
    measure_python(programs, report, plan)
    measure_node(programs, report, plan)
