"""The upstream of proxy.py: an MCP server of the handshake revisions on standard input
and output that writes down what it does, before it tells.

    proxy_upstream.py HISTORY SEED

Tools: "once", whose effect counts; "again", which has idempotentHint. Both take a key,
take effect, and answer with the key, after a random part of HOLD_SECONDS each.
"""
import json
import os
import random
import sys
import threading
import time

HOLD_SECONDS = 0.03
FILE = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
CHANCE = random.Random(f"{sys.argv[2]} {os.getpid()}")
LOCK = threading.Lock()
TOOLS = [{"name": "once", "inputSchema": {"type": "object"}},
         {"name": "again", "inputSchema": {"type": "object"},
          "annotations": {"idempotentHint": True}}]


def write(*words):
    os.write(FILE, (" ".join(map(str, words)) + "\n").encode())


def send(message):
    line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    with LOCK:
        sys.stdout.write(line)
        sys.stdout.flush()


def after_a_while(function, *arguments):
    timer = threading.Timer(CHANCE.uniform(0, HOLD_SECONDS), function, arguments)
    timer.daemon = True
    timer.start()


def take_effect(number, key):
    write("effect", key)
    after_a_while(answer, number, key)


def answer(number, key):
    send({"id": number, "result": {"content": [{"type": "text", "text": key}]}})


def handle(message):
    method, number = message.get("method"), message.get("id")
    params = message.get("params") or {}
    if method == "initialize":
        send({"id": number, "result": {
            "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "chaos", "version": "1"}}})
    elif method == "tools/list":
        send({"id": number, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        after_a_while(take_effect, number, params["arguments"]["key"])
    elif method == "ping":
        send({"id": number, "result": {}})
    elif number is not None and method:
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


write("start", os.getpid(), time.monotonic())
for line in sys.stdin:
    handle(json.loads(line))
