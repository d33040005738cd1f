"""The processes of a run. Each is a child of the run, and ends with it. The main thread
starts them: a child that must die with its parent dies with the thread that made it."""
import contextlib
import os
import queue
import signal
import socket
import subprocess
import threading
import time

START_SECONDS = 30


class Failed(Exception):
    """The run cannot go on."""


class Child:
    """A program whose output a thread reads line by line: take(words)."""

    def __init__(self, argv, stderr, take):
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=stderr, text=True)
        self.ear = threading.Thread(target=self.hear, args=(take,), daemon=True)
        self.ear.start()

    def hear(self, take):
        for line in self.process.stdout:
            take(line.split())
        take(None)

    def lives(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.wait()

    def wait(self, seconds=None):
        code = self.process.wait(seconds)
        self.ear.join()
        self.process.stdout.close()
        return code


class Server:
    """A server that is started again and again, always on the same port."""

    def __init__(self, place, directory, store, name):
        self.place = place  # where its program is, from the next start on
        self.store = store
        self.name = name
        self.port = None
        self.child = None
        self.starts = 0
        self.let_go = 0  # number of runs of the tool that were told to stop
        self.listens = threading.Event()
        self.holder = hold_port()
        self.port = self.holder.getsockname()[1]
        self.stderr = open(f"{directory}/{name}.err", "ab")

    def start(self):
        self.listens.clear()
        self.starts += 1
        self.child = Child([*self.command(), self.store, str(self.port),
                            str(os.getpid())], self.stderr, self.take)

    def command(self):
        """Returns the program, and what comes before its other arguments."""
        return [f"{self.place}/kill_server"]

    def take(self, words):
        if words is None:
            return
        if words[0] == "listens":
            self.listens.set()
        elif words[0] == "let":
            self.let_go += 1

    def await_start(self):
        end = time.monotonic() + START_SECONDS
        while not self.listens.wait(0.05):
            if not self.child.lives():
                raise Failed(f"{self.name} ended with {self.child.process.returncode}")
            if time.monotonic() > end:
                raise Failed(f"{self.name} does not start")

    def kill(self):
        self.listens.clear()
        self.child.kill()
        code = self.child.process.returncode
        if code != -signal.SIGKILL:
            raise Failed(f"{self.name} had ended by itself with {code}")

    def terminate(self, seconds=30):
        """Ends the server as a service manager does; it must end well."""
        self.child.process.terminate()
        try:
            code = self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} does not end") from None
        if code != 0:
            raise Failed(f"{self.name} ended with {code}")

    @contextlib.contextmanager
    def stopped(self):
        """Stops the process with SIGSTOP: it is alive, and does nothing."""
        self.child.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.child.process.send_signal(signal.SIGCONT)

    def close(self):
        if self.child and self.child.lives():
            self.child.kill()
        self.holder.close()
        self.stderr.close()


class Readers:
    """The clients."""

    def __init__(self, place, directory, url, seed, tasks, shape, era):
        self.open = threading.Event()
        self.done = queue.Queue()  # items: (era, task, count, digest)
        self.segments = self.allocated = 0
        self.refused = 0
        self.found = None
        self.gone = threading.Event()
        self.stderr = open(f"{directory}/readers.err", "ab")
        arguments = [url, os.getpid(), seed, tasks, shape.count, shape.size,
                     shape.pace_us, era]
        self.child = Child([f"{place}/kill_readers", *map(str, arguments)], self.stderr,
                           self.take)

    def take(self, words):
        if words is None:
            self.gone.set()
        elif words[0] == "open":
            self.open.set()
        elif words[0] == "seen":
            self.segments, self.allocated = int(words[1]), int(words[2])
        elif words[0] == "refused":
            self.refused += 1
        elif words[0] == "done":
            self.done.put((words[1], words[2], int(words[3]), words[4]))
        elif words[0] == "found":
            self.found = [int(word) for word in words[1:]]

    def await_open(self):
        if not self.open.wait(START_SECONDS):
            raise Failed("no client reaches the server")

    def finish(self, seconds):
        """Starts no more tasks; waits for the running ones. Returns (tasks, failed,
        resumed, segments, lost, duplicated, altered)."""
        self.child.process.terminate()
        if not self.gone.wait(seconds):
            raise Failed("the clients do not come to an end")
        code = self.child.wait()
        if code or not self.found:
            raise Failed(f"the clients ended with {code}")
        return self.found

    def close(self):
        if self.child.lives():
            self.child.kill()
        self.stderr.close()


def hold_port():
    """Reserves a port that no program gets which asks for any port, and that Segue's
    servers may listen on: they set SO_REUSEADDR too, and this socket does not
    listen."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return holder
