"""The C programs that tests of the client connect to. They are built with the core
(`make release`, or SEGUE_TESTS_DIR names the `tests` directory of another build).

`server_command` is a server on its standard input and output, `HttpServer` the same
over HTTP, `Proxy` cuts connections on request. They have the tools of
tests/support/fixtures.c and tests/interop/fixture_server.c.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
from pathlib import Path
from types import TracebackType

import pytest

from ports import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
BUILT = Path(os.environ.get("SEGUE_TESTS_DIR", ROOT / "build" / "release" / "tests"))
SECONDS = 120


def program(name: str) -> str:
    """Returns the path of a program of the build."""
    path = BUILT / name
    if not path.exists():
        pytest.fail(f"{path} is not built; SEGUE_TESTS_DIR names a build with tests")
    return str(path)


def server_command(*arguments: str) -> list[str]:
    """Returns the command of a server on its standard input and output."""
    return [program("tools/fixture_server"), *arguments]


class _Program:
    """A child process that prints its address in a line."""

    def __init__(self, command: list[str]) -> None:
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def line(self) -> str:
        """Reads one line of its output."""
        assert self.child.stdout is not None
        ready, _, _ = select.select([self.child.stdout], [], [], SECONDS)
        assert ready, f"{self.child.args!r} says nothing"
        return self.child.stdout.readline().strip()

    def kill(self) -> None:
        """Kills the process."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Asks the process to end."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self.child.poll() is None:
            self.child.send_signal(number)
        try:
            self.child.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout):
            assert pipe is not None
            pipe.close()


class HttpServer:
    """The fixture server over HTTP; it may be killed and started again on its port."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._program: _Program | None = None
        self.start()

    def start(self) -> None:
        """Starts the server, on its earlier port if it had one."""
        options = ["--http", "127.0.0.1", "--port", str(self.port), "--drain", "1"]
        self._program = _Program(server_command(*options, *self._arguments))
        assert self._program.line() == self.url

    def kill(self) -> None:
        """Kills the server."""
        assert self._program is not None
        self._program.kill()

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._program is not None:
            self._program.stop()


class Proxy:
    """A proxy between a client and a server that cuts connections."""

    def __init__(self, server: HttpServer, *arguments: str) -> None:
        target = f"127.0.0.1:{server.port}"
        command = [program("tools/cutting_proxy"), "--target", target, *arguments]
        self._program = _Program(command)
        port = re.fullmatch(r"port (\d+)", self._program.line())
        assert port
        self.url = f"http://127.0.0.1:{port[1]}/mcp"

    def say(self, line: str) -> str:
        """Sends one command, such as "cut rst"; returns the answer."""
        assert self._program.child.stdin is not None
        self._program.child.stdin.write(line + "\n")
        return self._program.line()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._program.kill()
