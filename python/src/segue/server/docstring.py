"""Reads the descriptions of a function and of its parameters from its docstring.

The module reads three styles: Google ("Args:"), Sphinx (":param x: ...") and NumPy
("Parameters", underlined). Text in any other form stays in the description.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

__all__ = ["named", "parse", "unwrapped"]

_SECTIONS = (
    "args arguments parameters params returns return yields yield raises raise note "
    "notes example examples attributes warning warnings todo references"
)
_GOOGLE = re.compile(rf"^({'|'.join(_SECTIONS.split())}|see also)\s*:\s*$", re.I)
_ARGS = re.compile(r"^(args|arguments|parameters|params)\s*:\s*$", re.I)
_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_SPHINX = re.compile(
    r"^:(param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)$"
)
_FIELD = re.compile(r"^:\w[^:]*:")
_UNDERLINE = re.compile(r"^-{3,}\s*$")
_NUMPY_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?::.*)?$")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _block(lines: list[str], start: int) -> int:
    """Returns the index of the line after an indented block."""
    at = start
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at])):
        at += 1
    return at


def _entries(lines: list[str], pattern: re.Pattern[str], numpy: bool) -> dict[str, str]:
    """Reads entries that consist of a name and a text. A line that is indented more than
    the first entry continues the text of the entry before the line.
    """
    found: dict[str, list[str]] = {}
    name = None
    filled = [line for line in lines if line.strip()]
    base = _indent(filled[0]) if filled else 0
    for line in filled:
        match = pattern.match(line.strip())
        if _indent(line) <= base and match:
            name = match[1]
            found[name] = [] if numpy else [match[2]]
        elif name:
            found[name].append(line.strip())
    return {key: " ".join(part for part in text if part) for key, text in found.items()}


def _numpy(lines: list[str]) -> tuple[list[str], dict[str, str]]:
    heads = [
        at
        for at in range(len(lines) - 1)
        if lines[at].strip()
        and not _indent(lines[at])
        and _UNDERLINE.match(lines[at + 1])
    ]
    params: dict[str, str] = {}
    for at, end in zip(heads, [*heads[1:], len(lines)], strict=False):
        if lines[at].strip().lower() in ("parameters", "other parameters"):
            params |= _entries(lines[at + 2 : end], _NUMPY_ENTRY, True)
    return (lines[: heads[0]] if heads else lines), params


def _google_and_sphinx(lines: list[str]) -> tuple[list[str], dict[str, str]]:
    kept: list[str] = []
    params: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        sphinx = _SPHINX.match(line)
        end = _block(lines, at + 1)
        if _ARGS.match(line):
            params |= _entries(lines[at + 1 : end], _ENTRY, False)
        elif sphinx:
            more = [part.strip() for part in lines[at + 1 : end]]
            params[sphinx[2]] = " ".join(part for part in [sphinx[3], *more] if part)
        elif not _GOOGLE.match(line) and not _FIELD.match(line):
            kept.append(line)
            end = at + 1
        at = end
    return kept, params


def unwrapped(function: Callable[..., Any]) -> Any:
    """Returns the function inside `functools.partial` objects."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def parse(function: Callable[..., Any]) -> tuple[str | None, dict[str, str]]:
    """Returns the description of a function, and the descriptions of its parameters by
    name.
    """
    text = inspect.getdoc(unwrapped(function))
    if not text:
        return None, {}
    lines, params = _numpy(text.splitlines())
    lines, more = _google_and_sphinx(lines)
    return "\n".join(lines).strip() or None, params | more


def named(function: Callable[..., Any]) -> str:
    """Returns the name of a function, for a handler that has no other name."""
    target = unwrapped(function)
    return str(getattr(target, "__name__", type(target).__name__))
