"""Changes one member in a text of JSON and leaves all other bytes as they are.

The Node package has the same rules in jsontext.ts, so both make the same text
(tests/files/install.json).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["TextError", "get_member", "set_member"]

_MAX_DEPTH = 200
_SCALAR = re.compile(r'[^\s,:{}\[\]"/]+')
_STRING = re.compile(r'"(?:[^"\\\r\n]|\\.)*"')
_BLANK = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
# blanks and one comment, on the line on which a value ends
_TAIL = re.compile(r"[ \t]*(//[^\r\n]*|/\*[^\r\n]*?\*/)")


class TextError(ValueError):
    """The text is not JSON, or a member is not an object; the message says where."""


class _Node(NamedTuple):
    """A value: its place in the text, and its members if it is an object."""

    start: int
    end: int
    members: dict[str, _Node] | None


class _Reader:
    def __init__(self, text: str, has_comments: bool) -> None:
        self.text = text
        self.at = 1 if text.startswith("\ufeff") else 0
        self.has_comments = has_comments

    def fail(self, why: str) -> TextError:
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - self.text.rfind("\n", 0, self.at)
        return TextError(f"line {line}, column {column}: {why}")

    def blank(self) -> None:
        while True:
            self.at = self._after(_BLANK)
            if self.text[self.at : self.at + 2] not in ("//", "/*"):
                return
            if not self.has_comments:
                raise self.fail("comments are not allowed in this file")
            end = self._after(_COMMENT)
            if end == self.at:
                raise self.fail("the comment has no end")
            self.at = end

    def _after(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        return found.end() if found else self.at

    def takes(self, character: str) -> bool:
        if self.text[self.at : self.at + 1] != character:
            return False
        self.at += 1
        return True

    def whole(self) -> _Node:
        self.blank()
        node = self.value(0)
        self.blank()
        if self.at < len(self.text):
            raise self.fail("there is more text after the end of the value")
        return node

    def value(self, depth: int) -> _Node:
        if depth > _MAX_DEPTH:
            raise self.fail("the values are nested too deep")
        start = self.at
        members: dict[str, _Node] | None = None
        if self.takes("{"):
            members = {}
            self.items("}", members, depth)
        elif self.takes("["):
            self.items("]", None, depth)
        else:
            self.scalar()
        return _Node(start, self.at, members)

    def items(self, end: str, members: dict[str, _Node] | None, depth: int) -> None:
        self.blank()
        if self.takes(end):
            return
        while True:
            if members is not None:
                key = self.string()
                self.blank()
                if not self.takes(":"):
                    raise self.fail('":" is missing')
                self.blank()
                members.pop(key, None)  # the last one counts, and is last in order
                members[key] = self.value(depth + 1)
            else:
                self.value(depth + 1)
            self.blank()
            if self.takes(end):
                return
            if not self.takes(","):
                raise self.fail(f'"," or "{end}" is missing')
            self.blank()
            if self.has_comments and self.takes(end):
                return

    def string(self) -> str:
        start, self.at = self.at, self._after(_STRING)
        if self.at == start:
            raise self.fail("a name in double quotes is missing")
        return str(self.loads(start))

    def scalar(self) -> None:
        start = self.at
        pattern = _STRING if self.text[start : start + 1] == '"' else _SCALAR
        self.at = self._after(pattern)
        if self.at == start:
            raise self.fail("a value is missing")
        self.loads(start)

    def loads(self, start: int) -> Any:
        try:
            return json.loads(self.text[start : self.at], parse_constant=self._refuse)
        except ValueError:
            self.at = start
            raise self.fail("this is not a value of JSON") from None

    @staticmethod
    def _refuse(constant: str) -> Any:
        raise ValueError(constant)


def _parse(text: str, has_comments: bool) -> _Node:
    node = _Reader(text, has_comments).whole()
    if node.members is None:
        raise TextError("the file is no JSON object")
    return node


def get_member(text: str, path: Sequence[str], *, has_comments: bool) -> bool | None:
    """Returns whether the value at a path is an object; None if there is none.

    Raises:
        TextError: The text is not a JSON object.
    """
    if not text.strip("\ufeff \t\r\n"):
        return None
    node: _Node = _parse(text, has_comments)
    for name in path:
        if node.members is None or name not in node.members:
            return None
        node = node.members[name]
    return node.members is not None


def set_member(text: str, path: Sequence[str], value: Any, *, has_comments: bool) -> str:
    """Returns the text with the member at a path set to a value. Objects on the way are
    made if they are missing.

    Args:
        text: The text of the file. An empty one is an empty object.
        path: The names of the members, from outside to inside.
        value: Any value of JSON.
        has_comments: The text may have comments, and commas at the end of a list.

    Raises:
        TextError: The text is not a JSON object, or a value on the way is not an object.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    if not text.strip("\ufeff \t\r\n"):
        text = f"{{}}{newline}"
    node = _parse(text, has_comments)
    unit = _unit(text)
    for depth, name in enumerate(path):
        if node.members is None:
            raise TextError(f"{'.'.join(path[:depth])} is no JSON object")
        if name not in node.members:
            for inner in reversed(path[depth + 1 :]):
                value = {inner: value}
            return _insert(text, node, name, value, unit, newline)
        node = node.members[name]
    made = _render(value, unit, _indent_at(text, node.start), newline)
    return text[: node.start] + made + text[node.end :]


def _insert(
    text: str, node: _Node, name: str, value: Any, unit: str, newline: str
) -> str:
    assert node.members is not None
    outer = _indent_at(text, node.start)
    last = next(reversed(node.members.values()), None)
    if last is None:
        # The rest is blank, or comments.
        before = text[: node.end - 1].rstrip(" \t\r\n")
        inner, after = outer + unit, newline + outer + text[node.end - 1 :]
    else:
        inner = _indent_of(text, last.start) or outer + unit
        end = last.end
        tail = _TAIL.match(text, end)
        comma = re.compile(r"[ \t\r\n]*,").match(text, end)
        if comma is not None:  # a comma at the end, which stays the last one
            tail = None
        stop = tail.end() if tail else end
        before = text[:end] + "," + text[end:stop]
        after = text[stop:]
        if comma is None and "\n" not in after[: node.end - 1 - stop]:
            after = newline + outer + after.lstrip(" \t")
    made = json.dumps(name, ensure_ascii=False)
    return (
        f"{before}{newline}{inner}{made}: {_render(value, unit, inner, newline)}{after}"
    )


def _render(value: Any, unit: str, indent: str, newline: str) -> str:
    made = json.dumps(value, ensure_ascii=False, indent=unit)
    return made.replace("\n", newline + indent)


def _unit(text: str) -> str:
    """Returns one step of indentation: that of the first line that has one."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _indent_of(text: str, place: int) -> str | None:
    """Returns the indentation of a line; None for the first line of the text."""
    begin = text.rfind("\n", 0, place)
    if begin < 0:
        return None
    found = re.compile(r"[ \t]*").match(text, begin + 1)
    assert found is not None
    return found[0]


def _indent_at(text: str, place: int) -> str:
    return _indent_of(text, place) or ""
