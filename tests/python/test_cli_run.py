"""``segue run``: finds the server of a file, serves it, and says what is wrong."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")

import segue

DEADLINE = 120
SERVER = """
import sys
import segue
print("printed while it is loaded")
server = segue.Server("ran", "3")
again = server

@server.tool
def words() -> list[str]:
    print("printed while it runs")
    return [*sys.argv[1:], __name__]

@server.tool(task="may")
def note() -> str:
    return "kept"

if __name__ == "__main__":
    raise SystemExit("this must not run")
"""


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "segue.cli", "run", *words]


def within(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, DEADLINE))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ran.py"
    path.write_text(SERVER)
    return path


@pytest.mark.parametrize("name", ["", ":server", ":again"])
def test_over_stdio(file: Path, name: str) -> None:
    """What the file prints does not damage the messages."""

    async def talk() -> None:
        heard: list[str] = []
        words = command(f"{file}{name}", "--", "--fast", "x")
        async with segue.connect(words, on_stderr=heard.append) as session:
            assert session.peer.server.version == "3"
            result = await session.call("words")
        assert result.decode(list[str]) == ["--fast", "x", "ran"]
        assert heard == ["printed while it is loaded", "printed while it runs"]

    within(talk())


def test_over_http_with_tokens_and_a_store(file: Path) -> None:
    tokens = file.with_name("tokens.txt")
    tokens.write_text(f"ada {hashlib.sha256(b'secret').hexdigest()}\n")
    store = file.with_name("tasks.db")
    words = command(
        *(str(file), "--http", "127.0.0.1:0", "--path", "/here"),
        *("--metrics-path", "/metrics"),
        *("--tokens", str(tokens), "--store", str(store)),
    )
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        url = server.stderr.readline().strip().removeprefix("The server ran listens on ")
        assert url.endswith("/here")

        async def talk() -> None:
            with pytest.raises(segue.UnauthorizedError):
                await segue.connect(url)
            async with segue.connect(url, auth="secret") as session:
                task = await session.start("note")
                assert (await task.result()).text == "kept"

        within(talk())
        wanted = urllib.request.Request(
            url.replace("/here", "/metrics"), headers={"Authorization": "Bearer secret"}
        )
        with urllib.request.urlopen(wanted, None, DEADLINE) as answer:
            assert "\nsegue_operations_tasks_total{" in answer.read().decode()
        server.send_signal(signal.SIGTERM)
        assert server.wait(DEADLINE) == 0
    assert store.exists()


BROKEN = "import segue\nserver = segue.Server()\n\ndef inner():\n    return 1 / 0\n"
TWO = "import segue\na = segue.Server()\nb = segue.Server()\n"


@pytest.mark.parametrize(
    ("name", "text", "more", "why"),
    [
        ("x.py", "import segue", [], "x.py has no segue.Server: assign one to a name"),
        ("x.py", TWO, [], "x.py has several servers: name one, x.py:a or x.py:b"),
        ("x.py:servr", SERVER, [], "has no 'servr'; did you mean x.py:server?"),
        ("x.py:sys", SERVER, [], "sys is not a segue.Server, but module"),
        ("x.py:1", SERVER, [], "'1' is not a name of Python"),
        (
            "x.py:make",
            SERVER + "async def make():\n    return server\n",
            [],
            "make is an async function, and async functions are not supported here",
        ),
        ("x.py", "exit()", [], "x.py ended itself (sys.exit)"),
        ("x.py", SERVER, ["--tokens", "t"], "--tokens needs --http"),
        ("x.py", SERVER, ["--metrics-path", "/m"], "--metrics-path needs --http"),
        ("x.py", SERVER, ["--board-path", "/b"], "--board-path needs --http"),
        ("x.py", SERVER, ["--http", "nowhere"], "has to be host:port"),
        (
            "x.py",
            SERVER,
            ["--http", "127.0.0.1:0", "--tokens", "t"],
            "t cannot be opened: No such file",
        ),
        ("x.py", SERVER, ["--http", "127.0.0.1:99999"], "'127.0.0.1:99999'; a port is"),
        ("x.py", SERVER, ["--store", "no/where.db"], "--store: no/where.db cannot be"),
        ("x.txt", SERVER, [], "is no file of Python"),
        ("y.py", None, [], "y.py: there is no such file"),
        (".", None, [], ". is a directory"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, name: str, text: str | None, more: list[str], why: str
) -> None:
    if text is not None:
        (tmp_path / name.partition(":")[0]).write_text(text)
    done = run(tmp_path, name, *more)
    assert why in done.stderr and "Traceback" not in done.stderr
    assert done.returncode == 2
    assert done.stdout == "" or "--http" in more


@pytest.mark.parametrize(
    ("name", "text", "last"),
    [
        ("x.py", BROKEN + "inner()\n", "ZeroDivisionError: division by zero"),
        ("x.py:inner", BROKEN, "ZeroDivisionError: division by zero"),
        ("x.py", BROKEN + "server.use(inner)\n", "TypeError: inner is no middleware"),
        ("x.py", "def f(:\n", "SyntaxError: invalid syntax"),
        ("x.py", "import no_such_module", "No module named 'no_such_module'"),
    ],
)
def test_the_traceback_is_that_of_the_user(
    tmp_path: Path, name: str, text: str, last: str
) -> None:
    """It begins in the file: frames of this package are not shown."""
    (tmp_path / "x.py").write_text(text)
    done = run(tmp_path, name)
    lines = done.stderr.splitlines()
    files = [line for line in lines if line.startswith("  File ")]
    assert files and all(str(tmp_path / "x.py") in line for line in files), done.stderr
    assert any(last in line for line in lines), done.stderr
    assert lines[-1].startswith("segue: x.py")
    assert done.returncode == 2 and done.stdout == ""


def test_a_lifespan_that_fails_is_shown_as_it_is(tmp_path: Path) -> None:
    text = (
        "import contextlib, segue\n"
        "@contextlib.asynccontextmanager\n"
        "async def life(server):\n"
        "    raise ValueError('no database')\n"
        "    yield\n"
        "server = segue.Server(lifespan=life)\n"
    )
    (tmp_path / "x.py").write_text(text)
    done = run(tmp_path, "x.py")
    assert "ValueError: no database" in done.stderr
    assert "line 4, in life" in done.stderr
    assert done.returncode == 2


def run(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=directory,
        env={**os.environ, "COLUMNS": "200"},
        timeout=DEADLINE,
        check=False,
    )


QUICK = """
import segue
server = segue.Server("quick")

