"""The client of proxy.py: calls over HTTP by 2026-07-28, each with a key of its own. A
call whose connection is lost is asked again by its key, until it has an end.

    proxy_client.py URL[,URL] HISTORY NUMBER CALLS

Each call goes to one of the proxies, and is asked again at the other. CALLS are under way
at the same time. A client that takes the place of one that was killed reads the history
first, and asks what was asked and has no end. At the end of standard input it begins
nothing new, waits for all ends, and exits.
"""
import http.client
import itertools
import json
import os
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "proxy"))
import web  # noqa: E402

URLS, PATH, NUMBER, CALLS = *sys.argv[1:4], int(sys.argv[4])
URLS = URLS.split(",")
PAUSE_SECONDS = 0.05
FILE = os.open(PATH, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
over = threading.Event()
counter = itertools.count()


def write(*words):
    os.write(FILE, (" ".join(map(str, words)) + "\n").encode())


def left_open():
    """Returns {key: tool} of what was asked and has no end."""
    found = {}
    with open(PATH, encoding="utf-8") as file:
        for line in file:
            word, key, *rest = line.split()
            if word == "ask":
                found[key] = rest[0]
            elif word == "end":
                found.pop(key)
    return found


def kind_of(message):
    if "result" in message:
        content = message["result"].get("content") or [{}]
        failed = message["result"].get("isError")
        return "failed" if failed else "ok", content[0].get("text", "-").split()[0]
    reason = (message["error"].get("data") or {}).get("reason")
    return reason or "error", json.dumps(message["error"]).replace(" ", "_")[:300]


def ask(key, tool):
    """Returns the answer; asks again until there is one."""
    for turn in itertools.count(hash(key)):
        try:
            client = web.Modern(URLS[turn % len(URLS)])
            return client.tool(tool, {"key": key}, _meta={
                "dev.segue/idempotencyKey": key})
        except (OSError, EOFError, http.client.HTTPException, ValueError):
            time.sleep(PAUSE_SECONDS)


def follow(key, tool):
    message = ask(key, tool)
    write("end", key, *kind_of(message), time.monotonic())


def work(old):
    while old:
        follow(*old.pop())
    while not over.is_set():
        key = f"client-{NUMBER}-call-{next(counter):08d}"
        tool = ("once", "again")[hash(key) % 2]
        write("ask", key, tool, time.monotonic())
        follow(key, tool)


def main():
    open_calls = list(left_open().items())
    lots = [open_calls[at::CALLS] for at in range(CALLS)]
    threads = [threading.Thread(target=work, args=(lot,)) for lot in lots]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    over.set()
    for thread in threads:
        thread.join()


main()
