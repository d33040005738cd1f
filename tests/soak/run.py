"""Mixed load with faults over every store, for hours: nothing is lost, memory and
descriptors stay flat, and files do not grow beyond what the store keeps.

    run.py [--minutes N] [--seed N] [--place DIRECTORY] [--self-test] [STORE...]

The stores take equal parts of the minutes, 120 by default, one after the other. Each part
is a matrix of the kill matrix (tests/kill_matrix) with these faults at random: clients
are cut off; servers except the first are killed, paused and told to end; the network
between a server and its store is cut; the server of the store is restarted. The first
server and the client program live from the start to the end, and are measured. The last
line is

  soak: N minutes, N stores, N segments, N faults, N lost, N duplicated, N altered,
  N growing

and the exit status is 1 when there is anything else to report.
"""
import argparse
import contextlib
import dataclasses
import os
import random
import shutil
import socket
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "kill_matrix"))
import flat  # noqa: E402
import players  # noqa: E402
import redis_server  # noqa: E402
import run as kill_matrix  # noqa: E402

STORES = {"memory": 1, "sqlite": 2, "redis": 2, "postgres": 2}  # number of servers
NONE = {"long": 0, "short": 0}
# Tasks live for TTL_MS, are kept for a quarter of that more, and are purged within one
# minute, so a store grows for about six minutes. A part that is shorter than
# LEAST_MINUTES is not judged: its figures are only reported.
TTL_MS = 240000
# The clock of the clients runs this many times as fast. A client gives up a task that no
# server reports on for TTL_MS of its clock. A store that is restarted and cut off on a
# busy machine may be away for longer than the 12 seconds that the default leaves.
QUICKER = 4
WARM_MINUTES = 7
LEAST_MINUTES = 12
# What is kept follows the segments of the last KEPT_MINUTES.
KEPT_MINUTES = 6
# What a series may grow by while it is judged, as a part of its mean and in its unit.
# "kB" is what a process has from the kernel. "allocated kB" is what its code holds: the
# allocator keeps pieces that were freed.
ALLOWED = {"server kB": (0.05, 2048), "client kB": (0.05, 2048),
           "client allocated kB": (0.05, 1024),
           "server fds": (0.1, 8), "client fds": (0.1, 8), "store kB": (0.3, 4096)}


# ---- measuring ----


def memory_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    raise players.Failed(f"process {pid} has no memory")


def descriptors_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def size_of(directory, prefix=""):
    """Returns the kB of the files below a directory."""
    total = 0
    for place, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):  # it may be gone by now
                if name.startswith(prefix):
                    total += os.stat(os.path.join(place, name)).st_size
    return total / 1024


def redis_memory(port):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
        link.sendall(b"INFO memory\r\n")
        text = b""
        while b"used_memory:" not in text or not text.endswith(b"\r\n"):
            data = link.recv(65536)
            if not data:
                raise OSError("Redis hung up")
            text += data
    return int(text.split(b"used_memory:")[1].split(b"\r")[0]) / 1024


class Sampler(threading.Thread):
    """Measures until it is told to stop."""

    def __init__(self, soak, period):
        super().__init__(daemon=True)
        self.soak, self.period = soak, period
        self.over = threading.Event()
        self.begin = time.monotonic()
        self.series = {name: [] for name in ALLOWED}
        self.seen = []  # (minutes, segments that clients have seen)

    def kept(self, at):
        """Returns the number of segments of the last KEPT_MINUTES."""
        now = self.soak.readers.segments
        self.seen.append((at, now))
        while self.seen[0][0] < at - KEPT_MINUTES:
            del self.seen[0]
        return now - self.seen[0][1]

    def run(self):
        while not self.over.wait(self.period):
            # a store that is away has no size, and a process at its end no figures
            with contextlib.suppress(OSError, players.Failed):
                self.sample()

    def sample(self):
        server, client = (one.child.process.pid
                          for one in (self.soak.servers[0], self.soak.readers))
        at = (time.monotonic() - self.begin) / 60
        kept = self.kept(at)
        allocated = self.soak.readers.allocated / 1024 or None
        values = (memory_of(server), memory_of(client), allocated, descriptors_of(server),
                  descriptors_of(client), self.soak.store_size())
        for series, value in zip(self.series.values(), values):
            if value is not None:
                series.append((at, value, kept))

    def stop(self):
        self.over.set()
        self.join()

    def lines(self):
        """Returns {name: flat.Line or None} of the time behind the warm-up."""
        end = time.monotonic() - self.begin
        warm = min(WARM_MINUTES, end / 60 / 2)
        return {name: flat.fit([point for point in points if point[0] >= warm])
                for name, points in self.series.items()}


def growing(lines, minutes):
    """Returns the names of the series that are not flat."""
    if minutes < LEAST_MINUTES:
        return []
    return [name for name, line in lines.items()
            if line and line.growth() > ALLOWED[name][0] * line.mean + ALLOWED[name][1]]


# ---- one store ----


