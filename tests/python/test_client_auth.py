"""Identity of the client over HTTP: headers, tokens, OAuth with a browser, saved
tokens."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
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
            with pytest.raises(
                segue.UnauthorizedError, match=r"It has expired; .* as auth="
            ):
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
                pass  # with the saved token
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
    """A redirect without the right state is ignored."""

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
    with pytest.raises(ValueError, match=r"unknown grant: .*; the grants are"):
        segue.OAuth(grant="password")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs assertion="):
        segue.OAuth(grant="assertion")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"auth_method": "magic"}, "auth_method"),
        ({"issuer": "nowhere"}, "issuer"),
        ({"redirect_uri": "http://mcp.example/"}, "redirect_uri"),
        ({"grant": "client", "client_id": "me"}, "client_secret or private_key"),
    ],
)
def test_what_is_refused_is_named(
    nothing_left: None, options: dict[str, Any], named: str
) -> None:
    async def work() -> None:
        with pytest.raises(segue.InvalidError, match=named):
            await segue.connect("http://127.0.0.1:9/", auth=segue.OAuth(**options))

    run(work)


def shift_time(seconds: float) -> None:
    """Moves the loop's clock."""
    loop = asyncio.get_running_loop()
    time = loop.time
    loop.time = lambda: time() + seconds  # type: ignore[method-assign]


@pytest.mark.parametrize("is_own", [False, True])
def test_a_user_who_takes_his_time(is_own: bool, nothing_left: None) -> None:
    """Only the user's own time limit counts during the decision; the limit of the
    connection counts later."""

    async def work() -> None:
        async def decide(url: str) -> None:
            shift_time(31)
            for _ in range(10):
                await asyncio.sleep(0)
            if is_own:
                segue.authorize(await asyncio.to_thread(authority.agree, url))
            else:
                await browser([])(url)

        async with Authority() as authority:
            oauth = segue.OAuth(
                open_browser=decide,
                redirect_uri="http://127.0.0.1:9/callback" if is_own else None,
            )
            async with segue.connect(authority.url, auth=oauth) as session:
                assert session.peer.server.name == "guarded"

    run(work)


def test_the_limit_counts_again_when_he_has_decided(nothing_left: None) -> None:
    async def work() -> None:
        async with Authority() as authority:
            authority.is_silent = True

            async def decide(url: str) -> None:
                await browser([])(url)
                shift_time(31)

            oauth = segue.OAuth(open_browser=decide)
            with pytest.raises(segue.RequestTimeoutError, match="within 30 s"):
                await segue.connect(authority.url, auth=oauth)

    run(work)


def test_a_browser_that_fails_is_told_at_once(nothing_left: None) -> None:
    async def work() -> None:
        def fail(url: str) -> None:
            raise OSError("no display")

        async with Authority() as authority:
            oauth = segue.OAuth(open_browser=fail)
            with pytest.raises(segue.UnauthorizedError, match="no display") as caught:
                await segue.connect(authority.url, auth=oauth)
            assert f"visit {authority.issuer}/authorize?" in str(caught.value)
            assert isinstance(caught.value.__cause__, OSError)

    run(work)


def test_a_browser_that_fails_later_ends_the_call(nothing_left: None) -> None:
    async def work() -> None:
        shown: list[str] = []

        async def once(url: str) -> None:
            if shown:
                raise OSError("no display")
            await browser(shown)(url)

        async with Authority() as authority:
            oauth = segue.OAuth(open_browser=once)
            told: list[Any] = []
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, what: told.append(what["exception"]))
            async with segue.connect(authority.url, auth=oauth) as session:
                authority.tokens.clear()
                with pytest.raises(segue.UnauthorizedError):
                    await session.call("t")
            assert [str(error) for error in told] == ["no display"]

    run(work)


def test_without_a_browser_the_url_is_printed(
    nothing_left: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("webbrowser.open", lambda url: False)

    async def work() -> None:
        async with Authority() as authority:
            connecting = asyncio.ensure_future(open_guarded(authority.url, segue.OAuth()))
            printed = ""
            while "state=" not in printed:
                await asyncio.sleep(0.01)
                assert not connecting.done()
                printed += capsys.readouterr().err
            assert "no browser can be opened" in printed
            await browser([])(printed.split()[-1])
            await (await connecting).close()

    run(work)


def test_an_outage_of_the_authorization_server(nothing_left: None) -> None:
    """A temporary outage is waited for. A lasting one ends the reader of a task, but
    not the task."""

    async def work() -> None:
        oauth = segue.OAuth(grant="client", client_id="me", client_secret="secret-of-me")
        async with Authority() as authority:
            async with segue.connect(
                authority.url, auth=oauth, max_reconnects=2
            ) as session:
                authority.tokens.clear()
                authority.busy = 2
                task = session.stream("t")
                await task.started()
                assert authority.busy == 0
                authority.tokens.clear()
                authority.busy = 1000
                with pytest.raises(segue.DisconnectedError) as caught:
                    await task.collect()
                assert caught.value.retryable
                assert task.token is not None
                authority.busy, authority.is_done = 0, True
                assert (await session.resume(task.token).result()).content == []

    run(work)


def test_a_login_of_the_command(nothing_left: None, tmp_path: Path) -> None:
    pytest.importorskip("typer")
    environment = {
        **os.environ,
        "BROWSER": "true",  # a browser that opens nothing
        "SEGUE_LOGINS": str(tmp_path / "logins"),
        "NO_PROXY": "127.0.0.1",
    }
    environment.pop("SEGUE_BEARER", None)

    async def work() -> None:
        async def run_command(*words: str) -> tuple[int | None, str, str]:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "segue.cli", "tools", authority.url, *words),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
            )
            assert process.stdout and process.stderr
            told = ""
            while line := (await process.stderr.readline()).decode():
                told += line
                if line.startswith(authority.issuer):
                    await browser([])(line.strip())
            out = (await process.stdout.read()).decode()
            return await process.wait(), out, told

        async with Authority() as authority:
            code, _, told = await run_command()
            assert code != 0 and "--login" in told and "It has expired" in told
            code, out, told = await run_command("--login")
            assert (code, "to log in, visit" in told) == (0, True), told
            assert out.startswith("t\t") or out.strip() == "t"
            # the saved token is accepted
            assert (await run_command("--login"))[2] == ""
            code, _, told = await run_command("--login", "--bearer", "x")
            assert (code, "cannot both be given" in told) == (2, True)
            kept = list((tmp_path / "logins").iterdir())
            assert kept and all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in kept)

    run(work)
