"""The Node SDK compared with the official one (version 2).

Needs .ci/node ready (or SEGUE_BENCH_NODE, a directory like the one that makes) and
.ci/setup-peers.
"""
import os

import sdk_figures
from figures import ROOT
from http_figures import PEERS, TS_SERVER, measure_outage

ENV = os.environ.get("SEGUE_BENCH_NODE", os.path.join(ROOT, "build", "node", "env"))
PROGRAMS = os.path.join(ENV, "tests", "bench", "node")
OFFICIAL = {"server": TS_SERVER,
            "client": os.path.join(ROOT, "tests", "bench", "node", "official_client.mjs")}


def ours(role, *arguments):
    return ["node", os.path.join(PROGRAMS, f"segue_{role}.js"), *arguments]


def theirs(role, *arguments):
    return ["node", OFFICIAL[role], PEERS, *arguments]


SDK = sdk_figures.Sdk(
    name="node", ours=ours, theirs=theirs,
    needs={os.path.join(PROGRAMS, "segue_server.js"): ".ci/node ready",
           os.path.join(PEERS, "node_modules"): ".ci/setup-peers"},
    warm_ms=3000,  # until V8 has compiled the hot code
    server_goal=8, one_goal=4, client_goal=3, stream_goal=1200000)


def measure(programs, report, plan, build):
    sdk_figures.measure(programs, report, plan, SDK)
    server = os.path.join(PROGRAMS, "outage_server.js")
    measure_outage(programs, report, build, "node", lambda path: ["node", server, path])
