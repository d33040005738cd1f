"""Who the client is, over HTTP: headers, tokens, OAuth with a browser, what is kept."""

from __future__ import annotations

import asyncio
import os
import stat
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import segue
from client_worlds import run
from fake_authority import Authority


def test_a_bearer_token(nothing_left: None) -> None:
    async def work() -> None:
        async with Authority() as authority:
            authority.tokens.add("secret")
            async with segue.connect(authority.url, auth="secret") as session:
                assert session.peer.server.name == "guarded"
            with pytest.raises(segue.UnauthorizedError):
                await segue.connect(authority.url, auth="wrong")
            with pytest.raises(segue.UnauthorizedError):
                await segue.connect(authority.url)
            headers = {"Authorization": "Bearer secret", "X-More": "7"}
            async with segue.connect(authority.url, headers=headers):
                assert authority.headers["x-more"] == "7"

    run(work)


def test_a_token_that_is_asked_for(nothing_left: None) -> None:
    async def work() -> None:
        asked: list[int] = []

        def token(status: int) -> str | None:
            asked.append(status)
            return "old" if status == 0 else "new"

        async with Authority() as authority:
            authority.tokens.add("new")
            async with segue.connect(authority.url, auth=token) as session:
                assert session.peer.server.name == "guarded"
            assert asked[:2] == [0, 401]

    run(work)


def browser(log: list[str]) -> Any:
    """Follows the redirect of a user who agrees."""

    async def follow(url: str) -> None:
        log.append(url)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with await asyncio.to_thread(opener.open, url) as page:
            assert b"You can close this window" in page.read()

    return follow


def test_a_user_agrees_in_a_browser(nothing_left: None, tmp_path: Path) -> None:
    async def work() -> None:
        shown: list[str] = []
        storage = segue.FileStorage(tmp_path / "kept")
        oauth = segue.OAuth(
            open_browser=browser(shown), storage=storage, client_name="test"
        )
        async with Authority() as authority:
            async with segue.connect(authority.url, auth=oauth) as session:
                assert session.peer.server.name == "guarded"
            assert len(shown) == 1 and "code_challenge" in shown[0]
            async with segue.connect(authority.url, auth=oauth):
                pass  # with the token that was kept
            assert len(shown) == 1
        kept = list((tmp_path / "kept").iterdir())
        assert kept and all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in kept)
        assert stat.S_IMODE(os.stat(tmp_path / "kept").st_mode) == 0o700
        assert "secret" not in repr(oauth)

    run(work)


def test_a_redirect_of_ones_own(nothing_left: None) -> None:
    async def work() -> None:
        came: asyncio.Queue[str] = asyncio.Queue()
        oauth = segue.OAuth(
            redirect_uri="http://127.0.0.1:9/callback", open_browser=came.put
        )
        async with Authority() as authority:
            connecting = asyncio.ensure_future(open_guarded(authority.url, oauth))
            location = await asyncio.to_thread(authority.agree, await came.get())
            segue.authorize(location)
            session = await connecting
            with pytest.raises(segue.NotFoundError):
                segue.authorize(location)
            await session.close()

    run(work)


async def open_guarded(url: str, oauth: segue.OAuth) -> segue.Session:
    return await segue.connect(url, auth=oauth)


def test_strangers_at_the_redirect(nothing_left: None) -> None:
    """What comes without the right state is not for us."""

    async def work() -> None:
        async def stranger(url: str) -> None:
            redirect = urllib.parse.parse_qs(url.partition("?")[2])["redirect_uri"][0]
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            for path in ("?code=x&state=wrong", "?state=", "", "/other?code=x"):
                with pytest.raises(urllib.error.HTTPError) as caught:
                    await asyncio.to_thread(opener.open, redirect + path)
                assert caught.value.code == 404
                caught.value.close()
            await browser([])(url)

        async with Authority() as authority:
            oauth = segue.OAuth(open_browser=stranger)
            async with segue.connect(authority.url, auth=oauth) as session:
                assert session.peer.server.name == "guarded"

    run(work)


def test_a_client_of_its_own(nothing_left: None) -> None:
    async def work() -> None:
        oauth = segue.OAuth(grant="client", client_id="me", client_secret="secret-of-me")
        async with Authority() as authority:
            async with segue.connect(authority.url, auth=oauth) as session:
                assert session.peer.server.name == "guarded"
            assert "secret-of-me" not in repr(oauth)

    run(work)


def test_options_that_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="no such grant"):
        segue.OAuth(grant="password")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="go together"):
        segue.OAuth(grant="assertion")
