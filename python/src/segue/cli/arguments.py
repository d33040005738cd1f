"""Converts ``key=value`` on the command line to arguments of a tool. The tool's schema
decides the type of each argument.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from segue.cli.codes import UsageError
from segue.names import unknown_names
from segue.schema import member_names

__all__ = ["build", "read_json", "value_of"]

# Words of a schema that allow names which it does not list.
_OTHER_NAMES = ("additionalProperties", "patternProperties", "unevaluatedProperties")


def build(
    pairs: Iterable[str], schema: Mapping[str, Any], base: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Makes the arguments for a tool with this input schema.

    Args:
        pairs: ``key=value`` (typed by the schema), ``key=@file`` (the contents of the
            file), ``key:=json`` (JSON, whatever the schema says). ``key=@@x`` is the text
            ``@x``. A key may be given several times if the schema has a list for the key.
        schema: The tool's ``inputSchema``.
        base: Arguments to start from. An argument in `pairs` replaces the argument of the
            same name in `base`.

    Raises:
        UsageError: A value does not fit the schema, a required argument is missing, or
            the schema does not have a name and does not say that it allows other names.
    """
    properties = _properties(schema, schema)
    arguments: dict[str, Any] = dict(base or {})
    pairs = list(pairs)
    _check_names([*arguments, *(_split(pair)[0] for pair in pairs)], schema)
    named: set[str] = set()
    for pair in pairs:
        key, is_json, text = _split(pair)
        part = _resolve(properties.get(key, {}), schema)
        value = _json(key, text) if is_json else value_of(key, text, part, schema)
        if key in named:
            earlier = arguments[key]
            if not isinstance(earlier, list):
                raise UsageError(f"{key} is given twice, but the tool takes one value")
            earlier.extend(value if isinstance(value, list) else [value])
        else:
            arguments[key] = value
            named.add(key)
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if missing:
        what = ", ".join(_describe(name, properties.get(name, {})) for name in missing)
        raise UsageError(f"missing: {what}")
    return arguments


def read_json(text: str) -> dict[str, Any]:
    """Reads a JSON object from the text itself, from ``@file``, or from standard input
    for ``-``.

    Raises:
        UsageError: The text is not a JSON object.
    """
    content = sys.stdin.read() if text == "-" else _content(text)
    value = _json("--args", text, content)
    if not isinstance(value, dict):
        raise UsageError(f"--args: {_told(text, content)} is not a JSON object")
    return value


def value_of(
    key: str, text: str, part: Mapping[str, Any], root: Mapping[str, Any] | None = None
) -> Any:
    """Converts a text to a value for a property whose schema is `part`.

    Raises:
        UsageError: The text is not a value that the property's schema allows.
    """
    types = _types(part, root or part)
    content = _content(text)
    if types == {"string"}:
        return content
    value, is_valid = _parse(content)
    if is_valid and (not types or _type_of(value) in types):
        return value
    if (
        is_valid
        and "integer" in types
        and isinstance(value, float)
        and value.is_integer()
    ):
        return int(value)
    if "boolean" in types and content.lower() in ("yes", "no", "on", "off"):
        return content.lower() in ("yes", "on")
    if not types or "string" in types:
        return content
    if "array" in types:
        items = _resolve(part.get("items", {}), root or part)
        return [value_of(key, content, items, root)]
    raise UsageError(f"{key}: {_told(text, content)} is not {_list(types)}")


def _split(pair: str) -> tuple[str, bool, str]:
    key, equals, text = pair.partition("=")
    is_json = key.endswith(":")
    key = key[:-1] if is_json else key
    if not equals or not key:
        raise UsageError(f"{pair!r} is not of the form key=value")
    return key, is_json, text


def _content(text: str) -> str:
    if not text.startswith("@"):
        return text
    if text.startswith("@@"):
        return text[1:]
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise UsageError(f"{text[1:]}: {reason}") from error


def _json(key: str, text: str, content: str | None = None) -> Any:
    """Reads JSON. `content`: what a file has, if the text names one."""
    content = _content(text) if content is None else content
    value, is_valid = _parse(content)
    if not is_valid:
        raise UsageError(f"{key}: {_told(text, content)} is not JSON")
    return value


def _told(text: str, content: str) -> str:
    """Returns how a message names a value: its beginning, and its file if it has one."""
    shown = repr(content if len(content) <= 60 else content[:57] + "...")
    is_file = text.startswith("@") and not text.startswith("@@")
    return f"the content of the file {text[1:]}, {shown}," if is_file else shown


def _parse(text: str) -> tuple[Any, bool]:
    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse), True
    except (ValueError, RecursionError):
        return None, False


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _types(part: Mapping[str, Any], root: Mapping[str, Any], depth: int = 8) -> set[str]:
    """Returns the JSON types that a schema allows. The result is empty when the schema
    names no types.
    """
    part = _resolve(part, root)
    named = part.get("type")
    types: set[str] = set()
    if isinstance(named, str):
        types.add(named)
    elif isinstance(named, list):
        types.update(name for name in named if isinstance(name, str))
    elif depth > 0:
        for word in ("anyOf", "oneOf"):
            for choice in part.get(word, ()):
                types |= _types(choice, root, depth - 1)
        for value in [
            *part.get("enum", ()),
            *([part["const"]] if "const" in part else []),
        ]:
            types.add(_type_of(value))
    if "number" in types:
        types.add("integer")
    return types


def _resolve(part: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follows ``$ref`` inside the schema, at most 8 times, because references may form a
    circle."""
    for _ in range(8):
        if not isinstance(part, Mapping):
            return {}
        reference = part.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return part
        found: Any = root
        for step in reference[2:].split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step) if isinstance(found, Mapping) else None
        part = found
    return {}


def _properties(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    schema = _resolve(schema, root)
    found = schema.get("properties")
    return dict(found) if isinstance(found, Mapping) else {}


def _check_names(names: Iterable[str], schema: Mapping[str, Any]) -> None:
    """Refuses names that the schema does not have. JSON Schema allows other names where a
    schema says nothing, but there a name is more likely a misspelling."""
    if any(schema.get(word) not in (None, False) for word in _OTHER_NAMES):
        return
    try:
        known = member_names(dict(schema))
    except (TypeError, ValueError, AttributeError):
        return  # it is no schema
    if not known and "additionalProperties" not in schema:
        return  # the schema says nothing about its arguments
    unknown = [name for name in dict.fromkeys(names) if name not in known]
    if unknown:
        raise UsageError(unknown_names(unknown, known))


def _describe(name: str, part: Any) -> str:
    types = _types(part, part) if isinstance(part, Mapping) else set()
    return f"{name} ({_list(types)})" if types else name


def _list(types: set[str]) -> str:
    return " or ".join(sorted(types - ({"integer"} if "number" in types else set())))
