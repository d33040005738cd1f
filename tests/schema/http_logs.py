"""Checks the messages of one side over HTTP, from logs of tests/interop/http_tap.py.

    http_logs.py server|client LOG.N...

Needs h11 besides jsonschema. A conversation is a session, or otherwise one exchange.
Messages of the other side need not be JSON; those of this side must be.
"""
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))

import check  # noqa: E402
import http_exchanges  # noqa: E402
from conversation import Conversation, Judge  # noqa: E402


class Sessions:
    def __init__(self, judge, role):
        self.judge, self.role, self.sessions = judge, role, {}

    def of(self, exchange, path):
        name = exchange.session
        if exchange.sent("initialize"):
            name = exchange.new_session
        conversation = self.sessions.get(name)
        if conversation is None:
            conversation = Conversation(self.judge, ("http", path), (self.role,))
        if name:
            self.sessions[name] = conversation
        conversation.version = exchange.handshake_version or conversation.version
        return conversation


def is_request(message):
    return isinstance(message, dict) and "method" in message and "id" in message


def main():
    role, *paths = sys.argv[1:]
    sys.stdout.reconfigure(errors="backslashreplace")
    judge = Judge()
    check.self_check(judge)
    judge.forget()
    findings, sessions, said = check.Findings(), Sessions(judge, role), []
    for path in paths:
        for exchange in http_exchanges.read(path):
            conversation = sessions.of(exchange, path)
            opens = exchange.sent("initialize")
            for who, messages in ("client", exchange.up), ("server", exchange.down):
                for message in messages:
                    turn = 0 if opens else 2 - is_request(message)
                    said.append((turn, conversation, who, message))
    # A session uses many connections, whose order is not known: the messages that open
    # it come first, then all requests.
    for _, conversation, who, message in sorted(said, key=lambda line: line[0]):
        findings.count += who == role
        for why in conversation.say(who, message):
            findings.add(*conversation.test, f"{who}: {why}", json.dumps(message))
    sys.exit(check.report(findings, judge.kinds, 1))


if __name__ == "__main__":
    main()
