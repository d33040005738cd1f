"""Starts a server and stands between it and its client, and records what both send.

    tap.py [--cut] LOG COMMAND...

LOG gets one line per line of either side: "<" from the client or ">" from the server, a
space, the line; at the end "=" and the exit code. A client may start its server several
times, so the process id is appended to the file name. With --cut the relayed bytes
arrive in small pieces of changing size. Standard library only, because the client
starts it.
"""
import os
import signal
import subprocess
import sys
import threading

CUTS = (1, 2, 3, 5, 8, 13, 4096, 1, 60000)


def pieces(line, cut):
    if not cut:
        return [line]
    parts, at, turn = [], 0, len(line)
    while at < len(line):
        size = CUTS[turn % len(CUTS)]
        parts.append(line[at:at + size])
        at, turn = at + size, turn + 1
    return parts


def relay(source, sink, mark, log, lock, cut):
    for line in iter(source.readline, b""):
        with lock:
            log.write(mark + b" " + (line if line.endswith(b"\n") else line + b"<cut>\n"))
            log.flush()
        try:
            for piece in pieces(line, cut):
                sink.write(piece)
                sink.flush()
        except OSError:
            break
    try:
        sink.close()
    except OSError:
        pass


def main():
    args = sys.argv[1:]
    cut = args[0] == "--cut"
    path, command = args[cut], args[cut + 1:]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    with open(f"{path}.{os.getpid()}", "wb") as log:
        lock = threading.Lock()
        up = threading.Thread(target=relay, daemon=True, args=(
            sys.stdin.buffer, child.stdin, b"<", log, lock, cut))
        up.start()
        relay(child.stdout, sys.stdout.buffer, b">", log, lock, cut)
        code = child.wait()
        with lock:
            log.write(b"= %d\n" % code)
            log.flush()
        os._exit(code if code >= 0 else 1)


main()
