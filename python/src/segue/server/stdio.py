"""Standard input and output as a transport.

The protocol uses copies of the descriptors 0 and 1. Descriptor 0 itself becomes an empty
input, and descriptor 1 becomes standard error. So neither print() nor a child process of
a tool can write between the messages or read a message.
"""

from __future__ import annotations

import os
import sys

__all__ = ["Stdio"]


class Stdio:
    """Replaces descriptors 0 and 1 until `restore`."""

    def __init__(self) -> None:
        _flush()
        self._saved = (os.dup(0), os.dup(1))
        self._ends = (os.dup(0), os.dup(1))
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True)

    def take(self) -> tuple[int, int]:
        """Returns the descriptors for `_segue.transport_fds`, which closes both."""
        ends, self._ends = self._ends, (-1, -1)
        return ends

    def restore(self) -> None:
        """Restores the descriptors 0 and 1. A second call does nothing."""
        for end in self.take():
            if end >= 0:  # no transport was made of it
                os.close(end)
        saved, self._saved = self._saved, (-1, -1)
        if saved[0] < 0:
            return
        _flush()
        for number, copy in enumerate(saved):
            os.dup2(copy, number)
            os.close(copy)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except (AttributeError, OSError, ValueError):
        # sys.stdout is None or closed, so there is nothing to flush
        pass
