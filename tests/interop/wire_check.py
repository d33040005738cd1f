"""Checks the messages of Segue's side: each request is answered once, and every message
is valid for the wire models that the Python SDK generates from the protocol's schema,
and for the schema itself with Segue's overlays (tests/schema). Over stdio (logs of
tap.py) there is one JSON object per line, over HTTP (logs of http_tap.py) what
http_exchanges.py reads.

    wire_check.py server|client LOG...
"""
import json
import sys

from pathlib import Path

import mcp_types.methods as wire

import http_exchanges
from cells import equal

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "schema"))
import conversation  # noqa: E402

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
JUDGE = conversation.Judge()


class Ours:
    """The side that is checked."""

    def __init__(self, role):
        self.role = role
        self.requests = {}  # requests of the client: id -> (method, version)
        # requests of the server, which has them before 2026-07-28: id -> (method,
        # version)
        self.questions = {}
        self.answered = set()
        self.cancelled = set()
        self.version = None  # the version of a handshake
        self.count = 0
        self.by_schema = conversation.Conversation(JUDGE, ("interop", role), (role,))

    def version_of(self, message):
        meta = (message.get("params") or {}).get("_meta") or {}
        return meta.get(META + "protocolVersion") or self.version or "2025-11-25"

    def note_request(self, message):
        key = json.dumps(message["id"])
        if self.role == "client":
            equal(key in self.requests, False, f"id {key} used before")
        self.requests[key] = (message["method"], self.version_of(message))
        self.answered.discard(key)

    # messages of the client

    def client_said(self, message):
        equal(self.by_schema.say("client", message), [], "faults by the schema")
        if "id" in message and "method" in message:
            self.note_request(message)
        if message.get("method") == "notifications/cancelled":
            self.cancelled.add(json.dumps(message["params"]["requestId"]))
        if self.role == "client":
            self.count += 1
            self.judge_client(message)

    def judge_client(self, message):
        method, version = message.get("method"), self.version_of(message)
        if method is None:
            self.judge_reply(message)
        elif "id" not in message:
            if (method, version) in wire.CLIENT_NOTIFICATIONS:
                wire.validate_client_notification(method, version, message.get("params"))
        elif (method, version) in wire.CLIENT_REQUESTS:
            wire.validate_client_request(method, version, message.get("params"))
        if version == MODERN and "id" in message and method:
            meta = message["params"]["_meta"]
            equal(META + "clientCapabilities" in meta, True, "clientCapabilities")

    def judge_reply(self, message):
        """Checks a reply of the client to a question."""
        equal(sum(k in message for k in ("result", "error")), 1, "result or error")
        asked = self.questions.pop(json.dumps(message["id"]), None)
        equal(asked is not None, True, "a reply to a question that is open")
        if "result" in message and asked in wire.CLIENT_RESULTS:
            wire.validate_client_result(*asked, message["result"])

    # messages of the server

    def server_said(self, message):
        equal(self.by_schema.say("server", message), [], "faults by the schema")
        asked = self.requests.get(json.dumps(message.get("id")))
        if asked and asked[0] == "initialize" and "result" in message:
            self.version = message["result"]["protocolVersion"]
        if "id" in message and "method" in message:
            self.note_question(message)
        if self.role == "server":
            self.count += 1
            self.judge_server(message, asked)

    def note_question(self, message):
        key = json.dumps(message["id"])
        question = message["method"], self.version_of(message)
        if self.role == "server":
            equal(key in self.questions, False, f"id {key} used before")
            equal(question in wire.SERVER_REQUESTS, True, "such a question")
            wire.parse_server_request(*question, message.get("params"))
        self.questions[key] = question

    def judge_server(self, message, asked):
        if "method" in message:
            if "id" not in message:
                self.judge_notification(message)
            return
        equal(asked is not None, True, "an answer to a request that was made")
        equal(sum(k in message for k in ("result", "error")), 1, "result or error")
        key = json.dumps(message["id"])
        equal(key in self.answered, False, f"id {key} answered before")
        self.answered.add(key)
        if "error" in message:
            equal(sorted(set(message["error"]) - {"data"}), ["code", "message"], "error")
        else:
            self.judge_result(message["result"], *asked)

    def judge_result(self, result, method, version):
        modern = version == MODERN
        equal("resultType" in result, modern, f"resultType in a result of {method}")
        is_task = result.get("resultType") == "task" or (not modern and "task" in result)
        if (method, version) in wire.SERVER_RESULTS and not is_task:
            wire.validate_server_result(method, version, result)

    def judge_notification(self, message):
        modern = any(version == MODERN for _, version in self.requests.values())
        version = MODERN if modern else self.version or "2025-11-25"
        method, params = message["method"], message["params"]
        if (method, version) in wire.SERVER_NOTIFICATIONS:
            wire.parse_server_notification(method, version, params)
        if method == "notifications/progress":  # the model accepts texts as numbers
            equal(type(params["progress"]) in (int, float), True, "a number as progress")

    def judge_end(self):
        """Checks that every request was answered, except those that were withdrawn or
        go on."""
        open_ones = set(self.requests) - self.answered - self.cancelled
        names = [self.requests[key][0] for key in open_ones]
        equal([name for name in names if name != "subscriptions/listen"], [],
              "requests without an answer")


