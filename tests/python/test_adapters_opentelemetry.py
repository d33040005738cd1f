"""Spans of OpenTelemetry, with the exporter of its own SDK that keeps spans in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import segue
from segue import testing
from segue.adapters import opentelemetry

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Traced:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("client")

    def server(self) -> segue.Server:
        server = segue.Server("traced")
        server.use(opentelemetry.trace_calls(self.provider))
        return server

    def spans(self, name: str) -> list[ReadableSpan]:
        return [one for one in self.exporter.get_finished_spans() if one.name == name]

    def calls(self, name: str) -> list[ReadableSpan]:
        """The spans of calls of a server, without those of requests to a server."""
        kind = trace.SpanKind.SERVER
        return [one for one in self.spans(name) if one.kind == kind]

    def span(self, name: str) -> ReadableSpan:
        (one,) = self.spans(name)
        return one


@pytest.fixture
def traced() -> Iterator[Traced]:
    one = Traced()
    yield one
    one.provider.shutdown()


def run(work: Any) -> None:
    asyncio.run(asyncio.wait_for(work(), 120))


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_the_span_of_a_call_is_a_child_of_the_callers(traced: Traced, era: Any) -> None:
    server = traced.server()

    @server.tool
    async def price(item: str) -> str:
        with traced.tracer.start_as_current_span("inside"):
            return item

    @server.tool
    def plain() -> str:
        with traced.tracer.start_as_current_span("on a thread"):
            return "done"

    async def work() -> None:
        async with segue.connect(server, era=era) as session:
            with traced.tracer.start_as_current_span("caller") as caller:
                meta = opentelemetry.trace_meta()
                await session.call("price", item="tea", meta=meta)
                await session.call("plain", meta=meta)
            wanted = caller.get_span_context()
            for name, inner in (("price", "inside"), ("plain", "on a thread")):
                span = traced.span(f"tools/call {name}")
                assert span.parent is not None
                assert span.parent.span_id == wanted.span_id
                assert span.context.trace_id == wanted.trace_id
                assert span.kind == trace.SpanKind.SERVER
                below = traced.span(inner).parent
                assert below is not None
                assert below.span_id == span.context.span_id
            assert attributes(traced.span("tools/call price")) == {
                "mcp.method.name": "tools/call",
                "gen_ai.tool.name": "price",
                "gen_ai.operation.name": "execute_tool",
                "segue.resumed": False,
            }

    run(work)


def test_without_a_span_there_is_no_trace(traced: Traced) -> None:
    server = traced.server()

    @server.tool
    async def price() -> str:
        return "1"

    @server.resource("note://all")
    async def notes() -> str:
        return "none"

    @server.prompt
    async def ask() -> str:
        return "why?"

    async def work() -> None:
        assert opentelemetry.trace_meta() == {}
        async with segue.connect(server) as session:
            await session.call("price", meta=opentelemetry.trace_meta())
            await session.call("price", meta={"traceparent": "nonsense"})
            await session.call("price", meta={"traceparent": 7})
            await session.read_resource("note://all")
            await session.get_prompt("ask")
        assert [one.parent for one in traced.spans("tools/call price")] == [None] * 3
        read = attributes(traced.span("resources/read"))
        assert read["mcp.resource.uri"] == "note://all"
        assert attributes(traced.span("prompts/get ask"))["gen_ai.prompt.name"] == "ask"

    run(work)


def test_a_failure_is_an_error_of_the_span(traced: Traced) -> None:
    server = traced.server()

    @server.tool
    async def broken() -> str:
        raise ValueError("secret")

    async def work() -> None:
        async with segue.connect(server) as session:
            with pytest.raises(segue.ToolError):
                await session.call("broken")
        span = traced.span("tools/call broken")
        assert span.status.status_code == trace.StatusCode.ERROR
        assert attributes(span)["error.type"] == "ValueError"
        assert [event.name for event in span.events] == ["exception"]

    run(work)


def test_a_header_carries_the_trace_too(traced: Traced) -> None:
    server = traced.server()

    @server.tool
    async def price() -> str:
        return "1"

    async def work() -> None:
        async with testing.Lab() as lab:
            served = await lab.serve(server)
            session = await served.connect(headers={"traceparent": PARENT})
            await session.call("price")
        parent = traced.span("tools/call price").parent
        assert parent is not None
        assert f"{parent.trace_id:032x}" in PARENT
        assert f"{parent.span_id:016x}" in PARENT

    run(work)


def test_work_after_a_crash_joins_the_trace(traced: Traced, tmp_path: Path) -> None:
    server = traced.server()
    begun = asyncio.Event()

    @server.tool(task="must", restartable=True)
    async def job(ctx: segue.Context) -> str:
        await ctx.checkpoint("here")
        begun.set()
        if ctx.resumed is None:
            await asyncio.sleep(60)
        return "done"

    async def work() -> None:
        lab = testing.Lab()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(lab.aclose)
            served = await lab.serve(server, store=str(tmp_path / "tasks.db"))
            session = await served.connect()
            with traced.tracer.start_as_current_span("caller") as caller:
                meta = opentelemetry.trace_meta()
                task = asyncio.ensure_future(session.call("job", meta=meta))
            await begun.wait()
            await served.kill()
            await served.start()
            assert (await task).text == "done"
            wanted = caller.get_span_context()
            again = [
                one
                for one in traced.spans("tools/call job")
                if attributes(one)["segue.resumed"]
            ]
            assert len(again) == 1
            assert again[0].context.trace_id == wanted.trace_id
            assert again[0].parent is not None
            assert again[0].parent.span_id == wanted.span_id

    run(work)


async def until(found: Any) -> None:
    while not found():
        await asyncio.sleep(0)


def test_what_the_library_does_is_in_the_trace(traced: Traced, tmp_path: Path) -> None:
    """Across a kill: the spans of both runs are children of the spans of their calls."""
    server = traced.server()
    begun = asyncio.Event()

    @server.tool(task="must", restartable=True)
    async def job(ctx: segue.Context) -> AsyncIterator[str]:
        yield "one"
        yield "two"
        await ctx.checkpoint("here")
        begun.set()
        if ctx.resumed is None:
            await asyncio.sleep(60)
        yield "three"

    async def work() -> None:
        stop = opentelemetry.trace_events(traced.provider)
        lab = testing.Lab()
        async with AsyncExitStack() as stack:
            stack.callback(stop)
            stack.push_async_callback(lab.aclose)
            served = await lab.serve(server, store=str(tmp_path / "tasks.db"))
            session = await served.connect()
            with traced.tracer.start_as_current_span("caller") as caller:
                meta = opentelemetry.trace_meta()
                task = asyncio.ensure_future(session.call("job", meta=meta))
            await begun.wait()
            await served.kill()
            await served.start()
            await task
            await until(lambda: len(traced.spans("segments")) >= 1)
            await until(lambda: traced.calls("tools/call job"))
        wanted = caller.get_span_context()
        for name in ("store commit", "segments", "take over", "restart"):
            assert traced.spans(name), name
            for span in traced.spans(name):
                assert span.context.trace_id == wanted.trace_id, name
        calls = {one.context.span_id: one for one in traced.calls("tools/call job")}
        again = [
            key for key, one in calls.items() if attributes(one)["segue.resumed"] is True
        ]
        stored = traced.spans("store commit")
        commits = {one.parent.span_id for one in stored if one.parent}
        assert len(again) == 1
        assert again[0] in commits
        assert commits <= {*calls, wanted.span_id}

    run(work)


def test_a_call_of_another_server_is_under_the_call(traced: Traced) -> None:
    inner = traced.server()

    @inner.tool
    async def price() -> str:
        return "1"

    def upstreams() -> list[ReadableSpan]:
        kind = trace.SpanKind.CLIENT
        return [one for one in traced.spans("tools/call price") if one.kind == kind]

    async def work() -> None:
        stop = opentelemetry.trace_events(traced.provider)
        async with inner.serving(http="127.0.0.1:0") as serving:
            outer = segue.Server("outer")
            outer.use(opentelemetry.trace_calls(traced.provider))
            outer.mount(segue.Remote(serving.url), "far")
            async with segue.connect(outer) as session:
                with traced.tracer.start_as_current_span("caller"):
                    meta = opentelemetry.trace_meta()
                    await session.call("far_price", meta=meta)
                await until(upstreams)
        stop()
        (call,) = traced.calls("tools/call far_price")
        (upstream,) = upstreams()
        assert upstream.parent is not None
        assert upstream.parent.span_id == call.context.span_id
        assert attributes(upstream)["gen_ai.tool.name"] == "price"

    run(work)


def test_the_trace_of_a_header_is_kept_with_the_task(
    traced: Traced, tmp_path: Path
) -> None:
    server = traced.server()
    begun = asyncio.Event()

    @server.tool(task="must", restartable=True)
    async def job(ctx: segue.Context) -> str:
        begun.set()
        if ctx.resumed is None:
            await asyncio.sleep(60)
        return "done"

    async def work() -> None:
        lab = testing.Lab()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(lab.aclose)
            served = await lab.serve(server, store=str(tmp_path / "tasks.db"))
            session = await served.connect(headers={"traceparent": PARENT})
            task = asyncio.ensure_future(session.call("job"))
            await begun.wait()
            await served.kill()
            await served.start()
            assert (await task).text == "done"
        (again,) = (
            one
            for one in traced.spans("tools/call job")
            if attributes(one)["segue.resumed"]
        )
        assert f"{again.context.trace_id:032x}" in PARENT

    run(work)


OTHER = "00-11111111111111111111111111111111-2222222222222222-01"


@pytest.mark.parametrize("meta", [{}, {"traceparent": OTHER}])
def test_the_trace_of_meta_comes_before_that_of_a_header(
    traced: Traced, tmp_path: Path, meta: dict[str, str]
) -> None:
    """For all events of a task: of its first run, of the run after a crash, and after the
    end of its handler. The span of the first run is not stored."""
    server = segue.Server("untraced")
    begun = asyncio.Event()
    events: list[segue.Event] = []
    span = "00-33333333333333333333333333333333-4444444444444444-01"
    kept: list[str | None] = []

    @server.tool(task="must", restartable=True)
    async def job(ctx: segue.Context) -> str:
        kept.append(ctx.trace_parent)
        begun.set()
        if ctx.resumed is None:
            ctx.trace_parent = span
            await asyncio.sleep(60)
        return "done"

    def ended() -> list[segue.Event]:
        return [one for one in events if one.name == "task_ended"]

    async def work() -> None:
        stop = segue.observe(events.append)
        lab = testing.Lab()
        async with AsyncExitStack() as stack:
            stack.callback(stop)
            stack.push_async_callback(lab.aclose)
            served = await lab.serve(server, store=str(tmp_path / "tasks.db"))
            session = await served.connect(headers={"traceparent": PARENT})
            task = asyncio.ensure_future(session.call("job", meta=meta))
            await begun.wait()
            await served.kill()
            await served.start()
            assert (await task).text == "done"
            await until(ended)

    run(work)
    wanted = meta.get("traceparent", PARENT)
    assert kept == [wanted, wanted]
    assert ended()[-1].fields["trace_parent"] == wanted


def test_a_task_that_has_ended_is_in_the_trace_of_its_header(tmp_path: Path) -> None:
    server = segue.Server("untraced")
    events: list[segue.Event] = []

    @server.tool(task="must")
    async def job() -> str:
        return "done"

    def ended() -> list[segue.Event]:
        return [one for one in events if one.name == "task_ended"]

    async def work() -> None:
        stop = segue.observe(events.append)
        async with testing.Lab() as lab:
            served = await lab.serve(server, store=str(tmp_path / "tasks.db"))
            session = await served.connect(headers={"traceparent": PARENT})
            assert (await session.call("job")).text == "done"
            await until(ended)
        stop()

    run(work)
    assert ended()[0].fields["trace_parent"] == PARENT
