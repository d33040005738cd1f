"""An MCP server of 2026-07-28, on standard input and output, for the tests of
segue-proxy. It has no sessions: it knows of a client what each request says.

Its tools: "declared" returns the capabilities that the request declares, "ask" asks under
the key "user_name", "job" becomes a task, and "contrary" sends segments that its result
does not have. Its results have all members that the revision knows.
"""

import json
import sys

META = "io.modelcontextprotocol/"
CACHE = {"ttlMs": 5000, "cacheScope": "private"}
SERVER = {f"{META}serverInfo": {"name": "modern", "version": "1"}}
TIMES = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
         "ttlMs": 60000, "pollIntervalMs": 10}
QUESTION = {"method": "elicitation/create", "params": {
    "mode": "form", "message": "Who?", "requestedSchema": {
        "type": "object", "properties": {"name": {"type": "string"}}}}}
LISTS = {
    "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}}
                             for name in ("declared", "ask", "job", "contrary")]},
    "resources/list": {"resources": [{"uri": "x:1", "name": "one"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "prompts/list": {"prompts": [{"name": "p"}]},
    "resources/read": {"contents": [{"uri": "x:1", "text": "read"}]},
}


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def note(method, params):
    print(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}), flush=True)


def call(params):
    name, meta = params["name"], params["_meta"]
    declared = meta[f"{META}clientCapabilities"]
    if name == "declared":
        return text(json.dumps(declared, sort_keys=True))
    if name == "ask" and "inputResponses" not in params:
        return {"resultType": "input_required",
                "inputRequests": {"user_name": QUESTION}, "requestState": "s"}
    if name == "ask":
        return text(json.dumps(params["inputResponses"], sort_keys=True))
    if name == "contrary":
        for number, word in enumerate(("wrong", "also wrong")):
            note("notifications/tools/partial_result", {
                "partialResultToken": meta["partialResultToken"], "seq": number,
                **text(word)})
        return text("right")
    if f"{META}tasks" in declared.get("extensions", {}):
        return {"resultType": "task", "taskId": "t1", "status": "working", **TIMES}
    return text("no task")


def answer(method, params):
    if method == "server/discover":
        return {"supportedVersions": ["2026-07-28"], "capabilities": {
            "tools": {}, "resources": {}, "prompts": {}, "completions": {},
            "extensions": {f"{META}tasks": {}}}, **CACHE}
    if method in LISTS:
        return {**LISTS[method], **CACHE}
    if method == "prompts/get":
        return {"messages": [{"role": "user", "content": {"type": "text", "text": "t"}}]}
    if method == "completion/complete":
        return {"completion": {"values": ["v"]}}
    if method == "tools/call":
        return call(params)
    if method == "tasks/get":
        return {"taskId": "t1", "status": "completed", **TIMES, "result": text("done")}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        said = {"resultType": "complete", "_meta": SERVER,
                **answer(message["method"], message.get("params", {}))}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": said}),
              flush=True)
