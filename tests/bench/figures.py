"""What the benchmarks share: running programs, pinning and alternating them, and the
report.

Each figure is a median of several runs. Where there is a baseline, figure and baseline
alternate (A B A B ...), and the ratio is the median of the ratios of the pairs. So a
machine that is slow or busy for a while slows both.
"""
import json
import os
import statistics
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT_S = 120  # seconds for one run of one program


class Plan:
    """How long to measure: medians of at least five runs, full or short. once: each
    program runs once and for a short time. That shows that it works, no more."""
    most_rounds = None

    def __init__(self, short=False, once=False):
        short = short or once
        self.rounds = 5 if short else 7
        self.run_ms = 100 if once else 250 if short else 1500
        self.segments = 20000 if once else 100000 if short else 400000
        self.cuts = 10 if once else 50 if short else 200
        self.parked = 4000 if once else 20000 if short else 100000
        Plan.most_rounds = 1 if once else None


class Programs:
    """The built programs, and the processors they run on."""

    def __init__(self, build):
        self.directory = os.path.join(build, "tests", "bench")
        cpus = sorted(os.sched_getaffinity(0))
        self.pinned = len(cpus) > 1
        self.server_cpu = cpus[0] if self.pinned else None
        self.load_cpu = cpus[1] if self.pinned else None
        self.cpus = cpus

    def path(self, name):
        return os.path.join(self.directory, name)

    def command(self, name, cpu, *arguments):
        pin = ["--cpu", str(cpu)] if cpu is not None else []
        return [self.path(name), *pin, *map(str, arguments)]

    def server(self, name, *arguments):
        return self.command(name, self.server_cpu, *arguments)

    def load(self, name, *arguments):
        return self.run(name, self.load_cpu, *arguments)

    def run(self, name, cpus, *arguments):
        return run(self.command(name, cpus, *arguments))


def run_rows(command):
    """Runs a program; returns its output, one object per line."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        raise SystemExit("failed: " + " ".join(command))
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def run(command):
    """The same for programs that print {"name", "value"}; returns values by name."""
    return {row["name"]: row["value"] for row in run_rows(command)}


def alternate(rounds, *runs):
    """Runs A B A B ...; returns the results of A, those of B, ..."""
    results = [[] for _ in runs]
    for _ in range(Plan.most_rounds or rounds):
        for one, into in zip(runs, results):
            into.append(one())
    return results


def column(results, name):
    return [result[name] for result in results]


class Report:
    def __init__(self):
        self.rows = []

    def add(self, name, values, unit, baselines=None, goal=None):
        """goal: ("value" or "ratio", what is compared; "<=" or ">="; the bound)."""
        row = {"name": name, "value": statistics.median(values), "unit": unit,
               "baseline": None, "ratio": None, "goal": None, "met": None}
        if baselines:
            pairs = zip(values, baselines)
            row["baseline"] = statistics.median(baselines)
            row["ratio"] = statistics.median(value / base for value, base in pairs)
        if goal:
            what, order, bound = goal
            row["goal"] = f"{what} {order} {bound:g}"
            row["met"] = row[what] >= bound if order == ">=" else row[what] <= bound
        self.rows.append(row)
        print(line_of(row), flush=True)

    def missed(self):
        return [row["name"] for row in self.rows if row["met"] is False]


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def line_of(row):
    verdict = {True: "met", False: "MISSED", None: ""}[row["met"]]
    return (f"{row['name']:<28} {number(row['value']):>10} {row['unit']:<11}"
            f"{number(row['baseline']):>10} {number(row['ratio']):>7}  "
            f"{row['goal'] or '-':<18} {verdict}").rstrip()
