"""A Redis server for one test; it ends with the test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def redis_server(directory: Path) -> Iterator[str]:
    """Starts a server in this directory, without persistence; gives its URL."""
    socket = directory / "redis"
    command = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", ""]
    command += ["--dir", str(directory), "--logfile", "redis.log"]
    with subprocess.Popen(command) as process:
        try:
            while not socket.exists():
                assert process.poll() is None
            yield f"unix://{socket}"
        finally:
            process.kill()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    """The URL of a Redis server."""
    with redis_server(tmp_path) as url:
        yield url
