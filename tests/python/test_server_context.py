"""What a handler can do before it returns: segments, progress, logs, fields, questions,
and noticing that its caller has gone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any, Literal

import msgspec
import pydantic
import pytest

import segue
from segue.server import forms
from segue.server.item import safe_text
from server_worlds import ServerWorld, nothing_left, run, world  # noqa: F401

# ruff: noqa: F811


def test_segments_come_as_they_are_made(world: ServerWorld) -> None:
    server = segue.Server("stream")
    steps = asyncio.Queue[str]()

    @server.tool
    async def slow() -> AsyncIterator[str]:
        while (step := await steps.get()) != "end":
            yield step

    @server.tool
    async def sender(ctx: segue.Context) -> str:
        await ctx.send("one", segue.Image(b"\1"))
        await ctx.send({"two": 2})
        return "three"

    @server.tool
    def sync_sender(ctx: segue.SyncContext) -> Generator[str, None, dict[str, int]]:
        yield "one"
        ctx.send("two")
        return {"three": 3}

    @server.tool
    def results() -> Iterator[Any]:
        yield segue.Result(["a", segue.Image(b"\1")], {"x": 1})
        yield "b"
        yield segue.Result(structured={"x": 2}, is_error=True)

    async def work(session: Any) -> None:
        stream = session.stream("slow")
        seen = []
        steps.put_nowait("1")
        async for segment in stream:
            seen.append(segment.text)
            steps.put_nowait("end" if len(seen) == 3 else str(len(seen) + 1))
        assert seen == ["1", "2", "3"]
        assert stream.result.text == "123"
        result = await session.call("sender")
        assert [type(block).__name__ for block in result.content] == [
            *("Text", "Image", "Text", "Text")
        ]
        assert result.text == 'one{"two":2}three'
        result = await session.call("sync_sender")
        assert result.text == 'onetwo{"three":3}' and result.structured == {"three": 3}
        result = await session.call("results", raise_on_error=False)
        assert result.is_error and result.structured == {"x": 2} and result.text == "ab"

    world.run(server, work)


def test_a_result_that_is_made_anew(world: ServerWorld) -> None:
    server = segue.Server("anew")

    @server.tool
    async def draft(ctx: segue.Context) -> None:
        await ctx.send("bad")
        await ctx.replace("good")
        await ctx.set_field("structuredContent", {"n": 1})
        await ctx.set_field("_meta", {"example.org/k": 1})

    @server.tool
    def sync_draft(ctx: segue.SyncContext) -> None:
        ctx.send("bad")
        ctx.replace("good")
        ctx.set_field("structuredContent", {"n": 1})

    async def work(session: Any) -> None:
        for name in ("draft", "sync_draft"):
            result = await session.call(name)
            assert result.text == "good" and result.structured == {"n": 1}
        assert (await session.call("draft")).meta["example.org/k"] == 1

    world.run(server, work)


def test_a_text_goes_on_in_its_block(world: ServerWorld) -> None:
    """R-776-30: merging the segments gives the result."""
    server = segue.Server("extended")

    @server.tool
    async def extended(ctx: segue.Context) -> None:
        await ctx.send("con", segue.Image(b"\1"))
        await ctx.extend(0, "tent 1.")
        await ctx.send("end")
        await ctx.extend(2, ".")
        for index in (1, 3, -1):
            with pytest.raises(segue.InvalidError, match=f"block {index} "):
                await ctx.extend(index, "x")

    @server.tool
    def sync_extended(ctx: segue.SyncContext) -> None:
        ctx.send("con", segue.Image(b"\1"), "end")
        ctx.extend(0, "tent 1.")
        with pytest.raises(segue.InvalidError, match="block 3 "):
            ctx.extend(3, "x")
        ctx.extend(2, ".")

    async def work(session: Any) -> None:
        for name in ("extended", "sync_extended"):
            result = await session.call(name)
            first, image, last = result.content
            assert (first.text, last.text) == ("content 1.", "end.")
            assert isinstance(image, segue.Image)
            stream = session.stream(name)
            texts = ["", "", ""]
            async for segment in stream:
                texts[segment.index] += segment.text or ""
            assert texts == ["content 1.", "", "end."]
            assert stream.result.content == result.content

    world.run(server, work)


def test_a_slow_reader_makes_the_handler_wait(nothing_left: None) -> None:
    """Segments wait when nobody takes them, and none is lost."""
    server = segue.Server("much", options={"max_result_bytes": 1 << 30})
    size, count = 100_000, 300
    waited = {"async": 0, "sync": 0}

    @server.tool
    async def much(ctx: segue.Context) -> None:
        for number in range(count):
            # turns of the loop, which come only while the handler waits
            turns: list[int] = []
            asyncio.get_running_loop().call_soon(turns.append, 1)
            await ctx.send(f"{number:06d}" + "x" * size)
            waited["async"] += len(turns)

    @server.tool
    def sync_much(ctx: segue.SyncContext) -> None:
        for number in range(count):
            ctx.send(f"{number:06d}" + "x" * size)

    async def work() -> None:
        async with segue.connect(server, era="legacy") as session:
            for name in ("much", "sync_much"):
                seen = 0
                async for segment in session.stream(name, window=1, collect=False):
                    assert segment.text and int(segment.text[:6]) == seen
                    seen += 1
                assert seen == count

    run(work)
    assert waited["async"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("way", ["pair", "http"])
def test_a_large_result_of_a_call(
    nothing_left: None, caplog: pytest.LogCaptureFixture, way: str, era: str
) -> None:
    """R-776-16, R-776-22: a large result passes in pieces or as a task.
    Otherwise the error says how."""
    server = segue.Server("large")
    mib, count = 1 << 20, 20

    @server.tool
    async def rows() -> AsyncIterator[str]:
        for _ in range(count):
            yield "x" * mib

    @server.tool(task="may")
    async def task() -> AsyncIterator[str]:
        for _ in range(count):
            yield "x" * mib

    @server.tool
    async def one() -> str:
        return "x" * mib * count

    async def refused(session: Any, name: str) -> str:
        with pytest.raises(segue.RemoteError) as caught:
            await session.call(name)
        assert caught.value.data["limit"] == "max_result_bytes"
        return str(caught.value)

    async def work(session: Any) -> None:
        assert len((await session.call("task")).text) == count * mib
        if era == "legacy":
            assert len((await session.call("rows")).text) == count * mib
            assert "16777216; send it in smaller blocks" in await refused(session, "one")
        else:
            advice = "16777216; let the tool run as a task"
            assert advice in await refused(session, "rows")
            assert advice in await refused(session, "one")

    ServerWorld(way, era).run(server, work)
    caplog.get_records("call").clear()  # tracebacks keep the failed objects alive


@pytest.mark.parametrize("way", ["pair", "http"])
def test_structured_content_before_the_end(nothing_left: None, way: str) -> None:
    """R-776-17: it comes with the segment behind it, and is there when the call fails."""
    server = segue.Server("members")
    seen = asyncio.Event()

    @server.tool
    async def breaks(ctx: segue.Context) -> None:
        await ctx.set_field("structuredContent", {"n": 1})
        await ctx.send("one")
        await seen.wait()
        raise segue.McpError(-32603, "broken")

    async def work(session: Any) -> None:
        with pytest.raises(segue.RemoteError, match="broken") as caught:
            async for _ in session.stream("breaks"):
                seen.set()
        partial = caught.value.partial
        assert partial.text == "one" and partial.structured == {"n": 1}

    ServerWorld(way, "modern").run(server, work)


def test_progress_and_logs(world: ServerWorld) -> None:
    server = segue.Server("talks")
    logs: list[Any] = []

    @server.tool
    async def talk(ctx: segue.Context) -> None:
        ctx.progress(1, 4, "begun")
        ctx.log("said")
        ctx.log({"n": 1}, "error")
        ctx.progress(2.5)

    @server.tool
    def sync_talk(ctx: segue.SyncContext) -> None:
        ctx.progress(1, 4, "begun")
        ctx.log("said", "warning")

    async def work(session: Any) -> None:
        progress: list[Any] = []
        await session.set_log_level("info")
        await session.call("talk", on_progress=lambda *told: progress.append(told))
        assert progress == [(1.0, 4.0, "begun"), (2.5, None, None)]
        assert [log.data for log in logs] == ["said", {"n": 1}]
        assert [log.level for log in logs] == ["info", "error"]
        logs.clear()
        await session.call("sync_talk")
        assert [log.data for log in logs] == ["said"]

    world.run(server, work, on_log=logs.append)


def test_who_and_what(world: ServerWorld) -> None:
    told: list[segue.server.Peer] = []

    def principal(peer: segue.server.Peer) -> str:
        told.append(peer)
        return "ada"

    server = segue.Server("who", principal=principal)

    @server.tool
    async def who(ctx: segue.Context, a: int) -> dict[str, Any]:
        return {
            "principal": ctx.principal,
            "method": ctx.method,
            "name": ctx.name,
            "arguments": ctx.params["arguments"],
            "trace": ctx.meta("traceparent"),
            "absent": ctx.meta("absent"),
            "client": (ctx.client_info or {}).get("name"),
            "version": ctx.protocol_version,
            "scope": ctx.has_scope("any"),
            "cancelled": ctx.cancelled,
        }

    async def work(session: Any) -> None:
        result = await session.call("who", a=1, meta={"traceparent": "00-1-2-01"})
        modern = world.era == "modern"
        assert result.structured == {
            "principal": "ada",
            "method": "tools/call",
            "name": "who",
            "arguments": {"a": 1},
            "trace": "00-1-2-01",
            "absent": None,
            "client": "tests" if modern else None,
            "version": "2026-07-28" if modern else None,
            "scope": world.way == "pair",
            "cancelled": False,
        }
        assert told

    world.run(server, work, name="tests")


def test_a_caller_that_goes(world: ServerWorld) -> None:
    server = segue.Server("goes")
    began, ended = asyncio.Event(), asyncio.Event()
    sync_began, sync_ended = threading.Event(), threading.Event()

    @server.tool
    async def wait(ctx: segue.Context) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            assert ctx.cancelled
            ended.set()

    @server.tool
    def sync_wait(ctx: segue.SyncContext) -> None:
        sync_began.set()
        with ctx._room.bell:
            while not ctx.cancelled:
                ctx._room.bell.wait()  # a cancel sets the event
        sync_ended.set()

    @server.tool
    def sync_stream(ctx: segue.SyncContext) -> Iterator[str]:
        try:
            sync_began.set()
            while True:  # with pauses, so that the result stays below its limit
                yield "x"
                with ctx._room.bell:
                    ctx._room.bell.wait(0.001)
        finally:
            sync_ended.set()

    async def work(session: Any) -> None:
        call = asyncio.ensure_future(session.call("wait"))
        await began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await ended.wait()
        for name in ("sync_wait", "sync_stream"):
            sync_began.clear()
            sync_ended.clear()
            call = asyncio.ensure_future(session.call(name))
            await asyncio.to_thread(sync_began.wait)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await asyncio.to_thread(sync_ended.wait, 10)

    world.run(server, work)


def test_a_handler_that_is_cancelled_by_itself(world: ServerWorld) -> None:
    server = segue.Server("itself")

    @server.tool
    async def raises() -> None:
        raise asyncio.CancelledError

    async def work(session: Any) -> None:
        with pytest.raises(segue.ToolError, match="cancelled on the server"):
            await session.call("raises")

    world.run(server, work)


def test_too_many_calls_at_once(world: ServerWorld) -> None:
    server = segue.Server("few", max_calls=2)
    go = asyncio.Event()

    @server.tool
    async def wait() -> str:
        await go.wait()
        return "done"

    async def work(session: Any) -> None:
        calls = [asyncio.ensure_future(session.call("wait")) for _ in range(3)]
        done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        (refused,) = done
        error = refused.exception()
        assert isinstance(error, segue.RemoteError)
        assert error.data == {"reason": "limit", "limit": "max_calls", "value": 2}
        assert error.message == "Too many calls at once: max_calls is 2"
        go.set()
        rest = await asyncio.gather(*(call for call in calls if call is not refused))
        assert [one.text for one in rest] == ["done", "done"]
        assert (await session.call("wait")).text == "done"

    world.run(server, work)


# ---- questions


class Person(msgspec.Struct):
    name: str
    age: int = 30
    color: Literal["red", "blue"] = "red"


def test_questions_to_a_person(world: ServerWorld) -> None:
    server = segue.Server("asks")
    seen: list[Any] = []

    @server.tool
    async def ask(ctx: segue.Context) -> list[Any]:
        name = await ctx.ask("Your name?")
        agreed, number = await asyncio.gather(
            ctx.ask("Agreed?", bool, key="agreed"), ctx.ask("How many?", int)
        )
        person = await ctx.ask("Who?", Person)
        assert isinstance(person, Person)
        return [name, agreed, number, person.name, person.age]

    @server.tool
    def sync_ask(ctx: segue.SyncContext) -> str:
        elicited = ctx.elicit("Who?", Person)
        assert elicited.accepted and elicited.content
        raw = ctx.elicit("Raw?", {"type": "object", "properties": {"a": {}}})
        return f"{elicited.content.name} {raw.content}"

    answers: dict[str, Any] = {
        "Your name?": {"value": "Ada"},
        "Agreed?": {"value": True},
        "How many?": {"value": 3},
        "Who?": {"name": "Bob"},
        "Raw?": {"a": "b"},
    }

    async def answer(request: segue.ElicitRequest) -> Any:
        seen.append(request)
        return {"action": "accept", "content": answers[request.message]}

    async def work(session: Any) -> None:
        result = await session.call("ask")
        assert result.text == '["Ada",true,3,"Bob",30]'
        schema = next(one for one in seen if one.message == "Who?").schema
        assert schema["required"] == ["name"]
        assert schema["properties"]["color"]["enum"] == ["red", "blue"] or set(
            schema["properties"]["color"]["enum"]
        ) == {"red", "blue"}
        assert (await session.call("sync_ask")).text == "Bob {'a': 'b'}"

    world.run(server, work, on_elicit=answer)


def test_answers_that_are_none(world: ServerWorld) -> None:
    server = segue.Server("refused")

    @server.tool
    async def ask(ctx: segue.Context) -> str:
        return await ctx.ask("Name?")

    @server.tool
    async def elicit(ctx: segue.Context) -> str:
        return (await ctx.elicit("Name?", str)).action

    @server.tool
    async def sample(ctx: segue.Context) -> str:
        try:
            return (await ctx.sample("hello", max_tokens=3)).text
        except segue.UnsupportedError as error:
            assert "not declared that it answers sampling/createMessage" in str(error)
            return "cannot be asked"

    async def work(session: Any) -> None:
        with pytest.raises(segue.ToolError, match="The user declined"):
            await session.call("ask")
        assert (await session.call("elicit")).text == "decline"
        assert (await session.call("sample")).text == "cannot be asked"

    world.run(server, work, on_elicit=lambda request: {"action": "decline"})


def test_questions_to_models_and_for_roots(world: ServerWorld) -> None:
    server = segue.Server("models")

    @server.tool
    async def think(ctx: segue.Context) -> str:
        answer = await ctx.sample(
            ["hello", segue.assistant("yes?"), "go"],
            max_tokens=5,
            systemPrompt="short",
        )
        roots = await ctx.roots()
        return f"{answer.text} {answer.model} {answer.stop_reason} {roots[0].uri}"

    @server.tool
    def sync_think(ctx: segue.SyncContext) -> str:
        return ctx.sample("hello", max_tokens=5).text + str(len(ctx.roots()))

    def sample(request: segue.SampleRequest) -> Any:
        assert request.max_tokens == 5
        return {
            "role": "assistant",
            "content": {"type": "text", "text": f"{len(request.messages)} heard"},
            "model": "m1",
            "stopReason": "endTurn",
        }

    async def work(session: Any) -> None:
        told = (await session.call("think")).text
        assert told == "3 heard m1 endTurn file:///w"
        assert (await session.call("sync_think")).text == "1 heard1"

    world.run(server, work, on_sample=sample, roots=["file:///w"])


MISFIT = "Expected `string`, got `integer` - at `$.name`"
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 3},
        "age": {"type": "integer", "minimum": 1, "maximum": 9},
        "size": {"type": "number"},
        "sure": {"type": "boolean"},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "day": {"type": "string", "oneOf": [{"const": "mo"}, {"const": "tu"}]},
        "some": {
            "type": "array",
            "items": {"anyOf": [{"const": "a"}, {"const": "b"}]},
            "minItems": 1,
            "maxItems": 2,
        },
    },
    "required": ["name"],
}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"name": "Ada", "age": 3.0, "size": 3, "sure": True, "other": None}, None),
        ({"name": "Ada", "color": "red", "day": "tu", "some": ["a", "b"]}, None),
        ({}, "Object missing required field `name`"),
        ([], "Expected `object`, got `array`"),
        ({"name": None}, r"Expected `string`, got `null` - at `\$.name`"),
        ({"name": "A"}, "Length must be >= 2"),
        ({"name": "Adam"}, "Length must be <= 3"),
        ({"name": "Ada", "age": 3.5}, r"Expected `integer`, got `number` - at `\$.age`"),
        ({"name": "Ada", "age": True}, "Expected `integer`, got `boolean`"),
        ({"name": "Ada", "age": 0}, "Value must be >= 1"),
        ({"name": "Ada", "age": 10}, "Value must be <= 9"),
        ({"name": "Ada", "size": "3"}, "Expected `number`, got `string`"),
        ({"name": "Ada", "sure": 1}, "Expected `boolean`, got `integer`"),
        ({"name": "Ada", "color": "green"}, "Invalid choice `green`"),
        ({"name": "Ada", "day": "we"}, "Invalid choice `we`"),
        ({"name": "Ada", "some": "a"}, "Expected `array`, got `string`"),
        ({"name": "Ada", "some": ["c"]}, "Invalid choice `c`"),
        ({"name": "Ada", "some": [1]}, "Expected `string`, got `integer`"),
        ({"name": "Ada", "some": []}, "Number of items must be >= 1"),
        ({"name": "Ada", "some": ["a", "b", "a"]}, "Number of items must be <= 2"),
    ],
)
def test_an_answer_to_a_schema_fits_it(given: Any, problem: str | None) -> None:
    form = forms.Form[Any](FORM)
    assert form.schema == FORM
    if problem is None:
        assert form.decode(msgspec.json.encode(given)) == given
    else:
        with pytest.raises(msgspec.ValidationError, match=problem):
            form.decode(msgspec.json.encode(given))


def test_a_schema_of_one_value_is_the_field_of_a_form() -> None:
    field = {"type": "integer", "minimum": 1}
    form = forms.Form[Any](field)
    assert form.schema == {
        "type": "object",
        "properties": {"value": field},
        "required": ["value"],
    }
    assert form.decode(b'{"value":2}') == 2
    with pytest.raises(msgspec.ValidationError, match="Value must be >= 1"):
        form.decode(b'{"value":0}')


def test_an_answer_follows_the_rule_of_json_for_every_type() -> None:
    class Model(pydantic.BaseModel):
        n: int

    class Struct(msgspec.Struct):
        n: int

    for tp in (Model, Struct):
        form = forms.Form[Any](tp)
        assert form.decode(b'{"n":5.0}').n == 5
        for raw in (b'{"n":"5"}', b'{"n":5.5}'):
            with pytest.raises(forms.Misfit):
                form.decode(raw)


def test_a_misfit_to_a_schema_is_no_answer() -> None:
    """Segue's client sends no misfit, but other clients may."""
    with pytest.raises(forms.Misfit) as caught:
        forms.Form[Any](FORM).decode(b'{"name":3}')
    assert str(caught.value) == MISFIT
    told = safe_text(caught.value, False, "failed")
    assert told == f"The answer does not fit the form: {MISFIT}"
