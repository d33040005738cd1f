"""The events and calls of the binding: each kind of event and function once, between a
server and a session in one runtime. The core's tests cover their meaning."""

from __future__ import annotations

import json
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
    until,
)
from segue import _segue, errors

__all__ = ["nothing_is_left"]


def test_a_call_and_its_result() -> None:
    seen: list[Any] = []

    def add(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        seen.append((kind, json.loads(params)["arguments"], name))
        assert _segue.call_method(call) == "tools/call"
        assert _segue.call_name(call) == "add"
        assert _segue.call_principal(call) == ""
        assert _segue.call_params(call) == params
        assert _segue.call_argument(call, "a") == b"2"
        assert _segue.call_argument(call, "none") is None
        assert _segue.call_argument_int(call, "a") == 2
        assert _segue.call_argument_int(call, "none") is None
        assert _segue.call_argument_text(call, "t") == "h\x00\u00e9"
        assert _segue.call_argument_text(call, "none") is None
        assert _segue.call_meta(call, "none") is None
        assert _segue.call_has_scope(call, "any") is True
        assert _segue.call_is_cancelled(call) is False
        assert _segue.call_resumed(call) is None
        with pytest.raises(errors.InvalidError):
            _segue.call_argument_int(call, "t")
        with pytest.raises(
            errors.InvalidError, match="max_tasks is -1: it has to be at least 0"
        ):
            _segue.server_new(handle[0], {"max_tasks": -1})
        with pytest.raises(errors.InvalidError, match="argv names no program"):
            _segue.transport_spawn(handle[0], {"argv": [""]})
        content = _segue.content_new(handle[0])
        _segue.content_add_text(content, "five")
        _segue.content_add_blob(content, "image", "image/png", b"\x00\xff")
        _segue.content_add_json(content, b'{"type":"x-own"}')
        with pytest.raises(errors.InvalidError, match='needs a member "text", a string'):
            _segue.content_add_json(content, b'{"type":"text","text":5}')
        with pytest.raises(errors.InvalidError, match="sets this member of the result"):
            _segue.call_set_field(call, "isError", b"1")
        with pytest.raises(errors.InvalidError, match="code -32050 is reserved"):
            _segue.call_fail(call, -32050, "x")
        _segue.content_set_structured(content, '{"sum":5}')
        _segue.content_set_error(content, True)
        _segue.call_complete(call, content)
        with pytest.raises(errors.EndedError):
            _segue.call_complete(call)
        _segue.content_free(content)
        _segue.call_free(call)

    handle: list[_segue.Runtime] = []

    async def main() -> None:
        async with runtime() as made:
            handle.append(made.handle)
            pair = Pair(made.handle, tools={"add": add})
            done = Recorder()
            pair.start("add", done, '{"a":2,"t":"h\\u0000\\u00e9"}')
            result = result_of(await done.get(_segue.COMPLETE))
            assert result["content"] == [
                {"type": "text", "text": "five"},
                {"type": "image", "mimeType": "image/png", "data": "AP8="},
                {"type": "x-own"},
            ]
            assert result["structuredContent"] == {"sum": 5}
            assert result["isError"] is True
            assert pair.events.kinds == [_segue.OPEN]
            peer = json.loads(_segue.session_peer(pair.session))
            assert peer["protocolVersion"] == "2026-07-28"

    run(main())
    assert seen == [(_segue.CALL, {"a": 2, "t": "h\x00\u00e9"}, "add")]


def test_segments_have_their_parts() -> None:
    def stream(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        for number in range(3):
            assert _segue.call_send_text(call, f"{number}\u20ac") is True
        assert _segue.call_send_json(call, b'{"type":"x-own","n":1}') is True
        content = _segue.content_new(handle[0])
        _segue.content_add_text(content, "last")
        assert _segue.call_send(call, content) is True
        _segue.call_reply(call)

    handle: list[_segue.Runtime] = []

    async def main() -> None:
        async with runtime() as made:
            handle.append(made.handle)
            pair = Pair(made.handle, tools={"stream": stream}, item={"flags": 1})
            done = Recorder()
            pair.start("stream", done)
            result_of(await done.get(_segue.COMPLETE))
            segments = done.segments
            assert [one.number for one in segments] == [1, 2, 3, 4, 5]
            assert [one.index for one in segments] == [0, 1, 2, 3, 4]
            assert [one.text for one in segments] == ["0€", "1€", "2€", None, "last"]
            assert [one.type for one in segments][3:] == ["x-own", "text"]
            assert segments[3].data == b'{"type":"x-own","n":1}'
            assert [str(one) for one in segments[2:4]] == ["2€", ""]
            assert not any(one.replaces for one in segments)
            assert segments[0] == segments[0] and segments[0] != segments[1]
            assert len({*segments}) == 5
            assert repr(segments[4]) == 'Segment(5, {"type":"text","text":"last"})'

    run(main())


def test_segments_of_one_batch_come_together() -> None:
    """The segments of a batch come in one list, unless another event of the request
    comes in between."""
    count = 500

    def stream(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        for _ in range(count):
            _segue.call_send_text(call, "x")
        _segue.call_reply(call)

    handle = _segue.runtime_new(None, None, True)
    _segue.runtime_start(handle)
    pair = Pair(handle, tools={"stream": stream}, item={"flags": 1})
    done = Recorder()
    pair.start("stream", done)
    batches = 0
    while _segue.COMPLETE not in done.kinds:
        batch = _segue.runtime_dispatch(handle, 1000, 256)
        lists = [event for event in batch if event[1] == _segue.SEGMENTS]
        assert len(lists) <= 1
        batches += len(lists)
        for handler, kind, a, b, c in batch:
            assert handler is not None
            handler(kind, a, b, c)
    assert [one.number for one in done.segments] == list(range(1, count + 1))
    assert batches < count
    _segue.runtime_free(handle)


def test_replace_is_told() -> None:
    def stream(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        _segue.call_send_text(call, "draft")
        assert _segue.call_replace(call) is True
        _segue.call_send_text(call, "final")
        _segue.call_reply(call)

    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle, tools={"stream": stream}, item={"flags": 1})
            done = Recorder()
            pair.start("stream", done)
            result = result_of(await done.get(_segue.COMPLETE))
            assert [one["text"] for one in result["content"]] == ["final"]
            assert done.segments[-1].text == "final"

    run(main())


def test_an_error_of_the_peer_has_its_parts() -> None:
    def fail(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        _segue.call_fail(call, -32603, "no é", b'{"why":1}')
        _segue.call_free(call)

    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle, tools={"fail": fail})
            done = Recorder()
            pair.start("fail", done)
            status, result, info = await done.get(_segue.COMPLETE)
            assert (status, result) == (-300, None)
            error = errors.from_info(info, status)
            assert isinstance(error, errors.RemoteError)
            assert (error.code, error.message, error.data) == (-32603, "no é", {"why": 1})
            assert str(error) == "no é (-32603)"

    run(main())


def test_a_call_that_is_dropped_fails() -> None:
    def forget(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        pass

    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle, tools={"forget": forget})
            done = Recorder()
            pair.start("forget", done)
            _, _, info = await done.get(_segue.COMPLETE)
            assert info[2] == -32603

    run(main())


def test_cancel_progress_log_and_status() -> None:
    watched = Recorder()

    def wait(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        _segue.call_watch(call, watched)
        _segue.call_progress(call, 1, 4, "one of four")
        _segue.call_progress(call, 2)
        _segue.call_log(call, "info", b'"text"')
        calls.append(call)

    calls: list[_segue.Call] = []

    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle, tools={"wait": wait})
            done = Recorder()
            request = pair.start("wait", done, options={"log_level": "debug"})
            assert await done.get(_segue.PROGRESS) == (1.0, 4.0, "one of four")
            log, _, _ = await done.get(_segue.LOG)
            assert json.loads(log)["data"] == "text"
            assert done.of(_segue.PROGRESS)[1] == (2.0, 0.0, None)
            _segue.request_cancel(request)
            status, _, _ = await done.get(_segue.COMPLETE)
            assert status == -15
            await watched.get(_segue.CANCEL)
            assert _segue.call_is_cancelled(calls[0])
            with pytest.raises(errors.EndedError):
                _segue.request_cancel(request)
            _segue.call_free(calls.pop())

    run(main())


def test_room_is_told_after_would_block() -> None:
    watched = Recorder()
    calls: list[_segue.Call] = []

    def flood(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        _segue.call_watch(call, watched)
        calls.append(call)

    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle, tools={"flood": flood}, item={"flags": 1, "task": 1})
            done = Recorder()
            request = pair.start("flood", done, options={"credit": 1, "discard": True})
            await until(lambda: calls)
            text = "x" * 65536
            sent = 0
            while _segue.call_send_text(calls[0], text):
                sent += 1
                assert sent < 10000
            _segue.request_grant(request, 1000000)
            await watched.get(_segue.DRAIN)
            assert _segue.call_send_text(calls[0], text)
            _segue.call_reply(calls.pop())
            result_of(await done.get(_segue.COMPLETE))
            assert len(done.segments) == sent + 1

    run(main())


@pytest.mark.parametrize("era", [1, 2])
def test_questions_and_their_answers(era: int) -> None:
    answers = Recorder()

    def ask(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        form = b'{"message":"who?","requestedSchema":{"type":"object","properties":{}}}'
        _segue.call_require_input(call, "who", "elicitation/create", form, answers)
        with pytest.raises(errors.ExistsError):
            _segue.call_require_input(call, "who", "elicitation/create", form, answers)
        calls.append(call)

    calls: list[_segue.Call] = []

    async def main() -> None:
        async with runtime() as made:
            able: _segue.SessionOptions = {
                "capabilities": '{"elicitation":{}}',
                "era": era,
            }
            pair = Pair(made.handle, tools={"ask": ask}, session={"options": able})
            done = Recorder()
            request = pair.start("ask", done)
            key, method, params = await done.get(_segue.QUESTION)
            assert method == "elicitation/create"
            assert json.loads(params)["message"] == "who?"
            with pytest.raises(errors.NotFoundError):
                _segue.request_answer(request, "other", b'{"action":"decline"}')
            _segue.request_answer(request, key, b'{"action":"accept","content":{}}')
            status, answer, _ = await answers.get(_segue.INPUT)
            assert status == 0
            assert json.loads(answer) == {"action": "accept", "content": {}}
            _segue.call_reply(calls.pop(), "done")
            result_of(await done.get(_segue.COMPLETE))

    run(main())


def test_an_answer_that_is_an_error() -> None:
    answers = Recorder()

    def ask(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        form = b'{"messages":[],"maxTokens":1}'
        _segue.call_require_input(call, None, "sampling/createMessage", form, answers)
        calls.append(call)

    calls: list[_segue.Call] = []

    async def main() -> None:
        async with runtime() as made:
            able: _segue.SessionOptions = {"capabilities": '{"sampling":{}}', "era": 2}
            pair = Pair(made.handle, tools={"ask": ask}, session={"options": able})
            done = Recorder()
            request = pair.start("ask", done)
            key, _, _ = await done.get(_segue.QUESTION)
            _segue.request_answer_error(request, key, -1, "refused")
            status, answer, _ = await answers.get(_segue.INPUT)
            assert status == -300
            assert json.loads(answer)["code"] == -1
            _segue.call_reply(calls.pop())
            result_of(await done.get(_segue.COMPLETE))

    run(main())


def test_without_a_mask_for_questions_there_is_nobody_to_ask() -> None:
    def ask(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        with pytest.raises(errors.UnsupportedError):
            _segue.call_require_input(call, None, "sampling/createMessage", b"{}", end)
        _segue.call_reply(call, "refused")

    async def main() -> None:
        async with runtime() as made:
            pair = Pair(made.handle, tools={"ask": ask})
            done = Recorder()
            pair.start("ask", done, events=0)
            result_of(await done.get(_segue.COMPLETE))
            assert done.kinds == [_segue.COMPLETE]

    run(main())


def test_tasks_tokens_and_resume() -> None:
    calls: list[_segue.Call] = []

    def work(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        _segue.call_send_text(call, "one")
        assert _segue.call_checkpoint(call, b"\x00state") is True
        assert _segue.call_set_status(call, "half way") is True
        assert _segue.call_set_field(call, "_meta", b'{"a":1}') is True
        _segue.call_defer(call)
        calls.append(call)

    async def main() -> None:
        async with runtime() as made:
            store = _segue.store_memory({"max_bytes": 1 << 20})
            pair = Pair(
                made.handle,
                server={"options": {"store": store}},
                tools={"work": work},
                item={"flags": 3, "task": 1},
            )
            _segue.store_free(store)
            first = Recorder()
            request = pair.start("work", first)
            task_id, begun, _ = await first.get(_segue.TASK)
            await first.get(_segue.SEGMENTS)
            token = _segue.request_token(request)
            assert token and token.isascii()
            who = _segue.request_meta(request, "io.modelcontextprotocol/serverInfo")
            assert who is not None and "name" in json.loads(who)
            assert _segue.request_meta(request, "none") is None
            _segue.request_detach(request)
            assert (await first.get(_segue.COMPLETE))[0] == -2

            # C-9: the token of the event covers nothing behind it, in its batch or not.
            other = Recorder()
            twin = _segue.request_resume(pair.session, begun, None, other)
            assert (await other.get(_segue.SEGMENTS))[0][0].number == 1
            _segue.request_detach(twin)
            assert (await other.get(_segue.COMPLETE))[0] == -2

            again = Recorder()
            _segue.request_resume(pair.session, token, None, again)
            task = _segue.task_attach_token(pair.session, token)
            assert _segue.task_id(task) == task_id
            task = _segue.task_attach(pair.session, task_id)
            assert _segue.task_id(task) == task_id
            with pytest.raises(errors.InvalidError):
                _segue.task_attach_token(pair.session, token[:-2])
            state = Recorder()
            _segue.task_get(task, state)
            told = result_of(await state.get(_segue.COMPLETE))
            assert told["status"] == "working"
            assert told["statusMessage"] == "half way"
            assert _segue.task_get_state(task) == 1
            watcher = Recorder()
            _segue.task_watch(task, None, watcher)
            _segue.call_send_text(calls[0], "two")
            _segue.call_reply(calls.pop(), "three")
            result = result_of(await again.get(_segue.COMPLETE))
            assert [one["text"] for one in result["content"]] == ["one", "two", "three"]
            assert result["_meta"]["a"] == 1
            assert [one.text for one in again.segments] == ["two", "three"]
            result_of(await watcher.get(_segue.COMPLETE))
            assert len(watcher.segments) == 3
            cancelled = Recorder()
            _segue.task_cancel(task, cancelled)
            await cancelled.get(_segue.COMPLETE)

            with pytest.raises(errors.InvalidError, match="token is damaged"):
                _segue.request_resume(pair.session, "damaged", None, again)

    run(main())


def test_resources_prompts_and_completion() -> None:
    def read(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        if kind == _segue.COMPLETION:
            assert _segue.call_argument_text(call, "value") == "a"
            assert _segue.call_set_completion(call, ["ab", "ac"], 7, True) is True
            _segue.call_complete(call)
            _segue.call_free(call)
            return
        content = _segue.content_new(handle[0])
        _segue.content_add_resource_text(content, name, None, "text")
        _segue.content_add_resource_blob(content, name, "x/y", b"\x01")
        _segue.call_complete(call, content)
        _segue.call_free(call)

    def prompt(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        content = _segue.content_new(handle[0])
        _segue.content_set_role(content, "user")
        _segue.content_add_text(content, "hello")
        _segue.call_complete(call, content)
        _segue.call_free(call)

    handle: list[_segue.Runtime] = []

    async def ask(pair: Pair, method: str, params: str) -> Any:
        done = Recorder()
        _segue.request_start(pair.session, method, params, None, done)
        return result_of(await done.get(_segue.COMPLETE))

    async def main() -> None:
        async with runtime() as made:
            handle.append(made.handle)
            pair = Pair(made.handle)
            add = _segue.server_add
            add(
                pair.server,
                _segue.ITEM_RESOURCE_TEMPLATE,
                b'{"name":"t","uriTemplate":"x:{v}"}',
                None,
                read,
                True,
            )
            add(pair.server, _segue.ITEM_PROMPT, b'{"name":"p"}', None, prompt)
            with pytest.raises(errors.ExistsError):
                add(pair.server, _segue.ITEM_PROMPT, b'{"name":"p"}', None, prompt)
            with pytest.raises(errors.JsonError):
                add(pair.server, _segue.ITEM_PROMPT, b'{"name":', None, prompt)
            got = await ask(pair, "resources/read", '{"uri":"x:1"}')
            assert got["contents"] == [
                {"uri": "x:1", "text": "text"},
                {"uri": "x:1", "mimeType": "x/y", "blob": "AQ=="},
            ]
            got = await ask(pair, "prompts/get", '{"name":"p"}')
            assert got["messages"][0]["role"] == "user"
            reference = '{"ref":{"type":"ref/resource","uri":"x:{v}"}'
            got = await ask(
                pair,
                "completion/complete",
                reference + ',"argument":{"name":"v","value":"a"}}',
            )
            assert got["completion"] == {
                "values": ["ab", "ac"],
                "total": 7,
                "hasMore": True,
            }
            _segue.server_resource_updated(pair.server, "x:1")
            _segue.server_remove(pair.server, _segue.ITEM_PROMPT, "p")
            with pytest.raises(errors.NotFoundError):
                _segue.server_remove(pair.server, _segue.ITEM_PROMPT, "p")

    run(main())


def test_idle_and_notifications() -> None:
    idle = Recorder()

    async def main() -> None:
        async with runtime() as made:
            pair = Pair(
                made.handle,
                server={"handler": idle},
                tools={"x": end},
                session={"options": {"era": 2}},
            )
            await pair.events.get(_segue.OPEN)
            _segue.server_add(pair.server, 1, tool_json("y"), None, end)
            method, _, _ = await pair.events.get(_segue.NOTIFICATION)
            assert method == "notifications/tools/list_changed"
            _segue.session_close(pair.session)
            await idle.get(_segue.IDLE)

    run(main())


def test_log_lines_come_as_events() -> None:
    lines = Recorder()
    runtime_handle = _segue.runtime_new({"log_level": 0}, lines, True)
    _segue.runtime_start(runtime_handle)
    near, far = _segue.transport_pair(runtime_handle)
    server = _segue.server_new(runtime_handle)
    _segue.server_attach(server, far)
    session = _segue.session_open(runtime_handle, near)
    del server, session
    for handler, kind, a, b, c in _segue.runtime_free(runtime_handle):
        assert handler is lines
        handler(kind, a, b, c)
    assert set(lines.kinds) <= {_segue.RUNTIME_LOG}
    assert all(isinstance(b, str) and 0 <= a <= 3 for _, a, b, _ in lines.events)
