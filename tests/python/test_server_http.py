"""A Python server over HTTP: where it listens, who has access, and several listeners at
once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import segue
from client_worlds import longer_and_longer
from ports import free_port
from segue.server.serving import address_of
from server_worlds import nothing_left, run  # noqa: F401

# ruff: noqa: F811


def simple(**options: Any) -> segue.Server:
    server = segue.Server("web", **options)

    @server.tool
    async def who(ctx: segue.Context) -> str:
        return ctx.principal

    @server.tool(scopes=["notes:write"])
    async def write(ctx: segue.Context) -> str:
        return f"{ctx.has_scope('notes:write')} {ctx.has_scope('admin')}"

    @server.tool(task="may")
    async def job() -> str:
        return "done"

    return server


def test_addresses() -> None:
    for http, options in {
        8000: {"port": 8000},
        "8000": {"port": 8000},
        ":8000": {"port": 8000},
        "0.0.0.0:8000": {"address": "0.0.0.0", "port": 8000},
        "localhost:8000": {"address": "127.0.0.1", "port": 8000},
        "127.0.0.1:0": {"address": "127.0.0.1", "port": 0},
        "[::1]:8000": {"address": "::1", "port": 8000},
        "unix:/run/x.sock": {"address": "unix:/run/x.sock"},
        "systemd:mcp": {"address": "systemd:mcp"},
        "http://127.0.0.1:8000/api": {
            "address": "127.0.0.1",
            "port": 8000,
            "path": "/api",
        },
    }.items():
        assert address_of(http) == options, http
    for bad in ("127.0.0.1:http", "a:b:c", "127.0.0.1", "[::1]", "http://127.0.0.1/mcp"):
        with pytest.raises(ValueError, match="it has to be host:port"):
            address_of(bad)


def test_what_is_no_option_is_refused() -> None:
    for options, why in (
        ({"portt": 3}, "no option 'portt'"),
        ({"auth": "secret"}, "auth has to be a segue.BearerAuth"),
        ({"store": ""}, "store has to be a file"),
        ({"store": 3}, "expected str"),
    ):
        given: Any = options
        with pytest.raises((TypeError, ValueError), match=why):
            simple().serving("127.0.0.1:0", **given)


def test_a_verdict_that_is_none_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """A function that returns True or False is a common mistake."""
    verify: Any = lambda token: token == "secret"  # noqa: E731
    auth = segue.BearerAuth("https://as.example.com", verify=verify)

    async def work() -> None:
        async with simple().serving("127.0.0.1:0", auth=auth) as serving:
            # the limit is also how long the client tries
            for limit in longer_and_longer(0.3):
                with pytest.raises(segue.RequestTimeoutError) as caught:
                    await segue.connect(serving.url, auth="secret", connect_timeout=limit)
                if "503" in str(caught.value):
                    break
            caught.match("could not be reached .*503: .* cannot check")

    run(work)
    assert "the name of the principal" in caplog.text


def status_of_unnamed(url: str) -> tuple[int, str]:
    """Asks for the state of a task without the header Mcp-Name."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {
            "extensions": {"io.modelcontextprotocol/tasks": {}}
        },
    }
    params = {"taskId": "none", "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": params}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tasks/get",
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, None, 120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_a_request_about_a_task_may_lack_its_name(nothing_left: None) -> None:
    """Only with lenient_headers. The refusal names the header and the option."""

    async def work() -> None:
        server = simple()
        lenient: Any = {"lenient_headers": True}
        async with (
            server.serving("127.0.0.1:0") as strict,
            server.serving("127.0.0.1:0", options=lenient) as other,
        ):
            status, text = await asyncio.to_thread(status_of_unnamed, strict.url)
            assert status == 400 and "Mcp-Name is missing" in text, text
            assert "lenient_headers" in text and "FastMCP" in text
            status, text = await asyncio.to_thread(status_of_unnamed, other.url)
            assert status == 200 and json.loads(text)["error"]["code"] == -32602, text

    run(work)


