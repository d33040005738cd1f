"""Answers the questions that a tool asks while it runs (elicitation).

``--answer key=value`` answers a field of a form in advance. At a terminal the user is
asked for each other field. Without a terminal the question is declined, and a line on
standard error says so.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import segue
from segue.cli import arguments
from segue.cli.codes import UsageError
from segue.cli.screen import Screen

__all__ = ["Asker"]


class Asker:
    """Answers the server's questions.

    Args:
        screen: The output on which the questions are shown.
        answers: ``key=value`` for fields of forms. Several values of one key answer
            several questions, in this order.
    """

    def __init__(self, screen: Screen, answers: Sequence[str]) -> None:
        self._screen = screen
        self._answers: dict[str, list[str]] = {}
        for key, value in map(_pair, answers):
            self._answers.setdefault(key, []).append(value)

    async def answer(self, request: segue.ElicitRequest) -> segue.ElicitResult[Any]:
        """Answers a question; the ``on_elicit`` callback of the session."""
        self._screen.stop_progress()
        self._screen.notes.print(f"The server asks: {request.message}", markup=False)
        if request.mode == "url":
            return await self._answer_url(request)
        try:
            content = await self._fields(request.schema or {})
        except UsageError as error:
            self._screen.note(f"Declined: {error}")
            return segue.ElicitResult("decline")
        if content is None:
            self._screen.note(
                "Declined, because standard input is not a terminal: "
                "pass --answer KEY=VALUE."
            )
            return segue.ElicitResult("decline")
        return segue.ElicitResult("accept", content)

    async def _answer_url(self, request: segue.ElicitRequest) -> segue.ElicitResult[Any]:
        self._screen.notes.print(f"Open {request.url}", markup=False, soft_wrap=True)
        if not self._is_asking():
            return segue.ElicitResult("decline")
        said = await _read(self._screen, "Continue? [y/N] ")
        is_yes = said.strip().lower() in ("y", "yes")
        return segue.ElicitResult("accept" if is_yes else "decline")

    async def _fields(self, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        content = {}
        required = schema.get("required", ())
        for name, part in dict(schema.get("properties", {})).items():
            if name in self._answers:
                said = self._next_answer(name)
                content[name] = arguments.value_of(name, said, part, schema)
                choices = _choices(part)
                if choices and content[name] not in choices:
                    shown = ", ".join(map(str, choices))
                    raise UsageError(f"{name}={said}: the choices are {shown}")
            elif self._is_asking():
                value = await self._field(name, part, name in required)
                if value is not None:
                    content[name] = value
            elif "default" in part:
                content[name] = part["default"]
            elif name in required:
                return None
        return content

    def _next_answer(self, name: str) -> str:
        """Returns the next of the given answers; the last one answers all that follow."""
        left = self._answers[name]
        return left.pop(0) if len(left) > 1 else left[0]

    async def _field(self, name: str, part: Mapping[str, Any], is_required: bool) -> Any:
        label = str(part.get("title") or name)
        if part.get("description"):
            label += f" ({part['description']})"
        choices = _choices(part)
        if choices:
            label += " [" + ", ".join(str(choice) for choice in choices) + "]"
        default = part.get("default")
        if default is not None:
            label += f" [{default}]"
        while True:
            said = await _read(self._screen, f"{label}: ")
            if not said:
                if default is not None or not is_required:
                    return default
                continue
            try:
                return arguments.value_of(name, said, part)
            except UsageError as error:
                self._screen.note(str(error))

    def _is_asking(self) -> bool:
        return sys.stdin.isatty() and not self._screen.as_json


def _choices(part: Mapping[str, Any]) -> list[Any]:
    return part.get("enum") or [one.get("const") for one in part.get("oneOf", ())]


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{text!r} is not of the form key=value")
    return key, value


async def _read(screen: Screen, label: str) -> str:
    """Reads a line from the terminal while the event loop continues to run.

    Raises:
        UsageError: The terminal has been closed.
    """
    screen.notes.print(label, end="", markup=False, soft_wrap=True)
    loop = asyncio.get_running_loop()
    line: str = await loop.run_in_executor(None, sys.stdin.readline)
    if not line:
        raise UsageError("the terminal is closed")
    return line.rstrip("\n")
