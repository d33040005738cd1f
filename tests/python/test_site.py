"""The programs in Python of the site's pages run, and print what the pages say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from quick_start import blocks

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "core/docs/site/pages").rglob("*.md"))


def has(page: Path, language: str) -> bool:
    found = blocks(page.read_text(encoding="utf-8"))
    return any(one == language for _, one, _ in found)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if has(page, "python")], ids=lambda page: page.stem
)
def test_a_page(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEGUE_TOKENS", str(tmp_path / "tokens.json"))
    play = ROOT / "tests/site/play.py"
    done = subprocess.run(
        [sys.executable, "-B", str(play), "python", str(page)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "page", [page for page in PAGES if has(page, "py")], ids=lambda page: page.stem
)
def test_blocks_that_cannot_run_are_python(page: Path) -> None:
    for _, language, code in blocks(page.read_text(encoding="utf-8")):
        if language == "py":
            compile(code, str(page), "exec")


def test_the_page_of_the_command() -> None:
    pytest.importorskip("typer")
    tool = ROOT / "tests/site/help_pages.py"
    command = Path(sys.executable).with_name("segue")
    done = subprocess.run(
        [sys.executable, "-B", str(tool), "python", str(command)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
