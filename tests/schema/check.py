#!/usr/bin/env python3
"""Checks recorded conversations with the library (tests/support/tap.h).

    check.py DIRECTORY [--least N]

Every message of the library must be valid in the revision of its conversation, by the
published schema and by the overlays. Prints the number of messages and each fault;
exits with 1 when there is a fault, or fewer than N (default 1) messages. Before that it
tests its rules with messages that must be refused (wrong.json) and messages that must
be accepted (right.json).
"""
import argparse
import concurrent.futures
import json
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MOST_SHOWN = 40

# Where .ci/setup puts the package if the machine's Python lacks it.
OWN_PYTHON = HERE.parents[1] / "build/deps/schema/bin/python"

try:
    import jsonschema  # noqa: F401
except ImportError:
    if OWN_PYTHON.exists() and not OWN_PYTHON.parents[1].samefile(sys.prefix):
        os.execv(OWN_PYTHON, [OWN_PYTHON, "-B", *sys.argv])
    sys.exit(f"{sys.executable} has no package jsonschema: .ci/setup installs it, or "
             f"run: {sys.executable} -m pip install -r {HERE / 'requirements.txt'}")

# These modules need the package.
from conversation import Conversation, Judge, Message, key_of  # noqa: E402

SIDES = {"server": ("server",), "client": ("client",), "both": ("client", "server")}
WHO = {b"in": "client", b"out": "server"}
LINE = re.compile(rb'\{"c":(\d+),"d":"(in|out)","k":(\d+),"(m|id)":(.*)\}\n?', re.S)


class Twice(ValueError):
    """A name occurs twice in one object."""


def once(pairs):
    value = dict(pairs)
    if len(value) != len(pairs):
        raise Twice("a name stands twice in one object")
    return value


def not_json(text):
    raise ValueError(f"{text} is not JSON")


def number(text):
    """Reads an integer of any length: newer interpreters refuse very long ones."""
    return int(text) if len(text) < 1000 else float(text)


def parse(text, is_judged):
    """Returns a message; a script's message that cannot be read gives None."""
    try:
        if is_judged:
            return json.loads(text.decode("utf-8"), object_pairs_hook=once,
                              parse_constant=not_json, parse_int=number)
        return json.loads(text, parse_int=number)
    except (ValueError, RecursionError):
        if is_judged:
            raise
        return None


class Findings:
    def __init__(self):
        self.count = 0
        self.faults = {}  # (reason, program): [count, test, message]

    def add(self, program, test, why, text):
        entry = self.faults.setdefault((why, program), [0, test, text])
        entry[0] += 1

    def take(self, other):
        """Adds the findings of other programs."""
        self.count += other.count
        self.faults.update(other.faults)


def program_of(path):
    return path.name.rsplit(".", 2)[0]


def check_file(path, judge, findings):
    program = program_of(path)
    conversations, known = {}, {}
    with open(path, "rb") as lines:
        for line in lines:
            parts = LINE.fullmatch(line)
            if not parts:
                opened = json.loads(line)
                conversations[opened["c"]] = Conversation(
                    judge, (program, opened["test"]), SIDES[opened["ours"]],
                    opened["ours"] == "both")
                continue
            number, way, form, mark, text = parts.groups()
            conversation, who = conversations[int(number)], WHO[way]
            if mark == b"m":
                known[form] = read(conversation, who, text, findings)
                message = known[form]
            else:
                message = known[form]
                if isinstance(message, Message) and text != b"null":
                    message = message.again(read_key(text))
            check_message(conversation, who, message, findings)


def read_key(text):
    if text.isascii():
        return text.decode()
    return key_of(json.loads(text.decode(errors="replace")))


def read(conversation, who, text, findings):
    """Returns a message; None when it cannot be read, which is allowed only for a
    script."""
    is_judged = who in conversation.judged
    try:
        value = parse(text, is_judged)
        return Message(value) if isinstance(value, dict) else value
    except (ValueError, RecursionError) as error:
        findings.add(*conversation.test, f"{who}: not JSON: {error}", text)
        return None


def check_message(conversation, who, message, findings):
    findings.count += who in conversation.judged
    if message is None:
        return
    for why in conversation.say(who, message):
        value = message.with_id() if isinstance(message, Message) else message
        findings.add(*conversation.test, f"{who}: {why}", json.dumps(value))


# ---- the self-check ----

def self_check(judge):
    """Each example is a conversation of [who, message]; the last message is checked.
    Those of wrong.json must be refused for the reason that they name."""
    for example in json.loads((HERE / "right.json").read_text()):
        whys = run_example(judge, example)
        if whys:
            sys.exit(f"self-check: {example['what']} is refused: {whys}")
    for example in json.loads((HERE / "wrong.json").read_text()):
        whys = run_example(judge, example)
        if not any(example["why"] in why for why in whys):
            sys.exit(f"self-check: {example['what']} was to be refused "
                     f"({example['why']}), but: {whys}")
    for text in (b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":"\xff"}', b'{"a":1'):
        try:
            parse(text, True)
        except ValueError:
            continue
        sys.exit(f"self-check: {text} was let pass")


def run_example(judge, example):
    conversation = Conversation(judge, ("self-check", example["what"]),
                                SIDES["both"], is_peer=True)
    whys = []
    for who, message in example["messages"]:
        if whys:
            return [f"too early: {whys}"]
        whys = conversation.say(who, message)
    return whys


def report(findings, kinds, least):
    for (why, program), (times, test, text) in list(findings.faults.items())[:MOST_SHOWN]:
        print(f"{program}: {test}: {why} ({times} times)\n    {text[:600]}")
    print(f"{findings.count} messages of {len(kinds)} "
          f"kinds, {len(findings.faults)} faults")
    if findings.count < least:
        print(f"there should be {least} messages at least")
    return 1 if findings.faults or findings.count < least else 0


def check_files(paths):
    """Returns (findings, kinds) of these files."""
    judge, findings = Judge(), Findings()
    for path in paths:
        check_file(path, judge, findings)
    return findings, judge.kinds


def shares_of(paths, count):
    """Splits the files into `count` shares of about one size. The files of one program
    stay together: its first messages may be in another file."""
    programs = {}
    for path in paths:
        programs.setdefault(program_of(path), []).append(path)
    shares = [[0, []] for _ in range(count)]
    sized = [(sum(path.stat().st_size for path in of), of) for of in programs.values()]
    for size, of in sorted(sized, key=lambda pair: -pair[0]):
        share = min(shares, key=lambda share: share[0])
        share[0] += size
        share[1] += of
    return [share for _, share in shares if share]


def check_all(paths, count):
    """The same for all files, each share in a process of its own."""
    findings, kinds = Findings(), {}
    with concurrent.futures.ProcessPoolExecutor(count) as pool:
        for found, judged in pool.map(check_files, shares_of(paths, count)):
            findings.take(found)
            for name, times in judged.items():
                kinds[name] = kinds.get(name, 0) + times
    return findings, kinds


def main():
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("directory", type=Path)
    arguments.add_argument("--least", type=int, default=1)
    arguments.add_argument("--kinds", action="store_true", help="list what was judged")
    options = arguments.parse_args()
    self_check(Judge())
    paths = sorted(options.directory.glob("*.jsonl"))
    findings, kinds = check_all(paths, len(os.sched_getaffinity(0)))
    sys.stdout.reconfigure(errors="backslashreplace")
    if options.kinds:
        for name, times in sorted(kinds.items()):
            print(f"{times:8} {' '.join(name)}")
    sys.exit(report(findings, kinds, options.least))


if __name__ == "__main__":
    main()
