"""The hooks of the binding, its transports and stores, and its misuse. The core's tests
cover their meaning."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from binding_worlds import (
    Pair,
    Recorder,
    end,
    nothing_is_left,
    result_of,
    run,
    runtime,
    tool_json,
)
from segue import _segue, errors

__all__ = ["nothing_is_left"]


def test_validate_judges_arguments_and_results() -> None:
    asked: list[tuple[str, int, Any, Any]] = []

    def validate(tool: str, what: int, schema: bytes, value: bytes) -> Any:
        asked.append((tool, what, json.loads(schema), json.loads(value)))
        if tool == "raise":
            raise ZeroDivisionError("validate")
        return {"fits": None, "not": "x must be: é", "cannot": NotImplemented}[tool]

    async def main() -> None:
        async with runtime() as made:
            pair = Pair(
                made.handle,
                server={"validate": validate},
                tools={"fits": end, "not": end, "cannot": end},
            )
            done = Recorder()
            pair.start("fits", done, '{"a":1}')
            result_of(await done.get(_segue.COMPLETE))
            done = Recorder()
            pair.start("not", done)
            _, result, _ = await done.get(_segue.COMPLETE)
            assert "x must be: é" in result.decode()
            done = Recorder()
            pair.start("cannot", done)
            await done.get(_segue.COMPLETE)

    run(main())
    assert asked[0] == ("fits", 1, {"type": "object"}, {"a": 1})
    assert len(asked) >= 3


def test_an_exception_of_a_hook_is_told_and_refuses() -> None:
    lost: list[Any] = []

    def validate(tool: str, what: int, schema: bytes, value: bytes) -> None:
        raise ZeroDivisionError("validate")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, told: lost.append(told)
        )
        async with runtime() as made:
            pair = Pair(made.handle, server={"validate": validate}, tools={"x": end})
            done = Recorder()
            pair.start("x", done)
            await done.get(_segue.COMPLETE)

    asyncio.run(asyncio.wait_for(main(), 120))
    assert isinstance(lost[0]["exception"], ZeroDivisionError)
    assert "validate" in lost[0]["message"]


def test_hooks_of_http() -> None:
    """principal reads a header that on_headers set; the listener reports its URL."""
    peers: list[str] = []

    def principal(transport: _segue.Transport) -> str | None:
        peers.append(_segue.transport_peer(transport))
        kept.append(transport)
        name = _segue.transport_header(transport, "X-Name")
        if name == "nobody":
            raise PermissionError("nobody")
        return name

    def who(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        _segue.call_reply(call, _segue.call_principal(call))

    kept: list[_segue.Transport] = []
    statuses: list[int] = []
    lost: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, told: lost.append(told)
        )
        async with runtime() as made:
            idle = Recorder()
            server = _segue.server_new(made.handle, {"name": "s"}, idle, principal)
            _segue.server_add(server, 1, tool_json("who"), None, who)
            listener = _segue.server_listen(server, {"drain_ms": 1})
            url = _segue.listener_url(listener)
            assert url.startswith("http://127.0.0.1:")
            with pytest.raises(errors.StateError):
                _segue.listener_reload(listener)

            def on_headers(transport: _segue.Transport, status: int) -> None:
                statuses.append(status)
                _segue.transport_set_header(
                    transport, "X-Name", "ada" if status else name
                )

            for name in ("bob", "nobody"):
                way = _segue.transport_http(made.handle, url, None, on_headers)
                _segue.transport_set_header(way, "X-Other", "1")
                session = _segue.session_open(made.handle, way)
                done = Recorder()
                params = '{"name":"who","arguments":{}}'
                _segue.request_start(session, "tools/call", params, None, done)
                result = result_of(await done.get(_segue.COMPLETE))
                want = "ada" if name == "nobody" else "bob"
                assert result["content"][0]["text"] == want
                _segue.session_close(session)
            with pytest.raises(errors.ClosedError):
                _segue.transport_peer(kept[0])
            _segue.listener_close(listener)
            _segue.server_close(server)

    asyncio.run(asyncio.wait_for(main(), 120))
    assert peers[0].startswith("127.0.0.1:")
    assert 401 in statuses
    assert {type(one["exception"]) for one in lost} == {PermissionError}


def test_bearers_are_judged_later() -> None:
    def on_bearer(bearer: _segue.Bearer, transport: _segue.Transport) -> None:
        assert _segue.transport_peer(transport)
        asyncio.get_running_loop().call_soon(judge, bearer)

    def judge(bearer: _segue.Bearer) -> None:
        if _segue.bearer_token(bearer) == "good":
            _segue.bearer_accept(bearer, "ada", "read")
            with pytest.raises(errors.EndedError):
                _segue.bearer_refuse(bearer)
        else:
            _segue.bearer_refuse(bearer, "unknown")
        _segue.bearer_free(bearer)

    async def main() -> None:
        async with runtime() as made:
            server = _segue.server_new(made.handle)

            def who(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
                assert _segue.call_has_scope(call, "read") is True
                assert _segue.call_has_scope(call, "write") is False
                _segue.call_reply(call, _segue.call_principal(call))

            _segue.server_add(server, 1, tool_json("who"), {"scopes": "read"}, who)
            gate: _segue.BearerOptions = {"authorization_servers": "https://as.example"}
            listener = _segue.server_listen(server, {"drain_ms": 1}, gate, on_bearer)
            for token, status in (("good", 0), ("bad", -104)):
                way = _segue.transport_http(made.handle, _segue.listener_url(listener))
                _segue.transport_set_header(way, "Authorization", f"Bearer {token}")
                session = _segue.session_open(made.handle, way)
                done = Recorder()
                _segue.request_start(
                    session, "tools/call", '{"name":"who","arguments":{}}', None, done
                )
                assert (await done.get(_segue.COMPLETE))[0] == status

    run(main())


def test_children_and_what_they_say_on_standard_error() -> None:
    said = Recorder()

    async def main() -> None:
        async with runtime() as made:
            code = "import sys; print('caf\\u00e9', file=sys.stderr); sys.stdin.read()"
            way = _segue.transport_spawn(
                made.handle,
                {"argv": [sys.executable, "-c", code], "env": ["PYTHONUTF8=1"]},
                said,
            )
            events = Recorder()
            session = _segue.session_open(made.handle, way, None, events)
            assert (await said.get(_segue.STDERR))[0] == "café"
            _segue.session_close(session)
            assert (await events.get(_segue.CLOSED)) == (None, None, None)

    run(main())


def test_a_program_that_is_not_there() -> None:
    async def main() -> None:
        async with runtime() as made:
            way = _segue.transport_spawn(made.handle, {"argv": ["/nowhere/none"]})
            events = Recorder()
            _segue.session_open(made.handle, way, None, events)
            info, _, _ = await events.get(_segue.CLOSED)
            assert "/nowhere/none" in str(errors.from_info(info, info[0]))

    run(main())


def test_oauth_options_and_hooks() -> None:
    """The load hook is called before a request goes to a server that requires a token."""
    loaded: list[str] = []

    def on_load(key: str) -> None:
        loaded.append(key)

    async def main() -> None:
        async with runtime() as made:
            server = _segue.server_new(made.handle)
            gate: _segue.BearerOptions = {"authorization_servers": "https://127.0.0.1:1"}
            listener = _segue.server_listen(
                server, {"drain_ms": 1}, gate, lambda bearer, way: None
            )
            way = _segue.transport_http(made.handle, _segue.listener_url(listener))
            options: _segue.OauthOptions = {
                "grant": 0,
                "client_id": "me",
                "redirect_uri": "http://127.0.0.1:1/",
            }
            authorize = Recorder()
            _segue.transport_set_oauth(way, options, authorize, on_load=on_load)
            with pytest.raises(errors.ExistsError):
                _segue.transport_set_oauth(way, options, authorize)
            session = _segue.session_open(made.handle, way, {"first_attempts": 1})
            done = Recorder()
            _segue.request_start(session, "tools/list", None, None, done)
            # The authorization server does not answer, which is a temporary failure.
            assert (await done.get(_segue.COMPLETE))[0] == -100
            with pytest.raises(errors.NotFoundError):
                _segue.runtime_authorize(
                    made.handle, "http://127.0.0.1:1/?state=x&code=y"
                )

    run(main())
    assert loaded


def test_misuse_is_an_exception() -> None:
    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle, tools={"x": end})
            wrong: Any
            for wrong in (None, 1, "x", object(), pair.session):
                with pytest.raises(TypeError):
                    _segue.server_close(wrong)
            near, far = _segue.transport_pair(made.handle)
            _segue.server_attach(pair.server, near)
            with pytest.raises(errors.ClosedError):  # the transport was consumed
                _segue.server_attach(pair.server, near)
            _segue.transport_free(far)
            with pytest.raises(errors.ClosedError):
                _segue.transport_free(far)
            with pytest.raises(
                TypeError, match="segue_server_options has no option 'nme'"
            ):
                wrong = {"nme": "x"}
                _segue.server_new(made.handle, wrong)
            with pytest.raises(TypeError, match="page_size"):
                wrong = {"page_size": "x"}
                _segue.server_new(made.handle, wrong)
            with pytest.raises(OverflowError, match="page_size"):
                _segue.server_new(made.handle, {"page_size": 1 << 40})
            with pytest.raises(ValueError, match="NUL"):
                _segue.server_new(made.handle, {"name": "a\0b"})
            with pytest.raises(UnicodeEncodeError):
                _segue.server_new(made.handle, {"name": "\ud800"})
            with pytest.raises(TypeError):
                _segue.Server()
            with pytest.raises(errors.InvalidError):
                _segue.request_start(pair.session, "x", "[1]", None, None)
            with pytest.raises(errors.JsonError):
                _segue.request_start(pair.session, "x", '{"', None, None)
            with pytest.raises(errors.ReentrantError):
                raise errors.make(-3)
            with pytest.raises(errors.InvalidError) as caught:
                _segue.transport_http(made.handle, "ftp://x")
            assert caught.value.message
        with pytest.raises(errors.ClosedError):
            _segue.transport_pair(made.handle)
        with pytest.raises(errors.ClosedError):
            _segue.session_close(pair.session)
        _segue.session_free(pair.session)
        assert "freed" in repr(pair.session)

    run(main())


def test_dispatch_in_a_hook_is_refused() -> None:
    refused: list[Exception] = []

    def validate(tool: str, what: int, schema: bytes, value: bytes) -> None:
        for function in (_segue.runtime_dispatch, _segue.runtime_free):
            try:
                function(handle[0])
            except errors.ReentrantError as error:
                refused.append(error)

    handle: list[_segue.Runtime] = []

    async def main() -> None:
        async with runtime() as made:
            handle.append(made.handle)
            pair = Pair(made.handle, server={"validate": validate}, tools={"x": end})
            done = Recorder()
            pair.start("x", done)
            await done.get(_segue.COMPLETE)

    run(main())
    assert len(refused) == 2


def test_a_server_tells_how_it_is() -> None:
    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle, tools={})
            stats = json.loads(_segue.server_stats(pair.server))
            assert stats["operations"]["running"] == 0

    run(main())


def test_a_redis_that_is_not_there_is_a_store_that_failed() -> None:
    with pytest.raises(errors.StoreError):
        _segue.store_redis("redis://127.0.0.1:1", {"timeout_ms": 100})
