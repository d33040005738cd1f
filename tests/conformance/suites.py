"""Runs the suites, and Segue's programs beside them."""
import glob
import json
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.abspath("build/deps/conformance/node_modules")
CURRENT = os.path.join(PACKAGES, "@modelcontextprotocol/conformance")
LATEST = os.path.join(PACKAGES, "conformance-0.1.16")
PYTHON = os.path.abspath("build/deps/venv/bin/python")
TAP = os.path.join(HERE, "../interop/http_tap.py")
SCHEMA = os.path.join(HERE, "../schema/http_logs.py")
OBSERVE = os.path.join(HERE, "observe")
RUN_SECONDS = 600
START_SECONDS = STOP_SECONDS = 20
RESULT = re.compile(r"(.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d+Z")
ANNOUNCED = re.compile(r"^(?:=== Running scenario: (\S+) ===|Starting scenario: (\S+))$",
                       re.M)
COUNT = re.compile(r"^Running (?:requirements )?\S+ (?:suite )?\((\d+) scenarios\)", re.M)
# In these scenarios the other side cannot be trusted, and the client must end with a
# failure.
REFUSES = {"auth/resource-mismatch", "auth/scope-retry-limit",
           "auth/iss-supported-missing", "auth/iss-wrong-issuer", "auth/iss-unexpected",
           "auth/iss-normalized", "auth/metadata-issuer-mismatch"}
# This scenario measures the client's delay to a fifth of a second. The suite runs
# scenarios in parallel, and then the machine would cause the delay.
ALONE = "sse-retry"
# A finding of a sanitizer must end a program that is built with one, with a status of
# its own.
STRICT = {"ASAN_OPTIONS": "exitcode=99", "LSAN_OPTIONS": "exitcode=99",
          "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99",
          "TSAN_OPTIONS": "halt_on_error=1"}


class Run:
    """One suite against one of Segue's programs."""

    def __init__(self, mode, package, choice):
        self.mode, self.package, self.choice = mode, package, choice
        is_set = package == CURRENT
        self.name = f"{mode} {choice}" if is_set else f"{mode} 0.1.16 {choice}"
        self.arguments = ["--requirements" if is_set else "--suite", choice]
        self.place = None  # the directory for its results

    def begin(self, out):
        self.place = os.path.join(out, self.name.replace(" ", "-"))
        os.makedirs(self.place)

    def one(self, scenario):
        version = ["--spec-version", self.choice, "--force"]
        return ["--scenario", scenario, *(version if self.package == CURRENT else [])]


RUNS = (Run("server", CURRENT, "2025-11-25"), Run("server", CURRENT, "2026-07-28"),
        Run("client", CURRENT, "2025-11-25"), Run("client", CURRENT, "2026-07-28"),
        Run("server", LATEST, "active"), Run("client", LATEST, "all"))


def node():
    own = os.path.join(PACKAGES, "node/bin/node")
    return own if os.path.exists(own) else shutil.which("node")


# ---- one run of a suite