@server.tool
def name() -> str:
    return __name__
"""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (QUICK + "server.run(http='127.0.0.1:99')\n", "quick"),
        (
            QUICK
            + "import asyncio\nasync def main():\n    await server.serve('nowhere')\n"
            "asyncio.run(main())\n",
            "quick",
        ),
        (QUICK + "inner = segue.Server('inner')\nserver.mount(inner, 'in')\n", "quick"),
        (QUICK + "other = segue.Server('other')\n", "quick"),
        (
            "import segue\ndef main():\n    segue.Server('made').run('127.0.0.1:99')\n"
            "main()\n",
            "made",
        ),
        (
            "import segue\nif __name__ == '__main__':\n"
            "    segue.Server('program').run(http=None)\n",
            "program",
        ),
    ],
)
def test_the_server_is_found_without_a_name(tmp_path: Path, text: str, name: str) -> None:
    file = tmp_path / "x.py"
    file.write_text(text)

    async def talk() -> None:
        words = [sys.executable, "-m", "segue.cli", "run", "--or-program", str(file)]
        async with segue.connect(words) as session:
            assert session.peer.server.name == name

    within(talk())


# what a command says of a server that is slow to start, as all are on a busy machine
SLOW = "does not answer on its standard output yet"


def cli(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command. Its advice about a slow server is left out of what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "segue.cli", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=directory,
        env={**os.environ, "COLUMNS": "2000"},
        timeout=DEADLINE,
        check=False,
    )
    lines = done.stderr.splitlines(keepends=True)
    done.stderr = "".join(line for line in lines if SLOW not in line)
    return done


def test_the_quick_start_of_the_guide_can_be_called_and_inspected(
    tmp_path: Path,
) -> None:
    """It serves HTTP below `if __name__ == "__main__"`."""
    guide = Path(__file__).resolve().parents[2] / "python" / "README.md"
    text = guide.read_text().partition("```python\n")[2].partition("```")[0]
    assert 'server.run(http="127.0.0.1:8000"' in text
    (tmp_path / "server.py").write_text(text)
    done = cli(tmp_path, "call", "server.py", "add", "a=1", "b=2")
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)
    done = cli(tmp_path, "inspect", "server.py")
    assert "server        quick-start" in done.stdout and done.stderr == ""
    assert done.returncode == 0
    done = cli(tmp_path, "install", "cursor", "server.py", "--dry-run", "--project")
    assert "quick-start" in done.stdout + done.stderr and done.returncode == 0


KEPT = """
import segue

