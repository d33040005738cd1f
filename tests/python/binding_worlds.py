"""The surroundings of tests of the binding: a runtime whose memory is counted, and a
recorder of events. After a test nothing of the library may be left."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from segue import _runtime, _segue

SECONDS = 120


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Checks that no handle and no byte of a counted runtime outlives its test. What a
    failed test has left is not counted again; it goes when pytest forgets that test,
    perhaps in the middle of the next one."""
    gc.collect()
    handles, size = _segue.live_handles(), _segue.allocated()
    yield
    gc.collect()
    now = _segue.live_handles()
    left = {kind: n for kind, n in now.items() if n > handles.get(kind, 0)}
    assert not left, left
    assert _segue.allocated() <= size


def run(main: Coroutine[Any, Any, None]) -> None:
    """Runs a test, for SECONDS at most; an exception in a callback fails the test."""
    lost: list[dict[str, Any]] = []

    async def guarded() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: lost.append(context))
        await asyncio.wait_for(main, SECONDS)

    asyncio.run(guarded())
    assert lost == [], lost


@asynccontextmanager
async def runtime(
    options: _segue.RuntimeOptions | None = None, use_reader: bool = True
) -> AsyncIterator[_runtime.Runtime]:
    """Makes a runtime of the running loop whose memory is counted."""
    made = _runtime.Runtime(
        asyncio.get_running_loop(), options, track=True, use_reader=use_reader
    )
    try:
        yield made
    finally:
        await made.aclose()


async def until(holds: Callable[[], object]) -> None:
    """Lets the loop turn until the condition holds."""
    while not holds():
        await asyncio.sleep(0)


class Recorder:
    """A handler that keeps its events; a test can wait for an event of a kind."""

    def __init__(self) -> None:
        self.events: list[tuple[int, Any, Any, Any]] = []
        self._waiting: list[tuple[int, asyncio.Future[Any]]] = []

    def __call__(self, kind: int, a: Any, b: Any, c: Any) -> None:
        self.events.append((kind, a, b, c))
        for wanted, future in self._waiting:
            if wanted == kind and not future.done():
                future.set_result((a, b, c))

    async def get(self, kind: int) -> Any:
        """Returns the value of the first event of this kind."""
        for known, a, b, c in self.events:
            if known == kind:
                return a, b, c
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((kind, future))
        return await future

    def of(self, kind: int) -> list[tuple[Any, Any, Any]]:
        return [(a, b, c) for known, a, b, c in self.events if known == kind]

    @property
    def kinds(self) -> list[int]:
        return [event[0] for event in self.events]

    @property
    def segments(self) -> list[_segue.Segment]:
        return [one for a, _, _ in self.of(_segue.SEGMENTS) for one in a]


Tool = Callable[[int, _segue.Call, bytes, str], object]


def tool_json(name: str) -> str:
    return f'{{"name":"{name}","inputSchema":{{"type":"object"}}}}'


class Pair:
    """A server and a session that are connected in one runtime."""

    def __init__(self, handle: _segue.Runtime, **options: Any) -> None:
        near, far = _segue.transport_pair(handle)
        self.server = _segue.server_new(handle, **options.get("server", {}))
        for name, tool in options.get("tools", {}).items():
            flags: Any = dict(options.get("item", {}))
            _segue.server_add(self.server, 1, tool_json(name), flags, tool)
        _segue.server_attach(self.server, far)
        self.events = Recorder()
        self.session = _segue.session_open(
            handle,
            near,
            handler=self.events,
            **options.get("session", {}),
        )

    def start(
        self,
        name: str,
        handler: _segue.Handler | None,
        arguments: str = "{}",
        options: _segue.RequestOptions | None = None,
        events: int = -1,
    ) -> _segue.Request:
        params = f'{{"name":"{name}","arguments":{arguments}}}'
        return _segue.request_start(
            self.session, "tools/call", params, options, handler, events
        )


def end(kind: int, call: Any, params: bytes, name: str) -> None:
    """A tool that answers with its name."""
    if kind == _segue.CALL:
        _segue.call_reply(call, name)


def result_of(complete: tuple[int, bytes | None, Any]) -> Any:
    """Returns the result of a request that has ended well."""
    status, result, error = complete
    assert status == 0, (status, result, error)
    assert result is not None
    return json.loads(result)
