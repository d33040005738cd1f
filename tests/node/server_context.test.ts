/**
 * What a handler can do before it returns: segments, progress, logs, fields, questions,
 * and noticing that its caller has gone.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
    assistant,
    connect,
    Declined,
    type ElicitRequest,
    image,
    LimitError,
    type LogMessage,
    RemoteError,
    Result,
    RpcError,
    Server,
    UnsupportedError,
} from "segue-mcp";
import { z } from "zod";
import { Gate, inEachWorld, serve } from "./server_worlds.js";

inEachWorld("R-1905-22 segments come as they are made", async (world) => {
    const server = new Server({ name: "stream" });
    const gates = [new Gate(), new Gate(), new Gate()];
    server.tool("slow", async function* () {
        for (const [at, gate] of gates.entries()) {
            await gate.opened;
            yield `${at + 1}`;
        }
    });
    server.tool("sender", async (_, ctx) => {
        await ctx.send("one", image(new Uint8Array([1])));
        await ctx.send({ two: 2 });
        return "three";
    });
    server.tool("results", function* () {
        yield new Result(["a", image("AQ==")], { structured: { x: 1 } });
        yield "b";
        yield new Result([], { structured: { x: 2 }, isError: true });
    });
    await serve(world, server, async (session) => {
        const stream = session.stream("slow");
        const seen: (string | null | undefined)[] = [];
        gates[0]?.open();
        for await (const segment of stream) {
            seen.push(segment.text);
            gates[seen.length]?.open();
        }
        assert.deepEqual(seen, ["1", "2", "3"]);
        assert.equal(stream.result.text, "123");
        const result = await session.call("sender");
        const types = result.content.map((block) => block.type);
        assert.deepEqual(types, ["text", "image", "text", "text"]);
        assert.equal(result.text, 'one{"two":2}three');
        const last = await session.call("results", {}, { throwOnError: false });
        assert.deepEqual(
            [last.isError, last.text, last.structured],
            [true, "ab", { x: 2 }],
        );
    });
});

inEachWorld("R-776-30 a text goes on in its block", async (world) => {
    const server = new Server({ name: "extended" });
    server.tool("extended", async (_, ctx) => {
        await ctx.send("con", image(new Uint8Array([1])));
        await ctx.extend(0, "tent 1.");
        await ctx.send("end");
        await ctx.extend(2, ".");
        for (const index of [1, 3, -1]) {
            const failure = { name: "InvalidError", message: RegExp(`block ${index} `) };
            await assert.rejects(ctx.extend(index, "x"), failure);
        }
    });
    await serve(world, server, async (session) => {
        const result = await session.call("extended");
        const types = result.content.map((block) => block.type);
        assert.deepEqual(types, ["text", "image", "text"]);
        assert.equal(result.text, "content 1.end.");
        const stream = session.stream("extended");
        const texts = ["", "", ""];
        for await (const segment of stream) texts[segment.index] += segment.text ?? "";
        assert.deepEqual(texts, ["content 1.", "", "end."]);
        assert.deepEqual(stream.result.content, result.content);
    });
});

inEachWorld("segments of another call are passed on", async (world) => {
    const inner = new Server({ name: "inner" });
    inner.tool("words", function* () {
        yield "a ";
        yield image("AQ==");
        yield "b";
    });
    const server = new Server({ name: "outer" });
    server.tool("proxy", async function* () {
        const session = await connect(inner);
        try {
            for await (const segment of session.stream("words")) yield segment;
        } finally {
            await session.close();
            await inner.close();
        }
    });
    await serve(world, server, async (session) => {
        const result = await session.call("proxy");
        assert.equal(result.text, "a b");
        assert.deepEqual(result.content[1], {
            type: "image",
            data: "AQ==",
            mimeType: "image/png",
        });
    });
});

inEachWorld("a result that is made anew", async (world) => {
    const server = new Server({ name: "anew" });
    server.tool("draft", async (_, ctx) => {
        await ctx.send("bad");
        await ctx.replace("good");
        await ctx.setField("structuredContent", { n: 1 });
        await ctx.setField("_meta", { "example.org/k": 1 });
    });
    await serve(world, server, async (session) => {
        const result = await session.call("draft");
        assert.deepEqual([result.text, result.structured], ["good", { n: 1 }]);
        assert.equal(result.meta?.["example.org/k"], 1);
    });
});

for (const era of ["legacy", "modern"] as const) {
    for (const way of ["pair", "http"] as const) {
        const name = `R-776-16 R-776-22 a large result of a call [${way}, ${era}]`;
        test(name, async () => {
            const server = new Server({ name: "large" });
            const mib = "x".repeat(2 ** 20);
            const count = 20;
            const rows = async function* () {
                for (let number = 0; number < count; number++) yield mib;
            };
            server.tool("rows", rows);
            server.tool("task", { task: "may" }, rows);
            server.tool("one", () => mib.repeat(count));
            await serve({ way, era }, server, async (session) => {
                const size = async (name: string) =>
                    (await session.call(name)).text.length;
                const refused = (name: string, advice: string) =>
                    assert.rejects(session.call(name), (error: RemoteError) => {
                        assert.match(error.message, /maxResultBytes is 16777216; /);
                        assert.ok(error.message.includes(advice), error.message);
                        return true;
                    });
                assert.equal(await size("task"), count * mib.length);
                if (era === "legacy") {
                    assert.equal(await size("rows"), count * mib.length);
                    await refused("one", "send it in smaller blocks");
                } else {
                    await refused("rows", "let the tool run as a task");
                    await refused("one", "let the tool run as a task");
                }
            });
        });
    }
}

for (const way of ["pair", "http"] as const) {
    test(`R-776-17 structured content before the end [${way}]`, async () => {
        const server = new Server({ name: "members" });
        const seen = new Gate();
        server.tool("breaks", async (_, ctx) => {
            await ctx.setField("structuredContent", { n: 1 });
            await ctx.send("one");
            await seen.opened;
            throw new RpcError(-32603, "broken");
        });
        await serve({ way, era: "modern" }, server, async (session) => {
            const read = async () => {
                for await (const _ of session.stream("breaks")) seen.open();
            };
            await assert.rejects(read(), ({ message, partial }: RemoteError) => {
                assert.match(message, /broken/);
                assert.ok(partial instanceof Result);
                assert.deepEqual([partial.text, partial.structured], ["one", { n: 1 }]);
                return true;
            });
        });
    });
}

test("R-776-28 a slow reader makes the handler wait, and nothing is lost", async () => {
    const server = new Server({ name: "much", maxResultBytes: 2 ** 30 });
    const count = 300;
    let waited = 0;
    server.tool("much", async (_, ctx) => {
        for (let number = 0; number < count; number++) {
            let turned = false; // the loop has a turn only while the handler waits
            const mark = setImmediate(() => {
                turned = true;
            });
            await ctx.send(`${String(number).padStart(6, "0")}${"x".repeat(100_000)}`);
            if (turned) waited++;
            clearImmediate(mark);
        }
    });
    server.tool("yields", async function* () {
        for (let number = 0; number < count; number++) {
            yield `${String(number).padStart(6, "0")}${"x".repeat(100_000)}`;
        }
    });
    await serve({ way: "pair", era: "legacy" }, server, async (session) => {
        for (const name of ["much", "yields"]) {
            let seen = 0;
            const options = { window: 1, collect: false };
            for await (const { text } of session.stream(name, {}, options)) {
                assert.equal(Number(text?.slice(0, 6)), seen++);
            }
            assert.equal(seen, count);
        }
    });
    assert.ok(waited > 0);
});

test("R-776-28 what is yielded stays behind what was sent before", async () => {
    const server = new Server({ name: "orders", maxResultBytes: 2 ** 30 });
    const COUNT = 100;
    const pad = "x".repeat(100_000);
    server.tool("mixed", async function* (_, ctx) {
        const sent: Promise<void>[] = [];
        for (let number = 0; number < COUNT; number++)
            sent.push(ctx.send(`${number} ${pad}`)); // most of them wait for room
        await new Promise(setImmediate);
        for (let number = COUNT; number < 2 * COUNT; number++) yield `${number} ${pad}`;
        await Promise.all(sent);
    });
    await serve({ way: "pair", era: "legacy" }, server, async (session) => {
        const seen: number[] = [];
        const options = { window: 1, collect: false };
        for await (const { text } of session.stream("mixed", {}, options))
            seen.push(Number.parseInt(text ?? "", 10));
        assert.deepEqual(
            seen,
            Array.from({ length: 2 * COUNT }, (_, number) => number),
        );
    });
});

test("R-776-28 a handler that awaits nothing is told in the end", async () => {
    const server = new Server({ name: "floods", maxResultBytes: 2 ** 30 });
    const COUNT = 12_000;
    const failures: unknown[] = [];
    server.tool("flood", async (_, ctx) => {
        const sent: Promise<void>[] = [];
        for (let number = 0; number < COUNT; number++)
            sent.push(ctx.send("x".repeat(1000)));
        for (const one of await Promise.allSettled(sent)) {
            if (one.status === "rejected") failures.push(one.reason);
        }
    });
    await serve({ way: "pair", era: "legacy" }, server, async (session) => {
        let seen = 0;
        const options = { window: 1, collect: false };
        for await (const segment of session.stream("flood", {}, options)) {
            seen += segment.text ? 1 : 0;
        }
        assert.equal(seen + failures.length, COUNT);
        assert.ok(failures.length && failures[0] instanceof LimitError);
    });
});

inEachWorld("progress and logs", async (world) => {
    const server = new Server({ name: "talks" });
    server.tool("talk", (_, ctx) => {
        ctx.progress(1, 4, "begun");
        ctx.log("said");
        ctx.log({ n: 1 }, "error");
        ctx.progress(2.5);
    });
    const logs: LogMessage[] = [];
    const options = { onLog: (message: LogMessage) => logs.push(message) };
    const work: Parameters<typeof serve>[2] = async (session) => {
        const progress: unknown[] = [];
        await session.call("talk", {}, { onProgress: (told) => progress.push(told) });
        assert.deepEqual(progress, [
            { progress: 1, total: 4, message: "begun" },
            { progress: 2.5 },
        ]);
        assert.deepEqual(
            logs.map(({ data, level }) => [data, level]),
            [
                ["said", "info"],
                [{ n: 1 }, "error"],
            ],
        );
    };
    await serve(world, server, work, options);
});

inEachWorld("who and what", async (world) => {
    const server = new Server({ name: "who", principal: () => "ada" });
    server.tool("who", { input: { a: z.number() } }, (_, ctx) => ({
        principal: ctx.principal,
        method: ctx.method,
        name: ctx.name,
        arguments: ctx.params.arguments,
        trace: ctx.meta.traceparent,
        absent: ctx.meta.absent ?? null,
        client: ctx.clientInfo?.name ?? null,
        version: ctx.protocolVersion ?? null,
        scope: ctx.hasScope("any"),
        cancelled: ctx.cancelled,
        aborted: ctx.signal.aborted,
        resumed: ctx.resumed ?? null,
    }));
    const isModern = world.era === "modern";
    await serve(
        world,
        server,
        async (session) => {
            const meta = { traceparent: "00-1-2-01" };
            const result = await session.call("who", { a: 1 }, { meta });
            assert.deepEqual(result.structured, {
                principal: "ada",
                method: "tools/call",
                name: "who",
                arguments: { a: 1 },
                trace: "00-1-2-01",
                absent: null,
                client: isModern ? "tests" : null,
                version: isModern ? "2026-07-28" : null,
                scope: world.way === "pair",
                cancelled: false,
                aborted: false,
                resumed: null,
            });
        },
        { name: "tests" },
    );
});

inEachWorld("R-776-26 a caller that goes aborts the signal", async (world) => {
    const server = new Server({ name: "goes" });
    const began = new Gate();
    const ended = new Gate();
    const closed = new Gate();
    let late: unknown;
    server.tool("wait", async (_, ctx) => {
        began.open();
        await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        assert.ok(ctx.cancelled && ctx.signal.reason instanceof DOMException);
        await ctx.send("nobody hears this").catch((error: unknown) => {
            late = error;
        });
        ended.open();
        return "nor this";
    });
    const streams = new Gate();
    server.tool("stream", async function* () {
        try {
            for (;;) {
                streams.open();
                yield "x".repeat(1000);
            }
        } finally {
            closed.open();
        }
    });
    await serve(world, server, async (session) => {
        const leave = new AbortController();
        const call = session.call("wait", {}, { signal: leave.signal });
        await began.opened;
        leave.abort();
        await assert.rejects(call);
        await ended.opened;
        assert.ok(late instanceof Error);
        const again = new AbortController();
        const stream = session.call("stream", {}, { signal: again.signal });
        await streams.opened;
        again.abort();
        await assert.rejects(stream);
        await closed.opened;
    });
});

inEachWorld("a handler that ignores its cancellation does no harm", async (world) => {
    const failures: unknown[] = [];
    const server = new Server({ name: "deaf", onError: (error) => failures.push(error) });
    const began = new Gate();
    const go = new Gate();
    const done = new Gate();
    server.tool("deaf", async (_, ctx) => {
        began.open();
        await go.opened;
        await ctx.send("late").catch(() => undefined);
        ctx.progress(1);
        ctx.log("late");
        setImmediate(done.open);
        return "late";
    });
    server.tool("throws", async () => {
        began.open();
        await go.opened;
        throw new Error("late");
    });
    server.tool("hello", () => "hello");
    await serve(world, server, async (session) => {
        const leave = new AbortController();
        const { signal } = leave;
        const calls = ["deaf", "throws"].map((name) =>
            session.call(name, {}, { signal }),
        );
        await began.opened;
        leave.abort();
        for (const call of calls) await assert.rejects(call);
        await session.ping();
        go.open();
        await done.opened;
        assert.equal((await session.call("hello")).text, "hello");
    });
    // one may throw before the handler knows
    assert.ok(failures.length <= 1, String(failures));
});

inEachWorld("too many calls at once are refused", async (world) => {
    const server = new Server({ name: "few", maxCalls: 2 });
    const go = new Gate();
    server.tool("wait", async () => {
        await go.opened;
        return "done";
    });
    await serve(world, server, async (session) => {
        const calls = [1, 2, 3].map(() => session.call("wait"));
        const error = await Promise.any(
            calls.map((call) =>
                call.then(
                    () => Promise.reject(),
                    (why: unknown) => why,
                ),
            ),
        );
        assert.ok(error instanceof RemoteError);
        const data = { reason: "limit", limit: "max_calls", value: 2 };
        assert.deepEqual([error.rpcCode, error.data], [-32603, data]);
        assert.equal(error.message, "Too many calls at once: maxCalls is 2");
        go.open();
        const rest = await Promise.allSettled(calls);
        assert.equal(rest.filter((one) => one.status === "fulfilled").length, 2);
        assert.equal((await session.call("wait")).text, "done");
    });
});

// ---- questions

const Person = z.object({
    name: z.string(),
    age: z.number().int().default(30),
    color: z.enum(["red", "blue"]).default("red"),
    nick: z.string().nullable().optional(),
});

inEachWorld("AS-44 questions to a person", async (world) => {
    const server = new Server({ name: "asks" });
    server.tool("ask", async (_, ctx) => {
        const name: string = await ctx.ask("Your name?");
        const [agreed, number] = await Promise.all([
            ctx.ask("Agreed?", z.boolean(), { key: "agreed" }),
            ctx.ask("How many?", z.number().int()),
        ]);
        const person = await ctx.ask("Who?", Person);
        const raw = await ctx.elicit("Raw?", { type: "object", properties: {} });
        return [name, agreed, number, person.name, person.age, raw.content] as object;
    });
    const seen: ElicitRequest[] = [];
    const answers: Record<string, Record<string, unknown>> = {
        "Your name?": { value: "Ada" },
        "Agreed?": { value: true },
        "How many?": { value: 3 },
        "Who?": { name: "Bob" },
        "Raw?": { a: "b" },
    };
    const onElicit = async (request: ElicitRequest) => {
        seen.push(request);
        return { action: "accept" as const, content: answers[request.message] ?? {} };
    };
    await serve(
        world,
        server,
        async (session) => {
            const result = await session.call("ask");
            assert.equal(result.text, '["Ada",true,3,"Bob",30,{"a":"b"}]');
            const form = seen.find((one) => one.message === "Who?")?.requestedSchema;
            // biome-ignore lint/suspicious/noExplicitAny: a schema
            const { required, properties } = form as any;
            assert.deepEqual(required, ["name"]);
            assert.deepEqual(properties.color.enum, ["red", "blue"]);
            assert.equal(properties.nick.type, "string");
        },
        { onElicit },
    );
});

inEachWorld("AS-50 answers that are none, and that do not fit", async (world) => {
    const server = new Server({ name: "refused" });
    server.tool("ask", async (_, ctx) => ctx.ask("Name?"));
    server.tool("caught", async (_, ctx) => {
        try {
            return await ctx.ask("Name?");
        } catch (error) {
            assert.ok(error instanceof Declined);
            return error.action;
        }
    });
    server.tool(
        "elicit",
        async (_, ctx) => (await ctx.elicit("Name?", z.string())).action,
    );
    server.tool("misfit", async (_, ctx) => ctx.ask("Number?", z.number()));
    server.tool("no_address", async (_, ctx) => ctx.ask("Number?", z.email()));
    server.tool("sample", async (_, ctx) => {
        try {
            return (await ctx.sample("hello", 3)).text;
        } catch (error) {
            assert.ok(error instanceof UnsupportedError);
            assert.match(
                error.message,
                /not declared that it answers sampling\/createMessage/,
            );
            return "cannot be asked";
        }
    });
    server.tool("nested", async (_, ctx) => ctx.ask("?", z.object({ a: z.object({}) })));
    const told: unknown[] = [];
    const onElicit = (request: ElicitRequest) =>
        request.message === "Number?"
            ? { action: "accept" as const, content: { value: "x" } }
            : { action: "decline" as const };
    await serve(
        world,
        server,
        async (session) => {
            await assert.rejects(session.call("ask"), /The user declined/);
            assert.equal((await session.call("caught")).text, "decline");
            assert.equal((await session.call("elicit")).text, "decline");
            // Segue's client sends no answer that does not fit the form.
            await assert.rejects(session.call("misfit"), /The user did not decide/);
            assert.equal(told.length, 1);
            await assert.rejects(session.call("no_address"), /The answer does not fit/);
            assert.equal((await session.call("sample")).text, "cannot be asked");
            await assert.rejects(session.call("nested"), /The tool nested failed/);
        },
        { onElicit, onError: (error) => told.push(error) },
    );
});

inEachWorld("questions to models and for roots", async (world) => {
    const server = new Server({ name: "models" });
    server.tool("think", async (_, ctx) => {
        const messages = ["hello", assistant("yes?"), "go"];
        const answer = await ctx.sample(messages, 5, { systemPrompt: "short" });
        const [root] = await ctx.listRoots();
        return `${answer.text} ${answer.model} ${answer.stopReason} ${root?.uri}`;
    });
    await serve(
        world,
        server,
        async (session) => {
            const told = (await session.call("think")).text;
            assert.equal(told, "3 heard m1 endTurn file:///w");
        },
        {
            onSample: ({ messages, maxTokens, systemPrompt }) => {
                assert.deepEqual([maxTokens, systemPrompt], [5, "short"]);
                return {
                    role: "assistant",
                    content: { type: "text", text: `${messages.length} heard` },
                    model: "m1",
                    stopReason: "endTurn",
                };
            },
            roots: ["file:///w"],
        },
    );
});

test("generators leave the loop to others, all together", async () => {
    const server = new Server({ name: "busy", maxResultBytes: 2 ** 30 });
    let sent = 0;
    server.tool("endless", function* () {
        while (sent < 200_000) {
            sent++;
            yield "x";
        }
    });
    await serve({ way: "pair", era: "modern" }, server, async (session) => {
        const calls = Array.from({ length: 8 }, () => session.call("endless"));
        let turns = 0;
        let most = 0;
        while (sent < 200_000) {
            const before = sent;
            await new Promise(setImmediate);
            most = Math.max(most, sent - before);
            turns++;
        }
        assert.ok(turns > 10, `${turns} turns`);
        assert.ok(most < 100_000, `${most} segments in one turn`);
        await Promise.all(calls);
    });
});
