"""Looks behind the names that a program gives to types."""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin

__all__ = ["plain", "unnamed"]


def unnamed(tp: Any) -> Any:
    """Returns the type behind a `NewType` or `type X = ...`, or the type itself."""
    while True:
        if hasattr(tp, "__supertype__"):
            tp = tp.__supertype__
        elif type(tp).__name__ == "TypeAliasType" and hasattr(tp, "__value__"):
            tp = tp.__value__
        else:
            return tp


def plain(tp: Any) -> Any:
    """Returns the type behind `Annotated`, `NewType` and `type X = ...`."""
    while True:
        made = unnamed(tp)
        if get_origin(made) is Annotated:
            made = get_args(made)[0]
        if made is tp:
            return tp
        tp = made
