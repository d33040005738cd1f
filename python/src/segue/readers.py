"""Decides who reads a type: msgspec, or pydantic.

The rule: a type is read by pydantic as a whole if any part of it belongs to pydantic. A
part belongs to pydantic if its class comes from pydantic or tells pydantic how to read
it, or if it is annotated so. The constraints of `annotated_types`, such as `Gt`, are such
annotations, because msgspec ignores them. msgspec reads all other types, and enforces
`msgspec.Meta`. A type that needs both is refused, so no constraint is ignored.

pydantic is imported only if a type needs it.
"""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Iterator
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from .hints import unnamed

__all__ = ["classes_of", "uses_pydantic"]

_OWNERS = {"pydantic", "pydantic_core", "pydantic_extra_types", "annotated_types"}
_HOOKS = (
    "__get_pydantic_core_schema__",
    "__get_pydantic_json_schema__",
    "__pydantic_validator__",
    "__is_annotated_types_grouped_metadata__",
)
# what pydantic leaves out of the annotations of msgspec
_CONSTRAINTS = (
    "gt",
    "ge",
    "lt",
    "le",
    "multiple_of",
    "pattern",
    "min_length",
    "max_length",
    "tz",
)


def uses_pydantic(tp: Any) -> bool:
    """Returns whether only pydantic, and not msgspec, can read a type.

    Raises:
        TypeError: parts of the type need msgspec, and others pydantic, or pydantic is
            not installed.
    """
    if not _OWNERS & sys.modules.keys():
        return False
    parts = list(_parts(tp, {}))
    owned = next((part for part in parts if _is_owned(part)), None)
    if owned is None:
        return False
    try:
        import pydantic  # noqa: F401
    except ImportError:
        raise TypeError(
            f"{_shown(owned)} needs pydantic: pip install 'segue-mcp[pydantic]'"
        ) from None
    for part in parts:
        if _needs_msgspec(part):
            raise TypeError(
                f"{_shown(owned)} is read by pydantic, which does not read "
                f"{_shown(part)}: use what one of pydantic and msgspec has for both"
            )
    return True


def _parts(tp: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """Yields the classes and the annotations in a type, at any depth. `seen` has the
    types by their ids, and keeps them alive, so that no other type gets such an id."""
    tp = unnamed(tp)
    if id(tp) in seen:
        return
    seen[id(tp)] = tp
    yield from getattr(tp, "__metadata__", ())
    if isinstance(tp, TypeVar):
        for one in (tp.__bound__, *tp.__constraints__):
            yield from _parts(one, seen)
        return
    origin = get_origin(tp)
    if origin is not None and origin is not typing.Literal:
        for one in (getattr(tp, "__origin__", origin), *get_args(tp)):
            yield from _parts(one, seen)
    elif isinstance(tp, type):
        yield tp
        if _has_fields(tp):
            for one in _hints(tp).values():
                yield from _parts(one, seen)


def classes_of(tp: Any) -> list[type]:
    """Returns the classes in a type, at any depth."""
    parts = _parts(tp, {})
    return [one for one in parts if isinstance(one, type) and one is not types.UnionType]


def _has_fields(tp: type) -> bool:
    """Returns whether a class is a record whose fields msgspec or pydantic reads. The
    models of pydantic are not searched: pydantic reads them in any case."""
    return (
        dataclasses.is_dataclass(tp)
        or typing.is_typeddict(tp)
        or hasattr(tp, "__required_keys__")  # a TypedDict of typing_extensions
        or issubclass(tp, msgspec.Struct)
        or hasattr(tp, "__attrs_attrs__")
        or (issubclass(tp, tuple) and hasattr(tp, "_fields"))
    )


def _hints(tp: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(tp, include_extras=True)
    except (NameError, TypeError):
        return {}  # msgspec and pydantic say what is wrong


def _is_owned(part: Any) -> bool:
    """Returns whether a class or an annotation belongs to pydantic."""
    kind = part if isinstance(part, type) else type(part)
    if isinstance(part, type) and issubclass(part, msgspec.Struct):
        return False
    if any(one.__module__.partition(".")[0] in _OWNERS for one in kind.__mro__):
        return True
    return any(hasattr(part, hook) for hook in _HOOKS)


def _needs_msgspec(part: Any) -> bool:
    """Returns whether pydantic cannot read a class, or ignores an annotation."""
    if isinstance(part, msgspec.Meta):
        return any(getattr(part, name, None) is not None for name in _CONSTRAINTS)
    is_class = isinstance(part, type)
    return is_class and (
        issubclass(part, msgspec.Struct) or hasattr(part, "__attrs_attrs__")
    )


def _shown(part: Any) -> str:
    return f"`{part.__name__}`" if isinstance(part, type) else f"`{part!r}`"
