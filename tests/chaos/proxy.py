"""Chaos for segue-proxy: upstream, proxy and client are killed in turn at random
instants, while 50 calls are under way.

    proxy.py [--kills N] [--seed N] [--build DIRECTORY] [--calls N]

The proxy has a SQLite store, so the next one takes over what it leaves. The judge reads
what the upstream and the client wrote down. Each call has one end:

- the result, and then the tool took effect;
- of "once", which is not repeatable: an error with outcome_unknown, and then a kill fell
  into the time of the call; or upstream_unavailable, and then it took no effect.

No call of "once" takes effect twice. A call of "again", which is, always has its result.
The last line is

    chaos: proxy, 500 kills, 9000 calls, 0 lost, 0 doubled, 0 effects doubled, ...
"""
import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYTHON = [sys.executable, "-B"]
LONGEST_PAUSE_SECONDS = 0.3
FINISH_SECONDS = 300
SHOWN = 20


class Proxy:
    """segue-proxy on one port and one store, started again after each kill."""

    def __init__(self, program, directory, seed):
        self.history = f"{directory}/upstream"
        self.log = open(f"{directory}/proxy.log", "ab")
        self.command = [program, "--trust-hints", "--store", f"{directory}/tasks.db"]
        self.upstream = [*PYTHON, str(HERE / "proxy_upstream.py"), self.history,
                         str(seed)]
        self.port = 0
        self.process = None
        self.start()

    def start(self):
        """Returns when it serves."""
        self.process = subprocess.Popen(
            [*self.command, "--listen", f"127.0.0.1:{self.port}", "--", *self.upstream],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for line in self.process.stderr:
            self.log.write(line)
            if line.startswith(b"segue-proxy: serving "):
                self.url = line.split()[2].decode()
                self.port = int(self.url.split(":")[2].split("/")[0])
                break
        else:
            raise RuntimeError(f"the proxy ended with {self.process.wait()}")
        threading.Thread(target=shutil.copyfileobj, daemon=True,
                         args=(self.process.stderr, self.log, 1)).start()

    def upstreams(self):
        """Returns the processes of all upstreams so far."""
        with open(self.history, encoding="utf-8") as file:
            return [int(line.split()[1]) for line in file if line.startswith("start ")]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
        if self.process.poll() is None:
            self.kill()
        return self.process.returncode


class Client:
    def __init__(self, url, directory, calls):
        self.url, self.calls, self.number = url, calls, 0
        self.history = f"{directory}/client"
        self.start()

    def start(self):
        self.number += 1
        self.process = subprocess.Popen(
            [*PYTHON, str(HERE / "proxy_client.py"), self.url, self.history,
             str(self.number), str(self.calls)], stdin=subprocess.PIPE)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()

    def finish(self):
        """Returns whether all its calls have ended."""
        self.process.stdin.close()
        try:
            return self.process.wait(FINISH_SECONDS) == 0
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False


def is_alive(pid, history):
    """Returns whether the process is an upstream of this run: numbers are used again. A
    process that has ended, but was not waited for, has no command line."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return history in file.read().split("\0")
    except OSError:
        return False


class Run:
    def __init__(self, options, directory):
        self.chance = random.Random(options.seed)
        self.kills = []  # instants at which the upstream or the proxy was killed
        self.count = {"upstream": 0, "proxy": 0, "client": 0}
        program = os.path.join(options.build, "proxy", "segue-proxy")
        self.proxy = Proxy(program, directory, options.seed)
        self.client = Client(self.proxy.url, directory, options.calls)

    def kill_upstream(self):
        pid = self.proxy.upstreams()[-1]
        self.kills.append(time.monotonic())
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def kill_proxy(self):
        self.kills.append(time.monotonic())
        self.proxy.kill()
        self.proxy.start()
        self.kills.append(time.monotonic())

    def kill_client(self):
        self.client.kill()
        self.client.start()

    def conduct(self, kills):
        deeds = [self.kill_upstream, self.kill_proxy, self.kill_client]
        for number in range(kills):
            self.await_work()
            time.sleep(self.chance.uniform(0, LONGEST_PAUSE_SECONDS))
            deed = deeds[number % len(deeds)]
            deed()
            self.count[deed.__name__[5:]] += 1

    def await_work(self):
        """Waits until a call has ended since the last kill, so that each kill meets
        calls."""
        end = time.monotonic() + FINISH_SECONDS
        size = os.path.getsize(self.client.history) if os.path.exists(
            self.client.history) else 0
        while not os.path.exists(self.client.history) \
                or os.path.getsize(self.client.history) <= size:
            if time.monotonic() > end:
                raise RuntimeError("no call ends any more")
            time.sleep(0.01)

    def finish(self):
        complaints = [] if self.client.finish() else ["the client has calls without end"]
        code = self.proxy.close()
        if code:
            complaints.append(f"the proxy ended with {code}")
        left = [pid for pid in self.proxy.upstreams()
                if is_alive(pid, self.proxy.history)]
        return complaints + [f"upstream {pid} outlives the proxy" for pid in left]

    def close(self):
        for process in (self.client.process, self.proxy.process):
            if process.poll() is None:
                process.kill()
                process.wait()


class Judge:
    """Reads the two histories; complaints and counts are the judgement."""

    def __init__(self, directory, kills):
        self.kills = kills
        self.effects, self.asked, self.ends = {}, {}, {}
        self.starts = []  # instants at which an upstream was started
        self.complaints = []
        self.counts = {"calls": 0, "lost": 0, "doubled": 0, "effects doubled": 0,
                       "unknown": 0, "unavailable": 0}
        self.read(directory)

    def read(self, directory):
        with open(f"{directory}/upstream", encoding="utf-8") as file:
            for line in file:
                word, key, *rest = line.split()
                if word == "effect":
                    self.effects[key] = self.effects.get(key, 0) + 1
                else:
                    self.starts.append(float(rest[0]))
        with open(f"{directory}/client", encoding="utf-8") as file:
            for line in file:
                word, key, *rest = line.split()
                if word == "ask":
                    self.asked[key] = (rest[0], float(rest[1]))
                else:
                    self.ends.setdefault(key, []).append((*rest[:2], float(rest[2])))

    def complain(self, key, text, what=None):
        self.complaints.append(f"{key}: {text}")
        if what:
            self.counts[what] += 1

    def judge(self):
        for key, (tool, begin) in self.asked.items():
            self.counts["calls"] += 1
            ends = self.ends.get(key, [])
            if len(ends) != 1:
                self.complain(key, f"it has {len(ends)} ends",
                              "doubled" if ends else "lost")
                continue
            if tool == "once" and self.effects.get(key, 0) > 1:
                self.complain(key, f"it took effect {self.effects[key]} times",
                              "effects doubled")
            getattr(self, f"end_{ends[0][0]}", self.end_otherwise)(
                key, tool, begin, *ends[0])

    def end_ok(self, key, _tool, _begin, _kind, text, _end):
        if text != key or not self.effects.get(key):
            self.complain(key, f"a false success: {text}", "lost")

    def end_outcome_unknown(self, key, tool, begin, _kind, text, end):
        self.counts["unknown"] += 1
        if tool != "once":
            self.complain(key, f"{tool} was not sent again: {text}", "lost")
        elif not any(kill <= end and begin <= self.until(kill) for kill in self.kills):
            self.complain(key, f"unknown, but nothing was killed: {text}", "lost")

    def until(self, kill):
        """Returns when the next upstream was started: until then a call may still go to
        the one that is dead."""
        return min((start for start in self.starts if start > kill),
                   default=float("inf"))

    def end_upstream_unavailable(self, key, tool, _begin, _kind, text, _end):
        self.counts["unavailable"] += 1
        if self.effects.get(key):
            self.complain(key, f"it took effect, but ended with {text}", "lost")

    def end_otherwise(self, key, tool, _begin, kind, text, _end):
        self.complain(key, f"{tool} ended with {kind}: {text}", "lost")


def read_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    return parser.parse_args()


def main():
    options = read_options()
    directory = tempfile.mkdtemp(prefix="segue-chaos-proxy.")
    run = Run(options, directory)
    try:
        run.conduct(options.kills)
        complaints = run.finish()
    finally:
        run.close()
    judge = Judge(directory, run.kills)
    judge.judge()
    complaints += judge.complaints
    for line in complaints[:SHOWN]:
        print(f"  {line[:300]}")
    counts = ", ".join(f"{count} {name}" for name, count in judge.counts.items())
    kills = ", ".join(f"{count} of the {name}" for name, count in run.count.items())
    print(f"seed {options.seed}: {kills}")
    print(f"chaos: proxy, {sum(run.count.values())} kills, {counts}")
    if complaints:
        print(f"{len(complaints)} complaints; the histories are in {directory}")
        return 1
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
