"""The Python SDK compared with the official one.

Needs .ci/python ready (or SEGUE_BENCH_PYTHON, an interpreter that has segue) and
.ci/setup-peers.
"""
import os

import sdk_figures
from figures import ROOT

HERE = os.path.join(ROOT, "tests", "bench", "python")
OURS = os.environ.get("SEGUE_BENCH_PYTHON",
                      os.path.join(ROOT, "build", "python", "venv", "bin", "python"))
OFFICIAL = os.path.join(ROOT, "build", "deps", "venv", "bin", "python")


def program(interpreter, whose):
    return lambda role, *arguments: [
        interpreter, "-B", os.path.join(HERE, f"{whose}_{role}.py"), *arguments]


SDK = sdk_figures.Sdk(
    name="python", ours=program(OURS, "segue"), theirs=program(OFFICIAL, "official"),
    needs={OURS: ".ci/python ready", OFFICIAL: ".ci/setup-peers"}, warm_ms=1000,
    server_goal=10, one_goal=5, client_goal=4, stream_goal=1000000)


def measure(programs, report, plan):
    sdk_figures.measure(programs, report, plan, SDK)
