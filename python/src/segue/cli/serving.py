"""Implements ``segue run``: serves the server of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import segue
from segue.cli.codes import Exit, UsageError, exit_code
from segue.cli.loading import (
    LoadError,
    NoServerError,
    Source,
    is_users,
    load,
    own_traceback,
)
from segue.cli.screen import Screen
from segue.server.serving import address_of

__all__ = ["Wish", "check", "guarded", "quiet_output", "serve", "show_failure"]

# The options of `Server.run` that need an address, and their words on the command line.
_OVER_HTTP = {
    "path": "--path",
    "metrics_path": "--metrics-path",
    "board_path": "--board-path",
    "hosts": "--host",
    "origins": "--origin",
    "tokens_file": "--tokens",
    "cert_file": "--cert",
    "key_file": "--key",
}


class Wish:
    """How to serve, as the command line says.

    Attributes:
        http: the address, or None for standard input and output.
        options: the options of `Server.run` that were given.
    """

    def __init__(self, http: str | None, **options: Any) -> None:
        self.http = http
        self.options = {
            name: value for name, value in options.items() if value not in (None, [])
        }


def check(wish: Wish) -> None:
    """Refuses options that do not fit together.

    Raises:
        UsageError: An option needs HTTP, the address is not one, or a file or the
            directory of the store is missing.
    """
    _check_places(wish)
    if wish.http is None:
        wrong = [word for name, word in _OVER_HTTP.items() if name in wish.options]
        if wrong:
            raise UsageError(f"{wrong[0]} needs --http: there is no HTTP over stdio")
        return
    try:
        address_of(wish.http)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _check_places(wish: Wish) -> None:
    tokens, store = wish.options.get("tokens_file"), wish.options.get("store")
    if tokens is not None and wish.http is not None and not os.path.exists(tokens):
        raise UsageError(f"--tokens: {tokens} cannot be opened: No such file")
    if store is None or "://" in store:
        return
    place = os.path.dirname(os.path.abspath(store))
    if not os.path.isdir(place):
        raise UsageError(f"--store: {store} cannot be opened: no directory {place}")


def serve(
    screen: Screen,
    source: Source,
    words: Sequence[str],
    wish: Wish,
    *,
    or_program: bool = False,
) -> None:
    """Loads the server of a file and serves it until its end. With `or_program`, a file
    that has no server at its top level is run as a program instead."""

    def work() -> None:
        check(wish)
        try:
            with quiet_output(wish.http is None):
                server = load(source, words)
        except NoServerError:
            if not or_program:
                raise
            os.execv(sys.executable, [sys.executable, str(source.path), *words])
        server.run(wish.http, **wish.options)

    guarded(screen, work)


def guarded(screen: Screen, work: Callable[[], None]) -> None:
    """Calls a function that serves. If it fails, this function ends the process with the
    exit code of the exception. An exception of the user's code is shown with the user's
    traceback."""
    try:
        work()
    except LoadError as error:
        show_failure(screen, error)
        sys.exit(int(Exit.USAGE))
    except UsageError as error:
        screen.error(error)
        sys.exit(int(Exit.USAGE))
    except KeyboardInterrupt:
        sys.exit(int(Exit.INTERRUPTED))
    except Exception as error:
        if isinstance(error, segue.Error) or not is_users(error):
            screen.error(error)
        else:
            print(own_traceback(error), end="", file=sys.stderr)
        is_usage = isinstance(error, (ValueError, TypeError))
        sys.exit(int(Exit.USAGE if is_usage else exit_code(error)))


def show_failure(screen: Screen, error: LoadError) -> None:
    """Shows why a file could not be loaded."""
    cause = error.__cause__
    if cause is not None and not isinstance(cause, SystemExit):
        print(own_traceback(cause), end="", file=sys.stderr, flush=True)
    screen.error(error)


@contextmanager
def quiet_output(is_wanted: bool) -> Iterator[None]:
    """Sends what a file prints while it is loaded to standard error. On standard output
    it would damage the messages of the protocol."""
    if not is_wanted:
        yield
        return
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)
