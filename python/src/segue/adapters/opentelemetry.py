"""Traces of OpenTelemetry: spans around the calls of a server, and the trace of a caller.

    server.use(opentelemetry.trace_calls())
    opentelemetry.trace_events()
    result = await session.call("build", meta=opentelemetry.trace_meta())

The trace of a call is kept with its task. A server that goes on with the task after a
crash runs the handler in a new span of the same trace. `trace_events` makes child spans
of what the library does for a call: commits of the store, segments, resumes, take-overs,
and calls of other servers.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from ..content import Result
from ..events import Event, observe
from ..server.layers import Call, Middleware, Proceed
from ._calls import missing

try:
    from opentelemetry import context, propagate, trace
    from opentelemetry.trace.propagation.tracecontext import (
        TraceContextTextMapPropagator,
    )
except ImportError as error:
    raise missing(__name__, "opentelemetry-api", error) from error

__all__ = ["trace_calls", "trace_events", "trace_meta"]

# The members of `_meta` that carry a trace (MCP, "Trace context").
_NAMES = ("traceparent", "tracestate", "baggage")
# The attribute with the name of what is used, by method, as the semantic conventions
# for MCP define it.
_TARGETS = {
    "tools/call": "gen_ai.tool.name",
    "prompts/get": "gen_ai.prompt.name",
    "resources/read": "mcp.resource.uri",
}


def trace_meta() -> dict[str, str]:
    """Returns the trace of the current span as members of `_meta`, for the `meta` of a
    call. Without a span it is empty."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return {name: carrier[name] for name in _NAMES if name in carrier}


def _parent(call: Call) -> context.Context | None:
    """The caller's context: of `_meta`, else that of the current span, else of the
    headers of the request; None for the current context."""
    told = {name: call.context.meta(name) for name in _NAMES}
    if isinstance(told["traceparent"], str):
        return propagate.extract({k: v for k, v in told.items() if isinstance(v, str)})
    if trace.get_current_span().get_span_context().is_valid:
        return None
    headers = call.context.headers
    found = {k: headers[k] for k in _NAMES if k in headers}
    kept = call.context.trace_parent  # of a call that an earlier process began
    if "traceparent" not in found and kept is not None:
        found = {"traceparent": kept}
    return propagate.extract(found)


def _span_name(call: Call) -> str:
    # URIs are without number, and the name of a span has to come from a small set
    named = call.name and call.method in ("tools/call", "prompts/get")
    return f"{call.method} {call.name}" if named else call.method


def _attributes(call: Call) -> dict[str, Any]:
    found: dict[str, Any] = {"mcp.method.name": call.method}
    if call.name and call.method in _TARGETS:
        found[_TARGETS[call.method]] = call.name
    if call.method == "tools/call":
        found["gen_ai.operation.name"] = "execute_tool"
        resumed = call.context.resumed
        found["segue.resumed"] = resumed is not None
    return found


def _trace_parent_of(span: trace.Span) -> str | None:
    """The span as a traceparent, whatever propagators the program uses."""
    own = span.get_span_context()
    if not own.is_valid:
        return None
    return f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"


def trace_calls(tracer_provider: trace.TracerProvider | None = None) -> Middleware:
    """A middleware that makes a span for each call, until its handler has ended.

    The span has the kind SERVER and the name "tools/call NAME", "prompts/get NAME", or
    the method alone. It is current while the handler runs. Its attributes are those of
    the semantic conventions for MCP, and `segue.resumed`: True when the handler runs
    again after a crash.

    Args:
        tracer_provider: default: the global provider of OpenTelemetry.
    """
    tracer = trace.get_tracer("segue", tracer_provider=tracer_provider)

    async def traced(call: Call, proceed: Proceed) -> Any:
        with tracer.start_as_current_span(
            _span_name(call),
            context=_parent(call),
            kind=trace.SpanKind.SERVER,
            attributes=_attributes(call),
        ) as span:
            own = _trace_parent_of(span)
            if own is not None:
                call.context.trace_parent = own
            try:
                value = await proceed()
            except Exception as error:
                span.set_attribute("error.type", type(error).__qualname__)
                raise
            if isinstance(value, Result) and value.is_error:
                span.set_attribute("error.type", "tool_error")
                span.set_status(trace.StatusCode.ERROR)
            return value

    return traced


# ---- events ----

# The events that become spans, with the names of the spans. Each event is a batch, so a
# long stream does not make a span for each segment.
_SPANS = {
    "entries_stored": "store commit",
    "segments_sent": "segments",
    "client_left": "client left",
    "client_resumed": "resume",
    "call_taken_over": "take over",
    "call_restarted": "restart",
    "call_fenced": "fenced",
    "request_ended": "request",
}
_PARENTS = TraceContextTextMapPropagator()


def _parent_of(event: Event) -> context.Context | None:
    told = event.fields.get("trace_parent")
    return _PARENTS.extract({"traceparent": str(told)}) if told else None


def _event_attributes(event: Event) -> dict[str, Any]:
    fields = event.fields
    found: dict[str, Any] = {"mcp.method.name": fields.get("method", "")}
    target = _TARGETS.get(str(fields.get("method")))
    if target is not None and "item" in fields:
        found[target] = fields["item"]
    for name in ("count", "status", "task", "upstream"):
        if name in fields:
            found[f"segue.{name}"] = fields[name]
    return found


def _event_span_name(event: Event) -> str:
    if event.name != "request_ended":
        return _SPANS[event.name]
    method, item = event.fields.get("method", ""), event.fields.get("item")
    return f"{method} {item}" if item else str(method)


def trace_events(
    tracer_provider: trace.TracerProvider | None = None,
) -> Callable[[], None]:
    """Makes spans of what the library does for calls that are in a trace, in the whole
    process. Returns a function that ends this.

    The spans are children of the span of `trace_calls`, or of the caller's span without
    it: "store commit" and "segments" (each at most one in a second while the handler of
    the call runs), "resume", "client left", "take over", "restart", "fenced", and for
    each request that a session sends with a trace a span of the kind
    CLIENT with the name "tools/call NAME".

    Args:
        tracer_provider: default: the global provider of OpenTelemetry.
    """
    tracer = trace.get_tracer("segue", tracer_provider=tracer_provider)

    def make(event: Event) -> None:
        parent = _parent_of(event) if event.name in _SPANS else None
        if parent is None:
            return
        is_request = event.name == "request_ended"
        time = datetime.fromisoformat(event.time.replace("Z", "+00:00"))
        end = round(time.timestamp() * 1000) * 1_000_000
        span = tracer.start_span(
            _event_span_name(event),
            context=parent,
            kind=trace.SpanKind.CLIENT if is_request else trace.SpanKind.INTERNAL,
            attributes=_event_attributes(event),
            start_time=end - int(event.fields.get("duration_us", 0)) * 1000,
        )
        status = event.fields.get("status", "ok")
        if is_request and status != "ok":
            span.set_attribute("error.type", str(status))
            span.set_status(trace.StatusCode.ERROR)
        span.end(end_time=end)

    return observe(make)