server = segue.Server("kept")

@server.tool(task="must")
async def note() -> str:
    return "kept"

if __name__ == "__main__":
    server.run(http="127.0.0.1:8000", store="tasks.db")
"""


def test_a_task_is_in_the_store_of_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEGUE_TASKS", str(tmp_path / "saved.json"))
    (tmp_path / "x.py").write_text(KEPT)
    done = cli(tmp_path, "call", "x.py", "note", "--detach")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tasks.db").exists()
    done = cli(tmp_path, "task", "resume", done.stdout.strip())
    assert (done.stdout, done.returncode) == ("kept\n", 0), done.stderr


def test_what_a_command_says_is_shown_once(tmp_path: Path) -> None:
    """A command is started in each era."""
    fails = (
        "import sys\nfor word in 'one', 'two', 'two':\n    print(word, file=sys.stderr)"
    )
    (tmp_path / "fails.py").write_text(fails + "\nsys.exit(3)\n")
    serves = fails + "\nimport segue\nsegue.Server('a').run()\n"
    (tmp_path / "serves.py").write_text(serves)
    done = cli(tmp_path, "inspect", f"{sys.executable} fails.py")
    assert done.stderr.splitlines()[:3] == ["one", "two", "two"]
    assert "one" not in done.stderr.splitlines()[3:] and done.returncode != 0
    done = cli(tmp_path, "inspect", f"{sys.executable} serves.py")
    assert done.stderr == "one\ntwo\ntwo\n" and done.returncode == 0
    missing = cli(tmp_path, "inspect", f"{sys.executable} nofile.py").stderr
    assert missing.count("No such file or directory") == 1, missing


@pytest.mark.parametrize("command", ["inspect", "tools"])
@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("nofile.py", None, "nofile.py: there is no such file"),
        ("nofile.py:x", None, "nofile.py: there is no such file"),
        ("x.py:zz", TWO, "x.py has no 'zz'"),
        (
            "x.py",
            TWO + "if __name__ == '__main__':\n    print('hello')\n",
            "x.py has several servers: name one, x.py:a or x.py:b",
        ),
    ],
)
def test_a_file_without_the_server_is_told_once_and_is_2(
    tmp_path: Path, command: str, name: str, text: str | None, why: str
) -> None:
    if text is not None:
        (tmp_path / "x.py").write_text(text)
    done = cli(tmp_path, command, name)
    assert (done.stdout, done.stderr) == ("", f"segue: {why}\n")
    assert done.returncode == 2
    done = cli(tmp_path, command, name, "--json")
    assert "message" in done.stdout and done.returncode == 2
