"""Plays the vectors of tests/vectors for a client through the SDK, and those that are
wrong on purpose: each must fail for the reason that it names."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import segue
import vectors
from raw_peer import SECONDS, RawPeer
from segue import _segue
from segue.client import opening
from segue.client.flow import Callbacks, Flow
from segue.client.questions import Answers
from vectors import Names, Vector, Wrong

CAN = {"cut", "draft_tasks", "resumable"}
OURS = [v for v in vectors.read_all() if v.role == "client"]
PLAYED = [v for v in OURS if CAN.issuperset(v.needs)]
WRONG = [
    v
    for v in vectors.read_all(vectors.DIRECTORY / "wrong")
    if v.role == "client" and CAN.issuperset(v.needs)
]
_STEPS = {
    "call": {"as", "method", "params"},
    "answer": {"call", "key", "result"},
    "cancel": {"call"},
    "asked": {"call", "key", "method"},
    "segments": {"call", "texts"},
    "statuses": {"call", "texts"},
    "end": {"call", "status", "code", "result"},
}


class Call(Answers):
    """The callbacks of one request."""

    __slots__ = ("asked", "flow", "replies", "segments", "statuses")

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self.replies: dict[str, asyncio.Future[bytes]] = {}
        self.statuses: list[str] = []
        self.segments: list[str] = []

    def __bool__(self) -> bool:
        return True

    async def answer(self, key: str, method: str, params: bytes) -> bytes:
        self.asked.append((key, method))
        self.replies[key] = asyncio.get_running_loop().create_future()
        return await self.replies[key]

    def status(self, status: str, message: str | None) -> None:
        self.statuses.append(f"{status} {message or '-'}")

    def read(self) -> list[str]:
        while self.flow.queue:
            segment = self.flow.take()
            text = segment.data.decode() if segment.text is None else segment.text
            void = " (replaces)" if segment.replaces else ""
            self.segments.append(f"{segment.number} {text}{void}")
        return self.segments


class Stage:
    """Plays one vector."""

    def __init__(self, vector: Vector) -> None:
        self.vector = vector
        self.names = Names(vector.let)
        self.peer = RawPeer(reopen="cut" in vector.needs)
        self.calls: dict[str, Call] = {}
        self.warnings = 0
        self.notified: Any = None
        self.session: segue.Session

    def _on_notification(self, method: str, params: dict[str, Any]) -> None:
        self.notified = (method, params)

    async def play(self) -> None:
        capabilities = self.vector.capabilities
        options: dict[str, Any] = {
            "on_notification": self._on_notification,
            "era": "auto" if self.vector.revision == "2026-07-28" else "legacy",
            "draft_tasks": "draft_tasks" in self.vector.needs,
            "resumable": "resumable" in self.vector.needs,
            "connect_timeout": SECONDS,
        }
        if capabilities is not None:
            options["capabilities"] = vectors.loads(vectors.dumps(capabilities))
        self.session, _ = opening.begin(self.peer, options)  # type: ignore
        try:
            await self._steps("begin", self.vector.begin)
            await self._steps("step", self.vector.steps)
            await self._steps("after", self.vector.after)
            await self._quiet()
        finally:
            await self.session.close()

    async def _steps(self, where: str, steps: list[dict[str, Any]]) -> None:
        for number, step in enumerate(steps, 1):
            try:
                if len(step) != 1:
                    raise Wrong("a step has one member")
                for verb, value in step.items():
                    await self._step(verb, value)
            except Wrong as wrong:
                raise Wrong(f"{where} {number}: {wrong}") from None

    async def _step(self, verb: str, value: Any) -> None:
        known = _STEPS.get(verb)
        if verb == "in":
            self.peer.say(vectors.dumps(self.names.fill(value)))
        elif verb == "in_text":
            self.peer.say(value)
        elif verb == "out":
            await self._out(value)
        elif verb == "quiet":
            await self._quiet()
        elif verb == "cut":
            await self._cut()
        elif verb == "notified":
            await self._settle()
            if self.notified is None:
                raise Wrong("no notification came")
            method, params = self.notified
            self.notified = None
            told = vectors.loads(vectors.dumps({"method": method, "params": params}))
            self.names.match(value, told)
        elif verb == "warned":
            await self._settle()
            if not self.warnings:
                raise Wrong("no warning came")
            self.warnings = 0
        elif known is None:
            raise Wrong(f'no client knows the step "{verb}"')
        else:
            for name in value:
                if name not in known:
                    raise Wrong(f'nobody knows "{name}"')
            if verb == "call":
                await self._call(value)
            else:
                call = self.calls.get(value.get("call"))
                if call is None:
                    raise Wrong(f"there is no call {value.get('call')}")
                await self._settle()
                await getattr(self, f"_{verb}")(call, value)

    async def _out(self, pattern: Any) -> None:
        if not self.peer.lines:
            await self._until(lambda: bool(self.peer.lines))
        if not self.peer.lines:
            raise Wrong(f"expected {vectors.dumps(pattern)}, and nothing came")
        line = self.peer.lines.popleft()
        try:
            self.names.match(pattern, vectors.loads(line))
        except Wrong as wrong:
            raise Wrong(f"{wrong}\n  in {line.decode()}") from None

    async def _until(self, done: Any) -> None:
        """Waits for something to happen; fails when it has not by the time the client
        has settled."""
        for _ in range(3):
            await self._settle()
            if done():
                return

    async def _quiet(self) -> None:
        await self._settle()
        if self.peer.lines:
            raise Wrong(f"nobody expected {self.peer.lines[0].decode()}")

    async def _cut(self) -> None:
        await self._settle()
        reopens = self.peer.reopens
        self.peer.cut()
        while self.peer.reopens == reopens:
            await self.peer.change()

    async def _settle(self) -> None:
        """Waits until all lines are handled, or the session is over."""
        settled = asyncio.ensure_future(self.peer.settle())
        closed = asyncio.ensure_future(self.session.reconnected(1 << 60))
        await asyncio.wait((settled, closed), return_when=asyncio.FIRST_COMPLETED)
        if settled.done():
            settled.result()
        for task in (settled, closed):
            task.cancel()
        await asyncio.wait((settled, closed))

    # ---- the application

    async def _call(self, value: dict[str, Any]) -> None:
        call = Call()
        callbacks = Callbacks(lambda *_: None, lambda _: None, call.status, input=call)
        call.flow = Flow(self.session, callbacks, 1 << 40)
        params = value.get("params")
        raw = None if params is None else vectors.dumps(self.names.fill(params)).encode()
        self.session.send(call.flow, value["method"], raw, {})
        self.calls[value["as"]] = call

    async def _answer(self, call: Call, value: dict[str, Any]) -> None:
        key = value.get("key") or (call.asked[-1][0] if call.asked else None)
        reply = call.replies.get(key or "")
        if reply is None or reply.done():
            raise Wrong(f"nobody asked for {key or 'nothing'}")
        reply.set_result(vectors.dumps(self.names.fill(value["result"])).encode())
        for _ in range(3):
            await asyncio.sleep(0)

    async def _cancel(self, call: Call, value: dict[str, Any]) -> None:
        call.flow.cancel()

    async def _asked(self, call: Call, value: dict[str, Any]) -> None:
        key = value.get("key") or (call.asked[-1][0] if call.asked else "")
        if (key, value["method"]) not in call.asked:
            raise Wrong(f"was not asked: input {key} {value['method']}")

    async def _segments(self, call: Call, value: dict[str, Any]) -> None:
        self.names.match(value["texts"], list(call.read()))

    async def _statuses(self, call: Call, value: dict[str, Any]) -> None:
        self.names.match(value["texts"], list(call.statuses))

    async def _end(self, call: Call, value: dict[str, Any]) -> None:
        outcome = call.flow.outcome
        if outcome is None:
            raise Wrong("the call has not ended")
        status, raw, detail = outcome
        name = _segue.status_name(status)
        if name.removeprefix("SEGUE_").removeprefix("E_").lower() != value["status"]:
            raise Wrong(f"it ended with {name}: {detail[1] if detail else ''}")
        code = value.get("code")
        if code is not None and (detail is None or detail[2] != int(code)):
            raise Wrong(f"its code is {detail[2] if detail else 0}")
        if "result" in value:
            found = vectors.loads(raw) if raw else None
            self.names.match(value["result"], found)


def play(vector: Vector) -> None:
    async def run() -> None:
        stage = Stage(vector)
        listener = Warnings(stage)
        logging.getLogger("segue").addHandler(listener)
        try:
            await asyncio.wait_for(stage.play(), 3 * SECONDS)
        finally:
            logging.getLogger("segue").removeHandler(listener)

    asyncio.run(run())


class Warnings(logging.Handler):
    """Counts warnings."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(logging.WARNING)
        self._stage = stage

    def emit(self, record: logging.LogRecord) -> None:
        self._stage.warnings += 1


@pytest.mark.parametrize("vector", PLAYED, ids=lambda v: v.name)
def test_vector(vector: Vector) -> None:
    play(vector)


@pytest.mark.parametrize("vector", WRONG, ids=lambda v: v.name)
def test_what_is_wrong_is_found(vector: Vector) -> None:
    assert vector.fails
    with pytest.raises(Wrong) as caught:
        play(vector)
    assert vector.fails in str(caught.value)


def test_what_was_left_out() -> None:
    """Vectors with a clock that stands still, or with a host, cannot run in this SDK."""
    left = [v for v in OURS if not CAN.issuperset(v.needs)]
    assert {need for v in left for need in v.needs} <= {*CAN, "clock", "host"}
    assert len(PLAYED) > 3 * len(left), (len(PLAYED), len(left))
