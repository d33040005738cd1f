"""Reads tests/vectors, fills names in, compares messages (tests/vectors/README.md)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).resolve().parent.parent / "vectors"
FORMAT = 1
MORE = "$more"
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_FILE = {"format", "about", "let", "begin", "after", "vectors"}
_VECTOR = {
    "name",
    "rule",
    "role",
    "revision",
    "about",
    "capabilities",
    "steps",
    "fails",
    "needs",
}


class Wrong(Exception):
    """A message is not what the vector expects."""


class Number(str):
    """A number in its original text: equal as an integer or as text."""

    def same(self, other: object) -> bool:
        if not isinstance(other, Number):
            return False
        if str.__eq__(self, other):
            return True
        try:
            return float(self).is_integer() and int(float(self)) == int(float(other))
        except (ValueError, OverflowError):
            return False


def loads(text: str | bytes) -> Any:
    """Reads JSON and keeps the text of its numbers."""
    return json.loads(text, parse_int=Number, parse_float=Number)


def dumps(value: Any) -> str:
    """Writes the JSON again."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return (
            "{" + ",".join(f"{json.dumps(k)}:{dumps(v)}" for k, v in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(map(dumps, value)) + "]"
    return json.dumps(value)


@dataclass
class Vector:
    """One vector, with the common members of its file."""

    name: str
    role: str
    revision: str
    steps: list[dict[str, Any]]
    begin: list[dict[str, Any]]
    after: list[dict[str, Any]]
    let: dict[str, Any]
    capabilities: Any = None
    fails: str | None = None
    needs: list[str] = field(default_factory=list)


def read_all(directory: Path = DIRECTORY) -> list[Vector]:
    """Reads all vectors of a directory, in order."""
    found = []
    for path in sorted(directory.glob("*.json")):
        told = loads(path.read_bytes())
        assert told["format"] == str(FORMAT), path
        assert set(told) <= _FILE, (path, set(told) - _FILE)
        for one in told["vectors"]:
            assert set(one) <= _VECTOR, (path, set(one) - _VECTOR)
            prelude = f"{one['role']} {one['revision']}"
            found.append(
                Vector(
                    f"{one['rule']} {one['name']} [{path.name}]",
                    one["role"],
                    one["revision"],
                    one["steps"],
                    told.get("begin", {}).get(prelude, []),
                    told.get("after", {}).get(prelude, []),
                    told.get("let", {}),
                    one.get("capabilities"),
                    one.get("fails"),
                    one.get("needs", []),
                )
            )
    assert found, directory
    return found


def _is_name(text: object) -> bool:
    return (
        isinstance(text, str)
        and not isinstance(text, Number)
        and len(text) > 1
        and text[0] == "$"
        and text[1] != "$"
    )


def _plain(text: str) -> str:
    return text[1:] if len(text) > 1 and text[0] == "$" else text


class Names:
    """The values of the names in one vector."""

    def __init__(self, let: dict[str, Any]) -> None:
        self._bound = {f"${name}": value for name, value in let.items()}

    # ---- filling in

    def fill(self, value: Any) -> Any:
        """Returns the value with all names filled in."""
        if _is_name(value):
            if value not in self._bound:
                raise Wrong(f"{value} is not bound")
            return self.fill(self._bound[value])
        if isinstance(value, str) and not isinstance(value, Number):
            return _plain(value)
        if isinstance(value, dict):
            return {self._key(k): self.fill(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.fill(v) for v in value]
        return value

    def _key(self, key: str) -> str:
        told = self.fill(key)
        if not isinstance(told, str) or isinstance(told, Number):
            raise Wrong(f"{key} is no string")
        return told

    # ---- comparing

    def match(self, pattern: Any, found: Any, at: str = "") -> None:
        """Compares a message with a pattern, and binds new names."""
        if _is_name(pattern):
            self._match_name(pattern, found, at)
        elif isinstance(pattern, Number):
            if not pattern.same(found):
                self._differ(at, pattern, found)
        elif isinstance(pattern, dict):
            self._match_object(pattern, found, at)
        elif isinstance(pattern, list):
            self._match_array(pattern, found, at)
        elif isinstance(pattern, str):
            if isinstance(found, Number) or found != _plain(pattern):
                self._differ(at, pattern, found)
        elif type(found) is not type(pattern) or found != pattern:
            self._differ(at, pattern, found)

    def _differ(self, at: str, pattern: Any, found: Any) -> None:
        told = "nothing" if found is _NOTHING else dumps(found)
        raise Wrong(f"{at or 'the message'}: expected {dumps(pattern)}, found {told}")

    def _match_name(self, name: str, found: Any, at: str) -> None:
        fits = _KINDS.get(name)
        if fits is not None:
            if not fits(found):
                self._differ(at, name, found)
        elif name in self._bound:
            self.match(self._bound[name], found, at)
        elif found is _NOTHING:
            self._differ(at, name, found)
        else:
            self._bound[name] = _escape(found)

    def _match_object(self, pattern: dict[str, Any], found: Any, at: str) -> None:
        if not isinstance(found, dict):
            self._differ(at, pattern, found)
        count = 0
        for key, value in pattern.items():
            if key == MORE:
                continue
            name = self._taken(pattern, found, key) if _is_name(key) else _plain(key)
            self.match(value, found.get(name, _NOTHING), f"{at}.{name}".lstrip("."))
            count += 1
        if MORE not in pattern and len(found) != count:
            self._differ(at, pattern, found)

    def _taken(self, pattern: dict[str, Any], found: dict[str, Any], name: str) -> str:
        """Returns the member that a key stands for which is a name."""
        others = {
            self._bound.get(key, _NOTHING) if _is_name(key) else _plain(key)
            for key in pattern
            if key not in (name, MORE)
        }
        for key in found:
            if self._bound.get(name, key) == key and key not in others:
                self._bound[name] = _escape(key)
                return key
        raise Wrong(f"no member is {name}")

    def _match_array(self, pattern: list[Any], found: Any, at: str) -> None:
        if not isinstance(found, list):
            self._differ(at, pattern, found)
        for i, expected in enumerate(pattern):
            if expected == MORE:
                return
            value = found[i] if i < len(found) else _NOTHING
            self.match(expected, value, f"{at}.{i}")
        if len(found) > len(pattern):
            self._differ(at, pattern, found)


def _escape(value: Any) -> Any:
    """Escapes a text that was received: it is no name."""
    if isinstance(value, str) and not isinstance(value, Number):
        return "$" + value if value.startswith("$") else value
    if isinstance(value, dict):
        return {_escape(k): _escape(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_escape(v) for v in value]
    return value


_NOTHING: Any = type("Nothing", (), {})()
_KINDS: dict[str, Any] = {
    "$any": lambda v: v is not _NOTHING,
    "$string": lambda v: isinstance(v, str) and not isinstance(v, Number) and bool(v),
    "$integer": lambda v: isinstance(v, Number) and v.lstrip("-").isdigit(),
    "$object": lambda v: isinstance(v, dict),
    "$array": lambda v: isinstance(v, list),
    "$stamp": lambda v: isinstance(v, str) and bool(_STAMP.fullmatch(v)),
}
