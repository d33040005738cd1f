#!/usr/bin/env python3
"""Makes the table of core/docs/benchmarks.md: each figure that has a goal, of one long
run and of several short ones, with its best and its worst.

  table.py --measure    runs the benchmarks first: one long run, then TIMES short ones
  table.py              only makes the table, of what --measure left in build/bench
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

from figures import ROOT, number

PAGE = os.path.join(ROOT, "core", "docs", "benchmarks.md")
RUNS = os.path.join(ROOT, "build", "bench")
BEGIN, END = "<!-- made by tests/bench/table.py -->\n", "<!-- end -->\n"
TIMES = 5
# What the table has: the figures of one machine with a baseline in the same run, and the
# goals that are values. The other groups of run.py have pages of their own.
GROUPS = ("json", "others", "http", "parked", "python", "node")


def measure():
    os.makedirs(RUNS, exist_ok=True)
    program = os.path.join(ROOT, "tests", "bench", "run.py")
    for at in range(TIMES + 1):
        for group in GROUPS:
            out = os.path.join(RUNS, f"{at}-{group}.json")
            length = ["--short"] if at else []
            subprocess.run([sys.executable, "-B", program, "--only", group, "--out", out,
                            *length], check=True)


def read(at):
    rows = {}
    for group in GROUPS:
        with open(os.path.join(RUNS, f"{at}-{group}.json"), encoding="utf-8") as file:
            rows.update((row["name"], row) for row in json.load(file))
    return rows


def row_of(name, long, short):
    """What is compared is a ratio or a value; the best is the one nearest to the goal, or
    furthest beyond it."""
    what, order, bound = long["goal"].split(" ")
    best, worst = (max, min) if order == ">=" else (min, max)
    values = [row[what] for row in short]
    met = sum(row["met"] for row in short)
    unit = long["unit"] if what == "value" else "of the baseline"
    sign = "at least" if order == ">=" else "at most"
    return [f"`{name}`", f"{number(long['value'])} {long['unit']}",
            number(long["baseline"]), number(long[what]), number(best(values)),
            number(statistics.median(values)), number(worst(values)),
            f"{sign} {number(float(bound))} {unit}",
            "met" if met == len(short) and long["met"] else
            f"met in {met} of {len(short)}" if met else "missed"]


def table():
    runs = [read(at) for at in range(TIMES + 1)]
    names = [name for name, row in runs[0].items() if row["goal"]]
    head = ["Figure", "Long run", "Baseline", "Compared", f"Best of {TIMES}", "Median",
            "Worst", "Goal", "Verdict"]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * 6 + " --- | --- |"]
    for name in names:
        cells = row_of(name, runs[0][name], [run[name] for run in runs[1:]])
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true")
    if parser.parse_args().measure:
        measure()
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    head, rest = text.split(BEGIN)
    tail = rest.split(END, 1)[1]
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(head + BEGIN + table() + END + tail)


if __name__ == "__main__":
    main()
