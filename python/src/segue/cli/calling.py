"""Implements ``segue call``: calls one tool once."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from typing import Any, cast, get_args

import segue
from segue.cli import arguments
from segue.cli.asking import Asker
from segue.cli.codes import Exit, UsageError
from segue.cli.following import Follower
from segue.cli.screen import Screen
from segue.cli.target import Access, connect
from segue.client.modes import ResponseMode
from segue.tokens import Target, TokenFile

__all__ = ["call", "response_modes"]


def response_modes(names: Collection[str] | None) -> list[ResponseMode] | None:
    """Checks the response modes of the command line.

    Raises:
        UsageError: A name is not a response mode.
    """
    known = get_args(ResponseMode)
    for name in names or []:
        if name not in known:
            told = ", ".join(known)
            raise UsageError(f"no such response mode: {name}; there are {told}")
    return cast("list[ResponseMode]", list(names)) if names else None


async def call(
    screen: Screen,
    target: Target,
    access: Access,
    tool: str,
    pairs: Sequence[str],
    *,
    base: dict[str, Any] | None,
    is_streamed: bool,
    is_detached: bool,
    may_be_task: bool,
    response_modes: Collection[ResponseMode] | None,
    timeout: float | None,
    answers: Sequence[str],
    log_level: str | None,
) -> Exit:
    """Calls a tool and shows its output and result."""
    tokens = TokenFile()
    follower = Follower(screen, tokens, target, tool, is_streamed=is_streamed)
    asker = Asker(screen, answers)
    options: segue.ConnectOptions = {
        "on_elicit": asker.answer,
        "tasks": may_be_task,
        "response_modes": response_modes,
    }
    if log_level is not None:
        options["on_log"] = follower.on_log
        options["log_level"] = log_level
    async with connect(screen, target, access, options) as session:
        follower.era = session.peer.era
        given = await _arguments(session, tool, pairs, base)
        run = session.stream(
            tool,
            given,
            timeout=timeout,
            on_progress=follower.on_progress,
            on_task=follower.on_task,
            raise_on_error=False,
        )
        async with run:
            if is_detached:
                return await _detach(screen, follower, run)
            return await follower.follow(run)


async def _detach(screen: Screen, follower: Follower, run: Any) -> Exit:
    await run.started()
    follower.on_task(run)
    saved = follower.detach(run)
    if saved is None:
        screen.note("The server runs the call without a task: waiting for the result.")
        return await follower.follow(run)
    if screen.as_json:
        screen.json({"id": saved.id, "taskId": saved.task_id})
    else:
        screen.text(saved.id)
        screen.note(f"Resume it: segue task resume {saved.id}")
    return Exit.OK


async def _arguments(
    session: segue.Session, tool: str, pairs: Sequence[str], base: dict[str, Any] | None
) -> dict[str, Any]:
    """Makes the arguments of the call. The tool's schema is fetched, because it gives the
    names, the types and the required arguments.
    """
    tools = {item.name: item for item in await session.list_tools()}
    if tool not in tools:
        near = difflib.get_close_matches(tool, tools, 3)
        hint = f"; it has {', '.join(list(tools)[:10])}" if tools else ""
        if near:
            hint = f": did you mean {' or '.join(near)}?"
        raise UsageError(f"the server has no tool {tool!r}{hint}")
    return arguments.build(pairs, tools[tool].input_schema, base)
