#!/usr/bin/env python3
"""Runs the benchmarks of a release build, prints a table and writes build/bench.json.

figures.py explains how a figure is made. Server and load are pinned to one processor
each when there are two. Absolute values of one machine mean little elsewhere.
"""
import argparse
import json
import os
import sys
import tempfile

import durable_figures
import http_figures
import json_figures
import mounted_figures
import node_figures
import parked_figures
import peer_figures
import proxy_figures
import python_figures
from figures import ROOT, Plan, Programs, Report, alternate, column, run, run_rows

WINDOW = 32
PARKED = 10000
STARTS = 30
SEGMENT_BYTES = 150


def measure_echo(programs, report, plan):
    def echo(window, *server):
        return programs.load("bench_stdio", "echo", window, plan.run_ms, *server)

    segue = programs.server("bench_server")
    size = int(programs.load("bench_stdio", "echo", WINDOW, 20, *segue)["answer_bytes"])
    bare = programs.server("bench_bare", size)
    ours, theirs = alternate(plan.rounds, lambda: echo(WINDOW, *segue),
                             lambda: echo(WINDOW, *bare))
    report.add("stdio_echo_32", column(ours, "calls_per_s"), "calls/s",
               column(theirs, "calls_per_s"), ("ratio", ">=", 0.7))
    report.add("stdio_echo_32_server_cpu", column(ours, "server_cpu_us"), "us/call",
               column(theirs, "server_cpu_us"))
    ours, theirs = alternate(plan.rounds, lambda: echo(1, *segue), lambda: echo(1, *bare))
    for name in ("p50_us", "p99_us"):
        report.add("stdio_echo_1_" + name[:3], column(ours, name), "us",
                   column(theirs, name))


def measure_stream(programs, report, plan):
    def stream(*server):
        return programs.load("bench_stream", "stream", plan.segments, SEGMENT_BYTES,
                             *server)

    def stream_2025(*server):
        return programs.load("bench_stream", "--2025", "stream", plan.segments,
                             SEGMENT_BYTES, *server)

    server = programs.server("bench_server")
    memory, pushed = alternate(plan.rounds, lambda: stream(*server),
                               lambda: stream_2025(*server))
    report.add("stream_memory", column(memory, "segments_per_s"), "segments/s",
               goal=("value", ">=", 2000000))
    report.add("stream_2025_memory", column(pushed, "segments_per_s"), "segments/s",
               goal=("value", ">=", 2000000))
    report.add("stream_client_cpu", column(memory, "client_cpu_us"), "us/segment",
               goal=("value", "<=", 0.4))


def measure_durable_stream(programs, report, plan, directory):
    """The bare loop commits batches as large as the server's just before."""
    batches = []
    segments = plan.segments // 2

    def fresh(name):
        path = os.path.join(directory, name)
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(path + suffix):
                os.unlink(path + suffix)
        return path

    def stream():
        server = programs.server("bench_server", "--sqlite", fresh("stream.db"))
        said = programs.load("bench_stream", "stream", segments, SEGMENT_BYTES, *server)
        batches.append(said["rows_per_commit"])
        return said

    def insert():
        batch = max(1, round(batches[-1]))
        return run(programs.server("bench_insert", fresh("insert.db"), segments, batch))

    ours, theirs = alternate(plan.rounds, stream, insert)
    report.add("stream_sqlite", column(ours, "segments_per_s"), "segments/s",
               column(theirs, "rows_per_s"), ("ratio", ">=", 0.8))
    report.add("stream_sqlite_batch", batches, "rows/commit")


def measure_parked(programs, report, plan):
    server = programs.server("bench_server")
    parked, = alternate(plan.rounds,
                        lambda: programs.load("bench_stdio", "park", PARKED, *server))
    report.add(f"parked_{PARKED}", column(parked, "parked_mib"), "MiB",
               goal=("value", "<=", PARKED * 0.8 / 1024)) # 0.8 KiB each
    report.add("idle_server", column(parked, "idle_mib"), "MiB",
               goal=("value", "<=", 5))


