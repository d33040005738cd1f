"""Viewers of a task board beside a load: HTTP clients that ask what an open page with the
list of tasks asks, each second: the list, and summaries of the tasks that run.

viewers.py COUNT PORT COMMAND...   becomes COMMAND, a server that listens at PORT. COUNT
                                   viewers look at its board, from a process of their own
                                   that ends with it.
"""

import http.client
import json
import os
import sys
import threading
import time

PAUSE_S = 1.0
RETRY_S = 0.02


def ask(board, path):
    board.request("GET", f"/board/api/{path}")
    return json.loads(board.getresponse().read())


def view(port, number):
    """Is one open page."""
    tag, live, board = "", [], None
    time.sleep(PAUSE_S * number / 20)  # the pages were opened one after the other
    while True:
        try:
            board = board or http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            told = ask(board, f"tasks?source=0&tag={tag}")
            if "tasks" in told:
                tag = told["tag"]
                live = [row[0] for row in told["tasks"] if not row[2]]
            if live:
                ask(board, "summaries?source=0&ids=" + ",".join(live[:64]))
            time.sleep(PAUSE_S)
        except (OSError, http.client.HTTPException):
            board = None  # the server does not listen yet
            time.sleep(RETRY_S)


def main():
    count, port, server = int(sys.argv[1]), int(sys.argv[2]), os.getpid()
    if count and os.fork() == 0:
        os.close(1)
        for number in range(count):
            threading.Thread(target=view, args=(port, number), daemon=True).start()
        while os.getppid() == server:
            time.sleep(0.05)
        os._exit(0)
    os.execv(sys.argv[3], sys.argv[3:])


if __name__ == "__main__":
    main()
