"""The kill matrix: servers are killed with -9 at random instants while clients read many
streaming tasks, and what the clients have seen is compared, byte by byte, with the
results and with all other views of the tasks. README.md tells more.

    run.py [--short] [--kills N] [--seed N] [--place DIRECTORY] [MATRIX...]

The last line of each matrix is "kill matrix NAME: K kills, S segments, 0 lost, 0
duplicated, 0 altered". Ends with 1 when there is anything else to say."""
import argparse
import contextlib
import dataclasses
import os
import random
import shutil
import sys
import tempfile
import time

import players
import views

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "interop", "proxies"))
import fronts  # noqa: E402

TASKS = 50
FINISH_SECONDS = 120
YOUNG_SECONDS = 60  # what is looked at once more at the end: the tasks live for longer
MOST_AT_END = {"long": 1000, "short": 100}


@dataclasses.dataclass
class Shape:
    """Of a task."""

    count: int = 100
    size: int = 300
    pace_us: int = 10000


@dataclasses.dataclass
class Matrix:
    name: str
    kills: dict  # long, short
    servers: int
    era: str


MATRICES = [
    Matrix("sqlite", {"long": 1000, "short": 30}, 1, "both"),
]


class Run:
    """One matrix."""

    def __init__(self, matrix, form, options, directory, stack):
        self.matrix = matrix
        self.form = form
        self.kills = options.kills or matrix.kills[form]
        self.random = random.Random(f"{options.seed} {matrix.name}")
        self.directory = directory
        self.place = options.place
        self.done = 0  # kills
        self.servers = [self.add_server(stack, f"server{number}")
                        for number in range(1, matrix.servers + 1)]
        self.port = self.servers[0].port
        if len(self.servers) > 1:
            ports = [server.port for server in self.servers]
            self.port = stack.enter_context(fronts.start_balancer(ports)).port

    def add_server(self, stack, name):
        server = players.Server(self.place, self.directory, self.store(), name)
        stack.callback(server.close)
        return server

    def store(self):
        return f"{self.directory}/tasks.db"

    def start(self, stack, seed):
        for server in self.servers:
            server.start()
        for server in self.servers:
            server.await_start()
        self.readers = players.Readers(
            self.place, self.directory, f"http://127.0.0.1:{self.port}/mcp", seed, TASKS,
            Shape(), self.matrix.era)
        stack.callback(self.readers.close)
        self.readers.await_open()
        self.viewer = views.Viewer(self.port, self.readers)

    def life(self):
        """How long a server lives from its start: now and then not even until it listens,
        or until it has taken up what was left; mostly for some segments."""
        kind = self.random.random()
        if kind < 0.1:
            return self.random.uniform(0, 0.03)
        if kind < 0.8:
            return self.random.uniform(0.03, 0.4)
        return self.random.uniform(0.4, 1.5)

    def kill_one(self):
        server = self.random.choice(self.servers)
        time.sleep(self.life())
        server.kill()
        self.done += 1
        server.start()

    def conduct(self):
        while self.done < self.kills:
            if self.readers.gone.is_set():
                raise players.Failed("the clients went before the end")
            self.kill_one()
            self.tell()
        for server in self.servers:
            server.await_start()

    def tell(self):
        if self.done % 100 == 0:
            print(f"{self.matrix.name}: {self.done} kills, {self.readers.segments} "
                  "segments so far", flush=True)

    def finish(self):
        """(counts, complaints)"""
        tasks, failed, resumed, *counts = self.readers.finish(FINISH_SECONDS)
        self.viewer.finish(YOUNG_SECONDS, MOST_AT_END[self.form])
        for server in self.servers:
            server.terminate()
        counts[3] += self.viewer.wrong
        print(f"{self.matrix.name}: {tasks} tasks, {TASKS} at a time; {resumed} readers "
              f"went on elsewhere by token; {self.viewer.looked} other views compared")
        complaints = self.viewer.why[:20]
        if failed:
            complaints.append(f"{failed} tasks failed")
        if tasks < TASKS or not self.viewer.looked:
            complaints.append("too little was compared")
        return counts, complaints


def play(matrix, form, options):
    """Returns whether all is well."""
    directory = tempfile.mkdtemp(prefix=f"segue-kill-{matrix.name}.")
    begin = time.monotonic()
    counts, complaints, run = [0, 0, 0, 0], [], None
    try:
        with contextlib.ExitStack() as stack:
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
    print(f"kill matrix {matrix.name}: {run.done if run else 0} kills, "
          f"{counts[0]} segments, {counts[1]} lost, {counts[2]} duplicated, "
          f"{counts[3]} altered", flush=True)
    return well


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
    parser.add_argument("matrix", nargs="*", choices=[[], *(m.name for m in MATRICES)])
    options = parser.parse_args()
    wanted = [m for m in MATRICES if not options.matrix or m.name in options.matrix]
    form = "short" if options.short else "long"
    results = [play(matrix, form, options) for matrix in wanted]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
