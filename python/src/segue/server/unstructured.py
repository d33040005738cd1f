"""Results that are not structured: whether a value fits the declared type.

Text, content and None have no schema. A value that is declared as one of them has to be
one of them. A type that says nothing of its values, such as Any, takes all values.
"""

from __future__ import annotations

import collections.abc
import enum
import types
import typing
from collections.abc import Callable
from typing import Any, get_args, get_origin

from ..hints import plain
from .output import (
    CONTENT,
    SEQUENCES,
    Output,
    Unfit,
    has_content,
    named_type,
    says_nothing,
)

__all__ = ["Declared"]

Fits = Callable[[Any], bool]
_BYTES = (bytes, bytearray, memoryview)
_UNIONS = (typing.Union, types.UnionType)
_ARRAYS = (list, tuple, set, frozenset)
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def _of_class(tp: Any) -> Fits | None:
    """Returns the check of a class of text or content, or of None."""
    if tp in (None, type(None)):
        return lambda value: value is None
    if not isinstance(tp, type) or issubclass(tp, enum.Enum):
        return None
    for classes in (str, _BYTES):
        if issubclass(tp, classes):
            return lambda value: isinstance(value, classes)
    return (lambda value: isinstance(value, tp)) if issubclass(tp, CONTENT) else None


def _of_parts(tp: Any, parts: list[Fits]) -> Fits | None:
    """Returns the check of a type that is made of types with these checks."""
    kind = get_origin(tp) or tp
    if kind in _UNIONS:
        return lambda value: any(fits(value) for fits in parts)
    if kind in _MAPPINGS and len(parts) == 2:
        return lambda value: (
            isinstance(value, dict) and all(map(parts[1], value.values()))
        )
    if kind not in SEQUENCES:
        return None
    if kind is tuple and parts and get_args(tp)[-1] is not ...:
        return lambda value: (
            isinstance(value, _ARRAYS)
            and len(value) == len(parts)
            and all(fits(one) for fits, one in zip(parts, value, strict=True))
        )
    each = parts[0] if parts else _anything
    return lambda value: isinstance(value, _ARRAYS) and all(map(each, value))


def _anything(value: Any) -> bool:
    return True


def _of_output(output: Output | None) -> Fits:
    """Returns the check of a type with structured results, or of one without any."""
    if output is None:
        return _anything

    def fits(value: Any) -> bool:
        try:
            output.encode("", value)
        except Unfit:
            return False
        return True

    return fits


class Declared:
    """The declared type of results that are not structured.

    Attributes:
        is_text: True = all texts fit.
    """

    def __init__(
        self, tp: Any, structured: bool | None, structured_default: bool | None = None
    ) -> None:
        """Makes the check. The arguments are those of `Output.of`."""
        self._options = structured, structured_default
        self._name = named_type(tp)
        self._fits = self._make(tp)
        self.is_text = self._fits("")

    def _make(self, tp: Any) -> Fits:
        tp = plain(tp)
        made = _of_class(tp)
        is_made = get_origin(tp) in _UNIONS or has_content(tp) or says_nothing(tp)
        if made is None and is_made:
            made = _of_parts(tp, [self._make(one) for one in get_args(tp)])
        return made or _of_output(Output.of(tp, *self._options))

    def check(self, tool: str, value: Any) -> None:
        """Refuses a value of another type.

        Raises:
            Unfit: the value does not fit the declared type.
        """
        if not self._fits(value):
            raise Unfit(
                f"The result of {tool} does not fit its declared type {self._name}: "
                f"got `{type(value).__name__}`: {value!r:.200}"
            )
