"""Stores for one test: a file, a Redis server, a PostgreSQL server. The servers end with
the test."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from programs import program


def accepts(path: str) -> bool:
    """Returns whether a server accepts connections on this socket. A server makes the
    file of its socket a moment before it listens."""
    with socket.socket(socket.AF_UNIX) as link:
        return link.connect_ex(path) == 0


@contextmanager
def redis_server(directory: Path) -> Iterator[str]:
    """Starts a server in this directory, without persistence; gives its URL."""
    path = str(directory / "redis")
    command = ["redis-server", "--port", "0", "--unixsocket", path, "--save", ""]
    command += ["--dir", str(directory), "--logfile", "redis.log"]
    with subprocess.Popen(command) as process:
        try:
            while not accepts(path):
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(0.01)
            yield f"unix://{path}"
        finally:
            process.kill()


@contextmanager
def postgres_server() -> Iterator[str]:
    """Starts a server in a directory of its own; gives its URL. A user without rights
    runs it, who cannot read every directory."""
    with subprocess.Popen(
        [program("tools/postgres_server")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        url = process.stdout.readline().strip()
        assert url, "PostgreSQL does not start"
        try:
            yield url
        finally:
            process.stdin.close()


@contextmanager
def store_of_kind(kind: str, directory: Path) -> Iterator[str]:
    """Gives what names a store of this kind: "file", "redis" or "postgres"."""
    if kind == "redis":
        with redis_server(directory) as url:
            yield url
    elif kind == "postgres":
        with postgres_server() as url:
            yield url
    else:
        yield str(directory / "tasks.db")


@pytest.fixture
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a store of the kind that the parameter says."""
    with store_of_kind(request.param, tmp_path) as name:
        yield name
