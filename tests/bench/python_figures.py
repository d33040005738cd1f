"""The figures of the Python SDK beside the official one: server over HTTP, client over
standard input and output, and segments that reach an `async for`. Server and load have a
processor each, and both SDKs the same server or load at their other end.

Needs .ci/python ready (or SEGUE_BENCH_PYTHON, an interpreter that has segue) and
.ci/setup-peers."""
import os

from figures import ROOT, alternate, column, run

HERE = os.path.join(ROOT, "tests", "bench", "python")
OURS = os.environ.get("SEGUE_BENCH_PYTHON",
                      os.path.join(ROOT, "build", "python", "venv", "bin", "python"))
OFFICIAL = os.path.join(ROOT, "build", "deps", "venv", "bin", "python")
BUSY = 64
WINDOW = 32
ROUNDS = 3  # starting an interpreter takes longer than the run
SEGMENT_BYTES = 150
WARM_MS = 1000
LONGEST_TURN_MS = 5


def program(interpreter, name, cpu, *arguments):
    pin = ["taskset", "-c", str(cpu)] if cpu is not None else []
    return [*pin, interpreter, "-B", os.path.join(HERE, name), *map(str, arguments)]


def measure_server(programs, report, plan):
    def load(interpreter, name):
        command = program(interpreter, name, programs.server_cpu)
        return programs.load("bench_http_load", "calls", BUSY, plan.run_ms, "--warm",
                             WARM_MS, *command)

    ours, theirs = alternate(ROUNDS, lambda: load(OURS, "segue_server.py"),
                             lambda: load(OFFICIAL, "official_server.py"))
    report.add(f"python_http_echo_{BUSY}", column(ours, "calls_per_s"), "calls/s",
               column(theirs, "calls_per_s"), ("ratio", ">=", 10))
    report.add(f"python_http_echo_{BUSY}_cpu", column(ours, "server_cpu_us"), "us/call",
               column(theirs, "server_cpu_us"))


def measure_client(programs, report, plan):
    """Nothing is pinned: ours has two threads, and they may use what there is."""
    server = [programs.path("bench_server")]

    def calls(interpreter, name, window):
        return run(program(interpreter, name, None, "calls", window, plan.run_ms,
                           *server))

    for window in (1, WINDOW):
        ours, theirs = alternate(
            ROUNDS, lambda: calls(OURS, "segue_client.py", window),
            lambda: calls(OFFICIAL, "official_client.py", window))
        report.add(f"python_stdio_calls_{window}", column(ours, "calls_per_s"), "calls/s",
                   column(theirs, "calls_per_s"), ("ratio", ">=", 4))
        report.add(f"python_stdio_calls_{window}_cpu", column(ours, "client_cpu_us"),
                   "us/call", column(theirs, "client_cpu_us"))


def measure_stream(programs, report, plan):
    """Client and server share what processors there are: the client has two threads."""
    server = [programs.path("bench_server")]

    def stream():
        return run(program(OURS, "segue_client.py", None, "stream", plan.segments,
                           SEGMENT_BYTES, *server))

    said, = alternate(ROUNDS, stream)
    report.add("python_stream", column(said, "segments_per_s"), "segments/s",
               goal=("value", ">=", 250000))
    report.add("python_stream_cpu", column(said, "client_cpu_us"), "us/segment")
    report.add("python_stream_longest_turn", column(said, "longest_turn_ms"), "ms",
               goal=("value", "<=", LONGEST_TURN_MS))
    # That of the end, when the whole result is handed over.
    report.add("python_stream_collecting_turn",
               column(said, "longest_turn_collecting_ms"), "ms")


def measure(programs, report, plan):
    for interpreter, maker in ((OURS, ".ci/python ready"), (OFFICIAL, ".ci/setup-peers")):
        if not os.path.exists(interpreter):
            raise SystemExit(f"{interpreter} is not there: run {maker}")
    measure_server(programs, report, plan)
    measure_client(programs, report, plan)
    measure_stream(programs, report, plan)
