/** Middleware of a Node server. */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import {
    type Call,
    middleware,
    type Proceed,
    RemoteError,
    RpcError,
    Server,
    type Session,
    ToolError,
} from "segue-mcp";
import { z } from "zod";
import { Gate, inEachWorld, serve } from "./server_worlds.js";

/** A server with a handler of each kind. */
function shop(): Server {
    const server = new Server({ name: "shop", onError: () => undefined });
    const numbers = { a: z.number(), b: z.number() };
    server.tool("add", { input: numbers }, async ({ a, b }) => ({ sum: a + b }));
    server.tool("plain", { input: { word: z.string() } }, async ({ word }, ctx) => {
        await ctx.send("first ");
        return word;
    });
    const count = { input: { n: z.number() } };
    server.tool("stream", count, async function* ({ n }) {
        for (let number = 0; number < n; number++) yield `${number} `;
    });
    server.tool("plain_stream", count, function* ({ n }) {
        for (let number = 0; number < n; number++) yield `${number} `;
    });
    server.resource("note://{id}", ({ id }) => `note ${id}`);
    server.resource("long://text", async function* () {
        yield "one ";
        yield "two";
    });
    const review = { input: { code: z.string() } };
    server.prompt("review", review, ({ code }) => `Review ${code}`);
    return server;
}

async function read(session: Session, uri: string): Promise<unknown> {
    const [contents] = (await session.readResource(uri)).contents;
    return (contents as { text?: string }).text;
}

async function messageOf(promise: Promise<unknown>): Promise<string> {
    let message = "";
    await assert.rejects(promise, (error: Error) => {
        message = error.message;
        return true;
    });
    return message;
}

inEachWorld("calls of every kind pass in their order", async (world) => {
    const server = shop();
    const lines: string[] = [];
    server
        .use(async (call, proceed) => {
            lines.push(`${call.method} ${call.name} ${JSON.stringify(call.arguments)}`);
            const value = await proceed();
            lines.push(`outer ${JSON.stringify(value)}`);
            return value;
        })
        .use(
            async (_call, proceed) => {
                const value = await proceed();
                lines.push(`inner ${JSON.stringify(value)}`);
                return value;
            },
            { methods: ["tools/call"] },
        );
    const passed = (): string[] => lines.splice(0);
    await serve(world, server, async (session) => {
        const sum = await session.call("add", { a: 1, b: 2 });
        assert.deepEqual(sum.structured, { sum: 3 });
        assert.deepEqual(passed(), [
            'tools/call add {"a":1,"b":2}',
            'inner {"sum":3}',
            'outer {"sum":3}',
        ]);
        assert.equal((await session.call("plain", { word: "x" })).text, "first x");
        assert.deepEqual(passed(), [
            'tools/call plain {"word":"x"}',
            'inner "x"',
            'outer "x"',
        ]);
        for (const name of ["stream", "plain_stream"])
            assert.equal((await session.call(name, { n: 3 })).text, "0 1 2 ");
        passed();
        assert.equal(await read(session, "note://7"), "note 7");
        assert.deepEqual(passed(), [
            'resources/read note://7 {"id":"7"}',
            'outer "note 7"',
        ]);
        assert.equal(await read(session, "long://text"), "one two");
        assert.deepEqual(passed(), ["resources/read long://text {}", "outer undefined"]);
        const prompt = await session.getPrompt("review", { code: "x" });
        const content = prompt.messages[0]?.content as { text?: string };
        assert.equal(content.text, "Review x");
        assert.deepEqual(passed(), [
            'prompts/get review {"code":"x"}',
            'outer "Review x"',
        ]);
    });
});

inEachWorld("segments are not gathered", async (world) => {
    const server = new Server({ name: "streams" });
    const readOne = new Gate();
    server.tool("stream", { task: "may" }, async function* () {
        yield "one ";
        await readOne.opened;
        yield "two";
    });
    const seen: boolean[] = [];
    server.use(async (call, proceed) => {
        seen.push(call.hasSent);
        const value = await proceed();
        seen.push(call.hasSent);
        return value;
    });
    await serve(world, server, async (session) => {
        const texts: string[] = [];
        for await (const segment of session.stream("stream")) {
            texts.push(segment.text ?? "");
            readOne.open(); // so the first segment came before the handler went on
        }
        assert.equal(texts.join(""), "one two");
        assert.deepEqual(seen, [false, true]);
    });
});

