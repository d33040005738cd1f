"""Standard input and output as a transport.

The protocol gets copies of the two descriptors. What is left under their own numbers is
harmless: 0 is empty and 1 is standard error, so that neither a print() nor a child
process of a tool can write between the messages, or read one away.
"""

from __future__ import annotations

import os
import sys

__all__ = ["Stdio"]


class Stdio:
    """Takes the descriptors over, until `restore`.

    Attributes:
        fd_in, fd_out: for `_segue.transport_fds`, which closes them.
    """

    def __init__(self) -> None:
        _flush()
        self._saved = (os.dup(0), os.dup(1))
        self.fd_in, self.fd_out = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True)

    def restore(self) -> None:
        """Puts the descriptors back. Does nothing the second time."""
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
    except (AttributeError, OSError, ValueError):  # there is none, or it is closed
        pass
