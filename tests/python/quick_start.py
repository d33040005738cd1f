"""Follows the quick start of python/README.md, or a section of README.md, as a new user
would.

Usage: quick_start.py README [SECTION]. It runs with the Python that has the package, with
nothing of the tree on its path. It saves the two programs, starts the server, runs the
client, and compares the output with the page. Then it runs the commands for the command
line, which only the quick start has. Only the port is another one.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from ports import free_port

PORT = "8000"
DEADLINE = 120  # seconds
QUICK_START = "Quick start"  # the section of the guide
OUTPUT = "The output of the client is:"  # the line before the output in the page
SENTENCE = re.compile(r"The client prints((?:\s|\d+|,|and)+)\.")  # or this, for numbers


def blocks(text: str) -> list[tuple[str, str, str]]:
    """Returns (last non-empty line before the fence, language, content) of each block."""
    found = []
    before, language, inside = "", "", None
    for line in text.split("\n"):
        if inside is not None:
            if line == "```":
                found.append((before, language, "\n".join(inside) + "\n"))
                inside = None
            else:
                inside.append(line)
        elif line.startswith("```"):
            language, inside = line[3:], []
        elif line.strip():
            before = line
    return found


def section(text: str, title: str) -> str:
    """Returns the text below a heading of the second level."""
    _, _, rest = text.partition(f"\n## {title}\n")
    return rest.partition("\n## ")[0]


def wait_until_ready(port: str, server: subprocess.Popen[str]) -> None:
    """Waits until the server prints on standard error where it listens."""
    assert server.stderr is not None
    watchdog = threading.Timer(DEADLINE, server.kill)
    watchdog.start()
    for line in server.stderr:
        if f"http://127.0.0.1:{port}/" in line:
            watchdog.cancel()
            return
        print(line, end="", file=sys.stderr)
    sys.exit(f"the server ended with {server.wait()}")


def run(command: list[str], directory: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=DEADLINE,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode}")
    return done.stdout.decode()


def expect(what: str, got: str, wanted: str) -> None:
    if got != wanted:
        sys.exit(f"{what}: printed\n{got}\nand not\n{wanted}")


def output_of(page: str) -> str:
    """Returns what the client prints by the page: a block, or one number a line."""
    for before, _, content in blocks(page):
        if before == OUTPUT:
            return content
    sentence = SENTENCE.search(page)
    if not sentence:
        sys.exit("the page does not say what the client prints")
    return "".join(f"{number}\n" for number in re.findall(r"\d+", sentence[1]))


def play(readme: str, directory: str, title: str) -> None:
    port = str(free_port())
    page = section(Path(readme).read_text(encoding="utf-8"), title)
    parts = blocks(page)
    for before, language, content in parts:
        name = re.search(r"`(\w+\.py)`", before)
        if language == "python" and name:
            Path(directory, name[1]).write_text(content.replace(PORT, port))
    printed = output_of(page)
    commands = [
        line.replace(PORT, port)
        for _, language, content in parts
        if language == "sh"
        for line in content.splitlines()
        if line.startswith("segue ")
    ]
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}",
        "SEGUE_TOKENS": f"{directory}/tokens.json",
        "NO_PROXY": "127.0.0.1",
    }
    environment.pop("PYTHONPATH", None)
    server = subprocess.Popen(
        [sys.executable, "server.py"],
        cwd=directory,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until_ready(port, server)
        expect(
            "client.py",
            run([sys.executable, "client.py"], directory, environment),
            printed,
        )
        if bool(commands) != (title == QUICK_START):
            sys.exit(f"{title} has {len(commands)} commands")
        outputs = []
        for command in commands:
            words = shlex.split(command)
            words[0] = shutil.which("segue", path=environment["PATH"]) or words[0]
            outputs.append(run(words, directory, environment))
        if commands:
            if "add" not in outputs[0]:
                sys.exit(f"{commands[0]} printed\n{outputs[0]}")
            expect(commands[1], outputs[1], printed.partition("\n")[2])
    finally:
        server.terminate()
        try:
            status = server.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            server.kill()
            sys.exit("the server did not end when it was told to")
    if status not in (0, -15, 143):
        sys.exit(f"the server ended with {status}")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        play(sys.argv[1], directory, (sys.argv[2:] or [QUICK_START])[0])
    print(f"{sys.argv[1]}: ok with Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
