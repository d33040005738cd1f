"""Runs tests as `python3 -m unittest` does, several classes at a time, each in a process
of its own: most of them wait for programs that start and end. Prints what a class that
fails has printed, and at the end what unittest prints about all of them.

Usage: parallel.py JOBS [discover -p PATTERN | MODULE[.CLASS[.TEST]]...]
"""

import concurrent.futures
import re
import subprocess
import sys
import time
import unittest

COUNTS = re.compile(r"^Ran (\d+) tests? in .*\n\n(?:OK|FAILED)(?: \((.*)\))?\n\Z", re.M)


def names_of(suite):
    """Yields the full name of each test of a suite."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from names_of(test)
        else:
            yield test.id()


def find(arguments):
    """Returns {class: its tests}; a module that cannot be imported is a class, too."""
    if arguments[:1] == ["discover"]:
        suite = unittest.defaultTestLoader.discover(".", arguments[2])
    else:
        suite = unittest.defaultTestLoader.loadTestsFromNames(arguments)
    classes = {}
    for name in names_of(suite):
        if name.startswith("unittest.loader."):
            name = name.rpartition(".")[2] + ".*"
        classes.setdefault(name.rpartition(".")[0], []).append(name)
    return classes


def run(names):
    """Returns the number of tests that ran, the counts of unittest and the output."""
    said = subprocess.run([sys.executable, "-B", "-m", "unittest", *names],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    match = COUNTS.search(said.stdout)
    if not match:
        return 0, {"errors": 1}, said.stdout
    counts = {}
    for part in filter(None, (match.group(2) or "").split(", ")):
        word, _, number = part.partition("=")
        counts[word] = int(number)
    if said.returncode and not {"failures", "errors", "unexpected successes"} & {*counts}:
        counts["errors"] = 1
    return int(match.group(1)), counts, said.stdout


def main():
    sys.path.insert(0, ".")
    began, total, counts = time.monotonic(), 0, {}
    jobs, classes = int(sys.argv[1]), find(sys.argv[2:])
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        largest_first = sorted(classes.values(), key=len, reverse=True)
        for done in concurrent.futures.as_completed(
                [pool.submit(run, tests) for tests in largest_first]):
            number, found, output = done.result()
            total += number
            for word, count in found.items():
                counts[word] = counts.get(word, 0) + count
            if {*found} - {"skipped"}:
                print(output, file=sys.stderr, flush=True)
    failed = bool({*counts} - {"skipped"}) or not total
    told = ", ".join(f"{word}={count}" for word, count in sorted(counts.items()))
    print(f"Ran {total} tests in {time.monotonic() - began:.3f}s\n", file=sys.stderr)
    print(("FAILED" if failed else "OK") + (f" ({told})" if told else ""),
          file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
