"""Suggestions for the arguments of prompts and templates (completion/complete)."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal, get_args, get_origin

import msgspec

from .. import schema

__all__ = ["Complete", "Completer", "Suggestions", "parse_params"]

Values = Iterable[str]
Completer = Callable[..., Values | Awaitable[Values]]
MAX_VALUES = 100  # of one answer (2025-11-25 server/utilities/completion)


class Complete:
    """Marks an argument whose values are suggested: `Annotated[str, Complete([...])]`.

    Args:
        source: the values, of which those that begin with what was typed are suggested;
            or a function, plain or async, that gets what was typed, and if it takes two
            arguments a dict of the other arguments so far.
    """

    def __init__(self, source: Values | Completer) -> None:
        self.source = source if callable(source) else [str(one) for one in source]

    async def suggest(self, typed: str, others: dict[str, str]) -> list[str]:
        if not callable(self.source):
            begin = typed.casefold()
            return [one for one in self.source if one.casefold().startswith(begin)]
        takes = len(inspect.signature(self.source).parameters)
        found: Any = self.source(typed, others) if takes > 1 else self.source(typed)
        if inspect.isawaitable(found):
            found = await found
        return [str(one) for one in found]


class Suggestions:
    """The completers of an item, by argument."""

    def __init__(self, types: dict[str, Any]) -> None:
        self.by_name: dict[str, Complete] = {}
        for name, tp in types.items():
            found = _completer_of(tp)
            if found:
                self.by_name[name] = found

    def __bool__(self) -> bool:
        return bool(self.by_name)

    async def answer(self, params: bytes) -> tuple[list[str], int, bool]:
        """The values, how many there are, and whether these are not all."""
        name, typed, others = parse_params(params)
        completer = self.by_name.get(name)
        values = await completer.suggest(typed, others) if completer else []
        return values[:MAX_VALUES], len(values), len(values) > MAX_VALUES


def _completer_of(tp: Any) -> Complete | None:
    for item in schema.metadata(tp):
        if isinstance(item, Complete):
            return item
    if schema.metadata(tp):
        tp = get_args(tp)[0]
    if get_origin(tp) is Literal:
        return Complete([str(one) for one in get_args(tp)])
    if isinstance(tp, type) and issubclass(tp, enum.Enum):
        return Complete([str(one.value) for one in tp])
    return None


class _Argument(msgspec.Struct):
    name: str
    value: str = ""


class _Given(msgspec.Struct):
    arguments: dict[str, str] = {}


class _Params(msgspec.Struct):
    argument: _Argument
    context: _Given = msgspec.field(default_factory=_Given)


_decode = msgspec.json.Decoder(_Params).decode


def parse_params(params: bytes) -> tuple[str, str, dict[str, str]]:
    """The argument, what was typed of it, and the other arguments."""
    given = _decode(params)
    return given.argument.name, given.argument.value, given.context.arguments
