"""Structured results: which return types have them, their schema and their JSON.

A tool whose function declares the type of its value has structured results. A value that
is not a JSON object is sent as `{"result": value}`, because `structuredContent` had to be
an object before 2026-07-28. The schema then has the mark `x-fastmcp-wrap-result`, by
which clients of FastMCP find the value.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import math
import types
import typing
from typing import Any, get_args, get_origin

import msgspec

from .. import schema
from .._segue import Segment
from ..content import (
    Audio,
    EmbeddedResource,
    Image,
    ResourceLink,
    Result,
    Text,
    Unknown,
)
from ..hints import plain

__all__ = ["Output", "Unfit"]

CONTENT = (
    Result,
    Text,
    Image,
    Audio,
    ResourceLink,
    EmbeddedResource,
    Unknown,
    Segment,
    bytes,
    bytearray,
    memoryview,
)
SEQUENCES = (list, tuple, set, frozenset, collections.abc.Sequence)
_WRAPPED = "x-fastmcp-wrap-result"


def has_content(tp: Any) -> bool:
    """Returns whether a type is or contains content, which is not structured."""
    tp = plain(tp)
    if isinstance(tp, type) and issubclass(tp, CONTENT):
        return True
    return any(has_content(one) for one in get_args(tp))


def _is_text(tp: Any) -> bool:
    """Returns whether all values of a type are texts or None."""
    tp = plain(tp)
    if get_origin(tp) in (typing.Union, types.UnionType):
        return all(_is_text(one) for one in get_args(tp))
    if tp in (None, type(None)):
        return True
    is_class = isinstance(tp, type)
    return is_class and issubclass(tp, str) and not issubclass(tp, enum.Enum)


def _has_value(tp: Any) -> bool:
    """Returns whether a type has another value than None."""
    return plain(tp) not in (None, type(None))


def says_nothing(tp: Any) -> bool:
    """Returns whether a type says nothing of its values, such as Any and list."""
    tp = plain(tp)
    if tp in (Any, object) or isinstance(tp, (str, typing.TypeVar)):
        return True
    if tp in SEQUENCES:
        return True
    items = [one for one in get_args(tp) if one is not ...]
    return get_origin(tp) in SEQUENCES and all(one is Any for one in items)


class Unfit(Exception):
    """The result of a tool does not fit the declared type. The text says what does not
    fit, and is not meant for the caller."""


def _is_record(tp: Any) -> bool:
    """Returns whether a type is a class whose objects are JSON objects."""
    return isinstance(tp, type) and (
        issubclass(tp, msgspec.Struct)
        or dataclasses.is_dataclass(tp)
        or hasattr(tp, "model_dump")
    )


def _has_class(value: Any, tp: Any) -> bool:
    """Returns whether no object in a value is of another class than the declared one.
    msgspec reads the JSON of the object, in which its class does not show."""
    tp = plain(tp)
    kind, parts = get_origin(tp) or tp, get_args(tp)
    options = parts if kind in (typing.Union, types.UnionType) else (tp,)
    if _is_record(type(value)):
        kinds = [get_origin(one) or one for one in map(plain, options)]
        classes = tuple(one for one in kinds if _is_record(one))
        return isinstance(value, classes) if classes else True
    if options is parts and parts:
        return any(_has_class(value, one) for one in parts)
    if isinstance(value, dict):
        inner = parts[1] if len(parts) == 2 else Any
        return all(_has_class(one, inner) for one in value.values())
    if not parts or not isinstance(value, (list, tuple, set, frozenset)):
        return True
    if kind is tuple and parts[-1] is not ...:
        return all(_has_class(*pair) for pair in zip(value, parts, strict=False))
    return all(_has_class(one, parts[0]) for one in value)


class Output:
    """The structured results of a tool.

    Attributes:
        schema: the schema of the structured results.
        wraps: True = a value is sent as `{"result": value}`.
    """

    def __init__(self, tp: Any) -> None:
        made = schema.json_schema(tp)
        self.wraps = made.get("type") != "object"
        self.schema = _wrapped(made) if self.wraps else made
        self._check = schema.checker(tp)
        self._type = tp
        # pydantic reads the object itself, and knows its class
        self._by_json = not schema.uses_pydantic(tp)
        self._name = named_type(tp)

    @classmethod
    def of(
        cls, returns: Any, structured: bool | None, structured_default: bool | None = None
    ) -> Output | None:
        """Returns the structured results of a function, or None if its results are not
        structured.

        Args:
            returns: the declared type of the function's value.
            structured: see `Server.tool`.
            structured_default: the same for all tools of the server; see `Server`.
        """
        if structured is None and structured_default is False:
            structured = False
        if structured is False or returns is Any or has_content(returns):
            return None
        if structured:
            return cls(returns)
        is_text = _is_text(returns) and not (structured_default and _has_value(returns))
        if is_text or says_nothing(returns):
            return None
        nothing = schema.without_json(returns)
        if nothing is not None:
            raise TypeError(
                f"its return type has {named_type(nothing)}, which JSON does not have: "
                "return a dataclass, a model, a dict or a text"
            )
        try:
            return cls(returns)
        except (TypeError, ValueError, RuntimeError):
            return None  # the type has no JSON Schema

    def encode(self, tool: str, value: Any) -> bytes:
        """Returns the JSON of a structured result.

        Raises:
            Unfit: the value does not fit the declared type.
        """
        try:
            if self._by_json and not _has_class(value, self._type):
                raise TypeError(f"an object is of another class: {value!r:.200}")
            raw = self._check(value)
            if b"null" in raw:  # pydantic writes NaN so
                schema.refuse_no_number(value)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            raise Unfit(
                f"The result of {tool} does not fit its declared type {self._name}: "
                f"{_reason(value, error)}"
            ) from error
        return b'{"result":' + raw + b"}" if self.wraps else raw

    def text(self, value: Any, structured: bytes) -> str:
        """Returns the text that goes along with a structured result."""
        if not self.wraps:
            return structured.decode()
        if isinstance(value, str) and not isinstance(value, enum.Enum):
            return str(value)
        made: bytes = msgspec.json.decode(structured, type=_Wrapper).result
        raw = bytes(made)
        return msgspec.json.decode(raw, type=str) if raw[:1] == b'"' else raw.decode()


def _reason(value: Any, error: Exception) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"JSON has no {'NaN' if math.isnan(value) else 'infinity'}"
    return schema.reason(error)


def named_type(tp: Any) -> str:
    """Returns a type as its program writes it."""
    if get_args(tp) or not hasattr(tp, "__name__"):
        return str(tp).replace("typing.", "")
    return str(tp.__name__)


class _Wrapper(msgspec.Struct):
    result: msgspec.Raw


def _wrapped(made: dict[str, Any]) -> dict[str, Any]:
    made = dict(made)
    parts = made.pop("$defs", None)
    wrapped = {
        "type": "object",
        "properties": {"result": made},
        "required": ["result"],
        _WRAPPED: True,
    }
    return {**wrapped, "$defs": parts} if parts else wrapped
