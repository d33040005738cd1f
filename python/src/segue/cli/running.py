"""Runs one command: its event loop, Ctrl-C, and the message when it fails.

Ctrl-C cancels the command's asyncio task once, so that the command can detach from a
durable task and say how to resume it. A second Ctrl-C ends the process at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import typer

from segue import errors
from segue.cli.codes import Exit, UsageError, exit_code
from segue.cli.screen import Screen
from segue.tokens import TokenFileError

__all__ = ["Interrupted", "run", "run_plain"]

_EXPECTED = (errors.Error, UsageError, TokenFileError, TimeoutError, OSError)


class Interrupted(Exception):
    """Ctrl-C was pressed, and the command has shown its last message."""


def run(screen: Screen, command: Coroutine[Any, Any, Exit]) -> None:
    """Runs the command, then raises `typer.Exit` with the command's exit code."""
    run_plain(screen, lambda: asyncio.run(_interruptible(command)))


def run_plain(screen: Screen, command: Callable[[], Exit]) -> None:
    """Does the same with a plain function."""
    try:
        code = command()
    except (Interrupted, KeyboardInterrupt, asyncio.CancelledError):
        code = Exit.INTERRUPTED
    except BrokenPipeError:
        # The program that reads the output has ended, as in `segue ... | head`, which is
        # not an error. Standard output is replaced so that Python's flush at exit does
        # not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = Exit.OK
    except asyncio.TimeoutError as error:
        # in Python 3.10 asyncio.TimeoutError is not the same class as TimeoutError
        code = _failed(screen, error)
    except _EXPECTED as error:
        code = _failed(screen, error)
    raise typer.Exit(int(code))


def _failed(screen: Screen, error: BaseException) -> Exit:
    screen.error(error)
    return exit_code(error)


async def _interruptible(command: Coroutine[Any, Any, Exit]) -> Exit:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(command)

    def interrupt() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, lambda *_: os._exit(int(Exit.INTERRUPTED)))
        task.cancel()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    loop.add_signal_handler(signal.SIGTERM, interrupt)
    try:
        return await task
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)
