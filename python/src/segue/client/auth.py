"""Authorization of a client over HTTP (2026-07-28 basic/authorization).

The library finds the authorization server, registers, asks for tokens, renews them and
sends them. What is here is the part of a desktop program: a browser for the user's
consent, a socket on this machine where the browser comes back to, a file for what shall
be kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import quote

from .. import _segue

__all__ = ["FileStorage", "OAuth", "TokenStorage"]

_PAGE = (
    "<!doctype html><meta charset=utf-8><title>Authorization</title>"
    "<body style='font-family:sans-serif;margin:4em'><p>{}</p>"
)
_LONGEST_REQUEST = 16384  # bytes of the browser's request
_BROWSER_SECONDS = 10.0


class TokenStorage(Protocol):
    """Keeps texts by their key. They hold secrets. Both are called in the loop's thread
    and must not block for long."""

    def load(self, key: str) -> str | None:
        """What `save` was given last under the key, or None."""

    def save(self, key: str, value: str) -> None:
        """Keeps the value instead of what was kept under the key."""


class FileStorage:
    """One file for each key in a directory of their owner's (0700; the files 0600).

    Args:
        directory: It is made when something is saved.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory).expanduser()

    def _path(self, key: str) -> Path:
        return self._directory / (quote(key, safe="") + ".json")

    def load(self, key: str) -> str | None:
        """What was saved, or None."""
        try:
            return self._path(key).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def save(self, key: str, value: str) -> None:
        """Replaces the file in one step: who reads it finds the old or the new text."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=self._directory)  # 0600
        try:
            with os.fdopen(number, "w", encoding="utf-8") as file:
                file.write(value)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self._path(key))
        except BaseException:
            os.unlink(name)
            raise


Grant = Literal["code", "client", "assertion"]
Assertion = Callable[[str, str], str | None]
Browse = Callable[[str], Any]

_GRANTS: dict[str, int] = {"code": 0, "client": 1, "assertion": 2}


class OAuth:
    """Tokens by OAuth 2.1, got when the server asks for one.

    Args:
        grant: "code": a user agrees in a browser, with PKCE. "client": the program itself
            (client credentials). "assertion": whom `assertion` names (RFC 7523).
        client_id: When the program was registered beforehand; else it registers itself.
        client_secret: Of `client_id`.
        private_key: PEM; the client signs instead of telling a secret.
        issuer: The authorization server that knows `client_id`; no other gets it.
        client_metadata_url: https; what stands there describes the client.
        client_name: In a registration; default "segue".
        scope: Asked for where the server names none.
        redirect_uri: Where the browser comes back to. Default: a socket on this machine,
            which listens while a connection is open. With one of your own, hand the URL
            that came back to `segue.authorize`.
        port: Of that socket; 0 = one that is free. A fixed one spares a new registration
            in each run.
        consent_timeout: Seconds that a user has; default 600.
        storage: Keeps registrations and tokens beyond the connection: `FileStorage`.
        open_browser: Shows the URL to the user, plain or async. Default:
            `webbrowser.open`; where there is no browser, the URL is printed to standard
            error. What it raises ends what waits for the user.
        assertion: Of grant "assertion": gets issuer and resource, returns a JWT or None.
        auth_method: Of the token endpoint, e.g. "client_secret_post".
        register: False = no dynamic registration.
        allow_private_addresses: True = what a server names for authorization may be at
            addresses that are not public, such as 10.0.0.1. Without it that is refused,
            but for the server's own address and the host of `issuer`.
    """

    def __init__(
        self,
        *,
        grant: Grant = "code",
        client_id: str | None = None,
        client_secret: str | None = None,
        private_key: str | None = None,
        issuer: str | None = None,
        client_metadata_url: str | None = None,
        client_name: str | None = None,
        scope: str | None = None,
        redirect_uri: str | None = None,
        port: int = 0,
        consent_timeout: float | None = None,
        storage: TokenStorage | None = None,
        open_browser: Browse | None = None,
        assertion: Assertion | None = None,
        auth_method: str | None = None,
        register: bool = True,
        allow_private_addresses: bool = False,
    ) -> None:
        if grant not in _GRANTS:
            raise ValueError(f"no such grant: {grant!r}")
        if (grant == "assertion") != (assertion is not None):
            raise ValueError('grant "assertion" and assertion= go together')
        self.storage = storage
        self.assertion = assertion
        self.open_browser = open_browser
        self.port = port
        self.redirect_uri = redirect_uri
        self.grant = grant
        self._options: _segue.OauthOptions = {
            "grant": _GRANTS[grant],
            "client_id": client_id,
            "client_secret": client_secret,
            "private_key": private_key,
            "issuer": issuer,
            "client_metadata_url": client_metadata_url,
            "client_name": client_name,
            "scope": scope,
            "auth_method": auth_method,
            "no_registration": not register,
            "allow_private_addresses": allow_private_addresses,
        }
        if consent_timeout is not None:
            self._options["consent_timeout_ms"] = max(1, round(consent_timeout * 1000))

    def options(self, redirect_uri: str | None) -> _segue.OauthOptions:
        """Of `segue_transport_set_oauth`."""
        return {**self._options, "redirect_uri": redirect_uri}

    def __repr__(self) -> str:
        """Without secrets."""
        return (
            f"OAuth(grant={self.grant!r}, client_id={self._options.get('client_id')!r})"
        )


class Redirects:
    """A socket on this machine, bound at once so that its URL is known, and served only
    while a browser may come (RFC 8252, section 7.3).

    Args:
        taken: Gets the path with its query; returns whether somebody waited for it.
    """

    def __init__(self, port: int, taken: Callable[[str], bool]) -> None:
        self._taken = taken
        self._server: asyncio.Server | None = None
        self._starting: asyncio.Task[None] | None = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(("127.0.0.1", port))
        except BaseException:
            self._socket.close()
            raise
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/callback"

    async def serve(self) -> None:
        """Begins to listen; once is enough."""
        if self._server is None:
            self._server = await asyncio.start_server(
                self._answer, sock=self._socket, limit=_LONGEST_REQUEST
            )

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            head = await asyncio.wait_for(
                reader.readuntil(b"\r\n\r\n"), timeout=_BROWSER_SECONDS
            )
            words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
            is_get = len(words) == 3 and words[0] == "GET"
            is_ours = is_get and words[1].split("?")[0] == "/callback"
            if is_ours and self._taken(words[1]):
                status, text = "200 OK", "Done. You can close this window."
            else:
                status, text = "404 Not Found", "Nobody waits for this."
            page = _PAGE.format(text).encode()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                f"Content-Length: {len(page)}\r\nCache-Control: no-store\r\n"
                "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode()
            )
            writer.write(page)
            await writer.drain()
        except (
            OSError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            asyncio.TimeoutError,
        ):
            pass  # a browser that left: another may come
        finally:
            writer.close()

    def close(self) -> None:
        """Frees the port."""
        if self._server:
            self._server.close()
        self._socket.close()


class Limit:
    """Ends the wait for a connection: when it takes too long, or at once. Its time stands
    still while a user decides.

    Args:
        seconds: How long it may take; None = as long as it takes.
    """

    def __init__(self, seconds: float | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._left = seconds
        self._ends = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.over: asyncio.Future[None] = self._loop.create_future()
        self.go_on()

    def hold(self) -> None:
        """A user decides."""
        if self._timer is not None and self._left is not None:
            self._left = self._ends - self._loop.time()
            self._timer.cancel()
            self._timer = None

    def go_on(self) -> None:
        """He has decided."""
        if self._left is None or self.over.done():
            return
        if self._timer is None:
            self._ends = self._loop.time() + self._left
            self._timer = self._loop.call_later(
                max(0.0, self._left), self.fail, asyncio.TimeoutError()
            )

    def fail(self, error: BaseException) -> None:
        """Nobody need wait any longer."""
        if not self.over.done():
            self.over.set_exception(error)

    async def wait(self, opening: Coroutine[Any, Any, None]) -> None:
        """Waits for the connection."""
        task = asyncio.ensure_future(opening)
        try:
            await asyncio.wait({task, self.over}, return_when=asyncio.FIRST_COMPLETED)
            await (task if task.done() else self.over)
        finally:
            task.cancel()
            self.hold()
            if not self.over.cancel() and not self.over.cancelled():
                self.over.exception()  # it is known


def _open_browser(url: str) -> None:
    with contextlib.suppress(webbrowser.Error):
        if webbrowser.open(url):
            return
    print(f"no browser can be opened; to log in, visit\n{url}", file=sys.stderr)


async def browse(oauth: OAuth, url: str) -> None:
    """Shows the URL to the user."""
    if oauth.open_browser is None:
        await asyncio.to_thread(_open_browser, url)
        return
    shown = oauth.open_browser(url)
    if isinstance(shown, Awaitable):
        await shown
