"""A server of the Python SDK over HTTP. Prints its port."""

import asyncio
from urllib.parse import urlsplit

import segue

server = segue.Server("bench")


@server.tool
async def echo(text: str) -> str:
    return text


async def main() -> None:
    async with server.serving(http="127.0.0.1:0") as serving:
        print(urlsplit(serving.url).port, flush=True)
        await asyncio.Event().wait()


asyncio.run(main())
