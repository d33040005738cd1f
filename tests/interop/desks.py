"""The rows of the travel desk (same/): one server, written for five libraries, and the
clients that use it. And frameworks of agents, which use it and servers of others, by
Segue's adapters and by their own clients."""
import json
import os

from peers import DEPS, HERE, NAME, NODE, OUT, PYTHON

SAME = f"{HERE}/same"
ENV = os.path.abspath(f"build/node/env/{NAME}")
FRAMEWORKS = [f"{DEPS}/frameworks/venv/bin/python", "-B"]
# The frameworks' Python with the package of Segue: `run` puts it there.
SEGUE = ["env", f"PYTHONPATH={OUT}/segue", *FRAMEWORKS]
DESKS = {
    "Segue, Python": [*SEGUE, f"{SAME}/segue_server.py"],
    "Segue, Node": ["node", f"{ENV}/segue_server.mjs"],
    "FastMCP": [*FRAMEWORKS, f"{SAME}/fastmcp_server.py"],
    "Python SDK": [*PYTHON, f"{SAME}/python_sdk_server.py"],
    "TypeScript SDK": ["node", f"{NODE}/typescript_sdk_server.mjs"],
}
CLIENT = f"{SAME}/client.py"
# The command of each client, to which the era and the server are added; its transport.
CLIENTS = {
    "python": ([*PYTHON, CLIENT, "official"], "stdio"),
    "typescript": (["node", f"{NODE}/desk_client.mjs"], "http"),
    "fastmcp": ([*FRAMEWORKS, CLIENT, "fastmcp"], "http"),
    "segue": ([*SEGUE, CLIENT, "segue"], "stdio"),
}
# Two clients of the TypeScript SDK 1 that list their tasks.
LISTED = ["node", f"{NODE}/listed.mjs", "legacy"]
ERAS = ("modern", "legacy")
FRAMEWORK_PY = [*SEGUE, f"{HERE}/frameworks.py"]
# Of each framework: how it is started for an adapter, and for its own client.
AGENTS = {
    **{(name, "python"): (FRAMEWORK_PY, FRAMEWORK_PY)
       for name in ("langchain", "pydantic_ai", "openai_agents")},
    **{(name, "node"): (["node", f"{ENV}/frameworks.mjs"],
                        ["node", f"{DEPS}/frameworks/{NAME}/frameworks.mjs"])
       for name in ("ai", "langchain")},
}
# Servers that nobody here wrote, or that use the library of others.
OTHERS = {
    "everything": [f"{DEPS}/servers/node_modules/.bin/mcp-server-everything"],
    **{f"desk on {name}": DESKS[name]
       for name in ("FastMCP", "Python SDK", "TypeScript SDK")},
}
FACTS = f"{OUT}/desks.json"


def rows(is_short):
    """Yields the name and the command of each row. In the short form each client uses
    each server in one era."""
    for at, (desk, server) in enumerate(DESKS.items()):
        for number, (name, (client, transport)) in enumerate(CLIENTS.items()):
            for era in ERAS[(at + number) % 2:][:1] if is_short else ERAS:
                row = (f"desk on {desk}", f"{name} client {transport} {era}")
                command = [*client, era]
                if transport == "http":
                    command = [*PYTHON, f"{SAME}/desk.py", *command, "--"]
                yield row, [*command, *server]
        yield (f"desk on {desk}", "segue client http kept"), [
            *SEGUE, f"{SAME}/kept.py", *server]
        if desk.startswith("Segue"):
            yield (f"tasks listed by {desk}", "typescript 1 client http legacy"), [
                *PYTHON, f"{SAME}/desk.py", *LISTED, "--", *server]


def agent_rows(is_short):
    """Yields the name and the command of each row of a framework. The short form has one
    server of each kind."""
    for (name, language), (adapter, own) in AGENTS.items():
        for server, command in list(OTHERS.items())[:1] if is_short else OTHERS.items():
            yield (f"{name} {language}", f"adapter to {server}"), [
                *adapter, name, "adapter", server, *command]
        for desk in ("Segue, Node",) if is_short else ("Segue, Python", "Segue, Node"):
            yield (f"{name} {language}", f"own client to desk on {desk}"), [
                *own, name, "own", "desk", *DESKS[desk]]


def write_facts(cells):
    """Writes what was seen of each desk, for same/page.py: {desk: {what: [reason...]}};
    no reasons: all clients saw it. cells: (row, what, state, reason)."""
    facts = {desk: {} for desk in DESKS}
    for row, what, _state, reason in cells:
        desk = row[0].removeprefix("desk on ")
        if desk in facts:
            reasons = facts[desk].setdefault(what, [])
            reason = reason.removeprefix("Missing: ")
            if reason and reason not in reasons:
                reasons.append(reason)
    with open(FACTS, "w", encoding="utf-8") as out:
        json.dump(facts, out, indent=1)
