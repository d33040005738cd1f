"""The official conformance suite as judge of our server, over HTTP.

    run.py [--server PROGRAM] [--only REVISION] [--scenario NAME]

Starts the fixture server, runs the suite against it once for each requirement set, and
prints each check that failed, or warned (a SHOULD), with its reason. The last two lines
are "conformance server REVISION: P passed, F failed" (checks; a warning is neither).
baseline.json names the checks that are known to fail or warn, each with the reason and
the issue that owes it: any other fails the run, and so does an entry that no longer
fails. What the server says is judged by tests/schema, too. Runs from the top of the tree,
after .ci/setup-peers. Standard library only.
"""
import argparse
import glob
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.abspath("build/deps/conformance/node_modules")
SUITE = os.path.join(PACKAGES, "@modelcontextprotocol/conformance/dist/index.js")
OUT = os.path.abspath("build/conformance")
PYTHON = os.path.abspath("build/deps/venv/bin/python")
TAP = os.path.join(HERE, "../interop/http_tap.py")
SCHEMA = os.path.join(HERE, "../schema/http_logs.py")
REVISIONS = ("2025-11-25", "2026-07-28")
RUN_SECONDS = 600
START_SECONDS = STOP_SECONDS = 20
RESULT = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d+Z")
ANNOUNCED = re.compile(r"^=== Running scenario: (\S+) ===$", re.M)
COUNT = re.compile(r"^Running requirements \S+ \((\d+) scenarios\)", re.M)


# ---- the baseline

class Baseline:
    """{"scenario" or "scenario:check": why} of one revision, and which of them failed."""

    def __init__(self, rows, revision):
        self.entries, self.used = {}, set()
        for row in rows:
            why = f"{row['reason']} ({row['issue']})"
            for entry in row.get(revision, []):
                if entry in self.entries:
                    raise ValueError(f"baseline: {entry} stands twice in {revision}")
                self.entries[entry] = why
        for entry in self.entries:
            scenario, _, check = entry.partition(":")
            if check and scenario in self.entries:
                raise ValueError(f"baseline: {entry}: {scenario} stands there as a whole")

    def excuse(self, scenario, check):
        """Why this check may fail, or None. A scenario that fails as a whole has valid
        messages all the same."""
        entries = [f"{scenario}:{check}"]
        if check != "wire-schema-valid":
            entries.append(scenario)
        for entry in entries:
            if entry in self.entries:
                self.used.add(entry)
                return self.entries[entry]
        return None

    def stale(self):
        """The entries that no longer fail, or name what is not there."""
        return sorted(set(self.entries) - self.used)


def read_baseline():
    with open(os.path.join(HERE, "baseline.json"), encoding="utf-8") as file:
        return json.load(file)


# ---- verdicts

class Verdict:
    def __init__(self, revision):
        self.revision = revision
        self.passed = self.failed = self.unknown = 0
        self.problems = []

    def line(self):
        return (f"conformance server {self.revision}: {self.passed} passed, "
                f"{self.failed} failed")


def first_line(text):
    lines = (text or "no reason given").strip().splitlines() or [""]
    return lines[0][:400]


def judge(verdict, baseline, scenario, checks):
    for check in checks:
        verdict.passed += check["status"] == "SUCCESS"
        verdict.failed += check["status"] == "FAILURE"
        if check["status"] not in ("FAILURE", "WARNING"):
            continue
        why = baseline.excuse(scenario, check["id"])
        verdict.unknown += why is None
        print(f"{verdict.revision}  {'known' if why else check['status']}  {scenario}: "
              f"{check['id']}\n{'':12}{first_line(check.get('errorMessage'))}"
              f"{f' [{why}]' if why else ''}", flush=True)


def finish(verdict, baseline, is_whole):
    if is_whole:
        verdict.problems += [f"{entry}: the baseline has it, but it does not fail"
                             for entry in baseline.stale()]
    if verdict.unknown:
        verdict.problems.append(f"{verdict.unknown} checks are not in the baseline")
    if not verdict.passed:
        verdict.problems.append("no check has passed")


def judge_all(revision, rows, results, is_whole=True):
    """results: {scenario: checks, or None when it left none}; is_whole: of all scenarios
    of the revision."""
    verdict, baseline = Verdict(revision), Baseline(rows, revision)
    for scenario, checks in results.items():
        if checks is None:
            checks = [{"id": scenario, "status": "FAILURE",
                       "errorMessage": "the scenario did not run to its end"}]
        judge(verdict, baseline, scenario, checks)
    finish(verdict, baseline, is_whole)
    return verdict


