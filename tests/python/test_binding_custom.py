"""Transports and stores written in Python: the library calls them on its threads, and
they run on Python's threads."""

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
    """One end of a line between two transports, or between a transport and a test."""

    def __init__(self, handle: _segue.Runtime, reopen: bool = False) -> None:
        self.other: End | None = None
        self.wire: _segue.Wire | None = None
        self.sent = b""
        self.kinds: list[int] = []
        self.waiting: list[bytes] = []
        self.paused = False
        self.hold = False  # do not deliver sent bytes
        self.transport = _segue.transport_custom(handle, self.on_event, reopen)

    def on_event(self, kind: int, a: Any, b: Any, c: Any) -> None:
        self.kinds.append(kind)
        if kind == _segue.TRANSPORT_START:
            self.wire = a
        elif kind == _segue.TRANSPORT_SEND:
            self.sent += a
            if not self.hold:
                assert self.wire is not None
                with contextlib.suppress(errors.ClosedError):  # the runtime is ending
                    _segue.transport_took(self.wire, len(a))
            if self.other is not None:
                self.other.feed(a)
        elif kind == _segue.TRANSPORT_PAUSE:
            self.paused = a
            while not self.paused and self.waiting:
                self.feed(self.waiting.pop(0), first=True)
        elif kind == _segue.TRANSPORT_CLOSE:
            assert self.wire is not None
            with contextlib.suppress(errors.ClosedError):  # the runtime is ending
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
CAPS_TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


def test_bytes_under_way_are_bounded() -> None:
    """At most 1 MiB is on its way until Python reports that it took the bytes."""
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
    """A simple store in a dict."""

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
    """Plays the server of a process, which starts the task or goes on with it."""
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


class Odd(Exception):
    """An exception with a status that is not Segue's."""

    def __init__(self, status: object) -> None:
        super().__init__()
        self._status = status

    @property
    def status(self) -> object:
        if self._status is None:
            raise OSError
        return self._status


