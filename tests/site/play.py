"""Does what a page of the site says, as its reader would: saves its programs, builds
those in C, starts the server, runs the other programs in their order, and compares what
they print with the page.

Usage: play.py KIND PAGE... with KIND one of
    python      with the Python that runs this program
    node ENV    below the directory ENV, where the package is installed
    c BUILD     with the library of a build directory

A program is a code block under a line that names its file: "Save this as `client.py`:".
What it prints is the block under the next line that ends with "It prints:". A server
(server.py, server.mjs, server.c) and a file of tests (test_NAME.py) print nothing that
counts. Only the port, 8000 in the page, is another one.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))

from ports import free_port  # noqa: E402
from quick_start import blocks  # noqa: E402

PORT = "8000"
DEADLINE = 120  # seconds
FILE = re.compile(r"`(\w+\.(?:py|mjs|c))`")
LANGUAGES = {"python": ".py", "js": ".mjs", "c": ".c"}
STRICT = "-std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"


@dataclass
class Program:
    """A program of a page, and what it prints (None = nothing that counts)."""

    name: str
    code: str
    printed: str | None = None

    def is_server(self) -> bool:
        return self.name.startswith("server.")

    def is_test(self) -> bool:
        return self.name.startswith("test_")


def programs(text: str, suffix: str) -> list[Program]:
    """Returns the programs of a page that have this suffix."""
    found: list[Program] = []
    for before, language, code in blocks(text):
        name = FILE.search(before)
        if name and LANGUAGES.get(language) == Path(name[1]).suffix:
            found.append(Program(name[1], code))
        elif found and not language and before.endswith("It prints:"):
            found[-1].printed = code
    for one in found:
        if one.printed is None and not one.is_server() and not one.is_test():
            sys.exit(f"the page does not say what {one.name} prints")
    return [one for one in found if one.name.endswith(suffix)]


def commands(text: str) -> dict[str, str]:
    """Returns the command of the page that builds each program in C."""
    lines = [
        line
        for _, language, code in blocks(text)
        if language == "sh"
        for line in code.splitlines()
        if line.startswith("cc ")
    ]
    return {line.split()[1]: line for line in lines}


class Kind:
    """How programs of one language are made ready and run."""

    def __init__(self, name: str, place: str | None) -> None:
        self.suffix = {"python": ".py", "node": ".mjs", "c": ".c"}[name]
        self.place = Path(place).resolve() if place else None

    def directory(self) -> str:
        """Makes a directory; that of Node is below the one with the package."""
        below = self.place if self.suffix == ".mjs" else None
        return tempfile.mkdtemp(prefix="page-", dir=below)

    def build(self, text: str, directory: Path) -> None:
        if self.suffix != ".c":
            return
        for name, command in commands(text).items():
            if not (directory / name).exists():
                continue
            command = command.replace("core/include", str(ROOT / "core/include"))
            command = command.replace("build/release", str(self.place))
            command += f" {STRICT} {os.environ.get('EXTRA_FLAGS', '')}"
            subprocess.run(command, shell=True, cwd=directory, check=True)

    def command(self, program: Program) -> list[str]:
        if program.is_test():
            options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
            return [sys.executable, "-m", "pytest", *options, program.name]
        if self.suffix == ".py":
            return [sys.executable, "-B", program.name]
        if self.suffix == ".mjs":
            return ["node", program.name]
        return [f"./{Path(program.name).stem}"]


def wait_for(port: int, server: subprocess.Popen[str]) -> None:
    """Waits until a server listens."""
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until:
        if server.poll() is not None:
            sys.exit(f"the server ended with {server.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    sys.exit("the server does not listen")


def run(kind: Kind, program: Program, directory: Path, environment: dict[str, str]):
    done = subprocess.run(
        kind.command(program),
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    if done.returncode:
        told = f"{done.stdout}{done.stderr}"
        sys.exit(f"{program.name} ended with {done.returncode}:\n{told}")
    if program.printed is not None and done.stdout != program.printed:
        sys.exit(f"{program.name} printed\n{done.stdout}and not\n{program.printed}")


def play(kind: Kind, page: Path, directory: Path) -> int:
    """Runs the programs of a page, and returns how many there are."""
    port = free_port()
    text = page.read_text(encoding="utf-8")
    found = programs(text, kind.suffix)
    for program in found:
        (directory / program.name).write_text(program.code.replace(PORT, str(port)))
    kind.build(text, directory)
    environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
    environment.pop("PYTHONPATH", None)
    servers = [
        subprocess.Popen(
            kind.command(one),
            cwd=directory,
            env=environment,
            text=True,
            stdout=subprocess.DEVNULL,
        )
        for one in found
        if one.is_server()
    ]
    try:
        for server in servers:
            wait_for(port, server)
        for program in found:
            if not program.is_server():
                run(kind, program, directory, environment)
    finally:
        for server in servers:
            server.terminate()
            try:
                server.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                server.kill()
    return len(found)


def main() -> None:
    name, *rest = sys.argv[1:]
    place = None if name == "python" else rest.pop(0)
    kind = Kind(name, place)
    for page in map(Path, rest):
        directory = Path(kind.directory())
        try:
            count = play(kind, page, directory)
        finally:
            shutil.rmtree(directory)
        if not count:
            sys.exit(f"{page}: no program in {name}")
        print(f"{page}: {count} programs, ok", flush=True)


if __name__ == "__main__":
    main()
