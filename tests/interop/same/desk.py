"""Starts a travel desk that serves HTTP, and runs a client with it.  desk.py CLIENT... --
SERVER...  The URL follows the client's arguments."""
import os
import socket
import subprocess
import sys
import time

UP_SECONDS = 30


class Desk:
    """A server on a free port. `start` starts it there again after `kill`."""

    def __init__(self, command, **env):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.command, self.env = command, {**os.environ, "PORT": str(self.port), **env}
        self.start()

    def start(self):
        # Its standard output is not that of the cells.
        self.child = subprocess.Popen(self.command, env=self.env, stdout=sys.stderr)

    def wait_up(self):
        end = time.monotonic() + UP_SECONDS
        while time.monotonic() < end and self.child.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                time.sleep(0.02)
        sys.exit(f"{self.command} does not listen")

    def kill(self):
        self.child.kill()
        self.child.wait()


def main():
    cut = sys.argv.index("--")
    desk = Desk(sys.argv[cut + 1:])
    try:
        desk.wait_up()
        sys.exit(subprocess.call([*sys.argv[1:cut], desk.url]))
    finally:
        desk.kill()


if __name__ == "__main__":
    main()