@pytest.mark.parametrize(
    ("failure", "told", "kind", "reason"),
    [
        (Odd("no"), False, errors.ServerStoreFailedError, "store_failed"),
        (Odd(-50), False, errors.ServerStoreFailedError, "store_failed"),
        (Odd(-(10**30)), False, errors.ServerStoreFailedError, "store_failed"),
        (Odd(None), False, errors.ServerStoreFailedError, "store_failed"),
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
    """Exceptions of Segue give their status; others also go to sys.unraisablehook."""
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
    assert lost == ([] if told else [type(failure)])


class Upgraded(Shelf):
    """A store that servers of an older version may use at first."""

    record_format: object = 1


def test_a_store_made_in_python_says_what_servers_may_write() -> None:
    """A stored call begins as a plain call when no older server uses the store."""

    def reply(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        _segue.call_reply(call, "done")

    async def is_task(end: End) -> bool:
        end.sent = b""
        meta = {**META, "io.modelcontextprotocol/clientCapabilities": CAPS_TASKS}
        params = {"name": "t", "arguments": {}, "_meta": meta}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        end.feed(json.dumps(call).encode() + b"\n")
        await until(lambda: b"\n" in end.sent)
        return bool(json.loads(end.sent)["result"]["resultType"] == "task")

    async def main() -> None:
        shelf = Upgraded()
        store, served = _segue.store_custom(shelf)
        thread = threading.Thread(target=_segue.store_serve, args=(served,), daemon=True)
        thread.start()
        async with runtime() as made:
            end = End(made.handle)
            server = _segue.server_new(made.handle, {"store": store})
            options: _segue.ItemOptions = {
                "flags": _segue.TOOL_STORED,
                "task": _segue.TASK_MAY,
                "promote_after_ms": 600_000,
            }
            _segue.server_add(server, 1, tool_json("t"), options, reply)
            _segue.server_attach(server, end.transport)
            await until(lambda: end.wire)
            assert await is_task(end)
            shelf.record_format = 2
            assert await is_task(end)  # for this call the store runs its next method
            assert not await is_task(end)
        del server, store
        await asyncio.get_running_loop().run_in_executor(None, thread.join)

    run(main())


@pytest.mark.parametrize(
    ("value", "kind"), [("2", TypeError), (0, ValueError), (-1, ValueError)]
)
def test_a_format_that_is_none_is_refused(value: object, kind: type[Exception]) -> None:
    shelf = Upgraded()
    shelf.record_format = value
    with pytest.raises(kind):
        _segue.store_custom(shelf)


def test_a_second_thread_that_serves_a_store_is_refused() -> None:
    store, served = _segue.store_custom(Shelf())
    refused: list[Exception] = []
    ended = threading.Semaphore(0)

    def serve() -> None:
        try:
            _segue.store_serve(served)
        except errors.StateError as error:
            refused.append(error)
        ended.release()

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert ended.acquire(timeout=120)
    assert len(refused) == 1
    _segue.store_free(store)
    for thread in threads:
        thread.join()
    assert len(refused) == 1


class Place:
    """The data that instances of a store share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.records: dict[bytes, list[Any]] = {}
        self.logs: dict[bytes, list[Any]] = {}
        self.owners: dict[bytes, Leased | None] = {}
        self.letters: list[tuple[bytes, int, bytes]] = []
        self.posted = 0
        self.all: list[Leased] = []


class Leased:
    """One instance of a store that servers share: an owner with a lease, which lapses
    at once when the instance is away."""

    leased = True
    ASK_AGAIN_MS = 20

    def __init__(self, place: Place) -> None:
        self.place = place
        self.fails = 0
        self.away = False
        self.doubts = False
        self.follows: set[bytes] = set()
        self.grown: set[bytes] = set()
        self.told: set[int] = set()
        self.store, self.shelf = _segue.store_custom(self)
        place.all.append(self)
        thread = threading.Thread(target=_segue.store_serve, args=(self.shelf,))
        thread.daemon = True
        thread.start()
        self.thread = thread

    def reach(self) -> None:
        if self.away:
            raise errors.StoreError("away")

    def commit(self, writes: list[Any]) -> None:
        self.reach()
        if self.fails:
            self.fails -= 1
            raise errors.StoreError("fails")
        with self.place.lock:
            for write in writes:
                self.write(*write)

    def write(self, kind: int, id: bytes, record: Any, entry: Any, purge_ms: int) -> None:
        place = self.place
        if kind in (2, 3, 6, 7) and place.owners.get(id, self) not in (None, self):
            raise errors.FencedError
        if kind == 1:
            place.records[id], place.logs[id] = list(record), []
            place.owners[id] = self
        elif kind == 2:
            if entry[0] <= len(place.logs[id]):
                if place.logs[id][entry[0] - 1] != entry:
                    raise errors.StateError
                return
            place.logs[id].append(entry)
        elif kind == 3:
            place.records[id][4], place.records[id][6] = 1, purge_ms
        elif kind == 5 and place.owners.get(id) is self:
            place.owners[id] = None
        elif kind == 7:
            gone = [one for one in place.letters if one[0] == id and one[1] <= entry[0]]
            place.letters = [one for one in place.letters if one not in gone]
        for other in place.all:
            if other is not self and id in other.follows:
                other.grown.add(id)
                _segue.store_wake(other.shelf)

    def find(self, task_id: str | None, key: bytes | None) -> Any:
        self.reach()
        for record in self.place.records.values():
            if record[1] == task_id or (task_id is None and record[2] == key):
                return tuple(record)
        return None

    def read(self, id: bytes, after: int) -> Any:
        self.reach()
        return [one for one in self.place.logs[id] if one[0] > after]

    def claim(self) -> Any:
        self.reach()
        with self.place.lock:
            claimed = []
            for id, owner in self.place.owners.items():
                if not self.place.records[id][4] and (owner is None or owner.away):
                    self.place.owners[id] = self
                    claimed.append(tuple(self.place.records[id]))
            return claimed

    def follow(self, id: bytes, on: bool) -> None:
        self.reach()
        self.follows = self.follows | {id} if on else self.follows - {id}

    def post(self, id: bytes, data: bytes) -> None:
        self.reach()
        self.place.posted += 1
        self.place.letters.append((id, self.place.posted, data))

    def news(self) -> Any:
        self.reach()
        with self.place.lock:
            told: list[Any] = [(1, id, 0, None) for id in self.grown]
            self.grown.clear()
            if self.doubts:
                told.append((5, None, 0, None))
            self.doubts = False
            for id, number, data in self.place.letters:
                if self.place.owners[id] is self and number not in self.told:
                    self.told.add(number)
                    told.append((2, id, number, data))
            if any(other.away for other in self.place.all):
                told.append((3, None, 0, None))
            return told, self.ASK_AGAIN_MS

    def stats(self) -> tuple[int, int, int, int]:
        return len(self.place.records), -1, 0, 0


async def until_ended(place: Place) -> None:
    await until(lambda: any(record[4] for record in place.records.values()))


def test_a_shared_store_made_in_python_loses_nothing() -> None:
    """A commit that fails is repeated. An instance that is away loses its task to the
    other one, which goes on with it."""
    ran: list[int] = []

    def steps(kind: int, call: _segue.Call, params: bytes, name: str) -> None:
        last, _ = _segue.call_resumed(call) or (0, None)
        ran.append(last)
        if last:
            _segue.call_send_text(call, "two")
            _segue.call_reply(call)
        else:
            _segue.call_send_text(call, "one")
            CALLS.append(call)

    async def main() -> None:
        place = Place()
        mine, theirs = Leased(place), Leased(place)
        options: _segue.ItemOptions = {"flags": 3, "task": 2}
        async with runtime() as here, runtime() as there:
            servers, sessions = [], []
            for made, leased in ((here, mine), (there, theirs)):
                near, far = _segue.transport_pair(made.handle)
                server = _segue.server_new(made.handle, {"store": leased.store})
                _segue.store_free(leased.store)
                _segue.server_add(server, 1, tool_json("t"), options, steps)
                _segue.server_attach(server, far)
                servers.append(server)
                sessions.append(_segue.session_open(made.handle, near))
            mine.fails = 2
            done = Recorder()
            params = '{"name":"t","arguments":{}}'
            _segue.request_start(sessions[0], "tools/call", params, None, done)
            await done.get(_segue.TASK)
            await done.get(_segue.SEGMENTS)
            assert mine.fails == 0
            mine.away = True
            await until_ended(place)
            assert ran == [0, 1]
            await until(lambda: b'"operations":1' in _segue.server_stats(servers[1]))
            mine.away, mine.doubts = False, True
            status, result, _ = await done.get(_segue.COMPLETE)
            assert status == 0
            texts = [one["text"] for one in json.loads(result)["content"]]
            assert texts == ["one", "two"]
            CALLS.clear()
            servers.clear()
            sessions.clear()
            del server
        for leased in (mine, theirs):
            await asyncio.get_running_loop().run_in_executor(None, leased.thread.join)

    run(main())


def test_leases_need_news() -> None:
    class Half(Shelf):
        leased = True

    with pytest.raises(errors.InvalidError):
        _segue.store_custom(Half())
