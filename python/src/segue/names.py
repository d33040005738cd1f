"""Unknown names of arguments, and the names that were probably meant.

The Node package has the same rule in names.ts, so both give the same texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

__all__ = ["nearest", "unknown_names"]

# maximum number of unknown names in one message, and of characters of each name
MAX_NAMES = 8
MAX_LENGTH = 60


def unknown_names(names: Sequence[str], known: Sequence[str], what: str = "tool") -> str:
    """Returns the text that says which arguments a tool or prompt does not have.

    Args:
        names: the unknown names, at least one.
        known: the names of the arguments that the item has.
        what: the kind of item, "tool" or "prompt".
    """
    parts = [_unknown(name, known) for name in names[:MAX_NAMES]]
    if len(names) > MAX_NAMES:
        parts.append(f"and {len(names) - MAX_NAMES} more")
    if not known:
        parts.append(f"the {what} takes no arguments")
    elif not any(nearest(name, known) for name in names[:MAX_NAMES]):
        parts.append(f"the arguments are {_listed(known)}")
    return "; ".join(parts)


def _unknown(name: str, known: Sequence[str]) -> str:
    text = f"unknown argument {_quoted(name)}"
    meant = nearest(name, known)
    return f"{text}, did you mean {_quoted(meant)}?" if meant else text


def _listed(names: Sequence[str]) -> str:
    return ", ".join(_quoted(name) for name in names)


def _quoted(name: str) -> str:
    return json.dumps(name[:MAX_LENGTH], ensure_ascii=False)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name that is most similar to a name, or None if no name is
    similar. Case, underscores and hyphens do not count, and at most a third of the
    characters may differ.
    """
    plain = _plain(name)
    best, least = None, len(plain) + 1
    for one in known:
        other = _plain(one)
        distance = _distance(plain, other)
        if distance < least and distance * 3 <= max(len(plain), len(other)):
            best, least = one, distance
    return best


def _plain(name: str) -> str:
    return name[:MAX_LENGTH].lower().replace("_", "").replace("-", "")


def _distance(a: str, b: str) -> int:
    """Returns the number of characters to insert, remove or replace, and of neighbours to
    swap, to make b of a."""
    before, row = [0], list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row, older = row, [i], before
        for j, y in enumerate(b, 1):
            least = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                least = min(least, older[j - 2] + 1)
            row.append(least)
        before = last
    return row[-1]
