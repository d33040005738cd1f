/** Spans of OpenTelemetry, with its SDK's exporter that keeps spans in memory. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import {
    context,
    propagation,
    SpanKind,
    SpanStatusCode,
    trace,
} from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
    BasicTracerProvider,
    InMemorySpanExporter,
    type ReadableSpan,
    SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { type Context, connect, Remote, Server } from "segue-mcp";
import { traceCalls, traceEvents, traceMeta } from "segue-mcp/adapters/opentelemetry";
import { Lab } from "segue-mcp/testing";

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());

class Traced {
    readonly exporter = new InMemorySpanExporter();
    readonly provider = new BasicTracerProvider({
        spanProcessors: [new SimpleSpanProcessor(this.exporter)],
    });
    readonly tracer = this.provider.getTracer("client");

    server(): Server {
        const server = new Server({ name: "traced", onError: () => undefined });
        server.use(traceCalls({ tracerProvider: this.provider }));
        return server;
    }

    spans(name: string): ReadableSpan[] {
        return this.exporter.getFinishedSpans().filter((span) => span.name === name);
    }

    /** The spans of calls of a server, without those of requests to a server. */
    calls(name: string): ReadableSpan[] {
        return this.spans(name).filter((span) => span.kind === SpanKind.SERVER);
    }

    span(name: string): ReadableSpan {
        const found = this.spans(name);
        assert.equal(found.length, 1, name);
        return found[0] as ReadableSpan;
    }
}

for (const era of ["auto", "legacy"] as const)
    test(`the span of a call is a child of the caller's (${era})`, async () => {
        const traced = new Traced();
        const server = traced.server();
        server.tool("price", async () => {
            traced.tracer.startSpan("inside").end();
            return "1";
        });
        await using session = await connect(server, { era });
        await traced.tracer.startActiveSpan("caller", async (caller) => {
            await session.call("price", {}, { meta: traceMeta() });
            const wanted = caller.spanContext();
            const span = traced.span("tools/call price");
            assert.equal(span.parentSpanContext?.spanId, wanted.spanId);
            assert.equal(span.spanContext().traceId, wanted.traceId);
            assert.equal(span.kind, SpanKind.SERVER);
            assert.equal(
                traced.span("inside").parentSpanContext?.spanId,
                span.spanContext().spanId,
            );
            assert.deepEqual(span.attributes, {
                "mcp.method.name": "tools/call",
                "gen_ai.tool.name": "price",
                "gen_ai.operation.name": "execute_tool",
                "segue.resumed": false,
            });
        });
    });

test("without a span there is no trace", async () => {
    const traced = new Traced();
    const server = traced.server();
    server.tool("price", () => "1");
    server.resource("note://all", () => "none");
    assert.deepEqual(traceMeta(), {});
    await using session = await connect(server);
    await session.call("price", {}, { meta: traceMeta() });
    await session.call("price", {}, { meta: { traceparent: "nonsense" } });
    await session.call("price", {}, { meta: { traceparent: 7 } });
    await session.readResource("note://all");
    for (const span of traced.spans("tools/call price"))
        assert.equal(span.parentSpanContext, undefined);
    assert.equal(traced.spans("tools/call price").length, 3);
    const read = traced.span("resources/read");
    assert.equal(read.attributes["mcp.resource.uri"], "note://all");
});

test("a failure is an error of the span", async () => {
    const traced = new Traced();
    const server = traced.server();
    server.tool("broken", () => {
        throw new RangeError("secret");
    });
    await using session = await connect(server);
    await assert.rejects(session.call("broken"));
    const span = traced.span("tools/call broken");
    assert.equal(span.status.code, SpanStatusCode.ERROR);
    assert.equal(span.attributes["error.type"], "RangeError");
    assert.deepEqual(
        span.events.map((event) => event.name),
        ["exception"],
    );
});

