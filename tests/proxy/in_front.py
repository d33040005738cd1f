"""Starts segue-proxy over HTTP in front of a server, and prints its URL, as the fixture
servers print theirs. SIGTERM ends both. The exit status is 0 when both ended well.

    in_front.py PROXY [OPTION...] -- http COMMAND...  [--port PORT]
    in_front.py PROXY [OPTION...] -- stdio COMMAND... [--port PORT]

With http the server prints its own URL and is reached there. With stdio the proxy starts
the server. The port, by default any, is the one of the proxy. The last two arguments are
the port because callers append them.
"""
import re
import signal
import subprocess
import sys
import threading

STOP_SECONDS = 20
SERVING = re.compile(r"segue-proxy: serving (http\S+)")


def read_arguments(given):
    port = "0"
    if given[-2:-1] == ["--port"]:
        port = given[-1]
        given = given[:-2]
    at = given.index("--")
    return given[:at], given[at + 1], given[at + 2:], port


def start_server(command):
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return server, server.stdout.readline().strip()


def start_proxy(command):
    """Returns the proxy and its URL; what it logs later goes to standard error."""
    proxy = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True)
    for line in proxy.stderr:
        sys.stderr.write(line)
        match = SERVING.match(line)
        if match:
            return proxy, match[1]
    sys.exit(f"in_front: the proxy ended with {proxy.wait()}")


def end(process):
    """Ends a process; returns whether it ended well."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return process.returncode == 0


def main():
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    proxy, kind, command, port = read_arguments(sys.argv[1:])
    server, upstream = None, ["--", *command]
    if kind == "http":
        server, url = start_server(command)
        upstream = [url]
    front, url = start_proxy([*proxy, "--listen", f"127.0.0.1:{port}", *upstream])
    print(url, flush=True)

    def pump():
        for line in front.stderr:
            sys.stderr.write(line)
        asked.set()

    threading.Thread(target=pump, daemon=True).start()
    asked.wait()
    ends = [end(front)] + ([end(server)] if server else [])
    return not all(ends)


if __name__ == "__main__":
    sys.exit(main())