def self_check():
    """Each kind of problem is found in a run that was made up."""
    def check(ident, status):
        return {"id": ident, "status": status, "errorMessage": "planted"}

    def problems(rows, results):
        with open(os.devnull, "w", encoding="utf-8") as sys.stdout:
            found = judge_all("R", rows, results).problems
        sys.stdout = sys.__stdout__
        return found

    good, bad = check("c", "SUCCESS"), check("d", "FAILURE")
    invalid = check("wire-schema-valid", "FAILURE")
    row = {"reason": "planted", "issue": "none"}
    for rows, results, count in (
            ([], {"s": [good]}, 0),
            ([], {"s": [good, check("i", "INFO")]}, 0),
            ([], {"s": [good, check("w", "WARNING")]}, 1),
            ([{**row, "R": ["s:w"]}], {"s": [good, check("w", "WARNING")]}, 0),
            ([], {"s": [good, bad]}, 1),
            ([], {"s": [good], "t": None}, 1),
            ([], {}, 1),
            ([{**row, "R": ["s:d"]}], {"s": [good, bad]}, 0),
            ([{**row, "R": ["s"]}], {"s": [good, bad]}, 0),
            ([{**row, "R": ["s"]}], {"s": [good, bad, invalid]}, 1),
            ([{**row, "Q": ["s"]}], {"s": [good, bad]}, 1),
            ([{**row, "R": ["s:c"]}], {"s": [good, bad]}, 2),
            ([{**row, "R": ["s"]}], {"s": [good]}, 1),
            ([{**row, "R": ["t"]}], {"s": [good]}, 1)):
        if len(problems(rows, results)) != count:
            sys.exit(f"run.py does not judge rightly: {rows} {results}")


# ---- programs

def node():
    own = os.path.join(PACKAGES, "node/bin/node")
    return own if os.path.exists(own) else shutil.which("node")


class Server:
    """The fixture server while it runs."""

    def __init__(self, program):
        self.log = open(os.path.join(OUT, "server.log"), "wb")
        # What a sanitizer finds is to end the server, if it is built with one.
        env = {"UBSAN_OPTIONS": "halt_on_error=1", "TSAN_OPTIONS": "halt_on_error=1"}
        self.child = subprocess.Popen([program], stdout=subprocess.PIPE, stderr=self.log,
                                      env={**os.environ, **env})
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.child.stdout, selectors.EVENT_READ)
            ready = waiting.select(START_SECONDS)
        self.url = self.child.stdout.readline().decode().strip() if ready else ""
        self.tap = None
        address = re.match(r"(http://127\.0\.0\.1:)(\d+)(/.*)", self.url)
        if address:
            self.tap = subprocess.Popen(
                [sys.executable, "-B", TAP, os.path.join(OUT, "tap"), address[2]],
                stdout=subprocess.PIPE)
            port = self.tap.stdout.readline().decode().strip()
            self.url = f"{address[1]}{port}{address[3]}"

    def judge_by_schema(self):
        """The last line of the judge, and whether it found no fault."""
        logs = sorted(glob.glob(os.path.join(OUT, "tap.*.up")))
        report = os.path.join(OUT, "schema.log")
        with open(report, "wb") as out:
            code = subprocess.call([PYTHON, "-B", SCHEMA, "server",
                                    *(log[:-3] for log in logs)],
                                   stdout=out, stderr=subprocess.STDOUT)
        with open(report, encoding="utf-8", errors="replace") as told:
            lines = told.read().splitlines() or ["nothing was said"]
        return f"schema: {lines[-1]} ({report})", code == 0

    def stop(self):
        """"" when it was there to the end and stopped as told, else what was wrong."""
        if self.tap:
            self.tap.kill()
            self.tap.wait()
        early = self.child.poll()
        if early is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
                return "the server did not stop when it was told to"
        self.log.close()
        if early is not None or self.child.returncode:
            return f"the server ended with {self.child.returncode}; see {self.log.name}"
        return ""


def run_suite(url, revision, scenario):
    """{scenario: checks}; what the suite announced without leaving a result has None."""
    out = os.path.join(OUT, revision)
    choice = ["--requirements", revision]
    if scenario:
        choice = ["--scenario", scenario, "--spec-version", revision, "--force"]
    command = [node(), SUITE, "server", "--url", url, *choice, "-o", out]
    os.makedirs(out)
    with open(os.path.join(OUT, f"{revision}.log"), "wb") as log:
        child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                 start_new_session=True)
        try:
            child.wait(RUN_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    with open(log.name, encoding="utf-8", errors="replace") as log:
        told = log.read()
    results = dict.fromkeys(ANNOUNCED.findall(told))
    count = COUNT.search(told)
    if not scenario and int(count.group(1) if count else -1) != len(results):
        results["all scenarios"] = None
    for name in sorted(os.listdir(out)):
        match, path = RESULT.fullmatch(name), os.path.join(out, name, "checks.json")
        if match and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                results[match.group(1)] = json.load(file)
    return results


def main():
    parser = argparse.ArgumentParser(prog="run.py")
    parser.add_argument("--server", default="build/release/tests/conformance/server")
    parser.add_argument("--only", choices=REVISIONS)
    parser.add_argument("--scenario")
    args = parser.parse_args()
    self_check()
    if not os.path.exists(SUITE):
        sys.exit("run.py: the suite is not there; .ci/setup-peers installs it")
    rows, verdicts = read_baseline(), []
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    server = Server(os.path.abspath(args.server))
    try:
        for revision in [args.only] if args.only else REVISIONS:
            start = time.monotonic()
            results = run_suite(server.url, revision, args.scenario)
            verdicts.append(judge_all(revision, rows, results, not args.scenario))
            print(f"{revision}: {len(results)} scenarios in "
                  f"{time.monotonic() - start:.0f} s", flush=True)
    finally:
        end = server.stop()
    problems = [f"{v.revision}: {problem}" for v in verdicts for problem in v.problems]
    problems += [end] if end else []
    by_schema, is_valid = server.judge_by_schema()
    print(by_schema)
    problems += [] if is_valid else [by_schema]
    print("".join(f"PROBLEM  {problem}\n" for problem in problems), end="")
    print("\n".join(verdict.line() for verdict in verdicts))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