test("work after a crash joins the trace", async () => {
    const traced = new Traced();
    const server = traced.server();
    const place = mkdtempSync(join(tmpdir(), "segue-"));
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => {
        begin = resolve;
    });
    const options = { task: "must", restartable: true } as const;
    server.tool("job", options, async (_: object, ctx: Context) => {
        await ctx.checkpoint("here");
        begin();
        if (!ctx.resumed) await new Promise(() => undefined);
        return "done";
    });
    const lab = new Lab();
    try {
        const served = await lab.serve(server, { store: join(place, "tasks.db") });
        const session = await served.connect();
        const { spanId, traceId } = await traced.tracer.startActiveSpan(
            "caller",
            async (caller) => {
                const running = session.call("job", {}, { meta: traceMeta() });
                await begun;
                await served.kill();
                await served.start();
                assert.equal((await running).text, "done");
                return caller.spanContext();
            },
        );
        const again = traced
            .spans("tools/call job")
            .filter((span) => span.attributes["segue.resumed"]);
        assert.equal(again.length, 1);
        assert.equal(again[0]?.spanContext().traceId, traceId);
        assert.equal(again[0]?.parentSpanContext?.spanId, spanId);
    } finally {
        await lab.close();
        rmSync(place, { recursive: true });
    }
    assert.equal(trace.getActiveSpan(), undefined);
});

async function until(found: () => unknown): Promise<void> {
    while (!found()) await setImmediate();
}

test("what the library does is in the trace, across a kill", async () => {
    const traced = new Traced();
    const server = traced.server();
    const place = mkdtempSync(join(tmpdir(), "segue-"));
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => {
        begin = resolve;
    });
    const options = { task: "must", restartable: true } as const;
    server.tool("job", options, async function* (_: object, ctx: Context) {
        yield "one";
        yield "two";
        await ctx.checkpoint("here");
        begin();
        if (!ctx.resumed) await new Promise(() => undefined);
        yield "three";
    });
    const stop = traceEvents({ tracerProvider: traced.provider });
    const lab = new Lab();
    try {
        const served = await lab.serve(server, { store: join(place, "tasks.db") });
        const session = await served.connect();
        const { spanId, traceId } = await traced.tracer.startActiveSpan(
            "caller",
            async (caller) => {
                const running = session.call("job", {}, { meta: traceMeta() });
                await begun;
                await served.kill();
                await served.start();
                await running;
                return caller.spanContext();
            },
        );
        await until(() => traced.calls("tools/call job").length > 0);
        for (const name of ["store commit", "segments", "take over", "restart"]) {
            assert.ok(traced.spans(name).length > 0, name);
            for (const span of traced.spans(name))
                assert.equal(span.spanContext().traceId, traceId, name);
        }
        const again = traced
            .calls("tools/call job")
            .find((span) => span.attributes["segue.resumed"]);
        const parents = traced
            .spans("store commit")
            .map((span) => span.parentSpanContext?.spanId);
        assert.ok(again);
        assert.ok(parents.includes(again.spanContext().spanId));
        assert.ok(spanId);
    } finally {
        stop();
        await lab.close();
        rmSync(place, { recursive: true });
    }
});

test("a call of another server is under the call", async () => {
    const traced = new Traced();
    const inner = traced.server();
    inner.tool("price", async () => "1");
    const stop = traceEvents({ tracerProvider: traced.provider });
    const listener = await inner.listenHttp({ port: 0 });
    const outer = traced.server();
    outer.mount(await Remote.connect(listener.url), { prefix: "far" });
    try {
        await using session = await connect(outer);
        await traced.tracer.startActiveSpan("caller", async () => {
            await session.call("far_price", {}, { meta: traceMeta() });
        });
        const clients = (): ReadableSpan[] =>
            traced
                .spans("tools/call price")
                .filter((span) => span.kind === SpanKind.CLIENT);
        await until(() => clients().length > 0);
        const [call] = traced.calls("tools/call far_price");
        const parent = clients()[0]?.parentSpanContext?.spanId;
        assert.equal(parent, call?.spanContext().spanId);
    } finally {
        stop();
        await outer.close();
        await inner.close();
    }
});
