"""Watches files for ``segue dev``: tells when some of them have changed and no more
changes follow."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

__all__ = ["Watch"]

_POLL = 0.1  # seconds between two looks at the files
_QUIET = 2  # looks without a change after which the changes count as complete

Stamp = tuple[int, int, int]


class Watch:
    """A set of files and directories. Of a directory only its list of names counts.

    Attributes:
        changed: the names of changed files; empty while nothing has changed.
    """

    def __init__(self) -> None:
        self._stamps: dict[str, Stamp | None] = {}
        self.changed: set[str] = set()

    def __len__(self) -> int:
        return len(self._stamps)

    def add(self, files: Iterable[str]) -> None:
        """Watches more files. A file that is watched already keeps the stamp with which
        it was seen first, so a change since then is not missed."""
        for file in files:
            if file not in self._stamps:
                self._stamps[file] = _stamp(file)

    def look(self) -> bool:
        """Looks at all files; returns whether one has changed since the last look."""
        found = False
        for file, before in self._stamps.items():
            now = _stamp(file)
            if now != before:
                self._stamps[file] = now
                self.changed.add(file)
                found = True
        return found

    async def wait(self) -> None:
        """Waits until files have changed, and then until no more changes follow: an
        editor writes a file in several steps, and a switch of branches many files."""
        while not self.changed:
            await asyncio.sleep(_POLL)
            self.look()
        quiet = 0
        while quiet < _QUIET:
            await asyncio.sleep(_POLL)
            quiet = 0 if self.look() else quiet + 1

    def take(self) -> list[str]:
        """Returns the changed files, and forgets that they have changed."""
        changed, self.changed = self.changed, set()
        return sorted(changed)


def _stamp(file: str) -> Stamp | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
