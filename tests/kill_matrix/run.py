"""The kill matrix: servers are killed with -9 at random instants while clients read
many streaming tasks. What the clients have seen is compared, byte by byte, with the
results and with all other views of the tasks. README.md explains more.

    run.py [--short] [--kills N] [--seed N] [--place DIRECTORY] [--earlier DIRECTORY]
           [MATRIX...]

With --earlier, where the programs of an earlier commit are, only the matrices of
upgrades run (upgrade.py).

A matrix ends with the line "kill matrix NAME: K kills, S segments, 0 lost, 0
duplicated, 0 altered"; these lines are printed again at the end. The exit status is 1
when there is anything else to report.
"""
import argparse
import contextlib
import dataclasses
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import players
import postgres_server
import redis_server
import views

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "interop", "proxies"))
import fronts  # noqa: E402

TASKS = 50
FINISH_SECONDS = 120
# age of the tasks that are read once more at the end; tasks live longer
YOUNG_SECONDS = 60
MOST_AT_END = {"long": 1000, "short": 100}


@dataclasses.dataclass
class Shape:
    """The shape of a task."""

    count: int = 100
    size: int = 300
    pace_us: int = 10000


@dataclasses.dataclass
class Matrix:
    name: str
    kills: dict  # number of kills: long form, short form
    servers: int
    era: str
    pauses: dict = None  # number of pauses of a server, each longer than a lease
    restarts: dict = None  # number of restarts of the server of the store
    # number of cuts of the network between a server and its store, each longer than a
    # lease
    cuts: dict = None
    # number of times that all servers are told to end and started again, one by one
    rolls: dict = None
    # the servers begin with the earlier version, and each roll gives them the other one
    upgrades: bool = False


LEASE_MS = 1000
SERVERS = {"redis": redis_server.Redis, "postgres": postgres_server.Postgres}
MATRICES = [
    Matrix("rolling-sqlite", {"long": 0, "short": 0}, 3, "both",
           rolls={"long": 10, "short": 1}),
    Matrix("rolling-redis", {"long": 0, "short": 0}, 3, "both",
           rolls={"long": 10, "short": 1}),
    Matrix("sqlite2", {"long": 200, "short": 8}, 2, "both",
           pauses={"long": 20, "short": 1}),
    Matrix("sqlite", {"long": 1000, "short": 20}, 1, "both"),
    Matrix("redis", {"long": 200, "short": 8}, 2, "both",
           pauses={"long": 12, "short": 1}, restarts={"long": 20, "short": 1},
           cuts={"long": 12, "short": 1}),
    Matrix("postgres", {"long": 200, "short": 8}, 2, "both",
           pauses={"long": 12, "short": 1}, restarts={"long": 20, "short": 1},
           cuts={"long": 12, "short": 1}),
    *(Matrix(f"upgrade-{store}", {"long": 20, "short": 3}, 3, "both",
             rolls={"long": 10, "short": 2}, upgrades=True)
      for store in ("sqlite", "redis", "postgres")),
]


