"""What the results of a suite mean: which checks are known to fail, which scenarios
must not fail, and whether all required ones ran."""
import contextlib
import io
import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
# Number of scenarios that each frozen requirement set scores. The suite of 0.1.16 is
# older than the sets; the scenarios that it shares with the set of its revision must
# pass, too.
COUNTS = {"server 2025-11-25": 30, "client 2025-11-25": 18,
          "server 2026-07-28": 37, "client 2026-07-28": 32}
SCORED_AS = {"server 0.1.16 active": "server 2025-11-25",
             "client 0.1.16 all": "client 2025-11-25"}
# AS-124: the public suite's scenarios of tasks
# It runs them with the set, as an extension that scores nothing; here they may not fail.
ALSO = {"server 2026-07-28": [
    "tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields",
    "tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers",
    "tasks-dispatch-and-envelope", "tasks-required-task-error",
    "tasks-mrtr-composition"]}
NAME = re.compile(r"  - (\S+)$")


class Broken(Exception):
    """The data files contradict each other, or the suite."""


def read_json(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return json.load(file)


# ---- scored scenarios

class Scored:
    """{run: names}: the scenarios that each run must have run, and must not excuse."""

    def __init__(self, lists, counts=None):
        counts = COUNTS if counts is None else counts
        found = {run: len(set(names)) for run, names in lists.items()}
        if found != counts or any(len(lists[run]) != n for run, n in found.items()):
            raise Broken(f"scored.json: {found} scenarios, not {counts}")
        self.lists = lists

    def of(self, run):
        return self.lists.get(SCORED_AS.get(run, run), []) + ALSO.get(run, [])

    def compare(self, directory):
        """Compares with the requirement sets of the suite: YAML, of which this reads a
        small part."""
        for run, names in self.lists.items():
            mode, revision = run.split()
            with open(os.path.join(directory, f"{revision}.yaml"),
                      encoding="utf-8") as file:
                _, _, rest = file.read().partition(f"\n{mode}:\n")
            theirs = []
            for line in rest.splitlines():
                match = NAME.match(line)
                if not match:
                    break
                theirs.append(match[1])
            if sorted(theirs) != sorted(names):
                raise Broken(f"scored.json: {run} is not what the suite scores")


# ---- the baseline

class Baseline:
    """{"scenario" or "scenario:check": why} of one run, and which of them failed."""

    def __init__(self, rows, run, scored):
        self.entries, self.used = {}, set()
        for row in rows:
            why = f"{row['reason']} ({row['issue']})"
            for entry in row.get(run, []):
                if entry in self.entries:
                    raise Broken(f"baseline: {entry} stands twice in {run}")
                self.entries[entry] = why
        for entry in self.entries:
            scenario, _, check = entry.partition(":")
            if scenario in scored:
                raise Broken(f"baseline: {entry}: {scenario} is scored in {run}")
            if check and scenario in self.entries:
                raise Broken(f"baseline: {entry}: {scenario} stands there as a whole")

    def excuse(self, scenario, check):
        """Returns why this check may fail, or None. The messages of a scenario that
        fails as a whole must be valid all the same."""
        entries = [f"{scenario}:{check}"]
        if check != "wire-schema-valid":
            entries.append(scenario)
        for entry in entries:
            if entry in self.entries:
                self.used.add(entry)
                return self.entries[entry]
        return None

    def stale(self):
        """Returns the entries that no longer fail, or name nothing that exists."""
        return sorted(set(self.entries) - self.used)


# ---- verdicts

class Verdict:
    def __init__(self, run):
        self.run = run
        self.passed = self.failed = self.unknown = 0
        self.problems = []

    def line(self):
        return f"conformance {self.run}: {self.passed} passed, {self.failed} failed"


def failure(ident, why):
    return {"id": ident, "status": "FAILURE", "errorMessage": why}


def first_line(check):
    text = check.get("errorMessage") or check.get("description") or "no reason given"
    lines = text.strip().splitlines() or [""]
    return lines[0][:400]


def judge(verdict, baseline, scenario, checks):
    for check in checks:
        verdict.passed += check["status"] == "SUCCESS"
        verdict.failed += check["status"] == "FAILURE"
        if check["status"] not in ("FAILURE", "WARNING"):
            continue
        why = baseline.excuse(scenario, check["id"])
        verdict.unknown += why is None
        print(f"{verdict.run}  {'known' if why else check['status']}  {scenario}: "
              f"{check['id']}\n{'':12}{first_line(check)}"
              f"{f' [{why}]' if why else ''}", flush=True)


def has_success(checks):
    return any(check["status"] == "SUCCESS" for check in checks or [])


def finish(verdict, baseline, scored, results, is_whole):
    if is_whole:
        verdict.problems += [f"{entry}: the baseline has it, but it does not fail"
                             for entry in baseline.stale()]
        verdict.problems += [f"{scenario} is scored, but nothing of it has passed"
                             for scenario in scored
                             if not has_success(results.get(scenario))]
    if verdict.unknown:
        verdict.problems.append(f"{verdict.unknown} checks are not in the baseline")
    if not verdict.passed:
        verdict.problems.append("no check has passed")


def judge_all(run, rows, scored, results, is_whole=True):
    """results: {scenario: checks, or None when it left none}; is_whole: all scenarios
    of the run ran."""
    names = scored.of(run)
    verdict, baseline = Verdict(run), Baseline(rows, run, names)
    for scenario, checks in results.items():
        if checks is None:
            checks = [failure(scenario, "the scenario did not run to its end")]
        judge(verdict, baseline, scenario, checks)
    finish(verdict, baseline, names, results, is_whole)
    return verdict


# ---- a test of this judge

def is_broken(make, *args):
    try:
        make(*args)
    except Broken:
        return True
    return False


def self_check():
    """Checks that each kind of problem is found, in results that are made up."""
    def check(ident, status):
        return {"id": ident, "status": status, "errorMessage": "planted"}

    def problems(rows, results, scored=()):
        lists = Scored({"R": list(scored)}, {"R": len(scored)})
        with contextlib.redirect_stdout(io.StringIO()):
            found = judge_all("R", rows, lists, results).problems
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
            raise Broken(f"it does not judge rightly: {rows} {results}")
    right = (not problems([], {"s": [good]}, ["s"])
             and len(problems([], {"s": [good]}, ["s", "t"])) == 1
             and len(problems([], {"s": [good], "t": []}, ["s", "t"])) == 1
             and len(problems([], {"s": [good], "t": [check("i", "SKIPPED")]},
                              ["s", "t"])) == 1
             and is_broken(problems, [{**row, "R": ["s"]}], {"s": [bad]}, ["s"])
             and is_broken(problems, [{**row, "R": ["s:d"]}], {"s": [bad]}, ["s"])
             and is_broken(problems, [{**row, "R": ["s", "s"]}], {"s": [bad]})
             and is_broken(problems, [{**row, "R": ["s", "s:d"]}], {"s": [bad]})
             and is_broken(Scored, {"R": ["s", "s"]}, {"R": 2})
             and is_broken(Scored, {"R": ["s"]}, {"R": 2}))
    if not right:
        raise Broken("it does not judge scored scenarios rightly")