inEachWorld("a middleware changes arguments, segments and values", async (world) => {
    const server = shop();
    server.tool("sends", async (_, ctx) => {
        await ctx.send("a secret ", ["secrets"] as never);
        await ctx.extend(0, "secret ");
        return "secret end";
    });
    server.use((call, proceed) => {
        call.onSegment((value) => `*${value}*`);
        return proceed();
    });
    server.use(async (call, proceed) => {
        const hidden = (value: unknown): string => String(value).replace("secret", "...");
        call.onSegment(hidden);
        if ("a" in call.arguments) call.arguments.a = 40;
        if (call.name === "note://7") call.arguments = { id: "eight" };
        const value = await proceed();
        return typeof value === "string" ? hidden(value) : value;
    });
    await serve(world, server, async (session) => {
        const sum = await session.call("add", { a: 1, b: 2 });
        assert.deepEqual(sum.structured, { sum: 42 });
        assert.equal(await read(session, "note://7"), "note eight");
        for (const name of ["stream", "plain_stream"])
            assert.equal((await session.call(name, { n: 2 })).text, "*0 **1 *");
        assert.equal((await session.call("plain", { word: "x" })).text, "*first *x");
        assert.equal(await read(session, "long://text"), "*one **two*");
        const sent = (await session.call("sends")).text;
        assert.equal(sent, "*a ... **... **...s*... end");
    });
});

inEachWorld("a middleware answers itself or fails", async (world) => {
    const server = shop();
    const ran: string[] = [];
    server.use((call) => {
        ran.push(call.name);
        if (call.name === "add") throw new ToolError("not today");
        if (call.name === "note://1") throw new Error("secret");
        if (call.name === "review") throw new RpcError(1001, "who are you?");
        return "cached";
    });
    await serve(world, server, async (session) => {
        assert.equal(await messageOf(session.call("add", { a: 1, b: 2 })), "not today");
        assert.match(await messageOf(read(session, "note://1")), /Internal error/);
        const prompt = session.getPrompt("review", { code: "x" });
        assert.match(await messageOf(prompt), /who are you/);
        assert.equal((await session.call("stream", { n: 3 })).text, "cached");
        assert.equal((await session.call("plain", { word: "x" })).text, "cached");
        assert.equal(await read(session, "long://text"), "cached");
        assert.equal(ran.length, 6);
    });
});

inEachWorld("errors pass and are answered once", async (world) => {
    const reported: string[] = [];
    const onError = (error: unknown): void => void reported.push(String(error));
    const server = new Server({ name: "fails", onError });
    server.tool("plain", { input: { n: z.number() } }, () => {
        throw new RangeError("inside");
    });
    const seen: string[] = [];
    server.use(async (_call, proceed) => {
        try {
            return await proceed();
        } catch (error) {
            seen.push(String(error));
            throw error;
        }
    });
    await serve(world, server, async (session) => {
        const failed = session.call("plain", { n: 1 });
        assert.equal(await messageOf(failed), "The tool plain failed");
        assert.match(
            await messageOf(session.call("plain", { m: 1 })),
            /unknown argument "m"/,
        );
        assert.equal(seen[0], "RangeError: inside");
        assert.match(seen[1] ?? "", /unknown argument "m"/);
        assert.deepEqual(reported, ["RangeError: inside"]);
    });
});

inEachWorld("a caller that goes aborts the signal in a middleware", async (world) => {
    const server = new Server({ name: "waits" });
    const began = new Gate();
    const left = new Gate();
    server.tool("wait", async (_, ctx) => {
        began.open();
        await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        return "nobody reads this";
    });
    server.use(async (call, proceed) => {
        try {
            return await proceed();
        } finally {
            assert.ok(call.context.cancelled);
            left.open();
        }
    });
    await serve(world, server, async (session) => {
        const abort = new AbortController();
        const call = session.call("wait", {}, { signal: abort.signal });
        await began.opened;
        abort.abort();
        await assert.rejects(call);
        await left.opened;
    });
});

