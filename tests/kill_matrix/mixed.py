"""A server of an earlier commit and one of the present commit on one store.

While the earlier one is there, the store keeps its format. Each server shows every task
of the other, also a task that a stored call has become, and a killed server of the
earlier commit can be started again. When no earlier server has been there for a while,
the store takes the newest format, and an earlier server is refused with both numbers.

upgrade.py runs this: check(earlier, present, STORES) returns the number of failures.
"""
import contextlib
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time

import dialects
import players
import postgres_server
import redis_server
import wire

STORES = ("sqlite", "redis", "postgres")
OUTSIDE = {"redis": redis_server.Redis, "postgres": postgres_server.Postgres}
# format_wait_ms of core/base/thresholds.def is a minute
RAISE_SECONDS = 100
LATE = {"count": 60, "size": 60, "paceUs": 20000}


class Store:
    """A store, and the servers on it."""

    def __init__(self, kind, directory, stack):
        self.kind = kind
        self.directory = directory
        self.stack = stack
        self.outside = None
        self.where = f"{directory}/tasks.db"
        if kind in OUTSIDE:
            self.outside = OUTSIDE[kind](directory)
            stack.callback(self.outside.close)
            self.where = self.outside.url(self.outside.port)

    def server(self, place, name):
        server = players.Server(place, self.directory, self.where, name)
        self.stack.callback(server.close)
        server.start()
        return server

    def format(self):
        """Returns the number of the store's format."""
        if self.kind == "sqlite":
            with contextlib.closing(sqlite3.connect(self.where)) as db:
                return db.execute("PRAGMA user_version").fetchone()[0]
        if self.kind == "redis":
            return int(self.outside.ask(b"GET {segue}:format").split(b"\r\n")[1])
        found = subprocess.run(
            [f"{self.outside.programs}/psql", "-At", "-c",
             "SELECT max(number) FROM segue.migration", self.where], check=True,
            capture_output=True, text=True)
        return int(found.stdout)


class Mix:
    """The servers A, of the earlier commit, and B on a new store of A."""

    def __init__(self, kind, earlier, present, directory, stack):
        self.kind = kind
        self.earlier = earlier
        self.present = present
        new = Store(kind, self.make(f"{directory}/new"), stack)
        new.server(present, "new").await_start()
        self.newest = new.format()
        self.store = Store(kind, self.make(f"{directory}/store"), stack)
        self.a = self.store.server(earlier, "A")
        self.a.await_start()
        self.oldest = self.store.format()
        self.b = self.store.server(present, "B")
        self.b.await_start()

    @staticmethod
    def make(directory):
        os.makedirs(directory)
        return directory


def late_task(mix):
    """B makes a task of a call that is stored from its start; A shows it, too."""
    task = wire.Modern(mix.b.port).ask("tools/call", name="late", arguments=LATE)
    dialects.expect(task["resultType"] == "task", f"no task: {task}")
    for server in mix.a, mix.b:
        client = wire.Modern(server.port)
        got = client.ask("tasks/get", taskId=task["taskId"])
        dialects.expect(got["status"] == "working", f"{server.name} shows {got}")
    for server in mix.a, mix.b:
        got = dialects.ended(wire.Modern(server.port), task["taskId"])
        dialects.expect(got["status"] == "completed", f"{server.name} shows {got}")
        dialects.expect_numbers(dialects.texts_of(got["result"]["content"]), 1,
                                LATE["count"])


def answered_call(mix):
    """A stored call that ends before it is a task: in the newest format only."""
    got = wire.Modern(mix.b.port).ask("tools/call", name="late",
                                      arguments={**LATE, "count": 3})
    dialects.expect(got["resultType"] == "complete", f"no answer: {got}")
    dialects.expect_numbers(dialects.texts_of(got["content"]), 1, 3)


def earlier_restarts(mix):
    """A is killed and started again, and the store still has its format."""
    mix.a.kill()
    mix.a.start()
    mix.a.await_start()
    dialects.expect(mix.store.format() == mix.oldest, "the store has another format")
    late_task(mix)


def earlier_is_replaced(mix):
    """A is replaced. The store keeps its format for a while."""
    mix.a.terminate()
    mix.a.place = mix.present
    mix.a.start()
    mix.a.await_start()
    late_task(mix)


def newest_format(mix):
    """The store gets the newest format while its servers run."""
    end = time.monotonic() + RAISE_SECONDS
    while mix.store.format() != mix.newest and time.monotonic() < end:
        time.sleep(0.5)
    dialects.expect(mix.store.format() == mix.newest,
                    f"format {mix.store.format()} and not {mix.newest}")
    late_task(mix)
    answered_call(mix)


def earlier_is_refused(mix):
    """A server of the earlier commit is refused by name, and the others go on."""
    if mix.oldest == mix.newest:
        return
    server = mix.store.server(mix.earlier, "refused")
    code = server.child.wait(players.START_SECONDS)
    with open(f"{mix.store.directory}/refused.err", errors="replace") as file:
        said = file.read()
    dialects.expect(code != 0, "it was not refused")
    dialects.expect(f"newer version of Segue (format {mix.newest}" in said, said)
    late_task(mix)


CHECKS = (late_task, earlier_restarts, earlier_is_replaced, newest_format,
          earlier_is_refused)


def check(earlier, present, kinds=STORES):
    """Each check runs on all stores before the next one, so that they wait together."""
    directory = tempfile.mkdtemp(prefix="segue-mixed.")
    green = failed = 0
    with contextlib.ExitStack() as stack:
        mixes = [Mix(kind, earlier, present, f"{directory}/{kind}", stack)
                 for kind in kinds]
        for each in CHECKS:
            for mix in mixes:
                try:
                    each(mix)
                    green += 1
                    told = "ok"
                except (AssertionError, players.Failed, wire.Unreachable, wire.Refused,
                        subprocess.TimeoutExpired, KeyError) as error:
                    failed += 1
                    told = f"FAILED: {error}"
                print(f"mixed {mix.kind}: {each.__name__}: {told}", flush=True)
    for mix in mixes:
        print(f"mixed {mix.kind}: format {mix.oldest} of the earlier commit, "
              f"{mix.newest} of this one")
    print(f"mixed versions: {green} green, {failed} failed", flush=True)
    if failed:
        print(f"what they said is in {directory}")
    else:
        shutil.rmtree(directory)
    return failed
