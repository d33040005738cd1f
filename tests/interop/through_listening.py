"""Runs a server that takes its port from PORT, and prints its URL when it serves.

    through_listening.py PATH COMMAND...

SIGTERM ends it, and the status is that of the server.
"""
import os
import signal
import socket
import subprocess
import sys
import time

START_SECONDS = 60


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main():
    path, *command = sys.argv[1:]
    port = free_port()
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr,
                              env={**os.environ, "PORT": str(port)})
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    end = time.monotonic() + START_SECONDS
    while server.poll() is None and not is_open(port):
        if time.monotonic() > end:
            server.kill()
        time.sleep(0.05)
    print(f"http://127.0.0.1:{port}{path}", flush=True)
    return server.wait()


sys.exit(main())
