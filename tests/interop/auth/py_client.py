"""The Python SDK's client gets a token for Segue's server.  py_client.py URL"""
import sys
import urllib.parse
import warnings
from pathlib import Path

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cells import Cells, equal, run_cells  # noqa: E402

warnings.simplefilter("ignore")
URL = sys.argv[1]
# nothing listens there: the browser is one request
REDIRECT = "http://127.0.0.1:9/callback"
cells = Cells()


class Kept:
    """Data that is kept between two runs of a client."""

    def __init__(self):
        self.tokens = self.client = self.place = None
        self.visits = 0

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client

    async def browse(self, url):
        self.visits += 1
        async with httpx2.AsyncClient() as browser:
            self.place = (await browser.get(url)).headers["location"]

    async def come_back(self):
        given = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.place).query))
        return AuthorizationCodeResult(**given)


async def greet(kept, mode):
    about = OAuthClientMetadata(client_name="py-judge", redirect_uris=[REDIRECT])
    oauth = OAuthClientProvider(URL, about, kept, kept.browse, kept.come_back)
    async with httpx2.AsyncClient(auth=oauth, timeout=20) as http:
        transport = streamable_http_client(URL, http_client=http)
        async with Client(transport, mode=mode, cache=None) as client:
            result = await client.call_tool("greet", {"name": "Ada"})
            equal(result.content[0].text, "Hello, Ada!")


for era, mode in (("modern", "2026-07-28"), ("legacy", "legacy")):
    @cells.add(f"{era}: registration, code, token, call")
    async def _(mode=mode):
        kept = Kept()
        await greet(kept, mode)
        equal(kept.visits, 1, "visits of the browser")
        await greet(kept, mode)
        equal(kept.visits, 1, "visits with a token that was kept")


@cells.add("a token that is damaged is replaced")
async def _():
    kept = Kept()
    await greet(kept, "2026-07-28")
    kept.tokens.access_token = kept.tokens.access_token[:-4] + "AAAA"
    kept.tokens.refresh_token = None
    await greet(kept, "2026-07-28")
    equal(kept.visits, 2, "visits of the browser")


anyio.run(run_cells, cells)
