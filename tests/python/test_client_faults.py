"""Servers that misbehave in one way, over stdio and HTTP: tests/tools/misled_server.py
plays them. tests/node/client_faults.test.ts has the same scenes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

import segue
from client_worlds import run
from programs import ROOT

PLAYER = [sys.executable, "-B", str(ROOT / "tests" / "tools" / "misled_server.py")]


@contextmanager
def target_of(scene: str, transport: str) -> Iterator[Any]:
    if transport == "stdio":
        yield [*PLAYER, scene]
        return
    pipe = subprocess.PIPE
    command = [*PLAYER, scene, "http"]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdin is not None and child.stdout is not None
        yield child.stdout.readline().strip()
        child.stdin.close()


@asynccontextmanager
async def played(
    scene: str, transport: str, **options: Any
) -> AsyncIterator[segue.Session]:
    with target_of(scene, transport) as target:
        async with segue.connect(target, **options) as session:
            yield session


async def heard(session: segue.Session) -> dict[str, Any]:
    """Returns how often the server received each method."""
    told: dict[str, Any] = json.loads((await session.call("heard")).text)
    return told


async def shown(stream: Any, kept: list[str]) -> None:
    """Reads a stream into `kept` and drops what is replaced."""
    async for segment in stream:
        if segment.replaces:
            kept.clear()
        kept.append(segment.text)


both = pytest.mark.parametrize("transport", ["stdio", "http"])


def fails(
    scene: str, transport: str, kind: type[Exception], text: str, **options: Any
) -> tuple[Any, dict[str, Any]]:
    """Returns the error of a stream, and what the server received."""
    seen: list[Any] = []

    async def work() -> None:
        async with played(scene, transport, **options) as session:
            with pytest.raises(kind, match=text) as caught:
                await shown(session.stream("t"), [])
            seen.extend((caught.value, await heard(session)))

    run(work)
    return seen[0], seen[1]


@both
@pytest.mark.parametrize("scene", ["empty_pieces", "empty_notes"])
def test_pieces_without_content_have_a_bound(scene: str, transport: str) -> None:
    error, _ = fails(scene, transport, segue.LimitError, "no content: at most 10000")
    assert error.partial.text == "a"


@both
def test_a_call_of_pieces_without_content_ends_too(transport: str) -> None:
    async def work() -> None:
        async with played("empty_pieces", transport) as session:
            with pytest.raises(segue.LimitError, match="at most 10000") as caught:
                await session.call("t")
            assert caught.value.partial is not None
            assert caught.value.partial.text == "a"

    run(work)


@both
def test_pieces_that_are_notified_stay_with_the_error(transport: str) -> None:
    kind = segue.DisconnectedError
    text = "the connection was lost before|the response was cut off"
    cut, _ = fails("pieces_then_cut", transport, kind, text)
    assert cut.partial.text == "ab"
    error, _ = fails("pieces_then_error", transport, segue.RemoteError, "broken")
    assert (error.code, error.partial.text) == (-32603, "ab")


@both
def test_a_refused_answer_is_sent_again_within_bounds(transport: str) -> None:
    text = r"tasks/update failed 3 times in a row \(max_reconnects: 2\)"
    answer = {"action": "accept", "content": {}}
    options: Any = {"max_reconnects": 2, "on_elicit": lambda _: answer}
    kind = segue.RemoteError
    error, told = fails("refused_update", transport, kind, text, **options)
    assert error.code == -32603
    assert told["tasks/update"] == 3


@both
def test_a_question_whose_answer_does_not_fit_is_asked_anew(transport: str) -> None:
    asked: list[Any] = []

    def on_elicit(question: Any) -> Any:
        asked.append(question)
        return {"action": "accept", "content": {}}

    async def work() -> None:
        async with played("misfit_update", transport, on_elicit=on_elicit) as session:
            assert (await session.call("t")).text == "asked anew"
            assert (await heard(session))["tasks/update"] == 2

    run(work)
    assert len(asked) == 2


@both
@pytest.mark.parametrize("scene", ["staying_gap", "event_without_payload"])
def test_behind_a_hole_the_result_is_shown_whole(
    scene: str, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The gap is reported, and no text is shown twice."""

    async def work() -> None:
        async with played(scene, transport) as session:
            stream, kept = session.stream("t"), list[str]()
            await shown(stream, kept)
            assert kept == [block.text for block in stream.result.content]
            told = await heard(session)
            assert len(told["after"]) == (2 if scene == "staying_gap" else 1)
            assert told["tasks/get"] == 1

    run(work)
    assert "is invalid and ignored" in caplog.text or "lacks the events 1" in caplog.text