def suite(run, target, scenario):
    """Runs the suite; returns what it printed, and where its results are."""
    choice = run.one(scenario) if scenario else run.arguments
    name = scenario.replace("/", "+") if scenario else "all"
    out = os.path.join(run.place, "results", name)
    command = [node(), os.path.join(run.package, "dist/index.js"), run.mode, *target,
               *choice, "-o", out]
    os.makedirs(out)
    with open(f"{out}.log", "wb") as log:
        child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                 start_new_session=True, env={**os.environ, **STRICT})
        try:
            child.wait(RUN_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    with open(log.name, encoding="utf-8", errors="replace") as log:
        return log.read(), out


def read_results(run, told, out, is_whole):
    """Returns {scenario: checks}; a scenario that was announced but left no result has
    None."""
    results = dict.fromkeys(a or b for a, b in ANNOUNCED.findall(told))
    count = COUNT.search(told)
    if is_whole and int(count[1] if count else -1) != len(results):
        results["all scenarios"] = None
    for path in sorted(glob.glob(os.path.join(out, "**/checks.json"), recursive=True)):
        match = RESULT.fullmatch(os.path.relpath(os.path.dirname(path), out))
        if match:
            name = match[1]
            if run.mode == "server":
                name = name.removeprefix("server-")
            with open(path, encoding="utf-8") as file:
                results[name] = json.load(file)
    return results


def unexpected_end(run, scenario):
    """Returns how the client ended, if that is wrong: the suite does not check it."""
    name = scenario.replace("/", "+")
    try:
        with open(os.path.join(run.place, f"{name}.exit"), encoding="utf-8") as file:
            status = int(file.read())
    except (OSError, ValueError):
        return "it is not known how the client ended"
    if status == int(scenario in REFUSES):
        return None
    with open(os.path.join(run.place, f"{name}.log"), encoding="utf-8",
              errors="replace") as file:
        said = file.read().strip().splitlines() or ["it said nothing"]
    return f"the client ended with {status}: {said[-1]}"


def run_suite(run, programs, scenario):
    """Returns {scenario: checks}."""
    target = ["--url", programs.server.url]
    if run.mode == "client":
        command = (OBSERVE, run.place, programs.client)
        target = ["--command", shlex.join(command)]
    results = read_results(run, *suite(run, target, scenario), not scenario)
    if ALONE in results and not scenario:
        results[ALONE] = read_results(run, *suite(run, target, ALONE), False).get(ALONE)
    if run.mode == "client":
        for name, checks in results.items():
            why = checks is not None and unexpected_end(run, name)
            if why:
                checks.append({"id": "client-exit", "status": "FAILURE",
                               "errorMessage": why})
    return results


# ---- Segue's side

class Server:
    """The fixture server while it runs."""

    def __init__(self, command, out):
        self.log = open(os.path.join(out, "server.log"), "wb")
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log,
                                      env={**os.environ, **STRICT})
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.child.stdout, selectors.EVENT_READ)
            ready = waiting.select(START_SECONDS)
        self.url = self.child.stdout.readline().decode().strip() if ready else ""
        self.tap = None
        address = re.match(r"(http://127\.0\.0\.1:)(\d+)(/.*)", self.url)
        if address:
            self.tap = subprocess.Popen(
                [sys.executable, "-B", TAP, os.path.join(out, "tap"), address[2]],
                stdout=subprocess.PIPE)
            port = self.tap.stdout.readline().decode().strip()
            self.url = f"{address[1]}{port}{address[3]}"

    def stop(self):
        """Stops the server; returns "" when it ran to the end and stopped on request,
        otherwise what was wrong."""
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


class Programs:
    """The running server, and the path of the client. For other languages: the command
    line of the server, and the program to run as the client."""

    def __init__(self, directory, out, server=None, client=None):
        directory = os.path.abspath(directory)
        self.client = client or os.path.join(directory, "client")
        command = shlex.split(server) if server else [os.path.join(directory, "server")]
        self.server = Server(command, out)


def judge_by_schema(role, out):
    """Checks the recorded messages by the schema; returns the last line of the output,
    and whether there was no fault. For the client it leaves out the scenarios of
    authorization, whose messages contain its URLs."""
    pattern = "tap.*.up" if role == "server" else "client-*/*.tap.*.up"
    logs = sorted(glob.glob(os.path.join(out, pattern)))
    report = os.path.join(out, f"schema-{role}.log")
    with open(report, "wb") as file:
        code = subprocess.call([PYTHON, "-B", SCHEMA, role, *(log[:-3] for log in logs)],
                               stdout=file, stderr=subprocess.STDOUT)
    with open(report, encoding="utf-8", errors="replace") as told:
        lines = told.read().splitlines() or ["nothing was said"]
    return f"schema {role}: {lines[-1]} ({report})", code == 0
