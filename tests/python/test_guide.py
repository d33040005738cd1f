"""The code blocks of python/README.md run, in the order of the page.

Blocks for a server extend one server object. A block with `await` at its top level runs
with a session of that server. Blocks for other packages (`py`) must be valid Python.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
from pathlib import Path
from typing import Any

import pytest

import segue
from quick_start import blocks

README = Path(__file__).parents[2] / "python" / "README.md"
TEXT = README.read_text(encoding="utf-8")


def programs(text: str) -> list[str]:
    """Returns the blocks of Segue's Python, except the client, which is a program."""
    return [
        code
        for before, language, code in blocks(text)
        if language == "python" and "`client.py`" not in before
    ]


def build() -> tuple[dict[str, Any], list[str], str]:
    """Returns the names that blocks share, the blocks that need a session, and the last
    block, which needs no event loop."""
    of_servers, _, of_clients = TEXT.partition("\n## Clients\n")
    names: dict[str, Any] = {"__name__": "guide", "segue": segue, "asyncio": asyncio}
    for code in programs(of_servers):
        exec(compile(code, str(README), "exec"), names)
    fragments = programs(of_clients)
    (plain,) = [code for code in fragments if "segue.sync" in code]
    fragments.remove(plain)
    return names, fragments, plain


@pytest.fixture(autouse=True)
def a_directory_with_a_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("seal.key").write_bytes(os.urandom(32))


async def run_fragments(names: dict[str, Any], fragments: list[str]) -> int:
    async with segue.connect(names["server"]) as session:
        for code in fragments:
            names["session"] = session  # a block may have replaced it
            compiled = compile(
                code, str(README), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            )
            outcome = eval(compiled, names)
            if inspect.isawaitable(outcome):
                await asyncio.wait_for(outcome, 60)
    return len(fragments)


def test_blocks_that_call_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEGUE_TOKENS", str(tmp_path / "tokens.json"))
    names, fragments, _ = build()
    assert asyncio.run(run_fragments(names, fragments)) >= 6
    printed = capsys.readouterr().out
    for line in ("quick-start 2026-07-28", "5.0 5.0", "9900", "5 5", "50", "True"):
        assert line in printed


def test_the_synchronous_block_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names, _, code = build()
    exec(compile(code, str(README), "exec"), names)
    assert capsys.readouterr().out == "3\n1\n2\n3\n"


@pytest.mark.parametrize("code", [part[2] for part in blocks(TEXT) if part[1] == "py"])
def test_blocks_of_others_are_python(code: str) -> None:
    compile(code, str(README), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_what_the_tables_name_is_there() -> None:
    """Checks that the tables name existing exceptions and commands, and name all of
    them."""
    errors = {
        name
        for name in dir(segue.errors)
        if isinstance(kind := getattr(segue.errors, name), type)
        and issubclass(kind, segue.Error)
    }
    named = {word for word in errors if f"`{word}`" in TEXT}
    internal = {
        "Error",
        "FatalError",
        "OutOfMemoryError",
        "ReentrantError",
        "ThreadError",
        "TooSmallError",
        "VersionError",
        "WouldBlockError",
        "ExistsError",
        "NotFoundError",
        "EndedError",
        "UnsupportedError",
    }
    assert errors - named - internal == set()


def test_the_page_has_the_exit_codes() -> None:
    pytest.importorskip("typer")
    from segue.cli.codes import Exit

    for code in Exit:
        assert f"\n| {code.value} | " in TEXT
