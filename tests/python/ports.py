"""Ports for servers that must know their port before they listen, or use it again."""

from __future__ import annotations

import random
import socket
from pathlib import Path

FIRST = 10000  # lower ports belong to well-known services
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Returns a free port. The system does not give this port to a connection or to a
    program that asks for any port: for those it uses a range that begins higher."""
    last = int(_RANGE.read_text().split()[0]) - 1
    while True:
        port = random.randint(FIRST, last)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
