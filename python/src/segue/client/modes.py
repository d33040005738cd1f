"""The response modes of SEP-1905: how a call that may be a task is answered."""

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
    """As the library has them; None = 0, its default.

    Raises:
        TypeError: It is no collection of names.
        ValueError: A name is none of a mode, or there is no name.
    """
    if names is None:
        return 0
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f"response_modes is a list of names, not {names!r}")
    modes = 0
    for name in names:
        if name not in _MODES:
            known = ", ".join(map(repr, _MODES))
            raise ValueError(f"no such response mode: {name!r}; there are {known}")
        modes |= _MODES[name]
    if not modes:
        raise ValueError("response_modes is empty: name one mode at least, or None")
    return modes
