"""Plays the vectors of tests/vectors for a server through the SDK, and those that are
wrong on purpose: each must fail for the reason that it names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import vectors
from raw_peer import SECONDS, RawPeer
from segue import _runtime
from vector_server import make_server
from vectors import Names, Vector, Wrong

CAN = {"draft_tasks", "questions_as_tasks"}
OURS = [v for v in vectors.read_all() if v.role == "server"]
PLAYED = [v for v in OURS if CAN.issuperset(v.needs)]
WRONG = [
    v
    for v in vectors.read_all(vectors.DIRECTORY / "wrong")
    if v.role == "server" and CAN.issuperset(v.needs)
]
# The library hands calls over in batches. So the answer that announces a new task of
# 2026-07-28 is sent before a handler in Python has had its first turn. It cannot
# contain what the handler sends at once; that comes by the later messages.
LATE = {"R-E-2 fields, a beginning anew and a status are events too"}
TURNS = 6  # turns of the loop in which a handler does everything that it can do at once


class Stage:
    """Plays one vector."""

    def __init__(self, vector: Vector) -> None:
        self.vector = vector
        self.names = Names(vector.let)
        self.peer = RawPeer()
        # something was received since the last line that was sent
        self.has_heard = False

    async def play(self) -> None:
        needs = self.vector.needs
        server = make_server("draft_tasks" in needs, "questions_as_tasks" in needs)
        runtime = _runtime.current()
        await server._attach(self.peer._transport(runtime.handle))
        while self.peer._wire is None:
            await self.peer.change()
        try:
            await self._steps("begin", self.vector.begin)
            await self._steps("step", self.vector.steps)
            await self._steps("after", self.vector.after)
            await self._quiet()
        finally:
            if not self.peer.is_closed:
                self.peer.cut()

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
        if verb in ("in", "in_text") and self.has_heard:
            await self._settle()  # the server knows that its answer was received
            self.has_heard = False
        if verb == "in":
            self.peer.say(vectors.dumps(self.names.fill(value)))
        elif verb == "in_text":
            self.peer.say(value)
        elif verb == "out":
            await self._out(value)
        elif verb == "quiet":
            await self._quiet()
        else:
            raise Wrong(f'no server knows the step "{verb}"')

    async def _out(self, pattern: Any) -> None:
        for _ in range(TURNS):
            if self.peer.lines or self.peer.is_closed:
                break
            await self._settle()
        if not self.peer.lines:
            raise Wrong(f"expected {vectors.dumps(pattern)}, and nothing came")
        line = self.peer.lines.popleft()
        self.has_heard = True
        try:
            self.names.match(pattern, vectors.loads(line))
        except Wrong as wrong:
            raise Wrong(f"{wrong}\n  in {line.decode()}") from None

    async def _quiet(self) -> None:
        for _ in range(2):
            await self._settle()
        if self.peer.lines:
            raise Wrong(f"nobody expected {self.peer.lines[0].decode()}")

    async def _settle(self) -> None:
        if not self.peer.is_closed:
            await self.peer.settle()
        for _ in range(TURNS):
            await asyncio.sleep(0)


def play(vector: Vector) -> None:
    async def run() -> None:
        await asyncio.wait_for(Stage(vector).play(), 3 * SECONDS)

    asyncio.run(run())


@pytest.mark.parametrize("vector", PLAYED, ids=lambda v: v.name)
def test_vector(vector: Vector) -> None:
    if vector.name.partition(" [")[0] in LATE:
        with pytest.raises(Wrong, match=r"step 2: result.*found nothing"):
            play(vector)
    else:
        play(vector)


@pytest.mark.parametrize("vector", WRONG, ids=lambda v: v.name)
def test_what_is_wrong_is_found(vector: Vector) -> None:
    assert vector.fails
    with pytest.raises(Wrong) as caught:
        play(vector)
    assert vector.fails in str(caught.value)


def test_what_was_left_out() -> None:
    """Vectors with a clock that stands still, or with connections that break, cannot
    run here."""
    left = [v for v in OURS if not CAN.issuperset(v.needs)]
    assert {need for v in left for need in v.needs} <= {*CAN, "clock", "cut", "keys"}
    assert len(PLAYED) > 3 * len(left), (len(PLAYED), len(left))
