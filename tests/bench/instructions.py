#!/usr/bin/env python3
"""The gate of instruction counts: counts each row of instructions.def in valgrind, on a
release build, and prints it beside its goal.

  instructions.py [--write] [--rooms] [--functions N] [ROW...]

--rooms prints where the instructions are, as the tables of core/docs/benchmarks.md.
"""
import argparse
import os
import re
import shutil
import sys

import callgrind
import counted_load as load
from figures import ROOT, Programs, number

TABLE = os.path.join(ROOT, "tests", "bench", "instructions.def")
SEGMENT_BYTES = 150
CALLS = (320, 1600)
SEGMENTS = (2000, 12000)
STREAMS = 400  # idle ones beside the calls: more than ready_conns


def works(programs):
    """Each row: what runs, and the two numbers of calls or segments."""
    http, pipes = programs.path("bench_http_server"), programs.path("bench_server")
    client = programs.path("bench_stream")

    def library(*words):
        return lambda prefix, count: load.run_client(
            [*prefix, client, *(str(count) if word is None else word for word in words)])

    size = str(SEGMENT_BYTES)
    return {
        "http_echo": (lambda prefix, count: load.echo_over_http(
            [*prefix, http], count, 64), *CALLS),
        "http_echo_varied": (lambda prefix, count: load.echo_over_http(
            [*prefix, http], count, 64, "varied"), *CALLS),
        "http_echo_keyed": (lambda prefix, count: load.echo_over_http(
            [*prefix, http], count, 64, "keyed"), *CALLS),
        "http_echo_beside": (lambda prefix, count: load.echo_over_http(
            [*prefix, http], count, 16, streams=STREAMS), *CALLS),
        "stdio_echo": (lambda prefix, count: load.echo_in_pipes(
            [*prefix, pipes], count, 32), *CALLS),
        "http_segment": (lambda prefix, count: load.stream_over_http(
            [*prefix, http], count, SEGMENT_BYTES), *SEGMENTS),
        "stdio_segment": (lambda prefix, count: load.stream_in_pipes(
            [*prefix, pipes], count, SEGMENT_BYTES), *SEGMENTS),
        "http_client_call": (library("--http", "counted", "32", None, http), *CALLS),
        "stdio_client_call": (library("--pipes", "counted", "32", None, pipes), *CALLS),
        "http_client_segment": (library("--http", "stream", None, size, http), *SEGMENTS),
        "stdio_client_segment": (
            library("--pipes", "stream", None, size, pipes), *SEGMENTS),
    }


def read_table():
    """Returns (count, goal, percent) by row; the goal is None when it is "-"."""
    rows = {}
    with open(TABLE, encoding="utf-8") as file:
        for line in file:
            found = re.match(r"(\w+)\s+(\d+)\s+(\d+|-)\s+(\d+)$", line)
            if found:
                rows[found[1]] = tuple(None if part == "-" else int(part)
                                       for part in found.groups()[1:])
    return rows


def write_table(counts):
    with open(TABLE, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for at, line in enumerate(lines):
        words = line.split()
        if words and words[0] in counts:
            lines[at] = f"{words[0]:<20}{round(counts[words[0]]):>8}" + line[28:]
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def verdict_of(count, expected, goal, percent):
    if abs(count - expected) <= percent / 100 * expected:
        return "" if goal is None else "met" if count <= goal else "above the goal"
    return "MORE than before" if count > expected else "LESS: enter it with --write"


def print_rooms(profiles):
    rooms = sorted({room for one in profiles.values() for room in one.rooms()})
    print("\n| Room | " + " | ".join(profiles) + " |")
    print("| --- |" + " ---: |" * len(profiles))
    for room in rooms:
        costs = [one.rooms()[room] for one in profiles.values()]
        if max(costs) >= 1:
            print(f"| {room} | " + " | ".join(f"{cost:,.0f}" for cost in costs) + " |")
    totals = [f"{one.total:,.0f}" for one in profiles.values()]
    print("| all | " + " | ".join(totals) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--write", action="store_true", help="enter the counts")
    parser.add_argument("--rooms", action="store_true")
    parser.add_argument("--functions", type=int, default=0, metavar="N")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is missing")
    table = read_table()
    todo = {name: work for name, work in works(Programs(options.build)).items()
            if not options.rows or name in options.rows}
    profiles = {}
    failed = []
    print(f"{'row':<22}{'count':>8}{'before':>9}{'goal':>9}")
    for name, work in todo.items():
        one = profiles[name] = callgrind.profile(*work)
        expected, goal, percent = table[name]
        verdict = verdict_of(one.total, expected, goal, percent)
        if verdict.startswith(("MORE", "LESS")):
            failed.append(name)
        print(f"{name:<22}{one.total:>8,.0f}{number(expected):>9}{number(goal):>9}  "
              f"{verdict}".rstrip(), flush=True)
        for (room, function), cost in one.largest(options.functions):
            print(f"    {cost:>8,.0f}  {room:<22}{function}")
    if options.rooms:
        print_rooms(profiles)
    if options.write:
        write_table({name: one.total for name, one in profiles.items()})
        return 0
    print("differ: " + ", ".join(failed) if failed else f"{len(todo)} rows are as before")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
