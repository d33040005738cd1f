"""The figures of Streamable HTTP. The baseline is a bare server on libwebsockets' raw
role that checks nothing and writes the same number of bytes."""
import os
import socket
import sys
import tempfile

from figures import ROOT, alternate, column

PEERS = os.path.join(ROOT, "build", "deps", "peers")
TS_SERVER = os.path.join(ROOT, "tests", "bench", "ts_server.mjs")
BUSY = 64
WORK_US = 200
IDLE = 1000
STREAMS = 5000
VIEWERS = os.path.join(ROOT, "tests", "bench", "viewers.py")
VIEWED = 5 # times the segments of a stream, so that the viewers look several times
SEGMENT_BYTES = 150
PEER_WARM_MS = 4000  # until V8 has compiled the hot code
PEER_ROUNDS = 5


def calls(programs, plan, server, connections, *options):
    return programs.load("bench_http_load", "calls", connections, plan.run_ms, *options,
                         *server)


def measure_echo(programs, report, plan, segue):
    """The rate is what a processor reaches when nothing else runs. Processor time per
    call is also valid on a shared machine, or when the load is slower."""
    size = int(calls(programs, plan, segue, 1)["answer_bytes"])
    bare = programs.server("bench_raw", "--bytes", size)
    ours, theirs = alternate(plan.rounds, lambda: calls(programs, plan, segue, BUSY),
                             lambda: calls(programs, plan, bare, BUSY))
    report.add(f"http_echo_{BUSY}", column(ours, "calls_per_s"), "calls/s",
               column(theirs, "calls_per_s"), ("ratio", ">=", 0.8))
    report.add(f"http_echo_{BUSY}_server_cpu", column(ours, "server_cpu_us"), "us/call",
               column(theirs, "server_cpu_us"), ("ratio", "<=", 1 / 0.8))
    report.add(f"http_echo_{BUSY}_server_busy", column(ours, "server_busy"), "share",
               column(theirs, "server_busy"))
    for connections in (1, BUSY, 1000):
        ours, theirs = alternate(plan.rounds,
                                 lambda: calls(programs, plan, segue, connections),
                                 lambda: calls(programs, plan, bare, connections))
        for name in ("p50_us", "p99_us"):
            report.add(f"http_echo_{connections}_{name[:3]}", column(ours, name), "us",
                       column(theirs, name))


def measure_keyed(programs, report, plan, segue):
    """Each call with an idempotency key of its own, beside calls without; the store is in
    memory. The server records each keyed call and its answer."""
    ours, theirs = alternate(plan.rounds,
                             lambda: calls(programs, plan, segue, BUSY, "--keyed", 1),
                             lambda: calls(programs, plan, segue, BUSY))
    report.add(f"http_keyed_{BUSY}", column(ours, "calls_per_s"), "calls/s",
               column(theirs, "calls_per_s"), ("ratio", ">=", 0.9))


def measure_runtimes(programs, report, plan):
    """One port, two runtimes compared with one. With two processors for the runtimes
    and two for the load, the goal is a rate. With fewer processors the load takes a
    part of them. Then the rate is measured with a tool that computes, compared with
    which the load is small. For calls that do nothing there is the processor time,
    which grows if the runtimes hinder each other."""
    cpus = ",".join(map(str, programs.cpus[:2]))
    free = len(programs.cpus) >= 4
    load_cpus = ",".join(map(str, programs.cpus[2:4] if free else programs.cpus))

    def rate(runtimes, *options):
        server = programs.command("bench_http_server", cpus, "--runtimes", runtimes)
        return programs.run("bench_http_load", load_cpus, "calls", BUSY, plan.run_ms,
                            *options, *server)

    threads = ("--threads", 2 if free else 1)
    two, one = alternate(plan.rounds, lambda: rate(2, *threads),
                         lambda: rate(1, *threads))
    report.add("http_two_runtimes", column(two, "calls_per_s"), "calls/s",
               column(one, "calls_per_s"), ("ratio", ">=", 1.6) if free else None)
    report.add("http_two_runtimes_cpu", column(two, "server_cpu_us"), "us/call",
               column(one, "server_cpu_us"))
    if not free:
        work = ("--work", WORK_US)
        two, one = alternate(plan.rounds, lambda: rate(2, *work), lambda: rate(1, *work))
        report.add(f"http_two_runtimes_{WORK_US}us", column(two, "calls_per_s"),
                   "calls/s", column(one, "calls_per_s"),
                   ("ratio", ">=", 1.6) if programs.pinned else None)


def measure_stream(programs, report, plan, segue):
    def stream():
        return programs.load("bench_stream", "--http", "stream", plan.segments,
                             SEGMENT_BYTES, *segue)

    def stream_2025():
        return programs.load("bench_stream", "--http", "--2025", "stream", plan.segments,
                             SEGMENT_BYTES, *segue)

    def drain():
        return programs.load("bench_http_load", "drain", plan.segments, SEGMENT_BYTES,
                             *segue)

    ours, pushed, drained = alternate(plan.rounds, stream, stream_2025, drain)
    report.add("http_stream_memory", column(ours, "segments_per_s"), "segments/s",
               goal=("value", ">=", 2000000))
    report.add("http_stream_2025_memory", column(pushed, "segments_per_s"), "segments/s",
               goal=("value", ">=", 2000000))
    report.add("http_stream_client_cpu", column(ours, "client_cpu_us"), "us/segment",
               goal=("value", "<=", 0.4))
    report.add("http_stream_server", column(drained, "segments_per_s"), "segments/s")
    report.add("http_stream_server_cpu", column(drained, "server_cpu_us"), "us/segment",
               goal=("value", "<=", 0.35))


