"""The processes of a round of chaos. Each ends with the run."""
import os
import subprocess
import time

import players
import postgres_server
import redis_server

HERE = os.path.dirname(os.path.abspath(__file__))
# name: the class of its server; other stores have none
STORE_SERVERS = {"redis": redis_server.Redis, "postgres": postgres_server.Postgres}
LOOK_SECONDS = 0.02


class Server(players.Server):
    """A server in one of the languages."""

    def __init__(self, options, kind, directory, store, name):
        super().__init__(f"{options.place}/kill_matrix", directory, store, name)
        python = [options.python, "-B", f"{HERE}/server.py"]
        self.program = {"c": [f"{self.place}/kill_server"], "python": [*python, "loop"],
                        "threads": [*python, "threads"],
                        "node": [options.node, f"{options.node_env}/chaos_server.mjs"]}
        self.kind = kind

    def command(self):
        return self.program[self.kind]


class Proxy:
    """The cutting proxy (tests/tools/cutting_proxy.c) before the servers."""

    def __init__(self, options, target, arguments):
        self.process = subprocess.Popen(
            [f"{options.place}/tools/cutting_proxy", "--target", f"127.0.0.1:{target}",
             *arguments], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
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
    def __init__(self, options, plan, name, url, directory):
        count, size, pace, calls = plan.shape
        program = {"c": [f"{options.place}/chaos/chaos_client"],
                   "python": [options.python, "-B", f"{HERE}/client.py"],
                   "node": [options.node, f"{options.node_env}/chaos_client.mjs"]}
        self.name = name
        self.history = f"{directory}/{name}.history"
        self.stderr = open(f"{directory}/{name}.err", "ab")
        arguments = [url, os.getpid(), name, plan.seed, plan.mode, calls, count, size,
                     pace]
        self.process = subprocess.Popen(
            [*program[plan.kind], *map(str, arguments)], stdin=subprocess.DEVNULL,
            stdout=self.stderr, stderr=self.stderr,
            env={**os.environ, "SEGUE_HISTORY": self.history})
        self.killed = False

    def kill(self):
        self.killed = True
        self.process.kill()
        self.process.wait()
        with open(self.history, "a") as file:
            file.write(f"killed {self.name}\n")

    def has_asked(self):
        return os.path.exists(self.history) and os.path.getsize(self.history) > 0

    def stop(self, end):
        """Tells the client to ask for nothing more once it has asked for something: from
        then on it hears the signal."""
        while not self.has_asked() and time.monotonic() < end and \
                self.process.poll() is None:
            time.sleep(LOOK_SECONDS)
        self.process.terminate()

    def finish(self, end):
        """Returns what is wrong with its end, or None."""
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
