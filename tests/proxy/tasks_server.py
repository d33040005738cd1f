"""An MCP server of 2025-11-25, on standard input and output, for the tests of
segue-proxy. Its tools run only as tasks: "job" ends at once, and "asking" asks first. It
has one task, and names it in all that belongs to it."""

import json
import sys

RELATED = {"io.modelcontextprotocol/related-task": {"taskId": "upstream-1"}}
TIMES = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
         "ttl": 60000, "pollInterval": 10}
TOOLS = [{"name": name, "inputSchema": {"type": "object"},
          "execution": {"taskSupport": "required"}} for name in ("job", "asking")]
HELLO = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "tasks", "version": "1"},
         "capabilities": {"tools": {}, "tasks": {
             "cancel": {}, "requests": {"tools": {"call": {}}}}}}
FORM = {"message": "m", "requestedSchema": {"type": "object", "properties": {}},
        "_meta": {**RELATED, "example.com/z": 1}}
state = {"asks": False, "waiting": None}


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def result(number, words):
    send(id=number, result={"content": [{"type": "text", "text": words}],
                            "_meta": {**RELATED, "example.com/k": 1}})


def handle(method, number, params):
    if method == "initialize":
        send(id=number, result=HELLO)
    elif method == "server/discover":
        send(id=number, error={"code": -32601, "message": "Method not found"})
    elif method == "tools/list":
        send(id=number, result={"tools": TOOLS})
    elif method == "tools/call":
        state["asks"] = params["name"] == "asking"
        send(id=number, result={"task": {"taskId": "upstream-1", "status": "working",
                                         **TIMES}})
    elif method == "tasks/get":
        send(id=number, result={"taskId": "upstream-1", **TIMES, "status":
                                "input_required" if state["asks"] else "completed"})
    elif method == "tasks/result" and state["asks"]:
        state["waiting"] = number
        send(id="question", method="elicitation/create", params=FORM)
    elif method == "tasks/result":
        result(number, "job")
    elif number is not None:
        send(id=number, result={})


for line in sys.stdin:
    message = json.loads(line)
    if "method" in message:
        handle(message["method"], message.get("id"), message.get("params", {}))
    elif state["waiting"] is not None:
        result(state["waiting"], "answered")
