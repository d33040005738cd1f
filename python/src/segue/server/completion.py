"""Suggestions for the arguments of prompts and templates (completion/complete)."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal, get_args, get_origin

import msgspec

from .. import schema

__all__ = ["Complete", "Completer", "Suggestions", "limited", "parse_params"]

Values = Iterable[str]
Completer = Callable[..., Values | Awaitable[Values]]
# maximum number of values in one answer (2025-11-25 server/utilities/completion)
MAX_VALUES = 100


class Complete:
    """Marks an argument whose values are suggested: `Annotated[str, Complete([...])]`.

    Args:
        source: the values, of which those that begin with the typed text are suggested;
            or a function, plain or async, that gets the typed text and, if it takes two
            arguments, a dict of the other arguments so far.
    """

    def __init__(self, source: Values | Completer) -> None:
        self.source = source if callable(source) else [str(one) for one in source]

    async def suggest(self, typed: str, others: dict[str, str]) -> list[str]:
        """Returns the values that fit what was typed.

        Args:
            typed: What the user has typed.
            others: The other arguments that are known already.
        """
        if not callable(self.source):
            begin = typed.casefold()
            return [one for one in self.source if one.casefold().startswith(begin)]
        takes = len(inspect.signature(self.source).parameters)
        found: Any = self.source(typed, others) if takes > 1 else self.source(typed)
        if inspect.isawaitable(found):
            found = await found
        return [str(one) for one in found]


class Suggestions:
    """The completers of an item, by the argument's name."""

    def __init__(self, types: dict[str, Any]) -> None:
        self.by_name: dict[str, Complete] = {}
        for name, tp in types.items():
            found = _completer_of(tp)
            if found:
                self.by_name[name] = found

    def __bool__(self) -> bool:
        return bool(self.by_name)

    async def answer(self, params: bytes) -> tuple[list[str], int, bool]:
        """Answers completion/complete. Returns at most MAX_VALUES values, the number of
        all values, and whether there are more values than the returned ones."""
        return limited(await self.suggest(params))

    async def suggest(self, params: bytes) -> list[str]:
        """Returns all values for the argument that the params name."""
        name, typed, others = parse_params(params)
        completer = self.by_name.get(name)
        return await completer.suggest(typed, others) if completer else []


def limited(values: list[str]) -> tuple[list[str], int, bool]:
    """Returns at most MAX_VALUES values, the number of all values, and whether there are
    more values than the returned ones."""
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
    """Reads the params of completion/complete. Returns the argument's name, the typed
    text, and the other arguments."""
    given = _decode(params)
    return given.argument.name, given.argument.value, given.context.arguments