def test_a_stream_goes_on_behind_events_that_are_gone() -> None:
    async def work() -> None:
        async with played("events_gone", "http") as session:
            stream, kept = session.stream("t"), list[str]()
            await shown(stream, kept)
            assert kept == ["a", "b", "f"]
            # The task is polled as well, because a lost event may have been a question.
            # A poll may bring the result before the stream is opened again.
            assert (await heard(session))["after"] in ([None, 0], [None, 0, 4])

    run(work)


def test_a_stream_that_breaks_is_helped_by_polls_and_comes_back() -> None:
    async def work() -> None:
        async with played("breaking_stream", "http") as session:
            assert (await session.call("t")).text == "a"
            told = await heard(session)
            assert told["tasks/stream"] == 5
            assert told["tasks/get"] > 0
        async with played("broken_stream", "http") as session:
            assert (await session.call("t")).text == "polled"
            assert (await heard(session))["tasks/stream"] >= 3

    run(work)


def test_a_look_that_fails_is_made_again() -> None:
    async def work() -> None:
        async with played("failing_look", "http") as session:
            assert (await session.call("t")).text == "looked again"
            assert (await heard(session))["tasks/get"] == 5

    run(work)


@pytest.mark.parametrize(
    ("scene", "kind", "why"),
    [
        ("always_500", segue.RefusedError, "HTTP status 500"),
        ("always_404", segue.RefusedError, "HTTP status 404"),
        ("always_text", segue.RefusedError, "neither JSON nor an event stream"),
        ("always_broken", segue.ProtocolError, "not a JSON-RPC response"),
    ],
)
def test_a_look_that_stays_refused_says_why(
    scene: str, kind: type[Exception], why: str
) -> None:
    text = rf"tasks/get failed 3 times in a row \(max_reconnects: 2\): .*{why}"
    _, told = fails(scene, "http", kind, text, max_reconnects=2)
    assert told["tasks/get"] == 3


@both
def test_a_method_that_the_server_has_not_keeps_its_code(transport: str) -> None:
    for scene, code in (("no_method", -32601), ("no_capability", -32021)):
        error, told = fails(
            scene, transport, segue.ProtocolError, "does not support tasks/get"
        )
        assert error.code == code
        assert told["tasks/get"] == 1


def test_an_end_that_overtakes_the_creation_is_kept() -> None:
    """The result is fetched at once, without a poll."""

    async def work() -> None:
        async with played("early_end", "http", era="legacy") as session:
            assert (await session.call("t")).text == "early"
            told = await heard(session)
            assert told["tasks/result"] == 1
            assert "tasks/get" not in told

    run(work)


@both
def test_a_result_is_waited_for_beside_long_polls(transport: str) -> None:
    """R-1905-33: tasks/result brings the end before the next poll is due."""

    async def work() -> None:
        async with played("slow_poll", transport, era="legacy") as session:
            assert (await session.call("t")).text == "waited"
            assert (await heard(session))["tasks/result"] == 1

    run(work)


def test_a_task_that_is_created_after_its_cancel_is_cancelled() -> None:
    """R-2557-38: the call was cancelled before its task had an id."""

    async def work() -> None:
        async with played("late_task", "stdio") as session:
            call: asyncio.Future[Any]

            def on_progress(*_: Any) -> None:
                call.cancel()

            call = asyncio.ensure_future(session.call("t", on_progress=on_progress))
            with pytest.raises(asyncio.CancelledError):
                await call
            while "tasks/cancel" not in await heard(session):
                pass
            assert (await heard(session))["tasks/cancel"] == 1

    run(work)
