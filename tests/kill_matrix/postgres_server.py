"""A PostgreSQL server for the test, which syncs its log before each answer."""
import ctypes
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import players

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def find_programs():
    """Returns the directory of the newest version's programs."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not found:
        raise players.Failed("PostgreSQL is not installed; run .ci/setup")
    return found[-1]


class Postgres:
    """A server on a free port of loopback, in a directory of its own. It refuses to run
    as root: then it runs as the user postgres or nobody. A crash makes the server forget
    how many rows are dead, so it looks every second where it would look every minute: it
    may crash before that."""

    def __init__(self, directory):
        self.output = open(f"{directory}/postgres.err", "ab")
        self.directory = tempfile.mkdtemp(prefix="segue-postgres.")
        self.data = f"{self.directory}/data"
        self.programs = find_programs()
        self.other = {}
        if os.getuid() == 0:
            names = {user.pw_name: user for user in pwd.getpwall()}
            user = names.get("postgres") or names["nobody"]
            os.chown(self.directory, user.pw_uid, user.pw_gid)
            self.other = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        subprocess.run(
            [f"{self.programs}/initdb", "-D", self.data, "-U", "segue", "-A", "trust",
             "-E", "UTF8", "--locale=C", "--no-sync"], cwd=self.directory, check=True,
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
            **self.other)
        self.holder = players.hold_port()
        self.port = self.holder.getsockname()[1]
        self.process = None
        self.start()

    def url(self, port):
        return f"postgresql://segue@127.0.0.1:{port}/postgres"

    def start(self):
        self.process = subprocess.Popen(
            [f"{self.programs}/postgres", "-D", self.data, "-k", self.directory,
             "-h", "127.0.0.1", "-p", str(self.port), "-c", "max_connections=60",
             "-c", "shared_buffers=32MB", "-c", "autovacuum_naptime=1s",
             "-c", "log_min_messages=warning",
             "-c", "log_min_error_statement=panic"], cwd=self.directory,
            stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent, **self.other)
        end = time.monotonic() + players.START_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise players.Failed("PostgreSQL does not start")
            time.sleep(0.01)

    def answers(self):
        """Returns whether the server takes connections; it does not while it recovers."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as link:
                user = b"user\0segue\0database\0postgres\0\0"
                link.sendall((len(user) + 8).to_bytes(4, "big") + b"\0\3\0\0" + user)
                return link.recv(1) == b"R"
        except OSError:
            return False

    def end(self, number):
        """SIGKILL: as a crash of the machine, all processes end at once. SIGTERM: as the
        service manager ends it, without waiting for clients."""
        self.process.send_signal(signal.SIGQUIT if number == signal.SIGKILL
                                 else signal.SIGINT)
        try:
            self.process.wait(players.START_SECONDS)
        except subprocess.TimeoutExpired:
            raise players.Failed("PostgreSQL does not end") from None

    def close(self):
        if self.process and self.process.poll() is None:
            self.end(signal.SIGKILL)
        self.holder.close()
        self.output.close()
        shutil.rmtree(self.directory, ignore_errors=True)
