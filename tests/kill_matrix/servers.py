"""Several servers on one store, behind nginx, which asks them in turn. The servers
show, change, take over and finish each other's tasks.

    servers.py [--short] [--check NAME]... [--place DIRECTORY] [STORE...]

STORE is sqlite, redis or postgres; all by default. One line for each check, or for each
NAME. The last lines are "hop STORE: median M ms, ..." and "several servers STORE: G
green, F failed". A rolling restart under load is tested by a matrix of run.py.
"""
import argparse
import contextlib
import os
import shutil
import statistics
import sys
import tempfile
import time

import dialects
import players
import postgres_server
import redis_server
import wire

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "interop", "proxies"))
import fronts  # noqa: E402

HOP_LIMIT_MS = 10
HOLD_SECONDS = 2.2
# a lease is 1 s; the lock of a file ends with its process
TAKE_OVER_SECONDS = 2
STORES = ("sqlite", "redis", "postgres")
SERVERS = {"redis": redis_server.Redis, "postgres": postgres_server.Postgres}


class World:
    """Two servers behind nginx."""

    def __init__(self, store, options, directory, stack):
        self.store = store
        self.directory = directory
        self.link = None  # the network between A and the server of the store
        where = [f"{directory}/tasks.db"] * 2
        if store in SERVERS:
            server = SERVERS[store](directory)
            stack.callback(server.close)
            self.link = redis_server.Link(server.port)
            stack.callback(self.link.close)
            where = [server.url(port) for port in (self.link.port, server.port)]
        self.a, self.b = (players.Server(options.place, directory, place, name)
                          for place, name in zip(where, ("A", "B")))
        for server in self.a, self.b:
            stack.callback(server.close)
            server.start()
            server.await_start()
        ports = self.a.port, self.b.port
        self.port = stack.enter_context(fronts.start_balancer(ports)).port

    def kill_a(self):
        self.a.kill()

    def revive_a(self):
        self.a.start()
        self.a.await_start()


class Watched:
    """The event stream of a task, with the time at which each segment came."""

    def __init__(self, port, task):
        self.texts = []
        self.times = []
        self.status = None
        self.exchange = wire.Modern(port).open("tasks/stream", {"taskId": task})
        self.thread = wire.reading(self.exchange, self.take)

    def take(self, _, message):
        now = time.monotonic_ns()
        if message.get("id") == self.exchange.number:
            self.status = message["result"]["_meta"]["dev.segue/final"]["status"]
            return
        for text in dialects.texts_of(message["params"]["payload"]["content"]):
            self.texts.append(text)
            self.times.append(now)

    def join(self):
        self.thread.join(dialects.PATIENCE_SECONDS * 2)
        self.exchange.close()


# ---- the delay from A to B ----


def made_at(text):
    """Reads the time that the tool writes into each segment."""
    return int(text.split()[4].rstrip(":"))


def hop(world):
    """Measures from the moment when a segment is seen at A to that when it is seen at
    B, and also from the tool on."""
    hops, ways = [], []
    for _ in range(4):
        _, _, task = dialects.make(world, arguments={"count": 100, "size": 200,
                                                     "paceUs": 10000})
        both = [Watched(server.port, task) for server in (world.a, world.b)]
        for watched in both:
            watched.join()
            dialects.expect_numbers(watched.texts, 1, 100)
        for at_a, at_b, text in zip(both[0].times, both[1].times, both[1].texts):
            hops.append((at_b - at_a) / 1e6)
            ways.append((at_b - made_at(text)) / 1e6)
    hops, ways = hops[20:], ways[20:]  # the first ones were waiting already
    median = statistics.median(hops)
    print(f"hop {world.store}: median {median:.2f} ms, "
          f"p99 {statistics.quantiles(hops, n=100)[98]:.2f} ms behind the owner; "
          f"{statistics.median(ways):.2f} ms from the tool to the reader "
          f"({len(hops)} segments)")
    dialects.expect(median < HOP_LIMIT_MS, f"median {median:.2f} ms")


