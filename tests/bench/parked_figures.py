"""Parked tasks on a SQLite store: their cost, and how soon a killed server is back.

A server has FEW tasks, then MANY, that wait and send nothing. Measured are its memory
and its file with MANY, and `tasks/get` of one of them (one at a time, any of them).
Also measured is the time from the start of a server on the file of a killed one to its
first answer about an old task. The handlers run again then, as those of restartable
tools do. A p99 is that of the best of many short runs, because other work on the
machine can only lengthen it.
"""
import json
import os
import random
import subprocess
import tempfile
import time

FEW = 100
GETS = 500
RUNS = 40
WINDOW = 64
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities":
            {"extensions": {"io.modelcontextprotocol/tasks": {}}}}


class Server:
    def __init__(self, programs, path):
        self.process = subprocess.Popen(programs.server("bench_server", "--sqlite", path),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.count = 0

    def send(self, requests):
        lines = []
        for method, params in requests:
            self.count += 1
            lines.append(json.dumps({"jsonrpc": "2.0", "id": self.count, "method": method,
                                     "params": {**params, "_meta": META}}))
        self.process.stdin.write("".join(line + "\n" for line in lines).encode())
        self.process.stdin.flush()

    def hear(self):
        """Returns the result of the next answer."""
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("the server has gone")
            said = json.loads(line)
            if "error" in said:
                raise SystemExit(f"the server says {said['error']}")
            if "id" in said:
                return said["result"]

    def park(self, count):
        tasks = []
        while count:
            some = min(WINDOW, count)
            self.send([("tools/call", {"name": "park", "arguments": {}})] * some)
            tasks += [self.hear()["taskId"] for _ in range(some)]
            count -= some
        return tasks

    def get(self, task):
        self.send([("tasks/get", {"taskId": task})])
        status = self.hear()["status"]
        if status != "working":
            raise SystemExit(f"a parked task is {status}")

    def get_p99_us(self, tasks):
        return min(self.get_run_p99_us(tasks, random.Random(run)) for run in range(RUNS))

    def get_run_p99_us(self, tasks, chance):
        took = []
        for _ in range(GETS):
            task = chance.choice(tasks)
            start = time.perf_counter_ns()
            self.get(task)
            took.append((time.perf_counter_ns() - start) / 1000)
        took.sort()
        return took[len(took) * 99 // 100]

    def resident_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) / 1024
        raise SystemExit("no memory is told")

    def kill(self):
        self.process.kill()
        self.process.wait()


def measure(programs, report, plan, build):
    with tempfile.TemporaryDirectory(dir=build) as directory:
        path = os.path.join(directory, "parked.db")
        server = Server(programs, path)
        tasks = server.park(FEW)
        idle = server.resident_mib()
        few = [server.get_p99_us(tasks)]
        start = time.monotonic()
        tasks += server.park(plan.parked - FEW)
        rate = (plan.parked - FEW) / (time.monotonic() - start)
        many = [server.get_p99_us(tasks)]
        name = "parked_sqlite"
        report.add(name + "_tasks", [plan.parked], "tasks")
        report.add(name, [server.resident_mib() - idle], "MiB")
        server.kill()
        size = sum(os.path.getsize(path + suffix) for suffix in ("", "-wal")
                   if os.path.exists(path + suffix))
        report.add(name + "_file", [size / 2**20], "MiB")
        report.add(name + "_create", [rate], "tasks/s", goal=("value", ">=", 30000))
        report.add(name + "_get_p99", many, "us", few, ("ratio", "<=", 1.2))
        start = time.monotonic()
        server = Server(programs, path)
        server.get(tasks[0])
        report.add(name + "_open", [time.monotonic() - start], "s",
                   goal=("value", "<=", 1))
        server.get(tasks[-1])
        again = [server.get_p99_us(tasks)]
        report.add(name + "_again_p99", again, "us", few,
                   ("ratio", "<=", 1.2))
        report.add(name + "_again", [server.resident_mib() - idle], "MiB")
        server.kill()