def measure_viewers(programs, report, plan):
    """A stream while twenty pages of the task board show the list. The processor time of
    the server counts, because on few processors the viewers take a part of the rest."""
    def drain(viewers):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        server = programs.server("bench_http_server", "--board", port)
        return programs.load("bench_http_load", "drain", VIEWED * plan.segments,
                             SEGMENT_BYTES, sys.executable, "-B", VIEWERS, viewers, port,
                             *server)

    viewed, alone = alternate(plan.rounds, lambda: drain(20), lambda: drain(0))
    report.add("http_stream_viewers_cpu", column(viewed, "server_cpu_us"), "us/segment",
               column(alone, "server_cpu_us"), ("ratio", "<=", 1.05))


def measure_cut(programs, report, plan, segue):
    bare = programs.server("bench_raw", "--bytes", 300)
    cut, again = alternate(plan.rounds,
                           lambda: programs.load("bench_cut", plan.cuts, *segue),
                           lambda: programs.load("bench_cut", "--bare", plan.cuts, *bare))
    for name, most_ms in (("p50", 0.3), ("p99", 1)):
        column_name = f"resume_{name}_ms"
        report.add(f"http_cut_to_segment_{name}", column(cut, column_name), "ms",
                   column(again, column_name), goal=("value", "<=", most_ms))


def measure_outage(programs, report, build, what, server):
    """A server with a SQLite store is killed and started again. The time runs from the
    moment at which it listens to the first new segment at the client. The goal beyond a
    second is a fifth of the outage. server: makes its command from the file."""
    for outage_ms, times, most_ms in ((100, 20, 50), (1050, 5, 210)):
        with tempfile.TemporaryDirectory(dir=build) as directory:
            command = server(os.path.join(directory, "outage.db"))
            said = programs.load("bench_outage", times, outage_ms, *command)
        for name in ("p50", "p90", "max"):
            report.add(f"{what}_back_{outage_ms}ms_{name}", [said[f"found_{name}_ms"]],
                       "ms", goal=("value", "<=", most_ms) if name == "p90" else None)


def measure_idle(programs, report, plan, segue):
    idle, = alternate(plan.rounds,
                      lambda: programs.load("bench_http_load", "idle", IDLE, *segue))
    report.add(f"http_idle_{IDLE}", column(idle, "idle_mib"), "MiB",
               goal=("value", "<=", IDLE * 4 / 1024)) # 4 KiB each
    beside, alone = alternate(
        plan.rounds, lambda: calls(programs, plan, segue, 16, "--streams", STREAMS),
        lambda: calls(programs, plan, segue, 16))
    report.add(f"http_beside_{STREAMS}_streams", column(beside, "calls_per_s"), "calls/s",
               column(alone, "calls_per_s"), ("ratio", ">=", 0.85))
    report.add(f"http_beside_{STREAMS}_cpu", column(beside, "server_cpu_us"), "us/call",
               column(alone, "server_cpu_us"))


def measure_client(programs, report, plan, segue):
    said, = alternate(plan.rounds, lambda: programs.load(
        "bench_stream", "--http", "calls", 32, plan.run_ms, *segue))
    report.add("http_client_calls_32", column(said, "calls_per_s"), "calls/s",
               goal=("value", ">=", 60000))


def measure_peer(programs, report, plan, segue):
    """The official TypeScript SDK, with the same tool and the same requests."""
    if not os.path.isdir(os.path.join(PEERS, "node_modules")):
        raise SystemExit(f"{PEERS} is empty: run .ci/setup-peers")
    pin = ["taskset", "-c", str(programs.server_cpu)] if programs.pinned else []
    peer = [*pin, "node", TS_SERVER, PEERS]
    ours, theirs = alternate(
        PEER_ROUNDS, lambda: calls(programs, plan, segue, BUSY),
        lambda: calls(programs, plan, peer, BUSY, "--warm", PEER_WARM_MS))
    report.add(f"http_echo_{BUSY}_beside_ts", column(ours, "calls_per_s"), "calls/s",
               column(theirs, "calls_per_s"), ("ratio", ">=", 10))
    report.add(f"http_echo_{BUSY}_ts_cpu", column(ours, "server_cpu_us"), "us/call",
               column(theirs, "server_cpu_us"))


def measure(programs, report, plan, build):
    segue = programs.server("bench_http_server")
    measure_echo(programs, report, plan, segue)
    measure_keyed(programs, report, plan, segue)
    measure_runtimes(programs, report, plan)
    measure_stream(programs, report, plan, segue)
    measure_viewers(programs, report, plan)
    measure_cut(programs, report, plan, segue)
    measure_outage(programs, report, build, "http", lambda path: programs.server(
        "bench_http_server", "--sqlite", path))
    measure_idle(programs, report, plan, segue)
    measure_client(programs, report, plan, segue)
    measure_peer(programs, report, plan, segue)
