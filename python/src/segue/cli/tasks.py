"""Implements ``segue task``: lists, shows, resumes and cancels saved tasks."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import msgspec

import segue
from segue.cli.asking import Asker
from segue.cli.codes import Exit, UsageError
from segue.cli.following import Follower
from segue.cli.screen import Screen
from segue.cli.target import Access, connect, show_target
from segue.tokens import ENDED, SavedTask, Target, TokenFile

__all__ = ["cancel", "find", "follow", "get", "list_tasks", "remove"]


def find(name: str, target: Target | None) -> SavedTask:
    """Returns the saved task of this name. With a target, `name` may also be a token.

    Raises:
        UsageError: There is no such task.
    """
    try:
        return TokenFile().get(name)
    except KeyError as error:
        if target is None:
            raise UsageError(f"{error.args[0]} (see: segue task ls)") from None
    return SavedTask(id="", token=name, target=target, tool="", created=time.time())


async def list_tasks(screen: Screen, access: Access, *, is_refreshed: bool) -> Exit:
    """Shows the saved tasks. With `is_refreshed` the function first asks each task's
    server for the current status.
    """
    tokens = TokenFile()
    found = tokens.all()
    if is_refreshed:
        found = [await _refresh(screen, access, tokens, saved) for saved in found]
    if screen.as_json:
        screen.json([_public(saved) for saved in found])
        return Exit.OK
    if not found:
        screen.note("No saved tasks.")
        return Exit.OK
    rows = [
        (
            saved.id,
            saved.tool,
            saved.status,
            _age(saved.created),
            show_target(saved.target),
        )
        for saved in found
    ]
    screen.table(("ID", "TOOL", "STATUS", "AGE", "SERVER"), rows)
    return Exit.OK


async def get(screen: Screen, access: Access, name: str, target: Target | None) -> Exit:
    """Shows the status of a task, and its result if it has one."""
    saved = find(name, target)
    async with connect(screen, saved.target, _in_era(access, saved)) as session:
        status = await (await _task(session, saved)).status()
    if saved.id:
        TokenFile().update(saved.id, status=status.status)
    if screen.as_json:
        screen.json(status.raw)
        return Exit.OK
    rows = [(str(key), _plain(value)) for key, value in status.raw.items()]
    screen.table(("", ""), [row for row in rows if row[0] not in _HIDDEN])
    return Exit.OK


async def follow(
    screen: Screen,
    access: Access,
    name: str,
    target: Target | None,
    *,
    is_from_start: bool,
    is_streamed: bool,
    answers: Sequence[str],
) -> Exit:
    """Shows a task until it ends, from its first segment or after the last shown
    segment."""
    saved = find(name, target)
    follower = Follower(
        screen,
        TokenFile(),
        saved.target,
        saved.tool,
        is_streamed=is_streamed,
        saved=saved if saved.id else None,
    )
    asker = Asker(screen, answers)
    access = _in_era(access, saved)
    options: segue.ConnectOptions = {"on_elicit": asker.answer}
    async with connect(screen, saved.target, access, options) as session:
        follower.era = session.peer.era
        if is_from_start:
            task = await _task(session, saved)
        else:
            task = session.resume(
                saved.token, on_progress=follower.on_progress, raise_on_error=False
            )
        return await follower.follow(task)


async def cancel(
    screen: Screen, access: Access, name: str, target: Target | None
) -> Exit:
    """Cancels a task on its server and removes it from the saved tasks."""
    saved = find(name, target)
    async with connect(screen, saved.target, _in_era(access, saved)) as session:
        await (await _task(session, saved)).cancel()
    if saved.id:
        TokenFile().remove(saved.id)
    if screen.as_json:
        screen.json({"id": saved.id or None, "cancelled": True})
    else:
        screen.note("Cancelled.")
    return Exit.OK


async def remove(screen: Screen, names: Sequence[str], *, is_all_ended: bool) -> Exit:
    """Removes tasks from the saved tasks without contacting their servers."""
    tokens = TokenFile()
    if is_all_ended:
        names = [saved.id for saved in tokens.all() if saved.status in ENDED]
    gone = []
    for name in names:
        try:
            gone.append(tokens.remove(name).id)
        except KeyError as error:
            raise UsageError(f"{error.args[0]} (see: segue task ls)") from None
    if screen.as_json:
        screen.json({"removed": gone})
    else:
        screen.note(f"Removed: {', '.join(gone) or 'none'}")
    return Exit.OK


def _in_era(access: Access, saved: SavedTask) -> Access:
    return dataclasses.replace(access, era=saved.era)


async def _task(session: segue.Session, saved: SavedTask) -> segue.Task:
    """Returns the task object without reading its segments. A token without a task id is
    resumed to learn the id.
    """
    task_id = saved.task_id
    if task_id is None:
        task = session.resume(saved.token)
        task_id = task.id
        if task_id is None:
            await task.cancel()
            raise UsageError(
                "the token belongs to a call that is not a task: only segue task resume "
                "can continue it"
            )
        # the task may have ended already
        with contextlib.suppress(segue.NotResumableError):
            task.detach()
    return session.task(task_id, raise_on_error=False)


async def _refresh(
    screen: Screen, access: Access, tokens: TokenFile, saved: SavedTask
) -> SavedTask:
    try:
        async with connect(screen, saved.target, _in_era(access, saved)) as session:
            status = (await (await _task(session, saved)).status()).status
    except segue.TaskLostError:
        status = "lost"
    except (segue.Error, OSError) as error:
        screen.note(f"{saved.id}: {error}")
        return saved
    return tokens.update(saved.id, status=status)


_HIDDEN = {"_meta", "resultType", "result", "content", "structuredContent"}


def _public(saved: SavedTask) -> dict[str, Any]:
    """Returns the saved task without its token, which is a secret."""
    told: dict[str, Any] = msgspec.to_builtins(saved)
    told.pop("token")
    told["status"] = saved.status
    return told


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _age(since: float) -> str:
    seconds = max(0, int(time.time() - since))
    for size, letter in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {letter}"
    return f"{seconds} s"
