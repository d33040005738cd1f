"""The response modes of SEP-1905: how a server may answer a call that can be a task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from .. import _segue

__all__ = ["ResponseMode", "response_modes"]

ResponseMode = Literal["task", "immediate", "streaming"]

_MODES = {
    "task": _segue.RESPONSE_TASK,
    "immediate": _segue.RESPONSE_IMMEDIATE,
    "streaming": _segue.RESPONSE_STREAMING,
}


def response_modes(names: Iterable[ResponseMode] | None) -> int:
    """Converts the names to the library's bit mask; None = 0, the library's default.

    Raises:
        TypeError: The value is not a collection of names.
        ValueError: A name is not a response mode, or the collection is empty.
    """
    if names is None:
        return 0
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f"response_modes has to be a list of names, not {names!r}")
    modes = 0
    for name in names:
        if name not in _MODES:
            known = ", ".join(map(repr, _MODES))
            raise ValueError(f"unknown response mode: {name!r}; the modes are {known}")
        modes |= _MODES[name]
    if not modes:
        raise ValueError("response_modes is empty: name at least one mode, or pass None")
    return modes
