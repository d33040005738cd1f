"""An MCP server of the old kind, on standard input and output, for the tests of
segue-proxy. Its tools return what no library would make, and misbehave when asked to.

Usage: upstream.py [--log FILE] [--hints] [--silent]
  --log FILE  appends one line per tools/call that was received, its name and arguments,
              and one per call that was cancelled; may be a pipe
  --hints     the tool "work" has idempotentHint
  --keys      it honours idempotency keys; the log has the key of each call
  --extra     there is a tool "extra"
  --all       the log also has subscriptions and levels
  --mute      never reads and never writes
  --no-lists  refuses to send its lists
  --slow-lists  never answers a request for a list
  --held PIPE  answers a request for its tools when it gets a byte from the pipe
  --until FILE  fails at the start while FILE does not exist
"""

import json
import os
import signal
import subprocess
import sys
import threading

OPTIONS = sys.argv[1:]
LOG = OPTIONS[OPTIONS.index("--log") + 1] if "--log" in OPTIONS else None

ODD = {
    "content": [
        {"type": "text", "text": "t\u00e9xt \u0001", "annotations": {"priority": 0.5},
         "_meta": {"a": 1}, "later": True},
        {"type": "hologram", "rays": [1.50, 20000000000000000001]},
        {"type": "resource", "resource": {"uri": "x:1", "blob": "AAEC"}},
    ],
    "structuredContent": {"n": 12345678901234567890, "list": [None, {}]},
    "isError": False,
    "_meta": {"example.com/trace": "z"},
    "futureMember": {"x": 1},
}

TOOLS = [
    {"name": "odd", "title": "Odd", "description": "odd",
     "inputSchema": {"type": "object"},
     "outputSchema": {"type": "object", "required": ["nothing"]},
     "annotations": {"readOnlyHint": True, "title": "o"}, "icons": [{"src": "data:,"}],
     "_meta": {"k": "v"}, "later": 1},
    {"name": "wrong", "inputSchema": {"type": "object"}},
    {"name": "failing", "inputSchema": {"type": "object"}},
    {"name": "steps", "inputSchema": {"type": "object"}},
    {"name": "ask", "inputSchema": {"type": "object"}},
    {"name": "sleep", "inputSchema": {"type": "object"}},
    {"name": "work", "inputSchema": {"type": "object"},
     "annotations": {"idempotentHint": "--hints" in OPTIONS}},
    {"name": "later", "inputSchema": {"type": "object"}},
    {"name": "late_error", "inputSchema": {"type": "object"}},
    {"name": "die", "inputSchema": {"type": "object"}},
    {"name": "leave_pipe", "inputSchema": {"type": "object"}},
    {"name": "long_garbage", "inputSchema": {"type": "object"}},
    {"name": "flood_forever", "inputSchema": {"type": "object"}},
    {"name": "pid", "inputSchema": {"type": "object"}},
    {"name": "grow", "inputSchema": {"type": "object"}},
    {"name": "meta", "inputSchema": {"type": "object"}},
    {"name": "leave_child", "inputSchema": {"type": "object"}},
    {"name": "garbage", "inputSchema": {"type": "object"}},
    {"name": "bytes", "inputSchema": {"type": "object"}},
    {"name": "flood", "inputSchema": {"type": "object"}},
    {"name": "large", "inputSchema": {"type": "object"}},
    {"name": "close_input", "inputSchema": {"type": "object"}},
    {"name": "touch", "inputSchema": {"type": "object"}},
    {"name": "say", "inputSchema": {"type": "object"}},
    {"name": "ask_later", "inputSchema": {"type": "object"}},
    {"name": "answer_more", "inputSchema": {"type": "object"}},
]
if "--extra" in OPTIONS:
    TOOLS.append({"name": "extra", "inputSchema": {"type": "object"}})
CAPABILITIES = {
    "tools": {"listChanged": True}, "logging": {}, "completions": {},
    "resources": {"subscribe": True, "listChanged": True}, "prompts": {},
}
KEYS = "--keys" in OPTIONS
if KEYS:
    CAPABILITIES["experimental"] = {"dev.segue/idempotency": {}}