def measure_start(programs, report):
    def start(name):
        return programs.load("bench_stdio", "start", *programs.server(name))

    ours, theirs = alternate(STARTS, lambda: start("bench_server"),
                             lambda: start("bench_bare"))
    report.add("start_to_answer", column(ours, "start_ms"), "ms",
               column(theirs, "start_ms"), ("ratio", "<=", 2.5))


def measure_client(programs, report, plan):
    """Calls of a client on the library. Over pipes, with a store in memory, they carry
    no idempotency keys; over HTTP they do."""
    server = programs.server("bench_server")
    for window in (1, WINDOW):
        said, = alternate(plan.rounds, lambda: programs.load(
            "bench_stream", "calls", window, plan.run_ms, *server))
        report.add(f"client_calls_{window}", column(said, "calls_per_s"), "calls/s")


def measure_pipe(programs, report, plan):
    """The rate of pipes without the library, at message sizes of their own."""
    for name, value in run([programs.path("bench_pipe"), str(plan.run_ms // 3)]).items():
        report.add(name, [value], "messages/s")


def measure_store(programs, report, plan, directory):
    """Rows per second into the stores alone: bench_store alternates and takes
    medians."""
    seconds = str(plan.run_ms / 6000)
    for row in run_rows([programs.path("bench_store"), directory, seconds]):
        if "bytes_per_task" in row:
            report.add("store_parked_task", [row["bytes_per_task"]], "bytes")
            continue
        words = ["store", row["store"], row.get("durability"), str(row["batch"])]
        if row.get("operations", 1) > 1:
            words.append(f"x{row['operations']}")
        bare = [row["bare_rows_per_s"]] if "bare_rows_per_s" in row else None
        report.add("_".join(filter(None, words)), [row["rows_per_s"]], "rows/s", bare)


def measure_others(programs, report, plan, build):
    measure_echo(programs, report, plan)
    measure_stream(programs, report, plan)
    with tempfile.TemporaryDirectory(dir=build) as directory:
        measure_durable_stream(programs, report, plan, directory)
        measure_store(programs, report, plan, directory)
    measure_parked(programs, report, plan)
    measure_start(programs, report)
    measure_client(programs, report, plan)
    measure_pipe(programs, report, plan)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="fewer seconds per figure")
    parser.add_argument("--once", action="store_true",
                        help="only show that each program works, as CI does")
    parser.add_argument("--strict", action="store_true",
                        help="fail when a goal is missed")
    parser.add_argument("--only", help="measure these alone; peers are measured only "
                        "when they are asked for",
                        choices=("json", "http", "others", "durable", "parked", "python",
                                 "node", "mounted", "proxy", "peers"))
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"),
                        help="directory of the release build")
    parser.add_argument("--proxy", help="the segue-proxy to measure, for example that of "
                        "a package; without it, that of the build")
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "bench.json"))
    options = parser.parse_args()
    programs = Programs(options.build)
    plan = Plan(options.short, options.once)
    report = Report()
    if not programs.pinned:
        print("one processor only: server and load share it", file=sys.stderr)
    print(f"{'figure':<28} {'value':>10} {'unit':<11}{'baseline':>10} {'ratio':>7}  goal")
    if options.only in (None, "json"):
        json_figures.measure(programs, report, plan, options.build)
    if options.only in (None, "others"):
        measure_others(programs, report, plan, options.build)
    if options.only in (None, "durable"):
        durable_figures.measure(programs, report, plan, options.build)
    if options.only in (None, "parked"):
        parked_figures.measure(programs, report, plan, options.build)
    if options.only in (None, "http"):
        http_figures.measure(programs, report, plan, options.build)
    if options.only in (None, "python"):
        python_figures.measure(programs, report, plan)
    if options.only in (None, "node"):
        node_figures.measure(programs, report, plan, options.build)
    if options.only in (None, "mounted"):
        mounted_figures.measure(programs, report, plan)
    if options.only in (None, "proxy"):
        proxy_figures.measure(programs, report, plan, options.proxy)
    if options.only == "peers":
        peer_figures.measure(programs, report, plan)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(report.rows, file, indent=2)
        file.write("\n")
    missed = report.missed()
    print("missed: " + ", ".join(missed) if missed else "all goals are met")
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
