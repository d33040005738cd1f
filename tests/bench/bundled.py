#!/usr/bin/env python3
"""Compares a build that contains its libraries with one that uses the system's: the same
benchmarks, pair by pair (figures.py).

    bundled.py [--rounds N] BUNDLED [SYSTEM]

BUNDLED is the directory of a release build with the bundled libraries, as
.ci/emulated TARGET benches makes it. SYSTEM is build/release by default. Processor times
are also valid on a busy machine, and rates are less so. A figure is met when the bundled
build reaches 0.95 of the other one. The status is 1 when a processor time misses that.
"""
import argparse
import os
import sys
import tempfile

from durable_figures import fresh
from figures import ROOT, Plan, Programs, Report, alternate, column

SHARE = 0.95
BUSY = 64
WINDOW = 32
SEGMENT_BYTES = 150


def echo(programs, plan, _):
    return programs.load("bench_stdio", "echo", WINDOW, plan.run_ms,
                         *programs.server("bench_server"))


def http_echo(programs, plan, _):
    return programs.load("bench_http_load", "calls", BUSY, plan.run_ms,
                         *programs.server("bench_http_server"))


def stream(programs, plan, _):
    return programs.load("bench_stream", "stream", plan.segments, SEGMENT_BYTES,
                         *programs.server("bench_server"))


def http_stream(programs, plan, _):
    return programs.load("bench_stream", "--http", "stream", plan.segments,
                         SEGMENT_BYTES, *programs.server("bench_http_server"))


def drain(programs, plan, _):
    return programs.load("bench_http_load", "drain", plan.segments, SEGMENT_BYTES,
                         *programs.server("bench_http_server"))


def sqlite(programs, plan, directory):
    server = programs.server("bench_server", "--sqlite", fresh(directory, "stream.db"))
    return programs.load("bench_stream", "stream", plan.segments // 2, SEGMENT_BYTES,
                         *server)


def start(programs, _, __):
    return programs.load("bench_stdio", "start", *programs.server("bench_server"))


# The figure, what it runs, the value and its unit, and whether more is better.
FIGURES = (
    ("stdio_echo_server_cpu", echo, "server_cpu_us", "us/call", False),
    ("http_echo_server_cpu", http_echo, "server_cpu_us", "us/call", False),
    ("http_stream_server_cpu", drain, "server_cpu_us", "us/segment", False),
    ("stream_client_cpu", stream, "client_cpu_us", "us/segment", False),
    ("http_stream_client_cpu", http_stream, "client_cpu_us", "us/segment", False),
    ("stdio_echo", echo, "calls_per_s", "calls/s", True),
    ("http_echo", http_echo, "calls_per_s", "calls/s", True),
    ("stream_memory", stream, "segments_per_s", "segments/s", True),
    ("http_stream", http_stream, "segments_per_s", "segments/s", True),
    ("stream_sqlite", sqlite, "segments_per_s", "segments/s", True),
    ("start_to_answer", start, "start_ms", "ms", False),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("bundled")
    parser.add_argument("system", nargs="?", default=os.path.join(ROOT, "build/release"))
    options = parser.parse_args()
    ours, theirs = Programs(options.bundled), Programs(options.system)
    plan, report = Plan(short=True), Report()
    print(f"{'figure':<28} {'bundled':>10} {'unit':<11}{'system':>10} {'ratio':>7}  goal")
    with tempfile.TemporaryDirectory(dir=options.bundled) as directory:
        for name, measure, value, unit, more in FIGURES:
            pairs = alternate(options.rounds,
                              lambda: measure(ours, plan, directory),
                              lambda: measure(theirs, plan, directory))
            report.add(name, column(pairs[0], value), unit, column(pairs[1], value),
                       ("ratio", ">=", SHARE) if more else ("ratio", "<=", 1 / SHARE))
    missed = [name for name in report.missed() if name.endswith("_cpu")]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