# ---- take-over ----


def alone(world):
    """A is killed while B follows; yields the task and what B shows of it."""
    _, _, task = dialects.make(world, arguments={"count": 150, "size": 200,
                                                 "paceUs": 10000})
    watched = Watched(world.b.port, task)
    dialects.until(lambda: len(watched.texts) > 20, "segments")
    world.kill_a()
    killed = time.monotonic_ns()
    return task, watched, killed


def b_takes_over(world):
    """The stream at B goes on behind the last segment of A, within the allowed time."""
    task, watched, killed = alone(world)
    try:
        watched.join()
        dialects.expect(watched.status == "completed", f"it is {watched.status}")
        dialects.expect_numbers(watched.texts, 1, 150)
        runs = [text.split()[2] for text in watched.texts]
        dialects.expect(len(set(runs)) == 2, f"{len(set(runs))} runs")
        first = next(i for i, run in enumerate(runs) if run != runs[0])
        seconds = (watched.times[first] - killed) / 1e9
        print(f"take-over {world.store}: B goes on {seconds:.2f} s after the kill of A")
        dialects.expect(seconds < TAKE_OVER_SECONDS, f"{seconds:.2f} s")
        answer = wire.Modern(world.b.port).ask("tasks/get", taskId=task)
        dialects.expect(dialects.texts_of(answer["result"]["content"]) == watched.texts,
                        "the result is another")
    finally:
        world.revive_a()


def what_cannot_go_on_fails_once(world):
    a, b, task = dialects.make(world, "once", dialects.LONG)
    dialects.until(lambda: len(Peek(b, task).texts) > 5, "segments")
    world.kill_a()
    try:
        answer = dialects.ended(b, task)
        dialects.expect(answer["status"] == "failed", f"{answer}")
        dialects.expect(answer["error"]["code"] == -32603, f"{answer}")
    finally:
        world.revive_a()
    dialects.expect(dialects.ended(a, task)["status"] == "failed", "not so on A")
    seen = Peek(a, task).texts
    dialects.expect_numbers(seen, 1, len(seen))


class Peek:
    """Reads the present state of a task."""

    def __init__(self, client, task):
        watched = Watched(client.port, task)
        time.sleep(0.2)
        watched.exchange.close()
        self.texts = list(watched.texts)


def a_question_is_still_there(world):
    """A asks and is killed; the answer goes to B, which runs the tool again."""
    _, b, task = dialects.make(world, "ask")

    def asked():
        return b.ask("tasks/get", taskId=task).get("inputRequests")

    before = dialects.until(asked, "a question")
    world.kill_a()
    try:
        dialects.expect(set(dialects.until(asked, "the question")) == set(before),
                        "it is another question")
        b.ask("tasks/update", taskId=task,
              inputResponses={key: dialects.ANSWER for key in before})
        answer = dialects.ended(b, task)
        dialects.expect(answer["status"] == "completed", f"{answer}")
        dialects.expect_answer(dialects.texts_of(answer["result"]["content"]))
    finally:
        world.revive_a()


def a_resumable_call_goes_on(world):
    """Z: the client comes to B when A is gone, and again when it is cut off there."""
    _, b, number, token = dialects.cut_off(world, "weave", dialects.SHORT)

    def come():
        exchange = b.open("requests/resume", {"resumeToken": token}, number=number)
        try:
            return wire.answer_of(exchange, number)
        except wire.Unreachable:
            return None

    world.kill_a()
    try:
        result = dialects.until(come, "the answer")
        dialects.expect_numbers(dialects.texts_of(result["content"]), 1,
                                dialects.SHORT["count"])
    finally:
        world.revive_a()


