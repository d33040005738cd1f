"""Authorization of a client over HTTP (2026-07-28 basic/authorization).

The library finds the authorization server, registers, asks for tokens, renews them and
sends them. This module has the parts that a desktop program needs: it opens a browser for
the user's consent, listens on a local socket for the browser's redirect, and stores
tokens in files.
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
_LONGEST_REQUEST = 16384  # maximum size of the browser's request, in bytes
_BROWSER_SECONDS = 10.0


class TokenStorage(Protocol):
    """Stores texts by key. The texts are secrets. Both functions run on the loop's thread
    and must not block for long."""

    def load(self, key: str) -> str | None:
        """Returns the value that `save` stored last under the key, or None when the key
        has no value.
        """

    def save(self, key: str, value: str) -> None:
        """Stores the value under the key and replaces an older value."""


class FileStorage:
    """Stores each key in a file of its own, which only the owner can read.

    The directory has the mode 0700 and its files 0600.

    Args:
        directory: The directory of the files. It is created at the first `save`.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory).expanduser()

    def _path(self, key: str) -> Path:
        return self._directory / (quote(key, safe="") + ".json")

    def load(self, key: str) -> str | None:
        """Returns the value that was saved under the key, or None when there is no such
        value.
        """
        try:
            return self._path(key).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def save(self, key: str, value: str) -> None:
        """Stores the value in a file, which is replaced in one step: a reader finds
        either the old or the new text.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=self._directory)  # mkstemp uses the mode 0600
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
    """Authorizes with OAuth 2.1. The client requests tokens when the server demands a
    token.

    Args:
        grant: "code": a user agrees in a browser, with PKCE. "client": the program
            authorizes itself (client credentials). "assertion": the JWT that `assertion`
            returns names the user (RFC 7523).
        client_id: The client id of a program registered beforehand. Without a client id
            the program registers itself.
        client_secret: The secret of `client_id`.
        private_key: PEM. With this key the client signs instead of sending a client
            secret.
        issuer: The authorization server that knows `client_id`. `client_id` is sent to no
            other server.
        client_metadata_url: An https URL of a document that describes the client.
        client_name: The client's name in a registration; default "segue".
        scope: The scope to request if the server names no scope.
        redirect_uri: The URI to which the browser is redirected. Default: a socket on
            this machine, which listens while a connection is open. With a URI of your
            own, pass the full redirect URL to `segue.authorize`.
        port: The port of the local socket; 0 = a free port. A fixed port avoids a new
            registration in each run.
        consent_timeout: How long the user may take to agree, in seconds; default 600.
        storage: Stores registrations and tokens beyond the connection, e.g. in a
            `FileStorage`.
        open_browser: Shows the URL to the user; a plain or async function. Default:
            `webbrowser.open`; without a browser the URL is printed to standard error. If
            the function raises, the connection that waits for the user fails.
        assertion: For grant "assertion": a function that gets issuer and resource and
            returns a JWT or None.
        auth_method: The authentication method at the token endpoint, e.g.
            "client_secret_post".
        register: False = the program does not register itself.
        allow_private_addresses: True = the server may name authorization endpoints at
            addresses that are not public, such as 10.0.0.1. By default only the server's
            own address and the host of `issuer` may be private.
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
            raise ValueError(
                f"unknown grant: {grant!r}; the grants are {', '.join(_GRANTS)}"
            )
        if (grant == "assertion") != (assertion is not None):
            raise ValueError(
                'grant "assertion" needs assertion=, and assertion= needs this grant'
            )
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
        """Returns the options for `segue_transport_set_oauth`."""
        return {**self._options, "redirect_uri": redirect_uri}

    def __repr__(self) -> str:
        """Returns a text that has no secrets."""
        return (
            f"OAuth(grant={self.grant!r}, client_id={self._options.get('client_id')!r})"
        )


class Redirects:
    """A local socket that receives the browser's redirect (RFC 8252, section 7.3).

    The socket is bound at once so that its URL is known. The socket accepts connections
    only after `serve`, when a browser can be redirected to it.

    Args:
        taken: A function that gets the path and query of the browser's request, and
            returns whether a connection waited for this redirect.
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
        """Begins to listen. A second call does nothing."""
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
                status, text = "404 Not Found", "No login is waiting for this page."
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
            pass  # the browser has closed this connection and may open another one
        finally:
            writer.close()

    def close(self) -> None:
        """Frees the port."""
        if self._server:
            self._server.close()
        self._socket.close()


class Limit:
    """The time limit of a connection attempt. The time during which a user decides does
    not count.

    Args:
        seconds: The limit; None = no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._left = seconds
        self._ends = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.over: asyncio.Future[None] = self._loop.create_future()
        self.go_on()

    def hold(self) -> None:
        """Stops the clock of the limit while a user decides."""
        if self._timer is not None and self._left is not None:
            self._left = self._ends - self._loop.time()
            self._timer.cancel()
            self._timer = None

    def go_on(self) -> None:
        """Starts the clock of the limit again, after the user has decided."""
        if self._left is None or self.over.done():
            return
        if self._timer is None:
            self._ends = self._loop.time() + self._left
            self._timer = self._loop.call_later(
                max(0.0, self._left), self.fail, asyncio.TimeoutError()
            )

    def fail(self, error: BaseException) -> None:
        """Makes `wait` raise `error`."""
        if not self.over.done():
            self.over.set_exception(error)

    async def wait(self, opening: Coroutine[Any, Any, None]) -> None:
        """Waits for the connection, at most until the limit."""
        task = asyncio.ensure_future(opening)
        try:
            await asyncio.wait({task, self.over}, return_when=asyncio.FIRST_COMPLETED)
            await (task if task.done() else self.over)
        finally:
            task.cancel()
            self.hold()
            if not self.over.cancel() and not self.over.cancelled():
                # marks the error as retrieved, so that asyncio does not report it
                self.over.exception()


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