def check(role, path):
    ours = Ours(role)
    exit_code = None
    with open(path, "rb") as log:
        for number, line in enumerate(log, 1):
            mark, text = line[:1], line[2:].rstrip(b"\n")
            if mark == b"=":
                exit_code = int(text)
                break
            by_us = mark == (b">" if role == "server" else b"<")
            if not by_us and text.endswith(b"<cut>"):
                continue  # the other side died in the middle of a line
            try:
                message = json.loads(text)
                if by_us:
                    equal(type(message), dict, "one JSON object per line")
                    equal(message.get("jsonrpc"), "2.0", "jsonrpc")
                (ours.client_said if mark == b"<" else ours.server_said)(message)
            except Exception as error:
                shown = text[:300].decode(errors="replace")
                raise AssertionError(f"{path}:{number}: {error} in {shown}") from error
    equal(exit_code is None, False, f"{path}: the server still runs")
    if role == "server" and exit_code == 0:
        ours.judge_end()
    # -15: a client that only looks ends its server this way; 3: `die`
    if role == "server":
        equal(exit_code in (0, -15, 3), True, f"{path}: a good exit code ({exit_code})")
    return ours.count


class Conversations:
    """Over HTTP a request of the modern era is a conversation of its own; all others
    belong to a session."""

    def __init__(self, role):
        self.role = role
        self.sessions = {}
        self.asked = []  # (client, ids) of complete exchanges

    def of(self, exchange):
        name = exchange.session
        if exchange.sent("initialize"):
            name = exchange.new_session
        ours = self.sessions.get(name) or Ours(self.role)
        if name:
            self.sessions[name] = ours
        ours.by_schema.version = exchange.handshake_version or ours.by_schema.version
        return ours

    def judge(self, exchange):
        ours = self.of(exchange)
        before = ours.count
        for message in exchange.up:
            ours.client_said(message)
        for message in exchange.down:
            # otherwise HTTP refuses the request
            if exchange.status < 400 or "id" in message:
                ours.server_said(message)
        if self.role == "server" and exchange.is_whole and exchange.status < 400:
            ids = {json.dumps(message["id"]) for message in exchange.up
                   if "id" in message and "method" in message}
            self.asked.append((ours, ids))
        return ours.count - before

    def judge_end(self):
        """A request that was withdrawn has no answer, whether its exchange is complete
        or not."""
        for ours, ids in self.asked:
            equal(ids - ours.answered - ours.cancelled, set(),
                  "requests without an answer")


def is_reply(exchange):
    return any("method" not in message for message in exchange.up)


def check_http(role, paths):
    """Checks replies last: their connection may be older than that of the question."""
    conversations, count = Conversations(role), 0
    exchanges = [(f"{path}, exchange {number}", exchange) for path in paths
                 for number, exchange in enumerate(http_exchanges.read(path), 1)]
    for place, exchange in sorted(exchanges, key=lambda item: is_reply(item[1])):
        try:
            http_exchanges.judge(exchange, role)
            count += conversations.judge(exchange)
        except Exception as error:
            raise AssertionError(f"{place}: {error} in {exchange}") from error
    conversations.judge_end()
    return count


def main():
    role, *paths = sys.argv[1:]
    line = {"what": "every message is valid", "state": "green"}
    try:
        over_http = [path[:-3] for path in paths if path.endswith(".up")]
        count = (check_http(role, over_http) if over_http else
                 sum(check(role, path) for path in paths))
        equal(count > 0, True, "messages were written")
        line["what"] += f" ({count})"
    except Exception as error:
        line.update(state="FAILED", reason=" ".join(str(error).split())[:600])
    print(json.dumps(line))


main()