def a_drained_server_hands_over(world):
    """SIGTERM: B goes on at once."""
    _, _, task = dialects.make(world, arguments={"count": 150, "size": 200,
                                                 "paceUs": 10000})
    watched = Watched(world.b.port, task)
    dialects.until(lambda: len(watched.texts) > 20, "segments")
    world.a.terminate()
    try:
        watched.join()
        dialects.expect(watched.status == "completed", f"it is {watched.status}")
        dialects.expect_numbers(watched.texts, 1, 150)
    finally:
        world.revive_a()


def held(world, hold, takes_over):
    """The owner is stopped for longer than its lease, and then goes on. Segments that
    it made alone must not be seen; afterwards it shows those of the other server."""
    before = world.a.let_go
    a, _, task = dialects.make(world, arguments={"count": 400, "size": 200,
                                                 "paceUs": 10000})
    watched = [Watched(server.port, task) for server in (world.a, world.b)]
    dialects.until(lambda: len(watched[1].texts) > 20, "segments")
    with hold():
        time.sleep(HOLD_SECONDS)
        there = len(watched[1].texts)
    if takes_over:
        dialects.expect(there > 40, f"B showed {there} segments")
        dialects.until(lambda: world.a.let_go > before, "the run on A is told to stop")
    for one in watched:
        one.join()
        dialects.expect(one.status == "completed", f"it is {one.status}")
        dialects.expect_numbers(one.texts, 1, 400)
    dialects.expect(watched[0].texts == watched[1].texts, "A and B show different things")
    runs = [text.split()[2] for text in watched[1].texts]
    changes = sum(run != after for run, after in zip(runs, runs[1:]))
    dialects.expect(changes == takes_over, f"{changes} changes of the owner")
    answer = a.ask("tasks/get", taskId=task)
    dialects.expect(dialects.texts_of(answer["result"]["content"]) == watched[1].texts,
                    "the result is another")


def a_paused_owner_is_fenced(world):
    """SIGSTOP. The lock of a file does not lapse: with SQLite the other servers
    wait."""
    held(world, world.a.stopped, world.store in SERVERS)


def a_silent_network_fences(world):
    """No bytes arrive at the store or come from it, until all come at once."""
    if world.link:
        held(world, world.link.silent, True)


def a_broken_network_fences(world):
    if world.link:
        held(world, world.link.broken, True)


MOVES = [hop, b_takes_over, a_paused_owner_is_fenced, a_silent_network_fences,
         a_broken_network_fences, what_cannot_go_on_fails_once, a_question_is_still_there,
         a_resumable_call_goes_on, a_drained_server_hands_over]


# ---- the run ----


def run_check(world, check, rounds):
    name = check.__name__.replace("_", " ")
    try:
        for _ in range(rounds):
            check(world)
    except (AssertionError, wire.Unreachable, wire.Refused, players.Failed, KeyError,
            TimeoutError) as error:
        print(f"{world.store}: {name}: FAILED: {type(error).__name__}: "
              f"{str(error)[:400]}", flush=True)
        return False
    print(f"{world.store}: {name}: green", flush=True)
    return True


def ends_well(server):
    try:
        server.terminate()
    except players.Failed as error:
        print(error)
        return False
    return True


def play(store, options):
    directory = tempfile.mkdtemp(prefix=f"segue-servers-{store}.")
    rounds = 1 if options.short else 5
    green = failed = 0
    with contextlib.ExitStack() as stack:
        world = World(store, options, directory, stack)
        for check in dialects.CHECKS + MOVES:
            if options.check and check.__name__ not in options.check:
                continue
            well = run_check(world, check, rounds)
            green += well
            failed += not well
        for server in world.a, world.b:
            failed += not ends_well(server)
    if failed:
        print(f"what they said is in {directory}")
    else:
        shutil.rmtree(directory)
    print(f"several servers {store}: {green} green, {failed} failed", flush=True)
    return not failed and green > 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--check", action="append")
    parser.add_argument("--place", default=f"{ROOT}/build/release/tests/kill_matrix")
    parser.add_argument("store", nargs="*", choices=[[], *STORES])
    options = parser.parse_args()
    results = [play(store, options) for store in options.store or STORES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