def test_several_at_once(nothing_left: None, tmp_path: Path) -> None:
    """Listeners of one server share its tasks; the end of one does not affect the
    others."""
    server = simple()
    socket = tmp_path / "s"

    async def work() -> None:
        first = server.serving(http="127.0.0.1:0", path="/api", health_path="/health")
        second = server.serving(http=f"unix:{socket}")
        async with first:
            assert first.url.endswith("/api")
            async with second:
                assert second.url == f"unix:{socket}:/mcp"
                options: Any = {"unix_socket": str(socket)}
                async with segue.connect("http://localhost/mcp", **options) as session:
                    task = await session.start("job")
                    assert task.id and (await task.result()).text == "done"
                async with segue.connect(first.url) as session:
                    assert (await session.task(task.id).result()).text == "done"
            async with segue.connect(first.url) as session:
                assert (await session.call("who")).text == ""
            health = first.url.replace("/api", "/health")
            answer = await asyncio.to_thread(urllib.request.urlopen, health, None, 120)
            assert answer.status == 200
            answer.close()

    run(work)


def test_an_address_that_cannot_be_had(nothing_left: None) -> None:
    server = simple()

    async def work() -> None:
        port = free_port()
        async with server.serving(http=port):
            with pytest.raises(segue.InputOutputError):
                async with server.serving(http=port):
                    raise AssertionError
        with pytest.raises(segue.StoreError):
            await server.serve(http=port, store="/nowhere/tasks.db")
        async with server.serving(http=port) as serving:  # the port is free again
            with pytest.raises(RuntimeError, match="was started before"):
                await serving.start()

    run(work)


def test_serve_ends_when_it_is_cancelled(nothing_left: None) -> None:
    server = simple()

    async def work() -> None:
        port = free_port()
        serving = asyncio.ensure_future(server.serve(http=port))
        async with segue.connect(
            f"http://127.0.0.1:{port}/mcp", connect_attempts=20
        ) as session:
            assert (await session.call("who")).text == ""
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection("127.0.0.1", port)

    run(work)


def test_who_a_caller_is(nothing_left: None) -> None:
    def principal(peer: segue.server.Peer) -> str | None:
        assert peer.address.startswith("127.0.0.1:")
        if peer.header("X-Broken"):
            raise ValueError("broken")
        return peer.header("X-User")

    server = simple(principal=principal)
    failures: list[Any] = []

    async def work() -> None:
        async with server.serving(http="127.0.0.1:0") as serving:
            async with segue.connect(serving.url, headers={"X-User": "ada"}) as session:
                assert (await session.call("who")).text == "ada"
                task = await session.start("job")
                await task.result()
            async with segue.connect(serving.url, headers={"X-User": "eve"}) as session:
                with pytest.raises(segue.Error):
                    await session.task(task.id or "").result()
            asyncio.get_running_loop().set_exception_handler(
                lambda loop, context: failures.append(context["exception"])
            )
            with pytest.raises(segue.UnauthorizedError):
                async with segue.connect(serving.url, headers={"X-Broken": "1"}):
                    raise AssertionError

    run(work)
    assert failures and all(str(one) == "broken" for one in failures)


