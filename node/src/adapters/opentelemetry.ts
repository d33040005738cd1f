/**
 * Traces of OpenTelemetry: spans around the calls of a server, and the trace of a caller.
 *
 *     server.use(traceCalls());
 *     traceEvents();
 *     const result = await session.call("build", {}, { meta: traceMeta() });
 *
 * The trace of a call is kept with its task. A server that goes on with the task after a
 * crash runs the handler in a new span of the same trace. `traceEvents` makes child spans
 * of what the library does for a call: commits of the store, segments, resumes,
 * take-overs, and calls of other servers.
 */

import type { Attributes, Context, Span, TracerProvider } from "@opentelemetry/api";
import { type Event, observe } from "../events.js";
import type { Call, Middleware, Proceed } from "../server/layers.js";
import { framework } from "./calls.js";

type Api = typeof import("@opentelemetry/api");

// The members of `_meta` that carry a trace (MCP, "Trace context").
const NAMES = ["traceparent", "tracestate", "baggage"];
// The attribute with the name of what is used, by method, as the semantic conventions for
// MCP define it.
const TARGETS: Readonly<Record<string, string>> = {
    "tools/call": "gen_ai.tool.name",
    "prompts/get": "gen_ai.prompt.name",
    "resources/read": "mcp.resource.uri",
};

function api(): Api {
    return framework("opentelemetry", "@opentelemetry/api", () =>
        require("@opentelemetry/api"),
    );
}

/**
 * Returns the trace of the current span as members of `_meta`, for the `meta` of a call.
 * Without a span it is empty.
 */
export function traceMeta(): Record<string, string> {
    const { context, propagation } = api();
    const carrier: Record<string, string> = {};
    propagation.inject(context.active(), carrier);
    return Object.fromEntries(
        Object.entries(carrier).filter(([name]) => NAMES.includes(name)),
    );
}

/** The caller's context: of `_meta`, else of the current span, else of the headers. */
function parentOf(call: Call, { context, propagation, trace }: Api): Context {
    const told: Record<string, string> = {};
    const { meta, headers } = call.context;
    for (const name of NAMES) {
        const value = meta[name];
        if (typeof value === "string") told[name] = value;
    }
    const active = context.active();
    if (told.traceparent) return propagation.extract(active, told);
    if (trace.getSpan(active)) return active;
    for (const name of NAMES) {
        const value = headers.get(name);
        if (value !== null) told[name] = value;
    }
    // of a call that an earlier process began
    const kept = call.context.traceParent;
    if (!told.traceparent && kept !== undefined) told.traceparent = kept;
    return propagation.extract(active, told);
}

/** URIs are without number, and the name of a span has to come from a small set. */
function spanNameOf({ method, name }: Call): string {
    const isNamed = name && (method === "tools/call" || method === "prompts/get");
    return isNamed ? `${method} ${name}` : method;
}

function attributesOf(call: Call): Attributes {
    const found: Attributes = { "mcp.method.name": call.method };
    const target = TARGETS[call.method];
    if (target && call.name) found[target] = call.name;
    if (call.method === "tools/call") {
        found["gen_ai.operation.name"] = "execute_tool";
        found["segue.resumed"] = call.context.resumed !== undefined;
    }
    return found;
}

/** Runs the rest in the span, and ends the span. */
async function finish(span: Span, proceed: Proceed, { SpanStatusCode }: Api) {
    try {
        const value = await proceed();
        if ((value as { isError?: unknown } | undefined)?.isError === true) {
            span.setAttribute("error.type", "tool_error");
            span.setStatus({ code: SpanStatusCode.ERROR });
        }
        return value;
    } catch (error) {
        const name = error instanceof Error ? error.name : typeof error;
        span.setAttribute("error.type", name);
        span.recordException(error instanceof Error ? error : String(error));
        span.setStatus({ code: SpanStatusCode.ERROR });
        throw error;
    } finally {
        span.end();
    }
}

/**
 * A middleware that makes a span for each call, until its handler has ended. The span has
 * the kind SERVER and the name "tools/call NAME". It is current while the handler runs.
 * Its attributes are those of the semantic conventions for MCP, and `segue.resumed`: true
 * when the handler runs again after a crash.
 *
 * @param options.tracerProvider Default: the global provider of OpenTelemetry.
 * @throws Error when `@opentelemetry/api` is not installed.
 */
