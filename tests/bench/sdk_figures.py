"""The figures of an SDK compared with the official one of its language: server over
HTTP, client over standard input and output, and segments that reach a loop. Server
and load have a processor each, and both SDKs have the same server or load at the
other end."""
import os
from dataclasses import dataclass
from typing import Callable

from figures import alternate, column, run

BUSY = 64
WINDOW = 32
ROUNDS = 3  # starting an interpreter takes longer than the run
SEGMENT_BYTES = 150
COLLECTING_TURN_MS = 2
LONGEST_TURN_MS = 5


@dataclass
class Sdk:
    """ours (Segue's SDK) and theirs (the official one): make a command line from (role,
    arguments); a role is "server" or "client". needs: what must exist, and what makes
    it. The goals are ratios, and segments per second."""
    name: str
    ours: Callable
    theirs: Callable
    needs: dict
    warm_ms: int
    server_goal: float
    one_goal: float  # one call in flight, client and server on one processor
    client_goal: float
    stream_goal: float


def pinned(cpu, command):
    return ["taskset", "-c", str(cpu), *command] if cpu is not None else command


def measure_server(programs, report, plan, sdk):
    def load(program):
        return programs.load("bench_http_load", "calls", BUSY, plan.run_ms, "--warm",
                             sdk.warm_ms, *pinned(programs.server_cpu, program("server")))

    ours, theirs = alternate(ROUNDS, lambda: load(sdk.ours), lambda: load(sdk.theirs))
    name = f"{sdk.name}_http_echo_{BUSY}"
    report.add(name, column(ours, "calls_per_s"), "calls/s",
               column(theirs, "calls_per_s"), ("ratio", ">=", sdk.server_goal))
    report.add(f"{name}_cpu", column(ours, "server_cpu_us"), "us/call",
               column(theirs, "server_cpu_us"))


def measure_client(programs, report, plan, sdk):
    """With one call in flight, client and server work in turns. Whether the system puts
    them on one processor or on two then changes the figure more than all else, because
    waking another processor takes longer than the call. So both cases are measured: on
    one processor, and apart. With more calls nothing is pinned: Segue's client has two
    threads, which may use all processors."""
    def calls(program, window, cpu, *server):
        return run(pinned(cpu, program("client", "calls", str(window), str(plan.run_ms),
                                       *server)))

    free = programs.command("bench_server", None)
    cases = ((1, "", programs.load_cpu, free, sdk.one_goal),
             (1, "_apart", programs.load_cpu, programs.server("bench_server"), None),
             (WINDOW, "", None, free, sdk.client_goal))
    for window, case, cpu, server, goal in cases:
        ours, theirs = alternate(ROUNDS, lambda: calls(sdk.ours, window, cpu, *server),
                                 lambda: calls(sdk.theirs, window, cpu, *server))
        name = f"{sdk.name}_stdio_calls_{window}{case}"
        report.add(name, column(ours, "calls_per_s"), "calls/s",
                   column(theirs, "calls_per_s"), goal and ("ratio", ">=", goal))
        report.add(f"{name}_cpu", column(ours, "client_cpu_us"), "us/call",
                   column(theirs, "client_cpu_us"))


def measure_stream(programs, report, plan, sdk):
    """Client and server share all processors: the client has two threads."""
    def stream():
        return run(sdk.ours("client", "stream", str(plan.segments), str(SEGMENT_BYTES),
                            programs.path("bench_server")))

    said, = alternate(ROUNDS, stream)
    name = f"{sdk.name}_stream"
    report.add(name, column(said, "segments_per_s"), "segments/s",
               goal=("value", ">=", sdk.stream_goal))
    report.add(f"{name}_cpu", column(said, "client_cpu_us"), "us/segment")
    report.add(f"{name}_longest_turn", column(said, "longest_turn_ms"), "ms",
               goal=("value", "<=", LONGEST_TURN_MS))
    # The last turn counts, in which the whole result is given to the application.
    report.add(f"{name}_collecting_turn",
               column(said, "longest_turn_collecting_ms"), "ms",
               goal=("value", "<=", COLLECTING_TURN_MS))


def measure(programs, report, plan, sdk):
    for path, maker in sdk.needs.items():
        if not os.path.exists(path):
            raise SystemExit(f"{path} is not there: run {maker}")
    measure_server(programs, report, plan, sdk)
    measure_client(programs, report, plan, sdk)
    measure_stream(programs, report, plan, sdk)
