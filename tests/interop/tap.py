"""Starts a server and stands between it and its client, writing down what both say.

    tap.py LOG COMMAND...

LOG gets one line per line of either side: "<" from the client or ">" from the server, a
space, the line. A client may start its server several times: the process id is appended to
the file name. Standard library only, because it runs in the client's environment."""
import os
import signal
import subprocess
import sys
import threading


def relay(source, sink, mark, log, lock):
    for line in iter(source.readline, b""):
        with lock:
            log.write(mark + b" " + (line if line.endswith(b"\n") else line + b"<cut>\n"))
            log.flush()
        try:
            sink.write(line)
            sink.flush()
        except OSError:
            break
    try:
        sink.close()
    except OSError:
        pass


def main():
    path, command = sys.argv[1], sys.argv[2:]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    with open(f"{path}.{os.getpid()}", "wb") as log:
        lock = threading.Lock()
        up = threading.Thread(
            target=relay, args=(sys.stdin.buffer, child.stdin, b"<", log, lock), daemon=True)
        up.start()
        relay(child.stdout, sys.stdout.buffer, b">", log, lock)
        code = child.wait()
        with lock:
            log.write(b"= %d\n" % code)
        log.flush()
        os._exit(code if code >= 0 else 1)


main()
