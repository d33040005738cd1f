"""Chaos for segue-proxy: upstream, proxy and client are killed in turn at random
instants, while 50 calls are under way.

    proxy.py [--kills N] [--seed N] [--build DIRECTORY] [--calls N] [--proxies 1|2]
        [--store sqlite|redis|postgres]

One proxy has a SQLite store by default, and the next one takes over what it leaves. Two
proxies share a Redis server by default. One is killed, and the other takes over. The
client asks again at the one that serves. The judge reads what the upstreams and the
client wrote down. Each call has one end:

- the result, and then the tool took effect;
- of "once", which is not repeatable: an error with outcome_unknown, and then a kill fell
  into the time of the call; or upstream_unavailable, and then it took no effect.

No call of "once" takes effect twice. A call of "again", which is, always has its result.
The last line is

    chaos: proxy on sqlite, 500 kills, 9000 calls, 0 lost, 0 doubled, ...
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

from proxy_judge import Judge, Kill

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "kill_matrix"))
import postgres_server  # noqa: E402
import redis_server  # noqa: E402

SERVERS = {"redis": redis_server.Redis, "postgres": postgres_server.Postgres}
PYTHON = [sys.executable, "-B"]
LONGEST_PAUSE_SECONDS = 0.3
FINISH_SECONDS = 300
SHOWN = 20


class Proxy:
    """segue-proxy on one port, started again after each kill."""

    def __init__(self, program, directory, number, store, seed):
        self.number = number
        self.history = f"{directory}/upstream-{number}"
        self.log = open(f"{directory}/proxy-{number}.log", "ab")
        self.command = [program, "--trust-hints", "--store", store]
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

    def is_up(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.is_up():
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
        if self.is_up():
            self.kill()
        return self.process.returncode


class Client:
    def __init__(self, urls, directory, calls):
        self.urls, self.calls, self.number = ",".join(urls), calls, 0
        self.history = f"{directory}/client"
        self.start()

    def start(self):
        self.number += 1
        self.process = subprocess.Popen(
            [*PYTHON, str(HERE / "proxy_client.py"), self.urls, self.history,
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
        self.kills = []
        self.over = False  # told to end: what has happened is judged
        self.count = {"upstream": 0, "proxy": 0, "client": 0}
        self.server = SERVERS[options.store](directory) if options.store in SERVERS \
            else None
        store = self.server.url(self.server.port) if self.server \
            else f"{directory}/tasks.db"
        program = os.path.join(options.build, "proxy", "segue-proxy")
        self.proxies = [Proxy(program, directory, number, store, options.seed)
                        for number in range(options.proxies)]
        self.client = Client([proxy.url for proxy in self.proxies], directory,
                             options.calls)

    def note_kill(self, proxy, is_final=False):
        self.kills.append(Kill(time.monotonic(), proxy.number, is_final))

    def kill_upstream(self):
        proxy = self.chance.choice([proxy for proxy in self.proxies if proxy.is_up()])
        pid = proxy.upstreams()[-1]
        self.note_kill(proxy)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def kill_proxy(self):
        """Kills a proxy. The only one is started again. Of two the other one takes over,
        until it is killed: before that the first is started again."""
        down = [proxy for proxy in self.proxies if not proxy.is_up()]
        for proxy in down:
            proxy.start()
        proxy = self.chance.choice([proxy for proxy in self.proxies if proxy not in down])
        is_one_of_two = len(self.proxies) > 1
        self.note_kill(proxy, is_one_of_two)
        proxy.kill()
        if not is_one_of_two:
            proxy.start()
            self.note_kill(proxy)

    def kill_client(self):
        self.client.kill()
        self.client.start()

    def conduct(self, kills):
        deeds = [self.kill_upstream, self.kill_proxy, self.kill_client]
        for number in range(kills):
            if self.over:
                return
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
        for proxy in self.proxies:
            was_up = proxy.is_up()
            code = proxy.close()
            if was_up and code:
                complaints.append(f"proxy {proxy.number} ended with {code}")
        left = [pid for proxy in self.proxies for pid in proxy.upstreams()
                if is_alive(pid, proxy.history)]
        return complaints + [f"upstream {pid} outlives its proxy" for pid in left]

    def close(self):
        processes = [self.client.process, *(proxy.process for proxy in self.proxies)]
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        if self.server:
            self.server.close()


def read_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--proxies", type=int, choices=(1, 2), default=1)
    parser.add_argument("--store", choices=("sqlite", *SERVERS))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    options = parser.parse_args()
    if not options.store:
        options.store = "redis" if options.proxies > 1 else "sqlite"
    return options


def main():
    options = read_options()
    directory = tempfile.mkdtemp(prefix="segue-chaos-proxy.")
    run = Run(options, directory)
    signal.signal(signal.SIGTERM, lambda *_: setattr(run, "over", True))
    try:
        run.conduct(options.kills)
        complaints = run.finish()
    finally:
        run.close()
    judge = Judge(directory, run.kills, options.proxies)
    judge.judge()
    complaints += judge.complaints
    for line in complaints[:SHOWN]:
        print(f"  {line[:300]}")
    counts = ", ".join(f"{count} {name}" for name, count in judge.counts.items())
    kills = ", ".join(f"{count} of the {name}" for name, count in run.count.items())
    print(f"seed {options.seed}: {kills}")
    name = "proxy" if options.proxies == 1 else "two proxies"
    print(f"chaos: {name} on {options.store}, {sum(run.count.values())} kills, {counts}")
    if complaints:
        print(f"{len(complaints)} complaints; the histories are in {directory}")
        return 1
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
