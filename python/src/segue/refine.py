"""Adds to the JSON Schemas of msgspec what msgspec leaves out.

The values of enums and literals get their declared order and their JSON type. Dates with
times, and times, get their format. A decimal number that is read may be a number, too.
"""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import enum
import types
import typing
from typing import Any, Literal, get_args, get_origin

import msgspec

from .hints import plain

__all__ = ["refine"]

JsonSchema = dict[str, Any]

_FORMATS = {datetime.datetime: "date-time", datetime.time: "time"}
_LISTS = (
    list,
    set,
    frozenset,
    collections.abc.Sequence,
    collections.abc.Collection,
    collections.abc.Set,
    collections.abc.MutableSequence,
    collections.abc.MutableSet,
)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_TYPES = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


def refine(
    tp: Any, made: JsonSchema, parts: dict[str, JsonSchema], *, is_read: bool
) -> None:
    """Completes the schema of a type in place.

    Args:
        made: the schema that msgspec has made of the type.
        parts: the definitions to which references of the schema lead.
        is_read: True = the schema tells all values that are read as the type, False =
            only those that are written.
    """
    _Refiner(parts, is_read).visit(tp, made)


class _Refiner:
    def __init__(self, parts: dict[str, JsonSchema], is_read: bool) -> None:
        self._parts = parts
        self._is_read = is_read
        self._seen: set[str] = set()

    def visit(self, tp: Any, made: JsonSchema) -> None:
        tp = plain(tp)
        name = _reference(made)
        if name:
            part = self._parts.get(name)
            if part is not None and name not in self._seen:
                self._seen.add(name)
                self.visit(tp, part)
            return
        values = _values(tp)
        if values is not None:
            _order(made, values)
        elif tp in _FORMATS and made.get("type") == "string":
            made.setdefault("format", _FORMATS[tp])
        elif tp is decimal.Decimal and self._is_read:
            made["type"] = ["string", "number"]
        else:
            self._visit_parts(tp, made)

    def _visit_parts(self, tp: Any, made: JsonSchema) -> None:
        origin, args = get_origin(tp), get_args(tp)
        if origin in (typing.Union, types.UnionType):
            for arm in args:
                for option in made.get("anyOf", ()):
                    if self._fits(arm, option):
                        self.visit(arm, option)
        elif origin in _LISTS or (origin is tuple and args[-1:] == (...,)):
            self._visit_one(args[0], made.get("items"))
        elif origin is tuple:
            self._visit_many(args, made)
        elif origin in _DICTS:
            self._visit_one(args[1], made.get("additionalProperties"))
        elif isinstance(tp, type):
            self._visit_class(tp, made)

    def _visit_one(self, tp: Any, made: Any) -> None:
        if isinstance(made, dict):
            self.visit(tp, made)

    def _visit_many(self, types: collections.abc.Iterable[Any], made: JsonSchema) -> None:
        for tp, item in zip(types, made.get("prefixItems", ()), strict=False):
            self._visit_one(tp, item)

    def _visit_class(self, tp: type, made: JsonSchema) -> None:
        try:
            hints = typing.get_type_hints(tp, include_extras=True)
        except (NameError, TypeError):
            return
        if issubclass(tp, tuple):
            self._visit_many(hints.values(), made)
            return
        names: dict[str, str] = {}
        if issubclass(tp, msgspec.Struct):
            fields, told = tp.__struct_fields__, tp.__struct_encode_fields__
            names = dict(zip(fields, told, strict=True))
        properties = made.get("properties", {})
        for name, hint in hints.items():
            self._visit_one(hint, properties.get(names.get(name, name)))

    def _fits(self, tp: Any, made: JsonSchema) -> bool:
        """Returns whether a schema is the one of this member of a union."""
        tp = plain(tp)
        part = self._parts.get(_reference(made), made)
        values = _values(tp)
        if values is not None:
            return _same(part.get("enum", ()), values)
        origin = get_origin(tp) or tp
        if origin in _FORMATS:
            return part.get("type") == "string" and not {"enum", "format"} & set(part)
        if origin is decimal.Decimal:
            return part.get("format") == "decimal"
        if origin in _LISTS or origin is tuple:
            return part.get("type") == "array"
        if origin in _DICTS:
            return part.get("type") == "object" and "title" not in part
        return isinstance(tp, type) and part.get("title") == tp.__name__


def _reference(made: JsonSchema) -> str:
    return str(made.get("$ref", "")).rpartition("/")[2]


def _values(tp: Any) -> list[Any] | None:
    """Returns the values of an enum or a literal in their declared order, or None for
    another type."""
    if get_origin(tp) is Literal:
        return list(get_args(tp))
    if isinstance(tp, type) and issubclass(tp, enum.Enum):
        return [one.value for one in tp]
    return None


def _same(first: Any, second: Any) -> bool:
    return sorted(map(repr, first)) == sorted(map(repr, second))


def _order(made: JsonSchema, values: list[Any]) -> None:
    if not _same(made.get("enum", ()), values):
        return
    made["enum"] = values
    kinds = list(dict.fromkeys(_TYPES.get(type(value), "") for value in values))
    if all(kinds):
        made.setdefault("type", kinds[0] if len(kinds) == 1 else kinds)