waiting = {}  # id of a question -> function(answer)
held = {}  # id of a call that waits -> its params


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def result(number, value):
    send({"id": number, "result": value})


def text(number, words):
    result(number, {"content": [{"type": "text", "text": words}]})


def note(method, params):
    send({"method": method, "params": params})


def write_log(*line):
    if LOG:
        with open(LOG, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def call(number, params):
    name, arguments = params["name"], params.get("arguments", {})
    meta = params.get("_meta", {})
    write_log(name, arguments, *[meta.get("dev.segue/idempotencyKey")] * KEYS)
    token = meta.get("progressToken")
    if name == "odd":
        result(number, ODD)
    elif name == "wrong":
        result(number, {"content": [{"type": "text", "text": "bad"}], "isError": True})
    elif name == "failing":
        send({"id": number, "error": {"code": -32042, "message": "open a page",
                                      "data": {"elicitations": [{"mode": "url"}]}}})
    elif name == "steps":
        for step in range(3):
            note("notifications/progress", {
                "progressToken": token, "progress": step + 0.5, "total": 3,
                "message": f"step {step}"})
            note("notifications/message", {
                "level": "warning", "logger": "steps", "data": {"step": step}})
        text(number, "done")
    elif name == "ask":
        ask(number, arguments)
    elif name in ("sleep", "work"):
        held[number] = params
        note("notifications/progress", {"progressToken": token, "progress": 1,
                                        "message": f"pid {os.getpid()}"})
        if name == "work" and arguments.get("go") and os.path.exists(arguments["go"]):
            held.pop(number)
            text(number, "worked")
    elif name in ("later", "late_error"):  # answers when it gets a byte from "go"
        def watch():
            if "say" in arguments:  # reports progress when it gets a byte from "say"
                with open(arguments["say"], "rb", buffering=0) as pipe:
                    pipe.read(1)
                note("notifications/progress", {"progressToken": token, "progress": 1,
                                                "message": "said"})
            with open(arguments["go"], "rb", buffering=0) as pipe:
                pipe.read(1)
            if name == "later":
                text(number, "later")
            else:
                send({"id": number, "error": {"code": -32042, "message": "late"}})
        threading.Thread(target=watch, daemon=True).start()
    elif name == "die":
        sys.stderr.write("last words\n")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "pid":
        text(number, str(os.getpid()))
    elif name == "grow":
        TOOLS.append({"name": "grown", "inputSchema": {"type": "object"}})
        note("notifications/tools/list_changed", {})
        text(number, "grown")
    elif name == "extra":
        text(number, "extra")
    elif name == "meta":
        result(number, {"content": [], "_meta": params.get("_meta", {})})
    elif name == "leave_child":
        child = subprocess.Popen(["sleep", "1000"])
        text(number, str(child.pid))
    elif name == "garbage":
        sys.stdout.write("this is no JSON\n{\"jsonrpc\":\n\n")
        text(number, "after garbage")
    elif name == "bytes":  # no UTF-8, no text
        sys.stdout.flush()
        sys.stdout.buffer.write(bytes(range(256)) * 100 + b"\n\0\n[1,2]\n\"x\"\n")
        text(number, "after bytes")
    elif name == "leave_pipe":  # the child keeps standard output open
        child = subprocess.Popen(["sleep", "1000"])
        note("notifications/progress", {"progressToken": token, "progress": 1,
                                        "message": str(child.pid)})
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "long_garbage":  # no end of a line
        for _ in range(arguments["megabytes"]):
            sys.stdout.write("z" * 1000000)
        sys.stdout.write("\n")
        text(number, "after garbage")
    elif name == "flood_forever":
        while True:
            note("notifications/message", {"level": "debug", "data": "x" * 1000})
    elif name == "flood":
        for _ in range(20000):
            note("notifications/message", {"level": "debug", "data": "x" * 100})
        text(number, "after the flood")
    elif name == "large":
        text(number, "y" * arguments["bytes"])
    elif name == "touch":
        text(number, "touched")
        note("notifications/resources/updated", {"uri": arguments["uri"]})
    elif name == "say":  # outside of the call
        text(number, "said")
        note("notifications/message", arguments)
    elif name == "ask_later":  # outside of the call
        text(number, "asking")
        waiting["later"] = lambda message: write_log("answer", message)
        send({"id": "later", "method": arguments["method"],
              "params": arguments.get("params", {})})
    elif name == "answer_more":  # answers that no request waits for, or of a wrong form
        for _ in range(arguments["count"]):
            text("nobody" if arguments["how"] == "unknown" else number, "first")
            if arguments["how"] == "malformed":
                send({"id": "nobody", "result": 1, "error": 2})
        text(number, "first")
    elif name == "close_input":
        os.close(0)
        note("notifications/progress", {"progressToken": token, "progress": 1})
        signal.pause()
    else:
        send({"id": number, "error": {"code": -32602, "message": "unknown tool"}})


def ask(number, arguments):
    question = f"q{number}"

    def answered(message):
        result(number, {"content": [], "structuredContent": {
            key: message[key] for key in ("result", "error") if key in message}})

    waiting[question] = answered
    send({"id": question, "method": arguments["method"],
          "params": arguments.get("params", {})})


def handle(message):
    method, number, params = (message.get("method"), message.get("id"),
                              message.get("params") or {})
    if method is None:
        waiting.pop(number)(message)
    elif method == "initialize":
        result(number, {
            "protocolVersion": params["protocolVersion"], "capabilities": CAPABILITIES,
            "serverInfo": {"name": "odd-server", "version": "7", "title": "Odd"},
            "instructions": json.dumps(params["capabilities"], sort_keys=True)})
    elif method == "server/discover":
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})
    elif method == "ping":
        result(number, {})
    elif method.endswith("/list") and "--slow-lists" in OPTIONS:
        pass
    elif method.endswith("/list") and "--no-lists" in OPTIONS:
        send({"id": number, "error": {"code": -32603, "message": "no lists"}})
    elif method == "tools/list":
        if "--held" in OPTIONS and "cursor" not in params:
            with open(OPTIONS[OPTIONS.index("--held") + 1], "rb", buffering=0) as pipe:
                pipe.read(1)
        half = len(TOOLS) // 2
        first = "cursor" not in params
        page = {"tools": TOOLS[:half] if first else TOOLS[half:]}
        result(number, {**page, "nextCursor": "2"} if first else page)
    elif method == "tools/call":
        call(number, params)
    elif method == "resources/list":
        result(number, {"resources": [{"uri": "x:1", "name": "one", "size": 3}]})
    elif method == "resources/templates/list":
        result(number, {"resourceTemplates": [
            {"uriTemplate": "t:{id}{?more,other*}", "name": "odd template"}]})
    elif method == "resources/read":
        if params["uri"] == "x:none":
            send({"id": number, "error": {"code": -32002, "message": "no such thing",
                                          "data": {"uri": "x:none"}}})
        else:
            result(number, {"contents": [{"uri": params["uri"], "text": "read",
                                          "later": 1}], "_meta": {"m": 1}})
    elif method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
        result(number, {})
        if "--all" in OPTIONS:
            write_log(method, params.get("uri", params.get("level")))
        if method == "resources/subscribe":
            note("notifications/resources/updated", {"uri": params["uri"]})
    elif method == "prompts/list":
        result(number, {"prompts": [{"name": "p", "arguments": [{"name": "a"}]}]})
    elif method == "prompts/get":
        result(number, {"description": "d", "messages": [
            {"role": "user", "content": {"type": "text", "text": json.dumps(
                params.get("arguments"))}}]})
    elif method == "completion/complete":
        result(number, {"completion": {"values": [json.dumps(params, sort_keys=True)],
                                       "total": 1, "hasMore": False}})
    elif method == "notifications/roots/list_changed":
        write_log("roots changed", None)
    elif method == "notifications/cancelled":
        if held.pop(params.get("requestId"), None):
            write_log("cancelled", {})
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


if "--mute" in OPTIONS:
    signal.pause()
if "--until" in OPTIONS and not os.path.exists(OPTIONS[OPTIONS.index("--until") + 1]):
    sys.exit("it cannot start yet")
if "--fail" in OPTIONS:
    sys.exit("it cannot start: no licence")
for line in sys.stdin:
    handle(json.loads(line))
