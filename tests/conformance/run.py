"""The official conformance suites as judges of Segue's server and client, over HTTP.

    run.py [--programs DIRECTORY] [--server COMMAND] [--client PROGRAM] [--role ROLE]
           [--out DIRECTORY] [--only RUN] [--scenario NAME] [--proxy PROGRAM]

Starts the fixture server, and runs the suite against it and with the fixture client,
once for each requirement set; then the suite that npm calls latest, 0.1.16. Prints each
check that failed, or warned (a SHOULD), with its reason. The last lines, one for each
run, are
"conformance RUN: P passed, F failed" (checks; a warning counts as neither).

baseline.json names, by run, the checks that are known to fail or warn, each with the
reason and the issue that covers it. Any other failure fails the run, and so does an
entry that no longer fails. The scenarios that a requirement set scores (scored.json)
must have run, and baseline.json must not name them. A wrong end of the client counts as
a check. tests/schema checks the messages of Segue's side, too. With --proxy the clients
of the suites reach the server through that segue-proxy: then proxy_baseline.json has
what passes only without the proxy, scored or not, and tests/schema is not asked. Runs
from the top of the tree, after .ci/setup-peers. Standard library only.
"""
import argparse
import os
import shlex
import shutil
import sys
import time

import suites
import verdicts


def judge_runs(runs, programs, rows, scored, scenario):
    """Checks the results of all runs that were started."""
    judged = []
    for run in runs:
        start = time.monotonic()
        results = suites.run_suite(run, programs, scenario)
        judged.append(verdicts.judge_all(run.name, rows, scored, results, not scenario))
        print(f"{run.name}: {len(results)} scenarios in "
              f"{time.monotonic() - start:.0f} s", flush=True)
    return judged


def read_scored():
    scored = verdicts.Scored(verdicts.read_json("scored.json"))
    scored.compare(os.path.join(suites.CURRENT, "requirements"))
    return scored


def check_baseline(rows, scored):
    """Called before anything runs."""
    known = {run.name for run in suites.RUNS} | {"reason", "issue"}
    for row in rows:
        if set(row) - known:
            raise verdicts.Broken(f"baseline: no such run: {sorted(set(row) - known)}")
    for run in suites.RUNS:
        verdicts.Baseline(rows, run.name, scored.of(run.name))


class ThroughProxy:
    """{run: names} of scored scenarios, without those of which the baseline of the
    proxy has something."""

    def __init__(self, scored, rows):
        self.scored, self.rows = scored, rows

    def of(self, run):
        excused = {entry.partition(":")[0] for row in self.rows
                   for entry in row.get(run, [])}
        return [name for name in self.scored.of(run) if name not in excused]


def in_front(args):
    """Returns the command of the server with the proxy in front of it."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           "../proxy/in_front.py")
    return shlex.join([sys.executable, "-B", program, os.path.abspath(args.proxy), "--",
                       "http", os.path.join(args.programs, "server")])


def main():
    parser = argparse.ArgumentParser(prog="run.py")
    parser.add_argument("--programs", default="build/release/tests/conformance",
                        help="where the server and the client are")
    parser.add_argument("--server", help="the command line of another server")
    parser.add_argument("--client", help="another client, as one program")
    parser.add_argument("--role", choices=["server", "client"], help="only its runs")
    parser.add_argument("--out", default="build/conformance",
                        help="what they leave; it is emptied first")
    parser.add_argument("--only", choices=[run.name for run in suites.RUNS])
    parser.add_argument("--scenario")
    parser.add_argument("--proxy", help="a segue-proxy, in front of the server")
    args = parser.parse_args()
    if args.proxy:
        args.server, args.role = in_front(args), "server"
    runs = [run for run in suites.RUNS
            if args.only in (None, run.name) and args.role in (None, run.mode)]
    for package in (suites.CURRENT, suites.LATEST):
        if not os.path.exists(os.path.join(package, "dist/index.js")):
            sys.exit("run.py: a suite is not there; .ci/setup-peers installs it")
    verdicts.self_check()
    scored = read_scored()
    rows = verdicts.read_json("proxy_baseline.json" if args.proxy else "baseline.json")
    if args.proxy:
        scored = ThroughProxy(scored, rows)
    check_baseline(rows, scored)
    out = os.path.abspath(args.out)
    shutil.rmtree(out, ignore_errors=True)
    for run in runs:
        run.begin(out)
    programs = suites.Programs(args.programs, out, args.server, args.client)
    try:
        judged = judge_runs(runs, programs, rows, scored, args.scenario)
    finally:
        end = programs.server.stop()
    problems = [f"{v.run}: {problem}" for v in judged for problem in v.problems]
    problems += [end] if end else []
    for role in [] if args.proxy else sorted({run.mode for run in runs}):
        by_schema, is_valid = suites.judge_by_schema(role, out)
        print(by_schema)
        problems += [] if is_valid else [by_schema]
    print("".join(f"PROBLEM  {problem}\n" for problem in problems), end="")
    print("\n".join(verdict.line() for verdict in judged))
    return bool(problems)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except verdicts.Broken as error:
        sys.exit(f"run.py: {error}")
