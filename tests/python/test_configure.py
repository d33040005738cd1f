"""Limits that all sessions and servers of a process share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import segue
from server_worlds import ServerWorld, nothing_left, run, world  # noqa: F401

# ruff: noqa: F811

# Limits cannot change while a loop uses the library, and the loop of `segue.sync` runs
# until its process ends. So no test of another file may run in this process before.
pytestmark = pytest.mark.alone


@pytest.fixture
def as_before() -> Iterator[None]:
    yield
    segue.configure()


def echo() -> segue.Server:
    server = segue.Server("large")

    @server.tool
    def text(size: int) -> str:
        return "x" * size

    @server.tool
    def length(text: str) -> int:
        return len(text)

    @server.tool
    def anything(value: Any) -> str:
        del value
        return "done"

    return server


def test_a_message_is_limited(as_before: None, world: ServerWorld) -> None:
    segue.configure(max_message_bytes=100_000)

    async def work(session: Any) -> None:
        assert len((await session.call("text", size=50_000)).text) == 50_000
        with pytest.raises(segue.Error) as caught:
            await session.call("length", text="x" * 200_000)
        assert isinstance(caught.value, (segue.TooLargeError, segue.RefusedError))

    world.run(echo(), work)


def test_an_answer_over_http_names_the_limit(as_before: None) -> None:
    segue.configure(max_message_bytes=100_000)

    async def work(session: Any) -> None:
        with pytest.raises(segue.TooLargeError, match="max_message_bytes is 100000"):
            await session.call("text", size=200_000)

    ServerWorld("http", "modern").run(echo(), work)


def test_the_nesting_of_json_is_limited(as_before: None) -> None:
    deep: list[Any] = []
    for _ in range(40):
        deep = [deep]

    async def work(session: Any) -> None:
        assert (await session.call("anything", value=deep)).text == "done"

    ServerWorld("pair", "modern").run(echo(), work)
    segue.configure(max_depth=20)
    with pytest.raises(segue.Error):
        ServerWorld("pair", "modern").run(echo(), work)


def test_each_call_replaces_the_one_before(as_before: None) -> None:
    segue.configure(max_message_bytes=100_000)
    segue.configure(max_queue_bytes=1 << 16)

    async def work(session: Any) -> None:
        assert len((await session.call("text", size=200_000)).text) == 200_000

    ServerWorld("http", "modern").run(echo(), work)


def test_limits_cannot_change_while_a_loop_uses_the_library(as_before: None) -> None:
    async def work() -> None:
        segue.configure(max_message_bytes=100_000)  # nothing is in use yet
        async with segue.connect(echo()) as session:
            with pytest.raises(segue.StateError, match="before the first session"):
                segue.configure()
            await asyncio.to_thread(refused)
            await session.call("text", size=1)

    def refused() -> None:
        with pytest.raises(segue.StateError):
            segue.configure()

    run(work)
    segue.configure()  # its loop has ended


@pytest.mark.parametrize("name", ["max_message_bytes", "max_depth", "max_queue_bytes"])
@pytest.mark.parametrize("value", [0, -1, 1 << 63])
def test_bad_values_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name} must be from 1"):
        segue.configure(**{name: value})


@pytest.mark.parametrize("value", ["1", 1.5, True])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="max_depth must be an int"):
        segue.configure(max_depth=value)