export function traceCalls(
    options: { tracerProvider?: TracerProvider | undefined } = {},
): Middleware {
    const otel = api();
    const provider = options.tracerProvider ?? otel.trace.getTracerProvider();
    const tracer = provider.getTracer("segue");
    return (call, proceed) =>
        tracer.startActiveSpan(
            spanNameOf(call),
            { kind: otel.SpanKind.SERVER, attributes: attributesOf(call) },
            parentOf(call, otel),
            (span) => {
                const own = traceParentOf(span, otel);
                if (own !== undefined) call.context.traceParent = own;
                return finish(span, proceed, otel);
            },
        );
}

/** The span as a traceparent, whatever propagators the program uses. */
function traceParentOf(span: Span, { isSpanContextValid }: Api): string | undefined {
    const own = span.spanContext();
    if (!isSpanContextValid(own)) return undefined;
    const flags = own.traceFlags.toString(16).padStart(2, "0");
    return `00-${own.traceId}-${own.spanId}-${flags}`;
}

// ---- events ----

/**
 * The events that become spans, with the names of the spans. Each event is a batch, so a
 * long stream does not make a span for each segment.
 */
const SPANS: Readonly<Record<string, string>> = {
    entries_stored: "store commit",
    segments_sent: "segments",
    client_left: "client left",
    client_resumed: "resume",
    call_taken_over: "take over",
    call_restarted: "restart",
    call_fenced: "fenced",
    request_ended: "request",
};
const KEPT = ["count", "status", "task", "upstream"];

function parentOfEvent({ fields }: Event, otel: Api): Context | undefined {
    const [, traceId, spanId, flags] = String(fields.trace_parent ?? "").split("-");
    if (!traceId || !spanId || !flags) return undefined;
    const traceFlags = Number.parseInt(flags, 16);
    const parent = { traceId, spanId, traceFlags, isRemote: true };
    return otel.trace.setSpanContext(otel.ROOT_CONTEXT, parent);
}

function eventAttributes({ fields }: Event): Attributes {
    const found: Attributes = { "mcp.method.name": String(fields.method) };
    const target = TARGETS[String(fields.method)];
    if (target && fields.item !== undefined) found[target] = fields.item;
    for (const name of KEPT) {
        const value = fields[name];
        if (value !== undefined) found[`segue.${name}`] = value;
    }
    return found;
}

function eventSpanName({ name, fields: { method, item } }: Event): string {
    if (name !== "request_ended") return SPANS[name] ?? name;
    return item === undefined ? String(method) : `${method} ${item}`;
}

/**
 * Makes spans of what the library does for calls that are in a trace, in the whole
 * environment. Returns a function that ends this.
 *
 * The spans are children of the span of {@link traceCalls}, or of the caller's span
 * without it: "store commit" and "segments" (each at most one in a second while the
 * handler of the call runs), "resume", "client left", "take over", "restart", "fenced",
 * and for each request that a session sends with a trace a span of the kind CLIENT
 * with the name "tools/call NAME".
 *
 * @param options.tracerProvider Default: the global provider of OpenTelemetry.
 * @throws Error when `@opentelemetry/api` is not installed.
 */
export function traceEvents(
    options: { tracerProvider?: TracerProvider | undefined } = {},
): () => void {
    const otel = api();
    const provider = options.tracerProvider ?? otel.trace.getTracerProvider();
    const tracer = provider.getTracer("segue");
    return observe((event) => {
        const parent = event.name in SPANS ? parentOfEvent(event, otel) : undefined;
        if (!parent) return;
        const isRequest = event.name === "request_ended";
        const end = Date.parse(event.time);
        const { duration_us: duration = 0, status = "ok" } = event.fields;
        const span = tracer.startSpan(
            eventSpanName(event),
            {
                kind: isRequest ? otel.SpanKind.CLIENT : otel.SpanKind.INTERNAL,
                attributes: eventAttributes(event),
                startTime: end - Number(duration) / 1000,
            },
            parent,
        );
        if (isRequest && status !== "ok") {
            span.setAttribute("error.type", status);
            span.setStatus({ code: otel.SpanStatusCode.ERROR });
        }
        span.end(end);
    });
}
