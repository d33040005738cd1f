"""``segue proxy``, the program segue-proxy that the package carries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import segue
from client_worlds import run
from programs import server_command

PROXY = [sys.executable, "-m", "segue.cli", "proxy"]
# the command as it is without the extra `cli`
BARE = """
import sys
sys.modules["typer"] = sys.modules["rich"] = None
sys.argv[0] = "segue"
from segue.cli import main
main()
"""


def finish(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_has_the_version_of_the_package() -> None:
    assert finish(*PROXY, "--version").stdout == f"segue-proxy {segue.__version__}\n"


def test_it_needs_neither_typer_nor_rich() -> None:
    told = finish(sys.executable, "-c", BARE, "proxy", "--version")
    assert told.stdout == f"segue-proxy {segue.__version__}\n", told.stderr


def test_its_options_and_its_exit_status_are_those_of_the_program() -> None:
    assert "--task-after TIME" in finish(*PROXY, "--help").stdout
    told = finish(*PROXY)
    assert (told.returncode, told.stdout) == (2, "")
    assert "name an upstream" in told.stderr
    assert finish(*PROXY, "--", "/nowhere/program").returncode == 3


def test_the_command_lists_it() -> None:
    assert "segue-proxy" in finish(sys.executable, "-m", "segue.cli", "--help").stdout


def test_a_call_passes() -> None:
    async def work() -> None:
        async with segue.connect([*PROXY, "--", *server_command()]) as session:
            result = await session.call("greet", name="Ada")
            assert result.text == "Hello, Ada!"

    run(work)


def test_store_is_a_command_of_the_program() -> None:
    """It needs no further package, as the proxy."""
    for command in ([sys.executable, "-m", "segue.cli"], [sys.executable, "-c", BARE]):
        told = finish(*command, "store", "--help")
        assert told.stdout.startswith("usage: segue-proxy store ls STORE"), told.stderr
        told = finish(*command, "store", "ls", "/nowhere/tasks.db")
        assert told.returncode == 1
        assert "No such file" in told.stderr
        told = finish(*command, "doctor", "/nowhere/tasks.db")
        assert told.returncode == 1
        assert "No such file" in told.stderr
    commands = finish(sys.executable, "-m", "segue.cli", "--help").stdout
    assert "store" in commands
    assert "doctor" in commands


def test_the_process_becomes_the_proxy() -> None:
    """No process of Python stays between the caller and the proxy."""
    listen = ["--listen", "127.0.0.1:0", "--"]
    with subprocess.Popen(
        [*PROXY, *listen, *server_command()], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert "serving http://" in process.stderr.readline()
        program = os.readlink(f"/proc/{process.pid}/exe")
        process.terminate()
        assert process.wait(120) == 0
    assert Path(program) == Path(segue.__file__).with_name("segue-proxy")