class Soak(kill_matrix.Run):
    """One matrix whose faults are drawn until the time is over."""

    def __init__(self, store, minutes, options, directory, stack):
        matrix = kill_matrix.Matrix(store, NONE, STORES[store], "both")
        super().__init__(matrix, "short", options, directory, stack)
        self.minutes = minutes
        self.done["client cut"] = 0
        self.front = redis_server.Link(self.port)
        stack.callback(self.front.close)
        self.door = self.front.port
        self.deeds = ["client_cut"]
        if matrix.servers > 1:
            self.deeds += ["kill"] * 4 + ["pause", "roll"]
        if self.outside:
            self.deeds += ["cut", "restart"]

    def store(self, stack):
        return "memory" if self.matrix.name == "memory" else super().store(stack)

    def store_size(self):
        """Returns what the store takes, in kB, or None."""
        if self.matrix.name == "sqlite":
            return size_of(self.directory, "tasks.db")
        if self.matrix.name == "redis":
            return redis_memory(self.outside.port)
        if self.matrix.name == "postgres":
            return size_of(f"{self.outside.data}/base")
        return None

    # ---- faults: the first server lives on ----

    def kill(self):
        time.sleep(self.life())
        server = self.random.choice(self.servers[1:])
        server.kill()
        server.start()

    def roll(self):
        for server in self.servers[1:]:
            server.await_start()
            server.terminate()
            server.start()

    def client_cut(self):
        with self.random.choice((self.front.silent, self.front.broken))():
            time.sleep(self.random.uniform(0, 0.5))
        time.sleep(self.random.uniform(0, 0.5))

    def conduct(self):
        end = time.monotonic() + self.minutes * 60
        while time.monotonic() < end:
            if self.readers.gone.is_set():
                raise players.Failed("the clients went before the end")
            deed = self.random.choice(self.deeds)
            if deed == "kill":  # a server that starts needs its store
                self.kill()
            else:
                self.await_servers()
                getattr(self, deed)()
            self.done[deed.replace("_", " ")] += 1
        self.await_servers()


@dataclasses.dataclass
class Report:
    store: str
    segments: int = 0
    faults: int = 0
    wrong: tuple = (0, 0, 0)
    lines: dict = dataclasses.field(default_factory=dict)
    growing: list = dataclasses.field(default_factory=list)
    complaints: list = dataclasses.field(default_factory=list)

    def is_well(self):
        return not (self.growing or self.complaints or any(self.wrong)) and self.segments


def play(store, minutes, options):
    directory = tempfile.mkdtemp(prefix=f"segue-soak-{store}.")
    report, soak = Report(store), None
    with contextlib.ExitStack() as stack:
        try:
            soak = Soak(store, minutes, options, directory, stack)
            soak.start(stack, options.seed)
            sampler = Sampler(soak, max(0.1, minutes * 60 / 500))
            sampler.start()
            soak.conduct()
            sampler.stop()
            report.lines = sampler.lines()
            report.growing = growing(report.lines, minutes)
            counts, report.complaints = soak.finish()
            report.segments, report.wrong = counts[0], tuple(counts[1:])
        except (players.Failed, RuntimeError) as error:
            report.complaints.append(str(error))
        report.faults = sum(soak.done.values()) if soak else 0
    for line in report.complaints:
        print(f"{store}: {line}")
    if report.is_well():
        shutil.rmtree(directory)
    else:
        kill_matrix.tell_errors(directory)
    return report


def tell(reports, minutes):
    part = minutes / len(reports)
    judged = "judged" if part >= LEAST_MINUTES else "too short to judge"
    print(f"\n{part:.1f} minutes for each store; mean, slope at an even load and its "
          f"standard error per minute, {judged}")
    print(f"{'store':<9} {'segments':>9} {'faults':>6}  " +
          "  ".join(f"{name:<28}" for name in ALLOWED))
    for report in reports:
        cells = "  ".join(f"{str(report.lines.get(name) or '-'):<28}" for name in ALLOWED)
        print(f"{report.store:<9} {report.segments:>9} {report.faults:>6}  {cells}")
        for name in report.growing:
            print(f"{report.store}: {name} grows")


def last_line(reports, minutes):
    lost, duplicated, altered = (sum(report.wrong[i] for report in reports)
                                 for i in range(3))
    return (f"soak: {minutes:g} minutes, {len(reports)} stores, "
            f"{sum(report.segments for report in reports)} segments, "
            f"{sum(report.faults for report in reports)} faults, {lost} lost, "
            f"{duplicated} duplicated, {altered} altered, "
            f"{sum(len(report.growing) for report in reports)} growing")


def self_test():
    flat.self_test()
    leak = flat.fit([(at / 10, 1000.0 + 100 * at) for at in range(600)])
    still = flat.fit([(at / 10, 1000.0 + at % 7) for at in range(600)])
    assert growing({"server kB": leak, "client kB": still}, 60) == ["server kB"]
    assert not growing({"server kB": leak}, LEAST_MINUTES / 2)
    print("soak: the self-test is green")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--place", default=f"{ROOT}/build/release/tests/kill_matrix")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("store", nargs="*", choices=[[], *STORES])
    options = parser.parse_args()
    if options.self_test:
        self_test()
        return 0
    options.kills = options.earlier = None
    os.environ["SEGUE_TTL_MS"] = str(TTL_MS)
    os.environ["SEGUE_QUICKER"] = str(QUICKER)
    stores = options.store or list(STORES)
    print(f"soak: seed {options.seed}")
    reports = [play(store, options.minutes / len(stores), options) for store in stores]
    tell(reports, options.minutes)
    print(last_line(reports, options.minutes), flush=True)
    return 0 if all(report.is_well() for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main())
