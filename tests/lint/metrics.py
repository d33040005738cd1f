"""The table of core/docs/metrics.md has each metric of core/engine/server/stats.def and
core/engine/server/metrics.def, as metrics_families.c names it.

With --write the table is made anew.
"""

import re
import sys

import lint

STATS = "core/engine/server/stats.def"
OTHERS = "core/engine/server/metrics.def"
PAGE = "core/docs/metrics.md"
BEGIN, END = "<!-- made by tests/lint/metrics.py --write -->\n", "<!-- end -->\n"
LITERALS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
STAT = re.compile(rf"^STAT\((\w+),\s*(\w+),\s*(NOW|TOTAL),\s*{LITERALS},", re.M)
METRIC = re.compile(rf'^METRIC\(\w+,\s*"(\w+)",\s*(\w+),\s*{LITERALS}\)', re.M)
UNITS = {"bytes": "bytes", "seconds": "seconds"}


def joined(literals):
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals))


def rows(stats, others):
    """Yields (name, type, help) of each metric, in the order of the text."""
    for group, name, kind, text in STAT.findall(stats):
        snake = re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), name)
        end, sort = ("_total", "counter") if kind == "TOTAL" else ("", "gauge")
        yield f"segue_{group}_{snake}{end}", sort, joined(text)
    for name, sort, text in METRIC.findall(others):
        yield name, sort, joined(text)


def unit_of(name):
    words = name.removesuffix("_total").split("_")
    return UNITS.get(words[-1], "")


def table(stats, others):
    lines = ["| Metric | Type | Unit | What |", "| --- | --- | --- | --- |"]
    lines += [f"| `{name}` | {sort} | {unit_of(name)} | {text} |"
              for name, sort, text in rows(stats, others)]
    return "\n".join(lines) + "\n"


def check_planted():
    found = table('STAT(use, logBytes, NOW, "Size of "\n     "x.",\n     a->b)\n'
                  'STAT(a, b, TOTAL, "C.", 1)\n',
                  'METRIC(took, "took_seconds", histogram,\n       "T.")\n').splitlines()
    wanted = ["| `segue_use_log_bytes` | gauge | bytes | Size of x. |",
              "| `segue_a_b_total` | counter |  | C. |",
              "| `took_seconds` | histogram | seconds | T. |"]
    if found[2:] != wanted:
        sys.exit(f"the planted tables are not understood: {found}")


def main():
    check_planted()
    page, stats, others = (lint.read(path) for path in (PAGE, STATS, OTHERS))
    count = len(list(rows(stats, others)))
    found = []
    if count != stats.count("\nSTAT(") + others.count("\nMETRIC("):
        found.append(f"{STATS}:1: a row is not understood by tests/lint/metrics.py")
    head, rest = page.split(BEGIN)
    old, tail = rest.split(END)
    new = f"\n{table(stats, others)}\n"
    if "--write" in sys.argv[1:]:
        (lint.ROOT / PAGE).write_text(head + BEGIN + new + END + tail)
    elif old != new:
        found.append(f"{PAGE}:1: not up to date: python3 tests/lint/metrics.py --write")
    lint.finish(found, f"{count} metrics")


main()
