"""Structured results: which return types have them, their schema and their JSON.

A tool whose function declares the type of its value has structured results. A value that
is not a JSON object is sent as `{"result": value}`, because `structuredContent` had to be
an object before 2026-07-28. The schema then has the mark `x-fastmcp-wrap-result`, by
which clients of FastMCP find the value.
"""

from __future__ import annotations

import collections.abc
import enum
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
from ..failures import McpError
from ..hints import plain

__all__ = ["Output"]

_CONTENT = (
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
_SEQUENCES = (list, tuple, set, frozenset, collections.abc.Sequence)
_WRAPPED = "x-fastmcp-wrap-result"
# values whose type says nothing of their contents, so they are checked
_CHECKED = (dict, list, tuple, str, int, float, bool, type(None))


def _has_content(tp: Any) -> bool:
    """Returns whether a type is or contains content, which is not structured."""
    tp = plain(tp)
    if isinstance(tp, type) and issubclass(tp, _CONTENT):
        return True
    return any(_has_content(one) for one in get_args(tp))


def _is_text(tp: Any) -> bool:
    """Returns whether all values of a type are texts or None."""
    tp = plain(tp)
    if get_origin(tp) in (typing.Union, types.UnionType):
        return all(_is_text(one) for one in get_args(tp))
    if tp in (None, type(None)):
        return True
    is_class = isinstance(tp, type)
    return is_class and issubclass(tp, str) and not issubclass(tp, enum.Enum)


def _says_nothing(tp: Any) -> bool:
    """Returns whether a type says nothing of its values, such as Any and list."""
    tp = plain(tp)
    if tp in (Any, object) or isinstance(tp, (str, typing.TypeVar)):
        return True
    if tp in _SEQUENCES:
        return True
    items = [one for one in get_args(tp) if one is not ...]
    return get_origin(tp) in _SEQUENCES and all(one is Any for one in items)


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
        self._name = _named(tp)

    @classmethod
    def of(cls, returns: Any, structured: bool | None) -> Output | None:
        """Returns the structured results of a function, or None if its results are not
        structured.

        Args:
            returns: the declared type of the function's value.
            structured: see `Server.tool`.
        """
        if structured is False or returns is Any or _has_content(returns):
            return None
        if structured:
            return cls(returns)
        if _is_text(returns) or _says_nothing(returns):
            return None
        try:
            return cls(returns)
        except (TypeError, ValueError, RuntimeError):
            return None  # the type has no JSON Schema

    def encode(self, tool: str, value: Any) -> bytes:
        """Returns the JSON of a structured result.

        Raises:
            McpError: the value does not fit the declared type.
        """
        try:
            raw = schema.encode(value)
            if isinstance(value, _CHECKED):
                raw = self._check(value, raw)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            raise McpError(
                -32603,
                f"The result of {tool} does not fit its declared type {self._name}: "
                f"{schema.reason(error)}",
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


def _named(tp: Any) -> str:
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
