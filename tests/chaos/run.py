"""Chaos: real servers and clients, a proxy that cuts at any byte, processes that are
killed, stopped and told to end. README.md explains more.

    run.py [--seed N] [--minutes M] [--stores NAME,...] [--servers NAME,...]
           [--clients NAME,...] [--modes NAME,...] [--place DIRECTORY]
           [--round-seconds S]
    run.py --short

Rounds follow each other until the time is over. Each has a seed of its own, which is
printed when the round fails, and then its histories are kept. The short form plays the
rounds of plan.SHORT_SEEDS, however long that takes. The last line says the counts of all
rounds. Exit status 1 = a round failed.
"""
import argparse
import contextlib
import itertools
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
import parties  # noqa: E402
import plan as plans  # noqa: E402
import players  # noqa: E402

LEASE_SECONDS = 1.0
FINISH_SECONDS = 240
ROUND_SECONDS, SHORT_ROUND_SECONDS = 15, 6
JUDGED = ("segments", "lost", "doubled", "altered")
FAILURES = 5  # a run ends when this number of rounds has failed


class Round:
    def __init__(self, options, seed, directory, stack):
        self.options, self.directory = options, directory
        self.plan = plans.make(seed, options.stores, options.servers, options.clients,
                               options.modes)
        self.random = random.Random(f"deeds of {seed}")
        self.deeds = {}
        os.environ["SEGUE_HISTORY"] = f"{directory}/server.history"
        where = self.open_store(stack)
        self.servers = [self.add_server(stack, number, kind, where)
                        for number, kind in enumerate(self.plan.servers, 1)]
        port = self.servers[0].port
        if len(self.servers) > 1:
            ports = [server.port for server in self.servers]
            port = stack.enter_context(fronts.start_balancer(ports)).port
        self.proxy = parties.Proxy(options, port, self.plan.proxy)
        stack.callback(self.proxy.close)
        self.clients = [self.add_client(stack, number, client)
                        for number, client in enumerate(self.plan.clients)]

    def open_store(self, stack):
        """Returns where the servers find the store."""
        self.store_server = None
        if self.plan.store in parties.STORE_SERVERS:
            self.store_server = parties.STORE_SERVERS[self.plan.store](self.directory)
            stack.callback(self.store_server.close)
            return self.store_server.url(self.store_server.port)
        return "memory" if self.plan.store == "memory" else f"{self.directory}/tasks.db"

    def add_server(self, stack, number, kind, where):
        server = parties.Server(self.options, kind, self.directory, where,
                                f"server{number}-{kind}")
        stack.callback(server.close)
        server.start()
        server.await_start()
        return server

    def add_client(self, stack, number, plan):
        client = parties.Client(self.options, plan, f"{plan.kind}{number}{plan.mode}",
                                f"http://127.0.0.1:{self.proxy.port}/mcp",
                                self.directory)
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
        """Returns whether a client was killed; one is left."""
        alive = [client for client in self.clients if not client.killed]
        if len(alive) < 2 or self.random.random() > 0.3:
            return False
        self.random.choice(alive).kill()
        return True

    def restart_store(self):
        for server in self.servers:
            server.await_start()
        self.store_server.end(self.random.choice((signal.SIGKILL, signal.SIGTERM)))
        time.sleep(self.random.uniform(0, 0.3))
        self.store_server.start()

    def possible_deeds(self):
        """A store in memory ends with its server."""
        at_clients = [self.cut, self.cut, self.refuse, self.kill_client]
        if self.plan.store == "memory":
            return at_clients
        at_servers = [self.kill, self.kill, self.end, self.pause]
        return [*at_servers, *at_clients, *[self.restart_store] * bool(self.store_server)]

    def conduct(self, seconds):
        """Does all possible deeds in a random order, again and again."""
        end, deeds = time.monotonic() + seconds, []
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0.05, 1.5))
            if not deeds:
                deeds = self.possible_deeds()
                self.random.shuffle(deeds)
            deed = deeds.pop()
            if deed() is not False:
                self.deeds[deed.__name__] = self.deeds.get(deed.__name__, 0) + 1

    def finish(self):
        """Lets the faults stop and waits for the ends. Returns complaints."""
        for server in self.servers:
            server.await_start()
        for way in "up", "down":
            self.proxy.command(f"nothing {way}")
        end = time.monotonic() + FINISH_SECONDS
        alive = [client for client in self.clients if not client.killed]
        for client in alive:
            client.stop(end)
        found = [client.finish(end) for client in alive]
        for server in self.servers:
            server.terminate()
        return [complaint for complaint in found if complaint]


def add(totals, counts):
    for name, count in counts.items():
        totals[name] = totals.get(name, 0) + count


def play(options, seed, totals, faults):
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
    add(totals, counts)
    add(faults, round_.deeds if round_ else {})
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


def leave_out(options, language, why):
    """Leaves out what needs a package that is not built. The short form needs all."""
    if options.short:
        sys.exit(f"chaos: {why}")
    print(f"without {language}: {why}")
    options.clients = [c for c in options.clients if c != language]
    options.servers = [s for s in options.servers if plans.LANGUAGES[s] != language]


def find_programs(options):
    """Ends the run when the programs in C are not built."""
    server = f"{options.place}/kill_matrix/kill_server"
    if not os.path.exists(server):
        sys.exit(f"chaos: {server} is not built (.ci/build release)")
    if os.path.isdir(f"{options.node_env}/node_modules/segue-mcp"):
        for name in "client", "server":
            shutil.copy(f"{HERE}/{name}.mjs", f"{options.node_env}/chaos_{name}.mjs")
    else:
        leave_out(options, "node", f"no package in {options.node_env} (.ci/node install)")
    if not os.path.exists(options.python) or subprocess.run(
            [options.python, "-c", "import segue"], stderr=subprocess.DEVNULL).returncode:
        leave_out(options, "python", f"no package in {options.python} (.ci/python place)")


def read_options():
    def names(text):
        return tuple(text.split(","))

    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--round-seconds", type=float)
    parser.add_argument("--stores", type=names, default=plans.STORES)
    parser.add_argument("--servers", type=names, default=plans.SERVERS)
    parser.add_argument("--clients", type=names, default=plans.CLIENTS * 2)
    parser.add_argument("--modes", type=names, default=plans.MODES)
    parser.add_argument("--place", default=f"{ROOT}/build/release/tests")
    parser.add_argument("--python", default=f"{ROOT}/build/deps/python/bin/python")
    parser.add_argument("--node", default=shutil.which("node") or "node")
    parser.add_argument("--node-env", default=f"{ROOT}/build/node/env")
    options = parser.parse_args()
    if options.round_seconds is None:
        options.round_seconds = SHORT_ROUND_SECONDS if options.short else ROUND_SECONDS
    return options


def seeds_of(options):
    if options.short:
        yield from plans.SHORT_SEEDS
        return
    end = time.monotonic() + options.minutes * 60
    for seed in itertools.count(options.seed):
        yield seed
        if time.monotonic() > end:
            return


def words(counts):
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def main():
    options = read_options()
    find_programs(options)
    rounds, failed, totals, faults = 0, 0, {}, {}
    for seed in seeds_of(options):
        failed += not play(options, seed, totals, faults)
        rounds += 1
        if failed == FAILURES:
            break
    counts = {**totals}
    judged = {name: counts.pop(name) for name in JUDGED}
    begin = "the short form" if options.short else f"seed {options.seed}"
    print(f"from {begin} on: {words(counts)}; {words(faults)}")
    print(f"chaos: {rounds} rounds, {failed} failed, {sum(faults.values())} faults, "
          f"{words(judged)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
