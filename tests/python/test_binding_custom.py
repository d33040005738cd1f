"""Transports and stores of Python's own: the library calls them on its threads, and meets
Python on Python's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from typing import Any

import pytest

from binding_worlds import Recorder, nothing_is_left, run, runtime, tool_json, until
from segue import _segue, errors

__all__ = ["nothing_is_left"]


class End:
    """One end of a line between two transports, or between one and a test."""

    def __init__(self, handle: _segue.Runtime, reopen: bool = False) -> None:
        self.other: End | None = None
        self.wire: _segue.Wire | None = None
        self.sent = b""
        self.kinds: list[int] = []
        self.waiting: list[bytes] = []
        self.paused = False
        self.hold = False  # leave what is sent where it is
        self.transport = _segue.transport_custom(handle, self.on_event, reopen)

    def on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
        self.kinds.append(kind)
        if kind == _segue.TRANSPORT_START:
            self.wire = a
        elif kind == _segue.TRANSPORT_SEND:
            self.sent += a
            if not self.hold:
                assert self.wire is not None
                _segue.transport_took(self.wire, len(a))
            if self.other is not None:
                self.other.feed(a)
        elif kind == _segue.TRANSPORT_PAUSE:
            self.paused = a
            while not self.paused and self.waiting:
                self.feed(self.waiting.pop(0), first=True)
        elif kind == _segue.TRANSPORT_CLOSE:
            assert self.wire is not None
            with contextlib.suppress(errors.ClosedError):  # the runtime ends
                _segue.transport_closed(self.wire)

    def feed(self, data: bytes, first: bool = False) -> None:
        if self.wire is None or self.paused or not _segue.transport_feed(self.wire, data):
            self.waiting.insert(0 if first else len(self.waiting), data)


def test_a_line_made_in_python_carries_a_conversation() -> None:
    def answer(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        _segue.call_reply(call, json.loads(params)["arguments"]["text"])

    async def main() -> None:
        async with runtime() as made:
            near, far = End(made.handle), End(made.handle)
            near.other, far.other = far, near
            server = _segue.server_new(made.handle)
            _segue.server_add(server, 1, tool_json("t"), None, answer)
            _segue.server_attach(server, far.transport)
            events = Recorder()
            session = _segue.session_open(made.handle, near.transport, None, events)
            for size in (1, 100_000, 3_000_000):
                done = Recorder()
                params = json.dumps({"name": "t", "arguments": {"text": "x" * size}})
                _segue.request_start(session, "tools/call", params, None, done)
                status, result, _ = await done.get(_segue.COMPLETE)
                assert status == 0
                assert len(json.loads(result)["content"][0]["text"]) == size
            _segue.session_close(session)
            await events.get(_segue.CLOSED)
            await until(lambda: _segue.TRANSPORT_FREE in near.kinds)
            assert near.kinds[0] == _segue.TRANSPORT_START
            assert near.kinds[-2:] == [_segue.TRANSPORT_CLOSE, _segue.TRANSPORT_FREE]
            assert near.wire is not None
            with pytest.raises(errors.ClosedError):
                _segue.transport_feed(near.wire, b"{}\n")
            with pytest.raises(errors.InvalidError):
                _segue.transport_took(near.wire, 1)

    run(main())


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def test_bytes_under_way_are_bounded() -> None:
    """1 MiB, until Python says that it took them."""
    bound = 1 << 20

    def answer(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        _segue.call_reply(call, "x" * 300_000)

    async def main() -> None:
        async with runtime() as made:
            end = End(made.handle)
            end.hold = True
            server = _segue.server_new(made.handle)
            _segue.server_add(server, 1, tool_json("t"), None, answer)
            _segue.server_attach(server, end.transport)
            await until(lambda: end.wire)
            for number in range(8):
                params = {"name": "t", "arguments": {}, "_meta": META}
                call = {"jsonrpc": "2.0", "id": number, "method": "tools/call"}
                end.feed(json.dumps({**call, "params": params}).encode() + b"\n")
            await until(lambda: len(end.sent) >= bound)
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(end.sent) == bound
            end.hold = False
            assert end.wire is not None
            _segue.transport_took(end.wire, bound)
            await until(lambda: end.sent.count(b"\n") == 8)

    run(main())


def test_a_line_that_is_lost_is_opened_again() -> None:
    async def main() -> None:
        async with runtime() as made:
            end = End(made.handle, reopen=True)
            session = _segue.session_open(
                made.handle, end.transport, {"era": _segue.ERA_MODERN}
            )
            _segue.request_start(session, "tools/list", None, None, None)
            await until(lambda: end.sent)
            assert end.wire is not None
            _segue.transport_closed(end.wire)
            await until(lambda: _segue.TRANSPORT_REOPEN in end.kinds)

    run(main())


class Shelf:
    """A store in a dict, as simple as can be."""

    def __init__(self) -> None:
        self.records: dict[bytes, list[Any]] = {}
        self.logs: dict[bytes, list[Any]] = {}
        self.threads: set[int] = set()
        self.fail: Exception | None = None

    def commit(self, writes: list[Any]) -> None:
        self.threads.add(threading.get_ident())
        if self.fail:
            raise self.fail
        for kind, id, record, entry, purge_ms in writes:
            if kind == 1:
                self.records[id] = list(record)
                self.logs[id] = []
            elif kind == 2:
                self.logs[id].append(entry)
            elif kind == 3:
                self.records[id][4] = True
                self.records[id][6] = purge_ms
            elif kind == 4:
                self.records.pop(id, None)
                self.logs.pop(id, None)

    def find(self, task_id: str | None, key: bytes | None) -> Any:
        for record in self.records.values():
            if record[1] == task_id or (task_id is None and record[2] == key):
                return tuple(record)
        return None

    def read(self, id: bytes, after: int) -> Any:
        return [one for one in self.logs[id] if one[0] > after]

    def claim(self) -> Any:
        return [tuple(one) for one in self.records.values() if not one[4]]

    def purge(self, now_ms: int) -> int | None:
        return None

    def list(self, principal: bytes, created_ms: int, task_id: str | None) -> Any:
        found = [one for one in self.records.values() if one[3] == principal]
        found.sort(key=lambda one: (one[5], one[1]), reverse=True)
        if task_id is not None:
            found = [one for one in found if (one[5], one[1]) < (created_ms, task_id)]
        return [tuple(one) for one in found]


def work(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
    last, state = _segue.call_resumed(call) or (0, None)
    if last:
        assert (last, state) == (1, b"\x00here")
        _segue.call_send_text(call, "two")
        _segue.call_reply(call)
        return
    _segue.call_send_text(call, "one")
    _segue.call_checkpoint(call, b"\x00here")
    CALLS.append(call)


CALLS: list[_segue.Call] = []


async def task_of_two_processes(shelf: Shelf, first: bool, task_id: str) -> str:
    """The server of a process: it starts the task, or goes on with it."""
    store, served = _segue.store_custom(shelf)
    thread = threading.Thread(target=_segue.store_serve, args=(served,), daemon=True)
    thread.start()
    async with runtime() as made:
        near, far = _segue.transport_pair(made.handle)
        server = _segue.server_new(made.handle, {"store": store})
        _segue.store_free(store)
        options: _segue.ItemOptions = {"flags": 3, "task": 2}
        _segue.server_add(server, 1, tool_json("t"), options, work)
        _segue.server_attach(server, far)
        session = _segue.session_open(made.handle, near)
        done = Recorder()
        if first:
            params = '{"name":"t","arguments":{}}'
            _segue.request_start(session, "tools/call", params, None, done)
            task_id, _, _ = await done.get(_segue.TASK)
            await done.get(_segue.SEGMENTS)
        else:
            task = _segue.task_attach(session, task_id)
            _segue.task_watch(task, None, done)
            status, result, _ = await done.get(_segue.COMPLETE)
            assert status == 0
            texts = [one["text"] for one in json.loads(result)["content"]]
            assert texts == ["one", "two"]
    CALLS.clear()
    del server
    await asyncio.get_running_loop().run_in_executor(None, thread.join)
    assert shelf.threads and threading.get_ident() not in shelf.threads
    return task_id


def test_a_store_made_in_python_keeps_a_task_over_a_restart() -> None:
    async def main() -> None:
        shelf = Shelf()
        task_id = await task_of_two_processes(shelf, True, "")
        await task_of_two_processes(shelf, False, task_id)
        assert [record[4] for record in shelf.records.values()] == [True]

    run(main())


@pytest.mark.parametrize(
    ("failure", "told", "kind", "reason"),
    [
        (errors.StoreFullError("full"), True, errors.ServerStoreFullError, "store_full"),
        (errors.NotFoundError("gone"), True, errors.ServerStoreLostError, "store_lost"),
        (ZeroDivisionError(), False, errors.ServerStoreFailedError, "store_failed"),
    ],
)
def test_a_store_that_fails_fails_the_call(
    failure: Exception,
    told: bool,
    kind: type[errors.Error],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the status of our exceptions; others go to sys.unraisablehook too."""
    lost: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda one: lost.append(one.exc_type))

    async def main() -> None:
        shelf = Shelf()
        shelf.fail = failure
        store, served = _segue.store_custom(shelf)
        thread = threading.Thread(target=_segue.store_serve, args=(served,), daemon=True)
        thread.start()
        async with runtime() as made:
            near, far = _segue.transport_pair(made.handle)
            server = _segue.server_new(made.handle, {"store": store})
            options: _segue.ItemOptions = {"flags": 1, "task": 2}
            _segue.server_add(server, 1, tool_json("t"), options, work)
            _segue.server_attach(server, far)
            session = _segue.session_open(made.handle, near)
            done = Recorder()
            params = '{"name":"t","arguments":{}}'
            _segue.request_start(session, "tools/call", params, None, done)
            status, _, info = await done.get(_segue.COMPLETE)
            assert status == -300
            assert info is not None
            error = errors.from_info(info, status)
            assert type(error) is kind
            assert isinstance(error, errors.RemoteError)
            assert error.data == {"reason": reason}
        CALLS.clear()
        del server, store
        await asyncio.get_running_loop().run_in_executor(None, thread.join)

    run(main())
    assert lost == ([] if told else [ZeroDivisionError])
