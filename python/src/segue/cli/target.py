"""Reads the server from the command line: a URL, or a command that starts the server."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import re
import shlex
import sys
import webbrowser
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Literal

import segue
from segue.cli.codes import AlreadyTold, Exit, UsageError
from segue.cli.loading import parse_source
from segue.cli.programs import is_imported, is_program, store_of
from segue.cli.screen import Screen
from segue.tokens import Target

Era = Literal["auto", "modern", "legacy"]

_NAMED = re.compile(r".+\.py:\w+")
# The command that serves the server of a file over standard input and output.
_RUN = [sys.executable, "-m", "segue.cli", "run", "--or-program"]
# seconds without an answer after which the user is told what a command has to do
_SILENCE = 3.0

__all__ = ["Access", "connect", "parse_access", "parse_target", "show_target"]


@dataclasses.dataclass(frozen=True)
class Access:
    """The options for reaching a server.

    Attributes:
        headers: Headers that are sent with each HTTP request.
        bearer: A bearer token, or None.
        login: True = the user logs in when the server demands it.
        era: ``auto``, ``modern`` or ``legacy``.
    """

    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    bearer: str | None = None
    era: Era = "auto"
    login: bool = False


def parse_target(text: str) -> Target:
    """Returns a URL unchanged. Any other text is a command line, which is split as a
    shell does.

    ``file.py:name`` is served by ``segue run``, and so is a file that makes a
    `segue.Server` and does not serve it over standard input and output. The store that
    the file gives to `server.run`, as a text, is used. Any other file
    that ends in ``.py`` is run with the current Python. The name of a file that exists
    needs no quotes of its own.

    Raises:
        UsageError: The text is empty, its quotes do not match, or there is no such file.
    """
    if text.startswith(("http://", "https://")):
        return text
    words = _split(text)
    if not words:
        raise UsageError("no server is given: pass a URL, or a command in quotes")
    file, *more = words
    if "://" in file:
        raise UsageError(f"{file!r}: the URL has to begin with http:// or https://")
    is_named = _NAMED.fullmatch(file) is not None
    if not is_named and not file.endswith(".py"):
        return words
    source = parse_source(file)
    if is_named or is_imported(source.path):
        store = store_of(source.path)
        kept = [] if store is None else ["--store", store]
        return [*_RUN, file, *kept, *(["--", *more] if more else [])]
    if is_program(source.path):
        return [file if os.sep in file else os.path.join(os.curdir, file), *more]
    return [sys.executable, *words]


def _split(text: str) -> list[str]:
    if os.path.isfile(re.sub(r"(\.py):\w+$", r"\1", text)):
        return [text]  # its name may have blanks
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from error


def show_target(target: Target) -> str:
    """Returns the target as a user would type it."""
    return target if isinstance(target, str) else shlex.join(target)


def parse_access(
    headers: list[str], bearer: str | None, era: Era, login: bool = False
) -> Access:
    """Makes an `Access` from the options of the command line.

    Raises:
        UsageError: A header is not ``Name: value``, the token's file cannot be read, or
            both a token and a login are given.
    """
    parsed = {}
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise UsageError(f"{header!r} is not a header of the form 'Name: value'")
        parsed[name.strip()] = value.strip()
    if bearer is not None and bearer.startswith("@"):
        try:
            bearer = Path(bearer[1:]).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise UsageError(f"{bearer}: {error.strerror}") from error
    if login and bearer is not None:
        raise UsageError("--login and --bearer cannot both be given")
    return Access(parsed, bearer, era, login)


def _login() -> segue.OAuth:
    """Makes the options for a login. Tokens are stored, so that the user logs in only
    once."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    place = os.environ.get("SEGUE_LOGINS") or Path(state) / "segue" / "logins"

    async def show(url: str) -> None:
        print(f"to log in, visit\n{url}", file=sys.stderr, flush=True)
        with contextlib.suppress(webbrowser.Error):
            await asyncio.to_thread(webbrowser.open, url)

    return segue.OAuth(
        client_name="segue", storage=segue.FileStorage(place), open_browser=show
    )


@contextlib.asynccontextmanager
async def connect(
    screen: Screen,
    target: Target,
    access: Access,
    options: segue.ConnectOptions | None = None,
) -> AsyncIterator[segue.Session]:
    """Opens a session with the options of the command line, and closes it at the end.

    Raises:
        AlreadyTold: ``segue run`` cannot serve the file.
    """
    connecting = _connecting(screen, target, access, options)
    try:
        with _hint(screen, target):
            session = await connecting
    except segue.Error as error:
        if target[: len(_RUN)] == _RUN and error.message.endswith(
            f"exited with status {int(Exit.USAGE)}"
        ):
            raise AlreadyTold("the file cannot be served") from error
        raise
    try:
        yield session
    finally:
        await session.close()


@contextlib.contextmanager
def _hint(screen: Screen, target: Target) -> Iterator[None]:
    """Says what a command has to do that does not answer for a while."""
    if isinstance(target, str):
        yield
        return
    text = (
        f"{show_target(target)} does not answer on its standard output yet; if it serves "
        "HTTP, name its URL instead"
    )
    timer = asyncio.get_running_loop().call_later(_SILENCE, screen.note, text)
    try:
        yield
    finally:
        timer.cancel()


def _connecting(
    screen: Screen,
    target: Target,
    access: Access,
    options: segue.ConnectOptions | None = None,
) -> segue.Connecting:
    """Calls `segue.connect` with the options of the command line."""
    chosen: segue.ConnectOptions = {**(options or {}), "era": access.era}
    chosen["on_reconnect"] = screen.reconnect
    if isinstance(target, str):
        chosen["headers"] = access.headers
        chosen["auth"] = _login() if access.login else access.bearer
    elif access.headers or access.bearer is not None or access.login:
        raise UsageError(
            "--header, --bearer and --login need a URL: a command has no HTTP requests"
        )
    return segue.connect(target, **chosen)