test("what is no middleware is refused", () => {
    const server = new Server({ name: "checks" });
    assert.throws(() => server.use("no" as never), /has to be a function/);
    const wrong: [unknown, RegExp][] = [
        [null, /not null/],
        [middleware.logCalls, /use\(middleware\.logCalls\(\)\)/],
        [middleware.retry, /use\(middleware\.retry\(\)\)/],
        [class Logger {}, /cannot be a class \(Logger\)/],
        [async function* each() {}, /cannot be a generator \(each\)/],
        [(_call: Call, _proceed: Proceed, _more: number) => 1, /has 3 parameters/],
    ];
    for (const [one, why] of wrong) assert.throws(() => server.use(one as never), why);
    for (const make of [
        () => middleware.logCalls("name" as never),
        () => middleware.logCalls({ log: "name" as never }),
        () => middleware.timeCalls("name" as never),
        () => middleware.limitRate(1, { key: "name" as never }),
        () => middleware.maskErrors("text", { onError: "name" as never }),
        () => middleware.maskErrors(RangeError as never),
        () => middleware.retry(1, null as never),
    ])
        assert.throws(make, /(have|has) to be/);
    const one = "tools/call" as never;
    assert.throws(() => server.use(middleware.retry(), { methods: one }), /\["tools/);
    const methods = ["tasks/list"] as never;
    assert.throws(() => server.use(middleware.retry(), { methods }), /not "tasks\/list"/);
});

// ---- middlewares that are ready

inEachWorld("calls are logged and timed", async (world) => {
    const server = new Server({ name: "timed" });
    let now = 1000;
    const clock = (): number => now;
    server.tool("work_for", { input: { seconds: z.number() } }, ({ seconds }) => {
        now += seconds * 1000;
        if (seconds > 5) throw new ToolError("too long");
        return "done";
    });
    const lines: string[] = [];
    const times: unknown[] = [];
    // only calls: clients of earlier revisions list the tools first
    const only = { methods: ["tools/call"] } as const;
    server.use(
        middleware.logCalls({ log: (line) => lines.push(line), arguments: true, clock }),
        only,
    );
    const report = ({ name }: Call, ms: number, error: unknown): void =>
        void times.push([name, ms, String(error)]);
    server.use(middleware.timeCalls(report, { clock }), only);
    await serve(world, server, async (session) => {
        await session.call("work_for", { seconds: 2 });
        await assert.rejects(session.call("work_for", { seconds: 6 }));
        assert.deepEqual(times, [
            ["work_for", 2000, "undefined"],
            ["work_for", 6000, "ToolError: too long"],
        ]);
        assert.deepEqual(lines, [
            'tools/call work_for {"seconds":2} ended after 2.000 s',
            'tools/call work_for {"seconds":6} failed (ToolError) after 6.000 s',
        ]);
    });
});

inEachWorld("a caller that calls too often is refused", async (world) => {
    const server = new Server({ name: "limited" });
    let now = 1000;
    const key = (call: Call): string => String(call.arguments.who);
    server.tool("hello", { input: { who: z.string() } }, ({ who }) => `hello ${who}`);
    server.use(middleware.limitRate(2, { burst: 3, key, clock: () => now }));
    await serve(world, server, async (session) => {
        const hello = (who: string): Promise<unknown> => session.call("hello", { who });
        for (let count = 0; count < 3; count++) await hello("a");
        await assert.rejects(hello("a"), (error: RemoteError) => {
            assert.ok(error instanceof RemoteError);
            assert.equal(
                error.message,
                "Too many calls: at most 2 a second. Try again in 500 ms",
            );
            assert.ok(error.retryable);
            assert.deepEqual(error.data, {
                reason: "limit",
                limit: "calls_per_second",
                value: 2,
                retryAfterMs: 500,
            });
            return true;
        });
        await hello("b");
        now += 500;
        await hello("a");
        await assert.rejects(hello("a"));
        now += 60_000;
        for (let count = 0; count < 3; count++) await hello("a");
        await assert.rejects(hello("a"));
    });
    assert.throws(() => middleware.limitRate(0), RangeError);
});

inEachWorld("errors are masked", async (world) => {
    const reported: string[] = [];
    const onError = (error: unknown): void => void reported.push(String(error));
    const server = new Server({ name: "masked", onError });
    const errors: Record<string, Error> = {
        range: new RangeError("a range"),
        other: new Error("another"),
        tool: new ToolError("a tool"),
    };
    server.tool("fail", { input: { kind: z.string() } }, ({ kind }) => {
        throw errors[kind];
    });
    server.resource("file://none", () => {
        throw Object.assign(new Error("no /etc/none"), { code: "ENOENT" });
    });
    server.use(middleware.maskErrors("Ask the operator", { show: [RangeError] }));
    await serve(world, server, async (session) => {
        const textOf = (args: Record<string, string>): Promise<string> =>
            messageOf(session.call("fail", args));
        assert.equal(await textOf({ kind: "range" }), "a range");
        assert.equal(await textOf({ kind: "other" }), "Ask the operator");
        assert.equal(await textOf({ kind: "tool" }), "a tool");
        assert.match(await textOf({ sort: "other" }), /unknown argument "sort"/);
        const missing = await messageOf(read(session, "file://none"));
        assert.match(missing, /Resource not found/);
        assert.deepEqual(reported, ["Error: another"]);
    });
});

inEachWorld("a handler runs again unless it has sent", async (world) => {
    const server = new Server({ name: "again", onError: () => undefined });
    const runs: Record<string, number> = {};
    const pauses: number[] = [];
    const count = (name: string, until: number): void => {
        runs[name] = (runs[name] ?? 0) + 1;
        if (runs[name] < until)
            throw Object.assign(new Error(name), { code: "ECONNRESET" });
    };
    server.tool("plain", () => {
        count("plain", 3);
        return "plain";
    });
    server.tool("never", () => count("never", 9));
    server.tool("other", () => {
        runs.other = (runs.other ?? 0) + 1;
        throw new Error("is not transient");
    });
    server.tool("stream", async function* () {
        count("stream", 2);
        yield "stream";
    });
    server.tool("sends", async function* () {
        yield "begun";
        count("sends", 2);
    });
    const sleep = async (ms: number): Promise<void> => void pauses.push(ms);
    server.use(middleware.retry(2, { delayMs: 500, sleep }));
    await serve(world, server, async (session) => {
        assert.equal((await session.call("plain")).text, "plain");
        assert.deepEqual(pauses, [500, 1000]);
        assert.equal((await session.call("stream")).text, "stream");
        for (const name of ["never", "other", "sends"])
            await assert.rejects(session.call(name), ToolError);
        assert.deepEqual(runs, { plain: 3, stream: 2, never: 3, other: 1, sends: 1 });
    });
});

inEachWorld("a middleware sets what AsyncLocalStorage has in handlers", async (world) => {
    const storage = new AsyncLocalStorage<string>();
    const seen = () => `${storage.getStore()} `;
    const server = new Server({ name: "stored" });
    server.use((call, proceed) => storage.run(call.name, proceed));
    server.use((_, proceed) => proceed());
    const later = () => new Promise((resolve) => setImmediate(resolve));
    server.tool("plain", seen);
    server.tool("later", async (_, ctx) => {
        await ctx.send(seen());
        await later();
        return seen();
    });
    server.tool("stream", async function* () {
        yield seen();
        await later();
        yield seen();
    });
    server.tool("task", { task: "must" }, async function* () {
        yield seen();
        await later();
        yield seen();
    });
    server.resource("note://{id}", seen);
    await serve(world, server, async (session) => {
        assert.equal((await session.call("plain")).text, "plain ");
        for (const name of ["later", "stream", "task"])
            assert.equal((await session.call(name)).text, `${name} ${name} `);
        assert.equal(await read(session, "note://7"), "note://7 ");
    });
    assert.equal(storage.getStore(), undefined);
});

test("retry knows the errors that Node programs meet", async () => {
    const coded = (code: string): Error => Object.assign(new Error("no"), { code });
    const failed = (cause: unknown): Error => new TypeError("fetch failed", { cause });
    const errors: { readonly [name: string]: [error: () => unknown, runs: number] } = {
        refused: [() => failed(coded("ECONNREFUSED")), 2],
        both: [() => failed(new AggregateError([coded("ETIMEDOUT")], "all")), 2],
        socket: [() => failed(coded("UND_ERR_SOCKET")), 2],
        missing: [() => coded("ENOTFOUND"), 2],
        again: [() => coded("EAI_AGAIN"), 2],
        late: [() => new DOMException("too late", "TimeoutError"), 2],
        file: [() => coded("ENOENT"), 1],
        other: [() => failed(new Error("bad certificate")), 1],
    };
    const server = new Server({ name: "retries", onError: () => undefined });
    const runs: Record<string, number> = {};
    for (const [name, [error]] of Object.entries(errors)) {
        server.tool(name, () => {
            runs[name] = (runs[name] ?? 0) + 1;
            throw error();
        });
    }
    server.use(middleware.retry(1, { sleep: async () => undefined }));
    await serve({ way: "pair", era: "modern" }, server, async (session) => {
        for (const [name, [, expected]] of Object.entries(errors)) {
            await assert.rejects(session.call(name), ToolError);
            assert.equal(runs[name], expected, name);
        }
    });
});

test("a middleware may call the rest again", async () => {
    const server = new Server({ name: "twice" });
    let count = 0;
    server.tool("count", () => `${++count}`);
    const twice = async (_call: Call, proceed: Proceed): Promise<string> =>
        `${await proceed()} ${await proceed()}`;
    server.use(twice);
    await serve({ way: "pair", era: "modern" }, server, async (session) => {
        assert.equal((await session.call("count")).text, "1 2");
    });
});
