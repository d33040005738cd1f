"""segue-proxy in front of ``segue dev --stdio``: it speaks to the client over standard
input and output, while the server behind it is replaced."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import signal
from pathlib import Path

import msgspec

from segue.cli.proxy import program

__all__ = ["Front"]


class Front:
    """The proxy. Only it can call the server, because nobody else knows the token.

    Attributes:
        tokens_file: the file of tokens for the server.
    """

    def __init__(self, directory: Path) -> None:
        self._config = directory / "upstream.json"
        self._token = secrets.token_hex(32)
        digest = hashlib.sha256(self._token.encode()).hexdigest()
        file = directory / "tokens.txt"
        file.write_text(f"dev {digest}\n")
        self.tokens_file = str(file)
        self._rounds = 0
        self._process: asyncio.subprocess.Process | None = None
        self._begun = asyncio.Event()

    async def renew(self, url: str) -> None:
        """Lets the proxy read the lists of a new server. The client then hears that they
        have changed. The first time it starts the proxy."""
        self._rounds += 1
        headers = {
            "Authorization": f"Bearer {self._token}",
            # With another header the proxy takes the upstream for another one.
            "Dev-Segue-Round": str(self._rounds),
        }
        told = {"mcpServers": {"dev": {"url": url, "headers": headers}}}
        new = self._config.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(told))
        os.replace(new, self._config)
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *(str(program()), "--log-level", "error"),
                *("--config", str(self._config)),
            )
            self._begun.set()
        elif self._process.returncode is None:
            self._process.send_signal(signal.SIGHUP)

    async def wait(self) -> None:
        """Waits until the client has left and the proxy has ended."""
        await self._begun.wait()
        assert self._process is not None
        await self._process.wait()

    async def end(self) -> None:
        """Ends the proxy."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            await self._process.wait()
