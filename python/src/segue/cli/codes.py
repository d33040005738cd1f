"""The exit codes of the command, and the code of each exception."""

from __future__ import annotations

import asyncio
import enum

from segue import errors
from segue.tokens import TokenFileError

__all__ = ["AlreadyTold", "Exit", "UsageError", "exit_code"]


class Exit(enum.IntEnum):
    """The exit codes, which a script can read from ``$?``."""

    OK = 0
    TOOL = 1
    """The tool ran and reported an error (``isError``)."""
    USAGE = 2
    """Wrong arguments; nothing was sent."""
    SERVER = 3
    """The server answered with an error, or broke the protocol."""
    CONNECTION = 4
    """The server cannot be reached or started, or the connection is lost, or what answers
    refuses it: a redirect, another service, a certificate that is not trusted."""
    REFUSED = 5
    """The server requires authorization, or does not accept the one given."""
    TIMEOUT = 6
    TASK = 7
    """The task is gone, was cancelled, or cannot be resumed."""
    INTERNAL = 8
    """Out of memory, a damaged file of tokens, or a defect of this program."""
    INTERRUPTED = 130
    """Ctrl-C. A durable task goes on."""


class UsageError(Exception):
    """The command line is wrong. The message of the exception says why."""


class AlreadyTold(UsageError):
    """The same, and ``segue run``, which this command has started, has said why on
    standard error."""


_BY_STATUS = {
    -12: Exit.SERVER,
    -13: Exit.TASK,
    -14: Exit.SERVER,
    -15: Exit.TASK,
    -16: Exit.TIMEOUT,
    -104: Exit.REFUSED,
    -204: Exit.TASK,
    -205: Exit.TASK,
}


def exit_code(error: BaseException) -> Exit:
    """Returns the exit code for the exception that ended the command."""
    if isinstance(error, UsageError):
        return Exit.USAGE
    if isinstance(error, TokenFileError):
        return Exit.INTERNAL
    if isinstance(error, errors.Error):
        status = int(error.status)
        if status in _BY_STATUS:
            return _BY_STATUS[status]
        if -400 < status <= -200:
            return Exit.SERVER
        if -200 < status <= -100:
            return Exit.CONNECTION
        return Exit.INTERNAL
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return Exit.TIMEOUT
    if isinstance(error, OSError):
        return Exit.CONNECTION
    return Exit.INTERNAL
