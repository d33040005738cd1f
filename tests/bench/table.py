#!/usr/bin/env python3
"""Prints a table of all figures that have a goal, with the best, the median and the worst
of several runs, as Markdown.

  table.py --measure [--short] [--times N]   runs the benchmarks first; default: 5 times
  table.py                                   prints the table of the runs that are there
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

from figures import ROOT, number

RUNS = os.path.join(ROOT, "build", "bench")
# What the table has. The other groups of run.py have pages and sections of their own.
GROUPS = ("json", "others", "http", "parked", "python", "node")


def measure(times, length):
    shutil.rmtree(RUNS, ignore_errors=True)
    program = os.path.join(ROOT, "tests", "bench", "run.py")
    for at in range(times):
        place = os.path.join(RUNS, str(at))
        os.makedirs(place)
        for group in GROUPS:
            out = os.path.join(place, group + ".json")
            subprocess.run([sys.executable, "-B", program, "--only", group, "--out", out,
                            *length], check=True)


def read():
    """Returns the runs that are whole: the rows of each, by name."""
    runs = []
    for place in sorted(os.listdir(RUNS)):
        paths = [os.path.join(RUNS, place, group + ".json") for group in GROUPS]
        if all(map(os.path.exists, paths)):
            rows = {}
            for path in paths:
                with open(path, encoding="utf-8") as file:
                    rows.update((row["name"], row) for row in json.load(file))
            runs.append(rows)
    if not runs:
        raise SystemExit(f"{RUNS} has no whole run: table.py --measure makes them")
    return runs


def cells_of(rows):
    """rows: one figure of all runs. What is compared is a ratio or a value; the best is
    the one that is furthest beyond the goal, or nearest to it."""
    first = rows[0]
    what, order, bound = first["goal"].split(" ")
    best, worst = (max, min) if order == ">=" else (min, max)
    values = [row[what] for row in rows]
    met = sum(row["met"] for row in rows)
    unit = first["unit"] if what == "value" else "of the baseline"
    verdict = ("met" if met == len(rows) else
               f"met in {met} of {len(rows)}" if met else "missed")
    return [f"`{first['name']}`", number(best(values)),
            number(statistics.median(values)), number(worst(values)),
            f"{'at least' if order == '>=' else 'at most'} {number(float(bound))} {unit}",
            verdict]


def table(runs):
    lines = [f"| Figure | Best of {len(runs)} | Median | Worst | Goal | Verdict |",
             "| --- | ---: | ---: | ---: | --- | --- |"]
    for name, row in runs[0].items():
        if row["goal"]:
            cells = cells_of([run[name] for run in runs])
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--short", action="store_true", help="fewer seconds per figure")
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    if options.measure:
        measure(options.times, ["--short"] if options.short else [])
    print(table(read()), end="")


if __name__ == "__main__":
    main()
