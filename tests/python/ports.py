"""Ports for servers that must know theirs before they listen, or come back to it."""

from __future__ import annotations

import random
import socket
from pathlib import Path

FIRST = 10000  # below it are those that services have by custom
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port that is free. The system gives it to no connection and to nobody who asks
    for any port: it does so with those of a range of its own, which begins higher."""
    last = int(_RANGE.read_text().split()[0]) - 1
    while True:
        port = random.randint(FIRST, last)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
