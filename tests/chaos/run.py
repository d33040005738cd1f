"""Chaos: real servers and clients, a proxy that cuts at any byte, processes that are
killed, stopped and told to end. README.md explains more.

    run.py [--seed N] [--minutes M] [--stores NAME,...] [--clients NAME,...]
           [--modes NAME,...] [--place DIRECTORY] [--round-seconds S]

Rounds follow each other until the time is over. Each has a seed of its own, which is
printed when the round fails, and then its histories are kept. The last line says the
counts of all rounds. Exit status 1 = a round failed.
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
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "kill_matrix"),
                os.path.join(ROOT, "tests", "interop", "proxies")]
import fronts  # noqa: E402
import judge  # noqa: E402
import players  # noqa: E402
import postgres_server  # noqa: E402
import redis_server  # noqa: E402

# name: the class of its server, None = a file
STORES = {"sqlite": None, "redis": redis_server.Redis,
          "postgres": postgres_server.Postgres}
CLIENTS = ("c", "python", "node")
MODES = ("E", "S", "P", "PN", "D", "Z", "K")
LEASE_SECONDS = 1.0
FINISH_SECONDS = 120
# (segments, largest size in bytes, pace in us, calls at a time)
SHAPES = [(40, 10, 5000, 6), (100, 300, 10000, 8), (12, 65536, 20000, 3),
          (4, 1048576, 50000, 2)]


class Proxy:
    """The cutting proxy (tests/tools/cutting_proxy.c) before the servers."""

    def __init__(self, options, target, seed, chance, largest):
        least = chance.choice((200, 3000, 60000))
        arguments = ["--target", f"127.0.0.1:{target}", "--seed", str(seed),
                     "--every", f"{least}-{least * 20}", "--how",
                     chance.choice(("fin", "rst"))]
        if chance.random() < 0.3:
            # Byte by byte, megabytes take longer than FINISH_SECONDS.
            pieces = chance.choice((1, 7, 100))
            arguments += ["--pieces", str(max(pieces, largest // 256))]
        if chance.random() < 0.3:
            arguments += ["--delay", str(chance.choice((1, 5, 20)))]
        self.process = subprocess.Popen(
            [f"{options.place}/tools/cutting_proxy", *arguments], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline().split()[1])

    def command(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait(players.START_SECONDS)
        self.process.stdout.close()


class Client:
    def __init__(self, options, kind, name, url, mode, shape, directory, seed):
        count, size, pace, calls = shape
        program = {"c": [f"{options.place}/chaos/chaos_client"],
                   "python": [options.python, "-B", f"{HERE}/client.py"],
                   "node": [options.node, f"{options.node_env}/chaos_client.mjs"]}[kind]
        self.name = name
        self.history = f"{directory}/{name}.history"
        self.stderr = open(f"{directory}/{name}.err", "ab")
        arguments = [url, os.getpid(), name, seed, mode, calls, count, size, pace]
        self.process = subprocess.Popen(
            [*program, *map(str, arguments)], stdin=subprocess.DEVNULL,
            stdout=self.stderr, stderr=self.stderr,
            env={**os.environ, "SEGUE_HISTORY": self.history})
        self.killed = False

    def kill(self):
        self.killed = True
        self.process.kill()
        self.process.wait()
        with open(self.history, "a") as file:
            file.write(f"killed {self.name}\n")

    def finish(self, end):
        """Returns what is wrong with its end, or None."""
        if self.killed:
            return None
        try:
            code = self.process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            return f"{self.name} does not come to an end"
        return f"{self.name} ended with {code}" if code else None

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.stderr.close()


class Round:
    def __init__(self, options, seed, directory, stack):
        self.options, self.directory, self.seed = options, directory, seed
        self.random = random.Random(seed)
        self.deeds = {}
        self.store = self.random.choice(options.stores)
        count = self.random.choice((1, 1, 2))
        os.environ["SEGUE_HISTORY"] = f"{directory}/server.history"
        where = f"{directory}/tasks.db"
        self.store_server = None
        if STORES[self.store]:
            self.store_server = STORES[self.store](directory)
            stack.callback(self.store_server.close)
            where = self.store_server.url(self.store_server.port)
        self.servers = []
        for number in range(1, count + 1):
            server = players.Server(f"{options.place}/kill_matrix", directory, where,
                                    f"server{number}")
            stack.callback(server.close)
            server.start()
            server.await_start()
            self.servers.append(server)
        port = self.servers[0].port
        if count > 1:
            ports = [server.port for server in self.servers]
            port = stack.enter_context(fronts.start_balancer(ports)).port
        plans = [(kind, self.random.choice(options.modes), self.random.choice(SHAPES))
                 for kind in options.clients]
        largest = max(shape[1] for _, _, shape in plans)
        self.proxy = Proxy(options, port, self.random.randrange(1 << 31), self.random,
                           largest)
        stack.callback(self.proxy.close)
        self.clients = [self.add_client(stack, number, *plan)
                        for number, plan in enumerate(plans)]

    def add_client(self, stack, number, kind, mode, shape):
        client = Client(self.options, kind, f"{kind}{number}{mode}",
                        f"http://127.0.0.1:{self.proxy.port}/mcp", mode, shape,
                        self.directory, self.random.randrange(1 << 31))
        stack.callback(client.close)
        return client

    # ---- deeds ----

    def kill(self):
        server = self.random.choice(self.servers)
        server.kill()
        time.sleep(self.random.uniform(0, 0.5))
        server.start()

    def end(self):
        server = self.random.choice(self.servers)
        server.await_start()
        server.terminate()
        server.start()

    def pause(self):
        server = self.random.choice(self.servers)
        server.await_start()
        with server.stopped():
            time.sleep(LEASE_SECONDS * self.random.uniform(1.3, 2.5))

    def cut(self):
        self.proxy.command(f"cut {self.random.choice(('fin', 'rst'))}")

    def refuse(self):
        self.proxy.command(f"refuse {self.random.randrange(50, 1500)}")

    def kill_client(self):
        alive = [client for client in self.clients if not client.killed]
        if len(alive) > 1 and self.random.random() < 0.3:
            self.random.choice(alive).kill()

    def restart_store(self):
        if self.store_server is None:
            return
        for server in self.servers:
            server.await_start()
        self.store_server.end(self.random.choice((signal.SIGKILL, signal.SIGTERM)))
        time.sleep(self.random.uniform(0, 0.3))
        self.store_server.start()

    def conduct(self, seconds):
        end = time.monotonic() + seconds
        deeds = [self.kill, self.kill, self.end, self.pause, self.cut, self.cut,
                 self.refuse, self.kill_client, self.restart_store]
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0.05, 1.5))
            deed = self.random.choice(deeds)
            deed()
            self.deeds[deed.__name__] = self.deeds.get(deed.__name__, 0) + 1

    def finish(self):
        """Lets the faults stop and waits for the ends. Returns complaints."""
        for server in self.servers:
            server.await_start()
        for way in "up", "down":
            self.proxy.command(f"nothing {way}")
        for client in self.clients:
            if not client.killed:
                client.process.send_signal(signal.SIGTERM)
        end = time.monotonic() + FINISH_SECONDS
        found = [client.finish(end) for client in self.clients]
        for server in self.servers:
            server.terminate()
        return [complaint for complaint in found if complaint]


def play(options, seed, totals):
    """Plays one round; returns whether all is well."""
    directory = tempfile.mkdtemp(prefix="segue-chaos.")
    complaints, round_ = [], None
    with contextlib.ExitStack() as stack:
        try:
            round_ = Round(options, seed, directory, stack)
            round_.conduct(options.round_seconds)
            complaints += round_.finish()
        except (players.Failed, RuntimeError, OSError) as error:
            complaints.append(f"{type(error).__name__}: {error}")
    found, counts = judge.judge_directory(directory)
    complaints += found
    for name, count in [*counts.items(), *(round_.deeds.items() if round_ else ())]:
        totals[name] = totals.get(name, 0) + count
    if not complaints and not counts["calls"]:
        complaints.append("nothing was asked")
    if not complaints:
        shutil.rmtree(directory)
        return True
    print(f"seed {seed} failed; its histories are in {directory}")
    for line in complaints[:20]:
        print(f"  {line}")
    sys.stdout.flush()
    return False


FAILURES = 5  # a run ends after so many failed rounds


def find_programs(options):
    """Leaves out the clients whose packages are not built, and says so. Ends the run when
    the server's program is not built."""
    server = f"{options.place}/kill_matrix/kill_server"
    if not os.path.exists(server):
        sys.exit(f"chaos: {server} is not built (.ci/build release)")
    if "node" in options.clients:
        if os.path.isdir(f"{options.node_env}/node_modules/segue-mcp"):
            shutil.copy(f"{HERE}/client.mjs", f"{options.node_env}/chaos_client.mjs")
        else:
            options.clients = [c for c in options.clients if c != "node"]
            print(f"without Node: no package in {options.node_env} (.ci/node install)")
    if "python" in options.clients and subprocess.run(
            [options.python, "-c", "import segue"], stderr=subprocess.DEVNULL).returncode:
        options.clients = [c for c in options.clients if c != "python"]
        print(f"without Python: no package in {options.python} (.ci/python place)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--round-seconds", type=float, default=15)
    parser.add_argument("--stores", type=lambda text: text.split(","),
                        default=list(STORES))
    parser.add_argument("--clients", type=lambda text: text.split(","),
                        default=[*CLIENTS, *CLIENTS])
    parser.add_argument("--modes", type=lambda text: text.split(","), default=MODES)
    parser.add_argument("--place", default=f"{ROOT}/build/release/tests")
    parser.add_argument("--python", default=f"{ROOT}/build/deps/python/bin/python")
    parser.add_argument("--node", default=shutil.which("node") or "node")
    parser.add_argument("--node-env", default=f"{ROOT}/build/node/env")
    options = parser.parse_args()
    find_programs(options)
    begin, rounds, failed, totals = time.monotonic(), 0, 0, {}
    while failed < FAILURES and (rounds == 0 or
                                 time.monotonic() - begin < options.minutes * 60):
        failed += not play(options, options.seed + rounds, totals)
        rounds += 1
    counts = ", ".join(f"{count} {name}" for name, count in totals.items())
    print(f"chaos: {rounds} rounds from seed {options.seed}, {failed} failed; {counts}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
