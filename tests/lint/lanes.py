"""The table .ci/lanes is valid, and its runner ends lanes that hang.

Each lane is in a set, the lanes of a set come only after existing lanes, and no lane
has more time than its set.
"""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import time

import lint

TABLE = ".ci/lanes"
# A lane that hangs and has a process in a session of its own, as test servers have.
PLANTED = """
set all 5 300 10
lane good all 60 1 - echo "kill matrix x: 3 kills"; echo "5 passed, 1 skipped in 3.2s"
lane bad all 60 1 - echo "ends badly"; exit 3
lane hangs all 0 1 - setsid sleep 777 & echo $! >"$PLACE/pid"; wait; sleep 777
lane behind all 60 1 hangs touch "$PLACE/ran"
lane ordered all 60 2 good test -n "$JOBS"
lane slow all 1 1 - sleep 2
lane apart all 60 1 - echo "no emulator, not tried"; exit 77
lane part all 60 1 - echo "1 passed, 1 failed in 3.2s"; exit 77
"""
WRONG = [
    "lane x all 5 1 - true",  # no such set
    "set all 5 60 1\nlane x all 5 1 y true",  # comes after an unknown lane
    "set all 5 60 1\nlane x all 5 3 - true",  # more than the whole machine
    "set all 5 60 1\nlane x all 5 1 -",  # no command
    "set all 5 60",
    "line x",
]


def load_runner():
    path = str(lint.ROOT / ".ci/lane")
    loader = importlib.machinery.SourceFileLoader("lane", path)
    spec = importlib.util.spec_from_loader("lane", loader)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def check_runner():
    with tempfile.TemporaryDirectory() as place:
        table = os.path.join(place, "lanes")
        with open(table, "w", encoding="ascii") as file:
            file.write(PLANTED)
        environment = os.environ | {"SEGUE_LANES": table, "SEGUE_LANE_GRACE": "3",
                                    "PLACE": place, "SEGUE_LANE_LOGS": place}
        told = subprocess.run([lint.ROOT / ".ci/lane", "all"], capture_output=True,
                              text=True, timeout=120, env=environment)
        out = told.stdout
        count = "\n8 passed, 4 failed, 1 skipped\n"
        lint.expect(out.endswith(count), f"the count: {out}")
        lint.expect(told.returncode == 1, f"status {told.returncode}")
        for line in ("ok    good: 5 tests", "      kill matrix x: 3", "ends badly",
                     "FAIL  hangs: it hung and was ended",
                     "FAIL  behind: not run, as hangs failed",
                     "skip  apart", "      no emulator, not tried\n",
                     "FAIL  part: 1 of 2 tests",
                     "over budget: hangs, slow"):
            lint.expect(line in out, f"not told: {line}: {out}")
        lint.expect(not os.path.exists(os.path.join(place, "ran")), "ran in vain")
        with open(os.path.join(place, "pid"), encoding="ascii") as file:
            pid = int(file.read())
        for _ in range(100):
            if not is_running(pid):
                break
            time.sleep(0.1)
        lint.expect(not is_running(pid), "what a lane had started goes on")
        check_end(place, environment)


def check_end(place, environment):
    """An interrupted run reports its results so far, and ends the processes that it
    started."""
    run = subprocess.Popen([lint.ROOT / ".ci/lane", "good", "hangs", "slow"],
                           stdout=subprocess.PIPE, text=True, env=environment)
    pid = os.path.join(place, "pid")
    os.remove(pid)
    until = time.monotonic() + 60
    while not os.path.exists(pid) and time.monotonic() < until:
        time.sleep(0.1)
    run.terminate()
    out, _ = run.communicate(timeout=60)
    lint.expect("FAIL  hangs: it was ended" in out, f"not told: {out}")
    lint.expect(" failed\n" in out and run.returncode == 1, f"the count: {out}")


def check_table(runner, text):
    findings = []
    sets, lanes = runner.read_table(text)
    for one in sets.values():
        inside = [lane for lane in lanes.values() if one.name in lane.sets]
        halves = sum(lane.budget * lane.share for lane in inside)
        if halves > runner.SHARES * one.budget:
            findings.append(f"{TABLE}:1: the lanes of {one.name} may take "
                            f"{halves // runner.SHARES} s, the set {one.budget} s")
        if one.limit < one.budget:
            findings.append(f"{TABLE}:1: the limit of {one.name} is below its budget")
    return findings


def main():
    runner = load_runner()
    for text in WRONG:
        try:
            runner.read_table(text)
        except SystemExit:
            continue
        lint.expect(False, f"let pass: {text!r}")
    lint.expect(check_table(runner, "set a 10 20 1\nlane x a 11 2 - true"),
                "a lane over its set was let pass")
    check_runner()
    text = lint.read(TABLE)
    lint.finish(check_table(runner, text), f"{text.count(chr(10) + 'lane ')} lanes")


main()
