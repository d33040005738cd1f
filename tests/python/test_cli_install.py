"""``segue install``: the text of a configuration, and the file."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")

import segue
from segue.cli import installing
from segue.cli.codes import Exit, UsageError
from segue.cli.hosts import HOSTS
from segue.cli.jsontext import TextError, get_member, set_member
from segue.cli.loading import parse_source
from segue.cli.screen import Screen

VECTORS = Path(__file__).parents[1] / "files" / "install.json"
CASES = json.loads(VECTORS.read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_vectors(case: dict[str, Any]) -> None:
    def change() -> str:
        return set_member(
            case["before"],
            case["path"],
            case["value"],
            has_comments=case.get("comments", False),
        )

    if "error" in case:
        with pytest.raises(TextError) as raised:
            change()
        assert case["error"] in str(raised.value)
        return
    assert change() == case["after"]
    if not case.get("comments"):
        wanted = json.loads(change().lstrip("\ufeff"))
        for name in case["path"]:
            wanted = wanted[name]
        assert wanted == case["value"]


def test_deep_nesting_is_an_error() -> None:
    deep = '{"a":' + "[" * 1000 + "]" * 1000 + "}"
    with pytest.raises(TextError, match="nested too deep"):
        set_member(deep, ["b"], 1, has_comments=False)


class Home:
    """A home directory, and a file with a server."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / "work" / "server.py"
        self.file.parent.mkdir()
        self.file.write_text("import segue\nserver = segue.Server('the server')\n")

    def install(self, host: str, **options: Any) -> Exit:
        known: dict[str, Any] = {
            "words": [],
            "name": None,
            "env": [],
            "store": None,
            "is_project": False,
            "config": None,
            "is_dry": False,
        }
        wish = installing.Wish(parse_source(str(self.file)), **{**known, **options})
        path, argv = list(sys.path), list(sys.argv)
        try:
            return installing.install(Screen(), host, wish)
        finally:
            sys.path[:], sys.argv[:] = path, argv
            sys.modules.pop("server", None)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    made = Home(tmp_path)
    monkeypatch.chdir(made.file.parent)
    return made


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_gets_an_entry_that_starts_the_server(home: Home, host: str) -> None:
    assert home.install(host, env=["A=b"]) == Exit.OK
    path = HOSTS[host].place()
    assert path.is_relative_to(home.root) and stat.S_IMODE(path.stat().st_mode) == 0o600
    entry = json.loads(path.read_text())[HOSTS[host].member]["the-server"]
    command = entry["command"]
    words = command if isinstance(command, list) else [command, *entry["args"]]
    assert entry[HOSTS[host].env] == {"A": "b"}
    assert words[-2:] == ["run", str(home.file)]

    async def name() -> str:
        async with segue.connect(words, cwd="/") as session:
            return session.peer.server.name

    import asyncio

    if host in ("claude-desktop", "opencode"):
        assert asyncio.run(name()) == "the server"


def test_the_rest_of_the_file_stays(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    path = HOSTS["claude-desktop"].place()
    path.parent.mkdir(parents=True)
    before = '{ "theme":"dark",\n  "mcpServers": {"other": {"command":"x"}} }\n'
    path.write_text(before)
    path.chmod(0o640)
    assert home.install("claude-desktop", name="mine") == Exit.OK
    after = path.read_text()
    assert after.startswith(before[: before.index("}}")])
    assert set(json.loads(after)["mcpServers"]) == {"other", "mine"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    out = capsys.readouterr().out
    assert f"Added the server mine of Claude Desktop: {path}" in out
    (backup,) = path.parent.glob("*.bak")
    assert backup.read_text() == before and str(backup) in out
    assert stat.S_IMODE(backup.stat().st_mode) == 0o640

    # again: nothing to do, and no second copy
    assert home.install("claude-desktop", name="mine") == Exit.OK
    assert "already" in capsys.readouterr().out
    assert path.read_text() == after
    assert list(path.parent.glob("*.bak")) == [backup]


def test_members_that_the_user_added_to_the_entry_stay(home: Home) -> None:
    path = HOSTS["cline"].place()
    path.parent.mkdir(parents=True)
    entry = {"command": "old", "env": {"KEY": "secret"}, "autoApprove": ["a"]}
    path.write_text(json.dumps({"mcpServers": {"the-server": entry}}))
    assert home.install("cline", env=["MORE=1"], store="t.db", words=["--fast"]) == 0
    now = json.loads(path.read_text())["mcpServers"]["the-server"]
    assert now["env"] == {"KEY": "secret", "MORE": "1"}
    assert now["autoApprove"] == ["a"]
    store = str(home.file.parent / "t.db")
    assert now["args"][-4:] == ["--store", store, "--", "--fast"]


def test_an_entry_with_a_url_is_replaced(home: Home) -> None:
    path = HOSTS["cursor"].place()
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {"the-server": {"url": "http://x/"}}}')
    assert home.install("cursor") == Exit.OK
    now = json.loads(path.read_text())["mcpServers"]["the-server"]
    assert set(now) == {"command", "args"}


def test_the_file_of_a_project(home: Home) -> None:
    assert home.install("vscode", is_project=True) == Exit.OK
    told = json.loads((home.file.parent / ".vscode" / "mcp.json").read_text())
    assert told["servers"]["the-server"]["type"] == "stdio"
    with pytest.raises(UsageError, match="windsurf has no configuration for one project"):
        home.install("windsurf", is_project=True)


def test_a_link_stays_a_link(home: Home) -> None:
    real, link = home.root / "dotfiles.json", home.root / "link.json"
    real.write_text("{}")
    link.symlink_to(real)
    assert home.install("cursor", config=link) == Exit.OK
    assert link.is_symlink()
    assert get_member(real.read_text(), ["mcpServers", "the-server"], has_comments=False)


def test_nothing_is_written(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    path = HOSTS["cursor"].place()
    assert home.install("cursor", is_dry=True) == Exit.OK
    assert '+    "the-server": {' in capsys.readouterr().out
    assert not path.exists()
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {,}}')
    with pytest.raises(UsageError, match=r"is not changed, because it is broken: line 1"):
        home.install("cursor")
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(UsageError, match="not UTF-8"):
        home.install("cursor")
    path.write_text("{}")
    home.file.write_text("1 / 0")
    assert home.install("cursor") == Exit.USAGE
    home.file.write_text("import segue")
    with pytest.raises(UsageError, match=r"server\.py has no segue\.Server"):
        home.install("cursor")
    assert path.read_text() == "{}"
    assert list(path.parent.iterdir()) == [path]


def test_wrong_words(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="unknown host 'cursr'; did you mean cursor"):
        home.install("cursr")
    with pytest.raises(UsageError, match="there are claude-desktop, "):
        home.install("emacs")
    for wrong in ("=x", "NOT_THERE_AT_ALL"):
        with pytest.raises(UsageError):
            home.install("cursor", env=[wrong])
    monkeypatch.setenv("COPIED", "from here")
    assert home.install("cursor", env=["COPIED"]) == Exit.OK
    told = json.loads(HOSTS["cursor"].place().read_text())
    assert told["mcpServers"]["the-server"]["env"] == {"COPIED": "from here"}


def test_the_command(home: Home) -> None:
    words = ["install", "cursor", str(home.file), "--name", "x", "--env", "A=1"]
    done = subprocess.run(
        [sys.executable, "-m", "segue.cli", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(home.root)},
        check=True,
    )
    assert done.stdout.startswith("Added the server x of Cursor: ")
    assert HOSTS["cursor"].place().exists()
