"""The program segue-proxy, which the package carries."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import segue

__all__ = ["become_proxy", "program"]


def program() -> Path:
    """Returns the path of the program."""
    return Path(segue.__file__).with_name("segue-proxy")


def become_proxy(arguments: Sequence[str]) -> NoReturn:
    """Replaces this process by segue-proxy with these arguments."""
    try:
        os.execv(program(), ["segue-proxy", *arguments])
    except OSError as error:
        print(f"segue: cannot run {program()}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
