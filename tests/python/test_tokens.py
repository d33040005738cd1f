"""The file of tokens: private, replaced in one step, shared by processes, bounded."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from segue.tokens import SavedTask, TokenFile, TokenFileError, default_path

URL = "http://127.0.0.1:1/mcp"


def put(file: TokenFile, token: str = "secret", task_id: str | None = None) -> SavedTask:
    return file.put(target=URL, tool="report", token=token, task_id=task_id)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_was_put_is_found_again(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "deep" / "tasks.json")
    assert file.all() == []
    saved = put(file, task_id="task-1")
    again = TokenFile(file.path)
    assert again.all() == [saved]
    assert again.get(saved.id) == again.get("task-1") == again.get(saved.id[:4]) == saved
    assert (saved.token, saved.target, saved.status) == ("secret", URL, "working")


def test_file_and_directory_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        file = TokenFile(tmp_path / "state" / "tasks.json")
        put(file)
    finally:
        os.umask(before)
    assert mode(file.path) == 0o600
    assert mode(file.path.parent) == 0o700
    assert mode(file.path.with_name("tasks.json.lock")) == 0o600
    assert sorted(os.listdir(file.path.parent)) == ["tasks.json", "tasks.json.lock"]


def test_a_file_that_others_could_read_is_closed(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tasks.json")
    put(file)
    file.path.chmod(0o644)
    assert len(file.all()) == 1
    assert mode(file.path) == 0o600


def test_a_token_is_not_in_the_repr(tmp_path: Path) -> None:
    saved = put(TokenFile(tmp_path / "tasks.json"), token="hush")
    assert "hush" not in repr(saved) and "hush" not in str([saved])


def test_update_changes_what_is_said(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tasks.json")
    other = put(file)
    saved = put(file)
    changed = file.update(saved.id, token="secret+7", status="completed")
    assert (changed.token, changed.status, changed.tool) == (
        "secret+7",
        "completed",
        "report",
    )
    assert file.all() == [other, changed]
    assert changed.updated >= saved.updated


def test_remove_forgets(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tasks.json")
    saved = put(file)
    assert file.remove(saved.id) == saved
    assert file.all() == []
    for act in (file.get, file.remove, file.update):
        with pytest.raises(KeyError, match="no saved task"):
            act(saved.id)


def test_an_ambiguous_name_is_refused(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tasks.json")
    put(file)
    tasks = json.loads(file.path.read_text())
    tasks["tasks"].append({**tasks["tasks"][0], "id": tasks["tasks"][0]["id"][:5] + "0"})
    file.path.write_text(json.dumps(tasks))
    with pytest.raises(KeyError, match="ambiguous"):
        file.get(tasks["tasks"][0]["id"][:5])
    with pytest.raises(KeyError, match="no saved task"):
        file.get("")


def test_a_full_file_gives_up_what_has_ended_and_nothing_else(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tasks.json", limit=3)
    first, second, third = put(file), put(file), put(file)
    with pytest.raises(TokenFileError, match="full: none of its 3 tasks"):
        put(file)
    assert file.all() == [first, second, third]
    file.update(second.id, status="completed")
    fourth = put(file)
    assert [task.id for task in file.all()] == [first.id, third.id, fourth.id]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"format":1}', b'{"format":1,"tasks":[{}]}', b"\xff"]
)
def test_a_damaged_file_is_reported_and_kept(tmp_path: Path, content: bytes) -> None:
    file = TokenFile(tmp_path / "tasks.json")
    file.path.write_bytes(content)
    with pytest.raises(TokenFileError, match="damaged"):
        file.all()
    with pytest.raises(TokenFileError, match="damaged"):
        put(file)
    assert file.path.read_bytes() == content


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tasks.json")
    file.path.write_text('{"format":2,"tasks":[]}')
    with pytest.raises(TokenFileError, match="newer version"):
        put(file)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "other.json"
    target.write_text('{"format":1,"tasks":[]}')
    file = TokenFile(tmp_path / "tasks.json")
    file.path.symlink_to(target)
    with pytest.raises(TokenFileError):
        file.all()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = TokenFile(tmp_path / "tasks.json")
    saved = put(file)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="No space"):
        put(file)
    monkeypatch.undo()
    assert file.all() == [saved]
    assert sorted(os.listdir(tmp_path)) == ["tasks.json", "tasks.json.lock"]


def test_a_lock_that_is_never_released_ends_in_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = TokenFile(tmp_path / "tasks.json")
    monkeypatch.setattr("segue.tokens._LOCK_SECONDS", 0.05)
    with file._locked(), pytest.raises(TokenFileError, match="locked by another process"):
        put(TokenFile(file.path))


def _put_many(path: str, name: str, count: int) -> None:
    for index in range(count):
        TokenFile(path).put(target=URL, tool=name, token=f"{name}-{index}")


def test_processes_do_not_lose_each_others_changes(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_put_many, args=(str(path), f"tool{number}", 20))
        for number in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    tasks = TokenFile(path).all()
    assert sorted(task.token for task in tasks) == sorted(
        f"tool{number}-{index}" for number in range(3) for index in range(20)
    )
    assert len({task.id for task in tasks}) == 60


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEGUE_TOKENS", str(tmp_path / "mine.json"))
    assert default_path() == tmp_path / "mine.json"
    monkeypatch.delenv("SEGUE_TOKENS")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "segue" / "tasks.json"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".local" / "state" / "segue" / "tasks.json"
