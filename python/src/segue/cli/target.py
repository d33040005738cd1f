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
from pathlib import Path
from typing import Literal

import segue
from segue.cli.codes import UsageError
from segue.cli.screen import Screen
from segue.tokens import Target

Era = Literal["auto", "modern", "legacy"]

_NAMED = re.compile(r".+\.py:\w+")
# A file that has one of these serves by itself when Python runs it.
_SERVES = re.compile(r"__main__|\.(run|serve|serving)\(")
_IMPORTS_SEGUE = re.compile(r"^\s*(import|from)\s+segue\b", re.MULTILINE)

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
    `segue.Server` and does not serve it. Any other file that ends in ``.py`` is run with
    the current Python. The name of a file that exists needs no quotes of its own.

    Raises:
        UsageError: The text is empty, or its quotes do not match.
    """
    if text.startswith(("http://", "https://")):
        return text
    words = _split(text)
    if not words:
        raise UsageError("no server is given: pass a URL, or a command in quotes")
    if "://" in words[0]:
        raise UsageError(f"{words[0]!r}: the URL has to begin with http:// or https://")
    if _NAMED.fullmatch(words[0]) or _only_makes_a_server(words[0]):
        return [sys.executable, "-m", "segue.cli", "run", words[0], *words[1:]]
    if words[0].endswith(".py") and not os.access(words[0], os.X_OK):
        return [sys.executable, *words]
    return words


def _split(text: str) -> list[str]:
    if os.path.isfile(re.sub(r"(\.py):\w+$", r"\1", text)):
        return [text]  # its name may have blanks
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from error


def _only_makes_a_server(file: str) -> bool:
    """Returns whether a file uses segue and does not serve by itself."""
    if not file.endswith(".py") or os.access(file, os.X_OK):
        return False
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return bool(_IMPORTS_SEGUE.search(text)) and not _SERVES.search(text)


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


def connect(
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
