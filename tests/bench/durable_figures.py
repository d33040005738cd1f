"""Durable segments: 64 tasks at once through the server, compared with a bare loop.

The bare loop makes the same insertions or XADDs, in batches as large as the server's
just before, into as many logs; nothing else. `full` and `normal` are the modes of a
SQLite store; Redis has an append-only file that is synced each second; PostgreSQL syncs
its log at each commit, and the bare loop sends its insertions in pipelines. The rows
store_postgres are the store alone, without a server and a client.
"""
import glob
import os
import shutil
import socket
import subprocess
import tempfile
import time

from figures import alternate, column, run

TASKS = 64
SEGMENT_BYTES = 150
SUFFIXES = ("", "-wal", "-shm", "-owners")


def fresh(directory, name):
    path = os.path.join(directory, name)
    for suffix in SUFFIXES:
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)
    return path


def measure_mode(programs, report, plan, directory, mode):
    """mode: "full" or "normal"."""
    each = plan.segments // 4 // TASKS
    batches = []

    def streams():
        flag = "--full" if mode == "full" else "--sqlite"
        server = programs.server("bench_server", flag, fresh(directory, "streams.db"))
        said = programs.load("bench_stream", "streams", TASKS, each, SEGMENT_BYTES,
                             *server)
        batches.append(said["rows_per_commit"])
        return said

    def insert():
        batch = max(1, round(batches[-1]))
        flags = ["--full"] if mode == "full" else []
        return run(programs.server("bench_insert", *flags, fresh(directory, "insert.db"),
                                   each * TASKS, batch, TASKS))

    ours, theirs = alternate(plan.rounds, streams, insert)
    report.add(f"append_{TASKS}_{mode}", column(ours, "segments_per_s"), "segments/s",
               column(theirs, "rows_per_s"), ("ratio", ">=", 0.5))
    report.add(f"append_{TASKS}_{mode}_batch", batches, "rows/commit")


class Redis:
    """A separate Redis server on a free port, with its files in a directory."""

    def __init__(self, directory):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir",
             directory, "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""],
            stdout=subprocess.DEVNULL)
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.01)
        raise SystemExit("redis-server does not come up")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def empty(self):
        with socket.create_connection(("127.0.0.1", self.port)) as line:
            line.sendall(b"FLUSHALL\r\n")
            line.recv(64)


def measure_redis(programs, report, plan, directory):
    each = plan.segments // 8 // TASKS
    batches = []
    with Redis(directory) as redis:
        def streams():
            redis.empty()
            server = programs.server("bench_server", "--redis",
                                     f"redis://127.0.0.1:{redis.port}")
            said = programs.load("bench_stream", "streams", TASKS, each, SEGMENT_BYTES,
                                 *server)
            batches.append(said["rows_per_commit"])
            return said

        def add():
            redis.empty()
            batch = max(1, round(batches[-1]))
            return run(programs.server("bench_xadd", redis.port, each * TASKS, batch,
                                       TASKS))

        ours, theirs = alternate(plan.rounds, streams, add)
    report.add(f"append_{TASKS}_redis", column(ours, "segments_per_s"), "segments/s",
               column(theirs, "rows_per_s"), ("ratio", ">=", 0.5))
    report.add(f"append_{TASKS}_redis_batch", batches, "rows/commit")


class Postgres:
    """A separate PostgreSQL server, which syncs each commit to the disk."""

    def __init__(self, build):
        program = os.path.join(build, "tests", "tools", "postgres_server")
        self.process = subprocess.Popen(
            [program, "-c", "fsync=on", "-c", "max_wal_size=4GB"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise SystemExit("PostgreSQL does not come up")
        self.schemas = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def fresh(self):
        """Returns the URL of a store that is empty."""
        self.schemas += 1
        return f"{self.url}?schema=bench_{self.schemas}"


def measure_postgres(programs, report, plan, build):
    each = plan.segments // 8 // TASKS
    batches = []
    with Postgres(build) as postgres:
        def streams():
            server = programs.server("bench_server", "--postgres", postgres.fresh())
            said = programs.load("bench_stream", "streams", TASKS, each, SEGMENT_BYTES,
                                 *server)
            batches.append(said["rows_per_commit"])
            return said

        def pipeline(batch, *how):
            return run(programs.server("bench_pipeline", *how, each * TASKS, batch,
                                       TASKS))

        def insert():
            return pipeline(max(1, round(batches[-1])), postgres.url)

        ours, theirs = alternate(plan.rounds, streams, insert)
        alone = {batch: alternate(
            plan.rounds, lambda: pipeline(batch, "--store", postgres.fresh()),
            lambda: pipeline(batch, postgres.url)) for batch in (16, 256)}
    report.add(f"append_{TASKS}_postgres", column(ours, "segments_per_s"), "segments/s",
               column(theirs, "rows_per_s"), ("ratio", ">=", 0.5))
    report.add(f"append_{TASKS}_postgres_batch", batches, "rows/commit")
    for batch, (ours, theirs) in alone.items():
        report.add(f"store_postgres_{batch}_x{TASKS}", column(ours, "rows_per_s"),
                   "rows/s", column(theirs, "rows_per_s"), ("ratio", ">=", 0.5))


def measure(programs, report, plan, build):
    with tempfile.TemporaryDirectory(dir=build) as directory:
        for mode in ("normal", "full"):
            measure_mode(programs, report, plan, directory, mode)
        if shutil.which("redis-server"):
            measure_redis(programs, report, plan, directory)
        else:
            print("redis-server is not here: no figures of it")
        if glob.glob("/usr/lib/postgresql/*/bin/postgres"):
            measure_postgres(programs, report, plan, build)
        else:
            print("PostgreSQL is not here: no figures of it")