class Run:
    """One matrix."""

    def __init__(self, matrix, form, options, directory, stack):
        self.matrix = matrix
        self.form = form
        self.random = random.Random(f"{options.seed} {matrix.name}")
        self.directory = directory
        self.place = options.place
        self.earlier = options.earlier if matrix.upgrades else options.place
        self.done = dict.fromkeys(("kill", "pause", "restart", "cut", "roll"), 0)
        self.deeds = self.plan(options.kills)
        self.outside = None  # the server of the store
        for name, start in SERVERS.items():
            if name in matrix.name:
                self.outside = start(directory)
                stack.callback(self.outside.close)
        self.links = []
        self.servers = [self.add_server(stack, f"server{number}")
                        for number in range(1, matrix.servers + 1)]
        self.port = self.servers[0].port
        if len(self.servers) > 1:
            ports = [server.port for server in self.servers]
            self.port = stack.enter_context(fronts.start_balancer(ports)).port
        self.door = self.port  # where the clients come

    def plan(self, kills):
        """Returns all events in a random order."""
        usual = self.matrix.kills[self.form]
        wanted = {"kill": kills if kills and usual else usual}
        for deed, counts in (("pause", self.matrix.pauses), ("cut", self.matrix.cuts),
                             ("restart", self.matrix.restarts),
                             ("roll", self.matrix.rolls)):
            if counts:
                wanted[deed] = counts[self.form]
        deeds = [deed for deed, count in wanted.items() for _ in range(count)]
        self.random.shuffle(deeds)
        return deeds

    def add_server(self, stack, name):
        server = players.Server(self.earlier, self.directory, self.store(stack), name)
        stack.callback(server.close)
        return server

    def store(self, stack):
        if not self.outside:
            return f"{self.directory}/tasks.db"
        self.links.append(redis_server.Link(self.outside.port))
        stack.callback(self.links[-1].close)
        return self.outside.url(self.links[-1].port)

    def start(self, stack, seed):
        for server in self.servers:
            server.start()
        self.await_servers()
        self.readers = players.Readers(
            self.place, self.directory, f"http://127.0.0.1:{self.door}/mcp", seed, TASKS,
            Shape(), self.matrix.era)
        stack.callback(self.readers.close)
        self.readers.await_open()
        self.viewer = views.Viewer(self.port, self.readers)

    def life(self):
        """Returns how long a server lives from its start: sometimes not even until it
        listens, or until it has taken over what was left; mostly for some segments."""
        kind = self.random.random()
        if kind < 0.1:
            return self.random.uniform(0, 0.03)
        if kind < 0.8:
            return self.random.uniform(0.03, 0.4)
        return self.random.uniform(0.4, 1.5)

    def kill(self):
        """Kills mostly one server, sometimes all of them."""
        time.sleep(self.life())
        alone = len(self.servers) == 1 or self.random.random() < 0.9
        victims = [self.random.choice(self.servers)] if alone else self.servers
        for server in victims:
            server.kill()
        for server in victims:
            server.start()

    def long(self):
        """A pause that is longer than a lease."""
        return LEASE_MS / 1000 * self.random.uniform(1.3, 2.5)

    def pause(self):
        server = self.random.choice(self.servers)
        server.await_start()
        time.sleep(self.random.uniform(0, 0.5))
        with server.stopped():
            time.sleep(self.long())
        time.sleep(self.random.uniform(0, 0.5))

    def await_servers(self):
        for server in self.servers:
            server.await_start()

    def cut(self):
        self.await_servers()
        link = self.random.choice(self.links)
        time.sleep(self.random.uniform(0, 0.5))
        with self.random.choice((link.silent, link.broken))():
            time.sleep(self.long())
        time.sleep(self.random.uniform(0, 0.5))

    def restart(self):
        """Restarts the server of the store as its machine or its service manager would. A
        server that finds no store when it starts ends; one that runs waits."""
        self.await_servers()
        time.sleep(self.random.uniform(0, 0.5))
        self.outside.end(self.random.choice((signal.SIGKILL, signal.SIGTERM)))
        time.sleep(self.random.uniform(0, 0.3))
        self.outside.start()

    def roll(self):
        for server in self.servers:
            time.sleep(self.random.uniform(0, 0.6))
            server.terminate()
            server.place = (self.earlier if server.place == self.place and
                            self.matrix.upgrades else self.place)
            server.start()
            server.await_start()

    def conduct(self):
        for deed in self.deeds:
            if self.readers.gone.is_set():
                raise players.Failed("the clients went before the end")
            getattr(self, deed)()
            self.done[deed] += 1
            self.tell()
        self.await_servers()

    def let_go(self):
        return sum(server.let_go for server in self.servers)

    def tell(self):
        if sum(self.done.values()) % 100 == 0:
            print(f"{self.matrix.name}: {self.done['kill']} kills, "
                  f"{self.readers.segments} segments so far", flush=True)

    def finish(self):
        """Returns (counts, complaints)."""
        tasks, failed, resumed, *counts = self.readers.finish(FINISH_SECONDS)
        self.viewer.finish(YOUNG_SECONDS, MOST_AT_END[self.form])
        for server in self.servers:
            server.terminate()
        counts[3] += self.viewer.wrong
        print(f"{self.matrix.name}: {tasks} tasks, {TASKS} at a time; {resumed} readers "
              f"went on elsewhere by token; {self.viewer.looked} other views compared")
        if len(self.servers) > 1:
            print(f"{self.matrix.name}: {self.done['pause']} servers paused, "
                  f"{self.done['cut']} cut off, each for longer than a lease of "
                  f"{LEASE_MS} ms; Redis restarted {self.done['restart']} times; "
                  f"{self.let_go()} runs told to stop; {self.viewer.late} looks a moment "
                  "too early")
        complaints = self.viewer.why[:20]
        if self.form == "long" and self.done["cut"] and not self.let_go():
            complaints.append("nobody was fenced")
        if self.readers.refused:
            print(f"{self.matrix.name}: {self.readers.refused} calls were refused")
        if self.readers.refused > (tasks // 50 if self.done["cut"] else 0):
            complaints.append("too many calls refused: a store that is away may do that")
        if failed:
            complaints.append(f"{failed} tasks failed")
        if tasks < TASKS or not self.viewer.looked:
            complaints.append("too little was compared")
        return counts, complaints


def play(matrix, form, options):
    """Returns whether all is well, and the line that says so."""
    directory = tempfile.mkdtemp(prefix=f"segue-kill-{matrix.name}.")
    begin = time.monotonic()
    counts, complaints, run = [0, 0, 0, 0], [], None
    with contextlib.ExitStack() as stack:
        try:
            run = Run(matrix, form, options, directory, stack)
            run.start(stack, options.seed)
            run.conduct()
            counts, complaints = run.finish()
        except (players.Failed, RuntimeError) as error:
            complaints.append(str(error))
    well = not complaints and not any(counts[1:]) and counts[0] > 0
    for line in complaints:
        print(f"{matrix.name}: {line}")
    if well:
        shutil.rmtree(directory)
    else:
        tell_errors(directory)
    print(f"{matrix.name}: {time.monotonic() - begin:.0f} s, seed {options.seed}")
    line = last_line(matrix, run, counts)
    print(line, flush=True)
    return well, line


def last_line(matrix, run, counts):
    what, done = f"kill matrix {matrix.name}", f"{run.done['kill'] if run else 0} kills"
    if matrix.rolls:
        rounds = run.done["roll"] if run else 0
        kind = "upgrade" if matrix.upgrades else "restart"
        what = f"rolling {kind} {matrix.name.partition('-')[2]}"
        done = f"{rounds} rounds of {matrix.servers} servers"
    return (f"{what}: {done}, {counts[0]} segments, {counts[1]} lost, "
            f"{counts[2]} duplicated, {counts[3]} altered")


def tell_errors(directory):
    print(f"what they said is in {directory}")
    for name in sorted(os.listdir(directory)):
        if name.endswith(".err"):
            with open(os.path.join(directory, name), errors="replace") as file:
                lines = file.read().splitlines()
            print(f"{name}:", *lines[:5], *(["..."] if len(lines) > 15 else []),
                  *lines[5:][-10:], sep="\n  ")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--kills", type=int)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--place", default=f"{ROOT}/build/release/tests/kill_matrix")
    parser.add_argument("--earlier")
    parser.add_argument("matrix", nargs="*", choices=[[], *(m.name for m in MATRICES)])
    options = parser.parse_args()
    wanted = [m for m in MATRICES if m.upgrades == bool(options.earlier) and
              (not options.matrix or m.name in options.matrix)]
    form = "short" if options.short else "long"
    results = [play(matrix, form, options) for matrix in wanted]
    print("", *(line for _, line in results), sep="\n")
    return 0 if all(well for well, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
