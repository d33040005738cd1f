"""Traces of OpenTelemetry: spans around the calls of a server, and the trace of a caller.

    server.use(opentelemetry.trace_calls())
    result = await session.call("build", meta=opentelemetry.trace_meta())

The trace of a call is kept with its task. A server that goes on with the task after a
crash runs the handler in a new span of the same trace.
"""

from __future__ import annotations

from typing import Any

from ..content import Result
from ..server.layers import Call, Middleware, Proceed
from ._calls import missing

try:
    from opentelemetry import context, propagate, trace
except ImportError as error:
    raise missing(__name__, "opentelemetry-api", error) from error

__all__ = ["trace_calls", "trace_meta"]

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
    return propagate.extract({k: headers[k] for k in _NAMES if k in headers})


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