def test_tokens(nothing_left: None, caplog: pytest.LogCaptureFixture) -> None:
    """A function decides about tokens, now or later; scopes are checked."""
    server = simple()
    asked: list[str] = []

    async def verify(token: str) -> segue.AccessToken | str | None:
        asked.append(token)
        await asyncio.sleep(0)
        if token == "ada":
            return segue.AccessToken("ada", ["notes:write"], time.time() + 3600)
        if token == "broken":
            raise ValueError("broken")
        return "reader" if token == "reader" else None

    auth = segue.BearerAuth(
        "https://as.example.org",
        verify,
        scopes_supported=["notes:read"],
        implied_scopes={"notes:write": ["notes:read"]},
    )

    async def work() -> None:
        async with server.serving(http="127.0.0.1:0", auth=auth) as serving:
            async with segue.connect(serving.url, auth="ada") as session:
                assert (await session.call("who")).text == "ada"
                assert (await session.call("write")).text == "True False"
            async with segue.connect(serving.url, auth="reader") as session:
                assert (await session.call("who")).text == "reader"
                with pytest.raises(segue.RemoteError, match="lacks a required scope"):
                    await session.call("write")
            for bad in ("eve", "broken"):
                # long enough to be checked at least once
                for limit in longer_and_longer(0.1):
                    with pytest.raises(segue.Error):
                        await segue.connect(serving.url, auth=bad, connect_timeout=limit)
                    if bad in asked:
                        break
            base = serving.url.removesuffix("/mcp")
            url = f"{base}/.well-known/oauth-protected-resource/mcp"
            answer = await asyncio.to_thread(urllib.request.urlopen, url, None, 120)
            assert b"https://as.example.org" in answer.read()
            answer.close()

    run(work)
    assert "the function that verifies tokens failed" in caplog.messages
    caplog.clear()  # tracebacks keep the failed objects alive
    assert {"ada", "reader", "eve", "broken"} <= set(asked)
    with pytest.raises(ValueError, match="verify="):
        segue.BearerAuth("https://as.example.org")


def test_tokens_in_a_file(nothing_left: None, tmp_path: Path) -> None:
    path = tmp_path / "tokens"

    def write(principal: str) -> None:
        path.write_text(f"{principal} {hashlib.sha256(b'secret').hexdigest()}\n")

    async def work() -> None:
        write("ada")
        server = simple()
        async with server.serving(http="127.0.0.1:0", tokens_file=str(path)) as serving:
            async with segue.connect(serving.url, auth="secret") as session:
                assert (await session.call("who")).text == "ada"
            with pytest.raises(segue.UnauthorizedError):
                async with segue.connect(serving.url, auth="other"):
                    raise AssertionError
            write("bob")
            serving.reload()
            async with segue.connect(serving.url, auth="secret") as session:
                assert (await session.call("who")).text == "bob"

    run(work)


def test_an_era_that_was_chosen_is_that_of_its_session(nothing_left: None) -> None:
    async def work() -> None:
        async with simple().serving(http="127.0.0.1:0") as serving:
            for era, found in (("legacy", "legacy"), ("auto", "modern")):
                async with segue.connect(serving.url, era=era) as session:
                    assert session.peer.era == found

    run(work)


def test_tls(nothing_left: None, tmp_path: Path) -> None:
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]
    curve = ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", key, "-out", cert]
    subprocess.run([*made, *curve, *name], check=True, capture_output=True)
    server = simple()

    async def work() -> None:
        serving = server.serving(http="127.0.0.1:0", cert_file=cert, key_file=key)
        async with serving:
            assert serving.url.startswith("https://")
            serving.reload()
            url = serving.url.replace("127.0.0.1", "localhost")
            async with segue.connect(url, verify=cert) as session:
                assert (await session.call("who")).text == ""
        with pytest.raises(segue.InputOutputError):
            await server.serve(http="127.0.0.1:0", cert_file=str(tmp_path / "none"))

    run(work)


def test_options_of_http_need_http() -> None:
    server = segue.Server("stdio")
    options: list[Any] = [
        {"auth": segue.BearerAuth("https://issuer.example", verify=lambda token: None)},
        {"tokens_file": "tokens.txt"},
        {"cert_file": "cert.pem", "key_file": "key.pem"},
        {"client_ca_file": "ca.pem"},
        {"hosts": ["example.com"]},
        {"origins": "*"},
        {"cors": True},
        {"path": "/other"},
        {"options": {"max_sessions": 1}},
    ]
    for given in options:
        with pytest.raises(ValueError, match=f"^{next(iter(given))}= is an option of"):
            server.serving(**given)
        server.serving("127.0.0.1:0", **given)
    server.serving(store="tasks.db", drain=1.0)
