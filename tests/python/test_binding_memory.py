"""What the binding reports when Python has no memory: only the one event is lost, a
request with a gap ends with an error, and nobody waits for ever."""

from __future__ import annotations

import json
import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from binding_worlds import Pair, Recorder, nothing_is_left
from segue import _segue, errors

__all__ = ["nothing_is_left"]

_testcapi = pytest.importorskip("_testcapi")
SECONDS = 120
SEGMENTS = 12
E_NOMEM = errors.OutOfMemoryError.status


def stream(kind: int, call: Any, params: bytes, name: str) -> None:
    for number in range(SEGMENTS):
        assert _segue.call_send_text(call, f"{number}")
    _segue.call_reply(call)


class World:
    """A runtime without a loop; the test runs its batches."""

    def __init__(self) -> None:
        self.handle = _segue.runtime_new(None, None, True)
        _segue.runtime_start(self.handle)
        self.fds = [
            _segue.runtime_fd(self.handle),
            _segue.runtime_side_fd(self.handle),
        ]
        self.pair = Pair(self.handle, tools={"stream": stream}, item={"flags": 1})
        self.told: list[Any] = []  # reported exceptions

    def turn(self, failing: int | None = None) -> None:
        """Runs a batch; its allocation number `failing` fails."""
        ready, _, _ = select.select(self.fds, [], [], SECONDS)
        assert ready, "nothing comes any more"
        if failing is not None:
            _testcapi.set_nomemory(failing, failing + 1)
        try:
            events = _segue.runtime_dispatch(self.handle, 0, 256)
        except MemoryError:  # not even the list could be made
            return
        finally:
            _testcapi.remove_mem_hooks()
        for handler, kind, a, b, c in events:
            if handler is None:
                self.told.append(a)
            else:
                handler(kind, a, b, c)

    def until_complete(self, done: Recorder, where: int, failing: int) -> tuple[Any, ...]:
        """Runs batches up to COMPLETE; allocation `failing` of batch number `where`
        fails."""
        turns = 0
        while not done.of(_segue.COMPLETE):
            self.turn(failing if turns == where else None)
            turns += 1
        (told,) = done.of(_segue.COMPLETE)
        assert done.kinds[-1] == _segue.COMPLETE
        return told


@contextmanager
def world() -> Iterator[World]:
    made = World()
    try:
        while not made.pair.events.of(_segue.OPEN):
            made.turn()
        yield made
    finally:
        _segue.runtime_free(made.handle)


@pytest.mark.parametrize("where", range(6))
def test_each_allocation_of_a_batch_may_fail(where: int) -> None:
    gaps = 0
    with world() as made:
        for failing in range(40):
            done = Recorder()
            request = made.pair.start("stream", done)
            status, raw, _ = made.until_complete(done, where, failing)
            texts = [one.text for one in done.segments]
            assert texts == [str(number) for number in range(len(texts))]
            if status == 0:
                assert len(texts) == SEGMENTS and json.loads(raw)
            else:
                assert status in (E_NOMEM, errors.RemoteError.status)
                gaps += 1
            _segue.request_free(request)
        for told in made.told:
            assert isinstance(told, MemoryError)
        # One batch may lose several events, and reports one exception for them.
        assert len(made.told) <= 40 and (not gaps or made.told)


def test_others_of_the_batch_are_told() -> None:
    lost = 0
    with world() as made:
        for failing in range(30):
            recorders = [Recorder() for _ in range(8)]
            requests = [made.pair.start("stream", one) for one in recorders]
            for where, recorder in enumerate(recorders):
                made.until_complete(recorder, 1 if where == 0 else -1, failing)
            statuses = [one.of(_segue.COMPLETE)[0][0] for one in recorders]
            bad = [status for status in statuses if status != 0]
            assert len(bad) <= 1  # the error of the one event that could not be made
            lost += len(bad)
            for request in requests:
                _segue.request_free(request)
    assert lost > 0


def test_the_end_of_a_session_is_told() -> None:
    for failing in range(20):
        with world() as made:
            _segue.session_close(made.pair.session)
            first = True
            while not made.pair.events.of(_segue.CLOSED):
                made.turn(failing if first else None)
                first = False
            assert len(made.pair.events.of(_segue.CLOSED)) == 1


def test_what_a_transport_shall_send_is_not_lost() -> None:
    for failing in range(12):
        custom = Recorder()
        handle = _segue.runtime_new(None, Recorder(), True)
        _segue.runtime_start(handle)
        transport = _segue.transport_custom(handle, custom)
        session = _segue.session_open(handle, transport, handler=Recorder())
        fds = [_segue.runtime_fd(handle), _segue.runtime_side_fd(handle)]
        first = True
        while _segue.TRANSPORT_SEND not in custom.kinds:
            assert select.select(fds, [], [], SECONDS)[0]
            if first:
                _testcapi.set_nomemory(failing, failing + 1)
            first = False
            try:
                events = _segue.runtime_dispatch(handle, 0, 256)
            except MemoryError:
                events = []
            finally:
                _testcapi.remove_mem_hooks()
            for handler, kind, a, b, c in events:
                if handler is not None:
                    handler(kind, a, b, c)
        assert custom.kinds[0] == _segue.TRANSPORT_START
        _segue.transport_closed(custom.events[0][1])
        for handler, kind, a, b, c in _segue.runtime_free(handle):
            if handler is not None:
                handler(kind, a, b, c)
        assert custom.kinds[-1] == _segue.TRANSPORT_FREE
        del session, transport
