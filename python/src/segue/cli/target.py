"""What a person names as the server: a URL, or a command that starts one."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
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

__all__ = ["Access", "connect", "parse_access", "parse_target", "show_target"]


@dataclasses.dataclass(frozen=True)
class Access:
    """How to reach a server, beside its name.

    Attributes:
        headers: Sent with each HTTP request.
        bearer: A bearer token; None for none.
        login: A user logs in where the server asks for it.
        era: ``auto``, ``modern`` or ``legacy``.
    """

    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    bearer: str | None = None
    era: Era = "auto"
    login: bool = False


def parse_target(text: str) -> Target:
    """A URL as it is; anything else is a command line, split as a shell would.

    A command that is one ``.py`` file is run by this Python.

    Raises:
        UsageError: Nothing is named, or its quotes do not match.
    """
    if text.startswith(("http://", "https://")):
        return text
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from error
    if not words:
        raise UsageError("name a server: a URL or a command in quotes")
    if "://" in words[0]:
        raise UsageError(f"{words[0]!r}: only http:// and https:// can be reached")
    if words[0].endswith(".py") and not os.access(words[0], os.X_OK):
        return [sys.executable, *words]
    return words


def show_target(target: Target) -> str:
    """The target as one would type it."""
    return target if isinstance(target, str) else shlex.join(target)


def parse_access(
    headers: list[str], bearer: str | None, era: Era, login: bool = False
) -> Access:
    """Options of the command line as an `Access`.

    Raises:
        UsageError: A header is not ``Name: value``, the token's file cannot be read, or
            there is a token beside a login.
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
        raise UsageError("--login and --bearer are two ways to the same: choose one")
    return Access(parsed, bearer, era, login)


def _login() -> segue.OAuth:
    """Tokens are kept, so that the user is asked once."""
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
    """`segue.connect` with what the options of the command line say."""
    chosen: segue.ConnectOptions = {**(options or {}), "era": access.era}
    chosen["on_reconnect"] = screen.reconnect
    if isinstance(target, str):
        chosen["headers"] = access.headers
        chosen["auth"] = _login() if access.login else access.bearer
    elif access.headers or access.bearer is not None or access.login:
        raise UsageError("headers, tokens and logins are for URLs")
    return segue.connect(target, **chosen)
