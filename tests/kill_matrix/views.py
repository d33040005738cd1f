"""Reads tasks that have ended in ways that their readers did not use: each way must
show from the store what clients have seen."""
import hashlib
import queue
import threading
import time

import wire

PATIENCE_SECONDS = 60
LATE_SECONDS = 3
# while servers are killed only some tasks are read; the rest at the end
MOST_WAITING = 50
STREAMING = {"tasks": {"responses": {"modes": ["task", "immediate", "streaming"]}}}


def texts_of(content):
    return [block["text"] for block in content]


def result_of_get(client, task):
    answer = client.ask("tasks/get", taskId=task)
    content = answer["result"]["content"] if "result" in answer else []
    return texts_of(content), answer["status"]


def events_of_stream(client, task):
    found = []
    with client.open("tasks/stream", {"taskId": task}) as exchange:
        for _, message in exchange.messages():
            if message.get("id") == exchange.number:
                final = wire.result_of(message)["_meta"]["dev.segue/final"]
                return found, final["status"]
            found += texts_of(message["params"]["payload"]["content"])
    raise wire.Unreachable("the stream was cut")


def whole_result(client, task):
    answer = client.ask("tasks/result", taskId=task)
    return texts_of(answer["content"]), "completed"


def numbered_result(client, task):
    answer = client.ask("tasks/result", taskId=task, _meta={"dev.segue/fromSeqNr": 1})
    pieces = answer["partial-content"]
    numbers = [piece["seqNr"] for piece in pieces]
    if numbers != list(range(1, len(pieces) + 1)):
        return [f"numbers {numbers}"], None
    return texts_of(pieces), "completed" if answer["isComplete"] else "working"


VIEWS = {"modern": (result_of_get, events_of_stream),
         "legacy": (whole_result, numbered_result)}


class Viewer:
    """A thread that reads the tasks that it is given, as far as it keeps up."""

    def __init__(self, port, readers):
        self.port = port
        self.readers = readers
        self.looked = 0
        self.late = 0
        self.wrong = 0
        self.why = []
        self.later = []
        self.session = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.over.is_set():
            try:
                item = self.readers.done.get(timeout=0.1)
            except queue.Empty:
                continue
            self.later.append((time.monotonic(), item))
            if self.readers.done.qsize() < MOST_WAITING:
                self.look(*item)

    def finish(self, seconds, most):
        """Reads tasks once more that are not older than this."""
        self.over.set()
        self.thread.join()
        while not self.readers.done.empty():
            self.later.append((time.monotonic(), self.readers.done.get()))
        begin = time.monotonic() - seconds
        young = [item for at, item in self.later if at > begin]
        for item in young[-most:]:
            self.look(*item)

    def look(self, era, task, count, digest):
        for view in VIEWS[era]:
            try:
                texts, status = self.when_ended(era, view, task)
            except (wire.Refused, KeyError, TypeError) as error:
                texts, status = [], f"{type(error).__name__} {error}"
            hashed = hashlib.sha256("".join(text + "\0" for text in texts).encode())
            self.looked += 1
            if hashed.hexdigest() != digest or status != "completed":
                self.wrong += 1
                self.why.append(f"{view.__name__} of {task}: {len(texts)} of {count} "
                                f"segments, {status}")

    def when_ended(self, era, view, task):
        """A server that follows a task of another server learns of its end a moment
        later."""
        end = time.monotonic() + LATE_SECONDS
        while True:
            texts, status = self.patiently(era, view, task)
            if status != "working" or time.monotonic() > end:
                return texts, status
            self.late += 1
            time.sleep(0.05)

    def patiently(self, era, view, task):
        """A server that is away, or whose store is away, is asked again."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return view(self.client(era), task)
            except wire.Unreachable:
                self.session = None
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
            except wire.Refused as error:
                if error.again_ms is None or time.monotonic() > end:
                    raise
                time.sleep(error.again_ms / 1000)

    def client(self, era):
        if era == "modern":
            return wire.Modern(self.port)
        if not self.session:
            self.session = wire.Handshake(self.port, capabilities=STREAMING)
        return self.session
