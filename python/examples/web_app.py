"""A web application with a mounted server: the page at / and the MCP server at /mcp/ are
one application on one port, and share their data. It needs starlette and uvicorn.

    python web_app.py                 starts it, adds two notes, reads the page
    uvicorn --app-dir . web_app:app   serves it
"""

import asyncio
import contextlib
import html
import socket
import urllib.request
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route

import segue

notes: list[str] = []
server = segue.Server("notes")


@server.tool
def add_note(text: str) -> int:
    """Adds a note to the page."""
    notes.append(text)
    return len(notes)


async def page(request: Request) -> HTMLResponse:
    items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    return HTMLResponse(f"<h1>{len(notes)} notes</h1><ul>{items}</ul>\n")


mcp = server.asgi()
app = Starlette(routes=[Route("/", page), Mount("/mcp", app=mcp)], lifespan=mcp.lifespan)


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """Serves the application on a free port, and gives its URL."""
    host = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        task = asyncio.create_task(host.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            host.should_exit = True
            await task


async def main() -> None:
    async with serving() as url:
        async with segue.connect(f"{url}/mcp/") as session:
            for text in ("buy bread", "look at <the tides>"):
                print("note", (await session.call("add_note", text=text)).text)
        answer = await asyncio.to_thread(urllib.request.urlopen, url)
        print(answer.read().decode(), end="")


if __name__ == "__main__":
    asyncio.run(main())
