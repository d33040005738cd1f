"""``segue dev``: a change of the file or of an import reloads the server, and clients,
calls and tasks go on."""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")

import segue
from segue.cli.watching import Watch

DEADLINE = 120
SERVER = """
import asyncio, os, segue, helper
server = segue.Server("changing")

@server.tool
def word() -> str:
    return helper.WORD

@server.tool
async def hold(file: str) -> str:
    while not os.path.exists(file):
        await asyncio.sleep(0.01)
    return helper.WORD

@server.tool(task="may", restartable=True)
async def steps(file: str, ctx: segue.Context):
    if ctx.resumed is None:
        yield f"first in {helper.WORD}\\n"
        while not os.path.exists(file):
            await asyncio.sleep(0.01)
    yield f"second in {helper.WORD}\\n"
"""


class Project:
    """A directory with a server and a module that it imports."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / "server.py"
        self.file.write_text(SERVER)
        self.gate = str(root / "gate")
        self.write("one")
        self.said: queue.Queue[str] = queue.Queue()
        self.heard: list[str] = []
        self.on_line: Callable[[str], object] = lambda line: None

    def write(self, word: str) -> None:
        (self.root / "helper.py").write_text(f"WORD = {word!r}\n")

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "segue.cli", "dev", str(self.file), *words]

    def hear(self, line: str) -> None:
        self.heard.append(line)
        self.said.put(line)
        self.on_line(line)

    def wait_for(self, text: str) -> str:
        """Waits for a line of standard error."""
        end = time.monotonic() + DEADLINE
        while True:
            try:
                line = self.said.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{text!r} is not in {self.heard}") from None
            if text in line:
                return line

    @contextmanager
    def dev(self, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
        """Runs the command over HTTP; gives its process and the URL."""
        with subprocess.Popen(
            self.command("--http", "127.0.0.1:0", *words),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "500"},
        ) as process:
            assert process.stderr is not None
            reading = threading.Thread(
                target=lambda lines: [self.hear(line) for line in lines],
                args=[process.stderr],
            )
            reading.start()
            try:
                yield process, self.wait_for("Ctrl-C ends it").split()[2]
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    assert process.wait(DEADLINE) == 0, self.heard
                finally:
                    process.kill()
                    reading.join()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


async def until(project: Project, text: str) -> str:
    return await asyncio.to_thread(project.wait_for, text)


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_clients_calls_and_tasks_go_on(project: Project, era: Any) -> None:
    """A running call ends in the old process; a task goes on in the new one."""

    async def talk(url: str) -> None:
        async with segue.connect(url, era=era) as session:
            assert (await session.call("word")).text == "one"
            held = asyncio.ensure_future(session.call("hold", file=project.gate))
            stream = session.stream("steps", file=project.root.joinpath("no").as_posix())
            async with stream:
                segments = aiter(stream)
                assert (await anext(segments)).text == "first in one\n"
                project.write("two")
                await until(project, "reloaded")
                while (await session.call("word")).text != "two":
                    pass
                Path(project.gate).touch()
                assert (await held).text == "one"
                assert (await anext(segments)).text == "second in two\n"
            # The stream of 2025-11-25 moves to the new process.
            assert session.connections == 1 or era == "legacy"

    with project.dev("--drain", "1") as (_, url):
        asyncio.run(asyncio.wait_for(talk(url), DEADLINE))


def test_the_official_client_hears_of_changes(project: Project) -> None:
    mcp = pytest.importorskip("mcp", reason="the official SDK is not installed")
    http = pytest.importorskip("mcp.client.streamable_http")

    async def talk(url: str) -> None:
        changed = asyncio.Event()

        async def hear(message: Any) -> None:
            if "ToolListChanged" in repr(message):
                changed.set()

        async with (
            http.streamable_http_client(url) as streams,
            mcp.ClientSession(streams[0], streams[1], message_handler=hear) as session,
        ):
            await session.initialize()
            for name in ("first", "second"):
                more = f"\n@server.tool\ndef {name}() -> str:\n    return 'more'\n"
                project.file.write_text(SERVER + more)
                await until(project, "reloaded")
                names: list[str] = []
                while name not in names:  # otherwise the old process has answered
                    await changed.wait()
                    changed.clear()
                    names = [tool.name for tool in (await session.list_tools()).tools]

    with project.dev("--drain", "1") as (_, url):
        asyncio.run(asyncio.wait_for(talk(url), DEADLINE))


def test_what_cannot_be_loaded_leaves_the_old_server(project: Project) -> None:
    with project.dev("--store", str(project.root / "own.db")) as (_, url):

        async def word() -> str:
            # The old server may still take a new connection, and then close it.
            async with segue.connect(url, connect_attempts=9) as session:
                return (await session.call("word")).text

        async def until_word(wanted: str) -> None:
            while await word() != wanted:
                pass

        (project.root / "helper.py").write_text("WORD = = 1\n")
        project.wait_for("SyntaxError: invalid syntax")
        project.wait_for("the server before the change goes on")
        assert asyncio.run(word()) == "one"

        # a module that does not exist yet
        project.file.write_text(SERVER.replace("helper", "other"))
        project.wait_for("No module named 'other'")
        project.wait_for("goes on")
        assert asyncio.run(word()) == "one"
        (project.root / "other.py").write_text("WORD = 'three'\n")
        project.wait_for("reloaded")
        asyncio.run(asyncio.wait_for(until_word("three"), DEADLINE))
    assert (project.root / "own.db").exists()


def test_a_first_load_that_fails_waits_for_a_change(project: Project) -> None:
    project.file.write_text("import segue\n")

    def mend(line: str) -> None:
        if "waiting for a change" in line:
            project.file.write_text(SERVER)

    project.on_line = mend
    with project.dev():
        pass
    assert any("server.py has no segue.Server" in line for line in project.heard)


def test_a_server_that_ends_is_started_again(project: Project) -> None:
    text = SERVER + "\n@server.tool\ndef die(seconds: float) -> None:\n    os._exit(3)\n"
    project.file.write_text(text)
    with project.dev() as (_, url):
        first = time.monotonic()

        async def die() -> None:
            async with segue.connect(url) as session:
                while time.monotonic() - first < 1.0:
                    await session.ping()
                with pytest.raises(segue.Error):
                    await session.call("die", {"seconds": 0}, timeout=10)

        asyncio.run(asyncio.wait_for(die(), DEADLINE))
        project.wait_for("the server has ended (exit code 3)")
        project.wait_for("reloaded")


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_over_stdio_the_client_stays_connected(project: Project, era: Any) -> None:
    """The client hears that the lists have changed."""

    async def talk() -> None:
        words = project.command("--stdio")
        lost: list[Any] = []
        async with segue.connect(
            words, era=era, on_stderr=project.hear, on_reconnect=lost.append
        ) as session:
            assert session.peer.server.name == "changing"
            assert (await session.call("word")).text == "one"
            async with session.subscribe(tools=True) as changes:
                project.file.write_text(
                    SERVER + "\n@server.tool\ndef more() -> str:\n    return 'more'\n"
                )
                await until(project, "reloaded")
                async for change in changes:  # the old process may be asked once more
                    assert change.kind == "tools"
                    if "more" in [tool.name for tool in await session.list_tools()]:
                        break
            assert (await session.call("more")).text == "more"
            assert session.connections == 1 and lost == []

    asyncio.run(asyncio.wait_for(talk(), DEADLINE))


def test_an_address_that_is_in_use_is_an_error(project: Project) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        address = f"127.0.0.1:{held.getsockname()[1]}"
        done = subprocess.run(
            project.command("--http", address),
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
    assert f"{address}: Address already in use" in done.stderr
    assert done.returncode == 4


def test_two_ways_to_serve_are_refused(project: Project) -> None:
    done = subprocess.run(
        project.command("--stdio", "--http", "127.0.0.1:0"),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert "--stdio and --http cannot both be given" in done.stderr
    assert done.returncode == 2


# ---- the watch


def ticking(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]
) -> int:
    """Lets each pause of the watch call `act` with its number instead of waiting."""
    number = 0

    async def pause(seconds: float) -> None:
        nonlocal number
        number += 1
        assert number < 100
        act(number)

    monkeypatch.setattr("segue.cli.watching.asyncio.sleep", pause)
    asyncio.run(watch.wait())
    return number


def test_changes_that_follow_each_other_count_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.touch()
    watch = Watch()
    watch.add([str(first), str(second)])
    acts = {3: first.unlink, 4: lambda: second.write_text("x"), 5: first.touch}
    assert ticking(watch, monkeypatch, lambda n: acts.get(n, lambda: None)()) == 7
    assert watch.take() == [str(first), str(second)]
    assert not watch.changed and len(watch) == 2
