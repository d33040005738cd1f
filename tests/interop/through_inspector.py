"""The command line of the Inspector as a client that does what it is told. Each step is a
run of its own, with a session of its own. through_record.py explains more.

    through_inspector.py PLACE ERA COMMAND...|URL <STEPS

PLACE is the directory in which the Inspector is installed.
"""
import json
import os
import subprocess
import sys
import tempfile

STEP_SECONDS = 300
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def program(place):
    node = f"{place}/node_modules/.bin/node"
    launcher = "node_modules/@modelcontextprotocol/inspector/clients/launcher"
    return [node if os.path.exists(node) else "node",
            f"{place}/{launcher}/build/index.js", "--cli"]


def options(method, name=None, given=None):
    """Returns the options of the command line for a step."""
    if method == "hello":
        return ["--method", "initialize"]
    chosen = ["--method", method]
    if method == "tools/call":
        chosen += ["--tool-name", name, "--tool-args-json", json.dumps(given or {})]
    elif method == "prompts/get":
        chosen += ["--prompt-name", name]
        for key, value in (given or {}).items():
            chosen += ["--prompt-args", f"{key}={value}"]
    elif method == "resources/read":
        chosen += ["--uri", name]
    return chosen


def result_of(method, told):
    if method == "hello":
        info = told.get("serverInfo") or {}
        return {"name": info.get("name"), "instructions": told.get("instructions")}
    return told[LISTS[method]] if method in LISTS else told


def do(command, method, *arguments):
    try:
        child = subprocess.run([*command, *options(method, *arguments)], text=True,
                               stdin=subprocess.DEVNULL, capture_output=True,
                               timeout=STEP_SECONDS)
    except subprocess.TimeoutExpired:
        return {"error": "not done in time"}
    if child.stdout.strip():
        return {"result": result_of(method, json.loads(child.stdout)["result"])}
    return {"error": " ".join(child.stderr.split())[:300]}


def main():
    place, era, target, *rest = sys.argv[1:]
    server = {"type": "streamable-http", "url": target} if target.startswith("http") \
        else {"command": target, "args": rest, "env": dict(os.environ)}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump({"mcpServers": {"it": server}}, config)
        config.flush()
        command = [*program(place), "--config", config.name, "--server", "it",
                   "--protocol-era", era, "--format", "json", "--quiet"]
        for step in json.load(sys.stdin):
            print(json.dumps(do(command, *step)), flush=True)


main()
