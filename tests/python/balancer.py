"""A load balancer: one address in front of several servers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit


class Balancer:
    """Connects each client to one of several servers, in turn; open connections can be
    cut."""

    def __init__(self, *urls: str) -> None:
        self.ports = [urlsplit(url).port for url in urls]
        self.count = 0
        self.open: set[asyncio.StreamWriter] = set()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        port = self.ports[self.count % len(self.ports)]
        self.count += 1
        self.open.add(writer)
        with contextlib.suppress(OSError):
            away_reader, away_writer = await asyncio.open_connection("127.0.0.1", port)
            self.open.add(away_writer)
            await asyncio.gather(
                self._pump(reader, away_writer), self._pump(away_reader, writer)
            )
        writer.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    def cut(self) -> None:
        for writer in self.open:
            writer.transport.abort()
        self.open.clear()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = listener.sockets[0].getsockname()
        try:
            yield f"http://{host}:{port}/mcp"
        finally:
            self.cut()
            listener.close()
