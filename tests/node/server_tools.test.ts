/** Tools of a Node server: their arguments, their results, their failures. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import {
    audio,
    embedded,
    image,
    RemoteError,
    Result,
    RpcError,
    resourceLink,
    SegueError,
    type Sendable,
    Server,
    ToolError,
    text,
} from "segue-mcp";
import * as v from "valibot";
import { z } from "zod";
import { inEachWorld, serve } from "./server_worlds.js";

inEachWorld("each sort of function", async (world) => {
    const server = new Server({ name: "sorts" });
    server.tool("plain", () => "plain");
    server.tool("asynchronous", async () => "asynchronous");
    server.tool("generator", function* () {
        yield "gen";
        yield "erator";
    });
    server.tool("async_generator", async function* () {
        yield "async_";
        yield "generator";
    });
    server.tool("iterable", () => ({
        async *[Symbol.asyncIterator]() {
            yield "iter";
            yield "able";
        },
    }));
    server.tool("thenable", () => Promise.resolve().then(() => "thenable"));
    server.tool("returns", async function* () {
        yield "with ";
        return { structured: true };
    });
    await serve(world, server, async (session) => {
        const names = ["plain", "asynchronous", "generator", "async_generator"];
        for (const name of [...names, "iterable", "thenable"]) {
            assert.equal((await session.call(name)).text, name);
        }
        const result = await session.call("returns");
        assert.equal(result.text, 'with {"structured":true}');
        assert.deepEqual(result.structured, { structured: true });
    });
});

inEachWorld("what a tool gives", async (world) => {
    const server = new Server({ name: "giver" });
    const link = resourceLink("file:///x", "x");
    const given: Record<string, Sendable> = {
        nothing: undefined,
        null: null,
        text: "text",
        number: 42,
        image: image(Buffer.from([0, 1])),
        mixed: ["one", audio(new Uint8Array([2])), link],
        list: [1, 2, 3],
        empty: [],
        object: { a: [1, null] },
        map: new Map([["a", 1]]),
        date: new Date(0),
        result: new Result("said", { structured: { a: 1 }, meta: { "e.org/k": "v" } }),
        structured: new Result([], { structured: { a: 1 } }),
        wire: { content: [{ type: "text", text: "wire" }], structuredContent: { a: 2 } },
        annotated: text("t", { annotations: { audience: ["user"], priority: 0.5 } }),
        embedded: embedded("file:///t", "in it", "text/x"),
    };
    for (const [name, value] of Object.entries(given)) server.tool(name, () => value);
    await serve(world, server, async (session) => {
        const found: Record<string, Result> = {};
        for (const name of Object.keys(given)) found[name] = await session.call(name);
        const of = (name: string): Result => found[name] as Result;
        for (const name of ["nothing", "null", "empty"]) {
            assert.deepEqual(of(name).content, []);
        }
        assert.deepEqual(of("text").content, [{ type: "text", text: "text" }]);
        assert.deepEqual([of("number").text, of("number").structured], ["42", undefined]);
        assert.deepEqual(of("image").content, [
            { type: "image", data: "AAE=", mimeType: "image/png" },
        ]);
        assert.equal(of("mixed").text, "one");
        assert.deepEqual(of("mixed").content[2], link);
        assert.deepEqual(
            [of("list").text, of("list").structured],
            ["[1,2,3]", undefined],
        );
        assert.deepEqual(of("object").structured, { a: [1, null] });
        assert.equal(of("object").text, '{"a":[1,null]}');
        assert.deepEqual(of("map").structured, { a: 1 });
        assert.equal(of("date").text, '"1970-01-01T00:00:00.000Z"');
        assert.equal(of("result").text, "said");
        assert.deepEqual(of("result").structured, { a: 1 });
        assert.equal(of("result").meta?.["e.org/k"], "v");
        assert.equal(of("structured").text, '{"a":1}');
        assert.deepEqual([of("wire").text, of("wire").structured], ["wire", { a: 2 }]);
        assert.deepEqual(of("annotated").content, [given.annotated]);
        assert.deepEqual(of("embedded").content, [given.embedded]);
    });
});

inEachWorld("what is told of a tool", async (world) => {
    const server = new Server({
        name: "teller",
        version: "7",
        title: "Teller",
        instructions: "Ask.",
    });
    const options = {
        title: "Paint",
        description: "Paints.",
        input: z.object({ size: z.number().int().min(1).default(3).describe("how big") }),
        output: { done: z.boolean() },
        annotations: { readOnlyHint: true },
        icons: [{ src: "https://example.org/i.png", sizes: ["48x48"] }],
        _meta: { "example.org/cost": 3 },
    };
    server.tool("paint", options, ({ size }) => ({ done: size === 3 }));
    await serve(world, server, async (session) => {
        const [tool] = await session.listTools();
        assert.deepEqual(JSON.parse(JSON.stringify(tool)).inputSchema.properties.size, {
            description: "how big",
            type: "integer",
            minimum: 1,
            maximum: Number.MAX_SAFE_INTEGER,
            default: 3,
        });
        const told = JSON.parse(JSON.stringify(tool));
        assert.equal(told.title, "Paint");
        assert.equal(told.description, "Paints.");
        assert.deepEqual(told.annotations, { readOnlyHint: true });
        assert.deepEqual(told.icons[0].sizes, ["48x48"]);
        assert.equal(told._meta["example.org/cost"], 3);
        assert.deepEqual(told.outputSchema.required, ["done"]);
        assert.deepEqual((await session.call("paint")).structured, { done: true });
    });
});

inEachWorld("arguments that do not fit never reach the handler", async (world) => {
    const server = new Server({ name: "checks" });
    let calls = 0;
    const count = (): string => `${++calls}`;
    server.tool("zod", { input: z.object({ n: z.number(), s: z.string() }) }, count);
    const later = z.object({ n: z.number().refine(async (n) => n > 1, "too small") });
    server.tool("later", { input: later }, count);
    const json = {
        type: "object",
        properties: { n: { type: "number" } },
        required: ["n"],
    };
    server.tool("json", { input: json }, count);
    await serve(world, server, async (session) => {
        const why = async (name: string, args: object): Promise<string> => {
            const found = await session.call(name, { ...args }, { throwOnError: false });
            assert.ok(found.isError);
            return found.text;
        };
        assert.match(
            await why("zod", { n: "x" }),
            /^Invalid arguments for tool zod: n: .*number.*; s: .*string/,
        );
        assert.match(await why("later", { n: 1 }), /tool later: n: too small$/);
        assert.match(await why("json", {}), /tool json: n: is required$/);
        assert.equal(calls, 0);
        assert.equal((await session.call("later", { n: 2 })).text, "1");
        assert.equal((await session.call("json", { n: 2, more: 1 })).text, "2");
    });
});

inEachWorld("unknown arguments are refused", async (world) => {
    const server = new Server({ name: "names" });
    const told = (args: object): string => JSON.stringify(args);
    const color = z.string();
    const closed = {
        type: "object",
        properties: { name: { type: "string" }, later: {} },
        additionalProperties: false,
    };
    const written = { type: "object", properties: { name: {} } };
    const size = z.number().optional();
    server.tool("paint", { input: z.object({ color, size }) }, told);
    server.tool("shape", { input: { color, size } }, told);
    server.tool("ark", { input: type({ color: "string", "size?": "number" }) }, told);
    server.tool("strict", { input: z.strictObject({ color }) }, told);
    server.tool("bare", { input: z.object({}) }, told);
    server.tool("loose", { input: z.object({ color }), forbidExtra: false }, told);
    server.tool("rest", { input: z.looseObject({ color }) }, told);
    server.tool("none", told);
    server.tool("all", { forbidExtra: false }, told);
    const sizes = { color: v.string(), size: v.optional(v.number()) };
    server.tool("valibot", { input: toStandardJsonSchema(v.object(sizes)) }, told);
    const kept = toStandardJsonSchema(v.looseObject(sizes));
    server.tool("kept", { input: kept }, told);
    server.tool("kept_not", { input: kept, forbidExtra: true }, told);
    const branches = {
        type: "object",
        properties: { name: {}, deep: { properties: { inner: {} } } },
        anyOf: [{ properties: { first: {} } }, { $ref: "#/$defs/Sec~1ond" }],
        if: { properties: { name: { const: "x" } } },
        else: { properties: { third: {} } },
        dependentSchemas: { first: { properties: { fourth: {} } } },
        $defs: { "Sec/ond": { properties: { second: { $ref: "#" } } } },
    };
    server.tool("branches", { input: branches, forbidExtra: true }, told);
    server.tool("written", { input: written }, told);
    server.tool("forbidden", { input: written, forbidExtra: true }, told);
    server.tool("closed", { input: closed }, told);
    const refused: [tool: string, args: Record<string, unknown>, text: string][] = [];
    for (const name of ["paint", "shape", "ark"]) {
        refused.push(
            [name, { colour: "red" }, 'unknown argument "colour", did you mean "color"?'],
            [
                name,
                { color: "red", Size: 2, what: 3 },
                'unknown argument "Size", did you mean "size"?; unknown argument "what"',
            ],
            [
                name,
                { color: "red", what: 3 },
                'unknown argument "what"; the arguments are "color", "size"',
            ],
        );
    }
    refused.push(
        ["strict", { colour: "red" }, 'unknown argument "colour", did you mean "color"?'],
        ["bare", { a: 1 }, 'unknown argument "a"; the tool takes no arguments'],
        ["forbidden", { nme: "x" }, 'unknown argument "nme", did you mean "name"?'],
        ["closed", { nme: "x" }, 'unknown argument "nme", did you mean "name"?'],
        ["none", { a: 1 }, 'unknown argument "a"; the tool takes no arguments'],
        [
            "valibot",
            { color: "red", what: 3 },
            'unknown argument "what"; the arguments are "color", "size"',
        ],
        [
            "valibot",
            { colour: "red" },
            'unknown argument "colour", did you mean "color"?; color: Invalid key: ' +
                'Expected "color" but received undefined',
        ],
        [
            "kept",
            { size: "big", b: 1 },
            'color: Invalid key: Expected "color" but received undefined; size: ' +
                'Invalid type: Expected number but received "big"',
        ],
        [
            "kept_not",
            { color: "red", colour: 1 },
            'unknown argument "colour", did you mean "color"?',
        ],
    );
    for (const name of ["inner", "fifth"]) {
        const names = '"name", "deep", "first", "third", "fourth"';
        refused.push([
            "branches",
            { [name]: 1 },
            `unknown argument "${name}"; the arguments are ${names}, "second"`,
        ]);
    }
    const taken: [tool: string, args: Record<string, unknown>, seen?: object][] = [
        ["paint", { color: "red" }],
        ["bare", {}],
        ["loose", { color: "red", colour: 1 }, { color: "red" }],
        ["rest", { color: "red", colour: 1 }],
        ["none", {}],
        ["all", { a: 1 }],
        ["valibot", { color: "red" }],
        ["kept", { color: "red", colour: 1 }],
        ...["name", "deep", "first", "second", "third", "fourth"].map(
            (name): [string, Record<string, unknown>] => ["branches", { [name]: {} }],
        ),
        ["written", { nme: "x" }],
        ["closed", { later: 1 }],
    ];
    await serve(world, server, async (session) => {
        const schemas = new Map<string, Record<string, unknown>>();
        for (const { name, inputSchema } of await session.listTools())
            schemas.set(name, inputSchema as Record<string, unknown>);
        for (const name of [
            ...["paint", "shape", "ark", "strict", "bare", "closed", "none"],
            "kept_not",
        ])
            assert.equal(schemas.get(name)?.additionalProperties, false, name);
        for (const name of ["loose", "all", "valibot", "kept", "written", "branches"])
            assert.ok(!("additionalProperties" in (schemas.get(name) ?? {})), name);
        for (const [name, args, text] of refused) {
            const found = await session.call(name, args, { throwOnError: false });
            assert.ok(found.isError);
            assert.equal(found.text, `Invalid arguments for tool ${name}: ${text}`);
        }
        for (const [name, args, seen] of taken)
            assert.deepEqual(
                JSON.parse((await session.call(name, args)).text),
                seen ?? args,
            );
    });
});

inEachWorld("results that are checked", async (world) => {
    const told = "The result of the tool";
    const misfit = "does not fit its output schema";
    const failures: string[] = [];
    const server = new Server({
        name: "shapes",
        onError: (error) => failures.push(String(error)),
    });
    const output = z.object({ corners: z.number(), name: z.string().default("?") });
    const input = { corners: z.unknown() };
    server.tool("shape", { input, output }, ({ corners }) => ({ corners }) as never);
    server.tool("whole", { output }, () => ({
        content: [{ type: "text", text: "three" }],
        structuredContent: { corners: 3 },
    }));
    server.tool("fails", { output }, () => new Result("no shape", { isError: true }));
    server.tool("raw", { output: { type: "object", required: ["a"] } }, () => ({ b: 1 }));
    await serve(world, server, async (session) => {
        const good = await session.call("shape", { corners: 3 });
        assert.deepEqual(good.structured, { corners: 3, name: "?" });
        assert.equal(good.text, '{"corners":3,"name":"?"}');
        const whole = await session.call("whole");
        assert.deepEqual(
            [whole.text, whole.structured],
            ["three", { corners: 3, name: "?" }],
        );
        await assert.rejects(
            session.call("shape", { corners: "three" }),
            (error) =>
                error instanceof RemoteError &&
                error.rpcCode === -32603 &&
                error.message === `${told} shape ${misfit}`,
        );
        await assert.rejects(session.call("raw"), /raw does not fit its output schema$/);
        await assert.rejects(session.call("fails"), ToolError);
    });
    const [first, second, ...rest] = failures;
    assert.ok(first?.includes(`${told} shape ${misfit}: corners: `), first);
    assert.ok(second?.endsWith(`${told} raw ${misfit}: a: is required`), second);
    assert.deepEqual(rest, []); // the tool reports its failure itself
});

inEachWorld("an object of a class needs members in JSON", async (world) => {
    class Hidden {
        #sum = 3;
        get sum(): number {
            return this.#sum;
        }
    }
    class Told extends Hidden {
        toJSON(): object {
            return { sum: this.sum };
        }
    }
    class Open {
        sum = 3;
    }
    const server = new Server({ name: "classes", exposeErrors: true, onError() {} });
    const output = { type: "object", properties: { sum: { type: "number" } } };
    server.tool("hidden", () => new Hidden());
    server.tool("checked", { output }, () => new Hidden());
    server.tool("failed", () => new Error("why"));
    const fits = { told: new Told(), open: new Open(), made: Object.create(null) };
    for (const [name, value] of Object.entries(fits)) server.tool(name, () => value);
    server.tool("map", () => new Map());
    server.tool("plain", () => ({}));
    await serve(world, server, async (session) => {
        for (const [name, kind] of [
            ["hidden", "Hidden"],
            ["checked", "Hidden"],
            ["failed", "Error"],
        ] as const) {
            const found = await session.call(name, {}, { throwOnError: false });
            const said =
                `The tool ${name} returned an object of the class ${kind} that has ` +
                "no members in JSON: give the class a method toJSON, or return a " +
                "plain object";
            assert.deepEqual([found.isError, found.text], [true, said]);
        }
        for (const name of ["told", "open"])
            assert.deepEqual((await session.call(name)).structured, { sum: 3 });
        for (const name of ["made", "map", "plain"])
            assert.deepEqual((await session.call(name)).structured, {});
    });
});

test("an RpcError has a code that can be sent", () => {
    for (const code of [-32768, -32599, -32100, -32050, -32042, -32000])
        assert.throws(() => new RpcError(code, "why"), /reserves the error code -32/);
    for (const code of [0, 1.5, Number.NaN, 2 ** 31, -(2 ** 31) - 1])
        assert.throws(
            () => new RpcError(code, "why"),
            /an integer from -2147483648 to 2147483647 other than 0, not/,
        );
    for (const code of [1, -1, -32769, -31999, -32700, -32602, -32022])
        assert.equal(new RpcError(code, "why").rpcCode, code);
});

inEachWorld("a structured result of a generator is a text, too", async (world) => {
    const server = new Server({ name: "structured" });
    const output = { n: z.number() };
    server.tool("yields", { output }, async function* () {
        yield "a";
        return { n: 1 };
    });
    server.tool("sends", { output }, async (_, ctx) => {
        await ctx.send("a");
        return { n: 1 };
    });
    server.tool("result", { output }, async function* () {
        yield "a";
        return new Result(["b"], { structured: { n: 1 } });
    });
    server.tool("yields_result", { output }, async function* () {
        yield new Result(["a"], { structured: { n: 1 } });
    });
    server.tool("misfit", { output }, async function* () {
        yield "a";
        return { n: "x" } as unknown as { n: number };
    });
    await serve(world, server, async (session) => {
        const told = async (name: string): Promise<unknown> => {
            const { content, structured } = await session.call(name);
            assert.deepEqual(structured, { n: 1 }, name);
            return content.map((one) => one.type === "text" && one.text);
        };
        assert.deepEqual(await told("yields"), ["a", '{"n":1}']);
        assert.deepEqual(await told("sends"), ["a", '{"n":1}']);
        assert.deepEqual(await told("result"), ["a", "b"]);
        assert.deepEqual(await told("yields_result"), ["a"]);
        await assert.rejects(session.call("misfit"), /does not fit its output schema/);
    });
});

inEachWorld("failures", async (world) => {
    const failures: [string, string][] = [];
    const server = new Server({
        name: "failures",
        onError: (error, { name }) => failures.push([name, String(error)]),
    });
    const thrown: Record<string, unknown> = {
        told: new ToolError("told"),
        exception: new RangeError("secret /etc/passwd"),
        text: "a string",
        rpc: new RpcError(4711, "wrong", { why: [1] }),
        of_peer: new RemoteError("of another server", { rpcCode: -32001 }),
        result: new ToolError("?", new Result(["a", "b"], { structured: { n: 1 } })),
    };
    for (const [name, error] of Object.entries(thrown)) {
        server.tool(name, () => {
            throw error;
        });
        server.tool(`${name}_later`, async function* () {
            yield "begun ";
            throw error;
        });
    }
    server.tool("half", () => {
        throw new ToolError("no such file: \udcff");
    });
    server.tool("at_length", async function* () {
        for (let n = 0; n < 100; n++) yield "sent before\n";
        throw new ToolError("and then it failed");
    });
    server.tool("no_json", () => 1n as unknown as number);
    server.tool("no_text", () => new Uint8Array([255]));
    await serve(world, server, async (session) => {
        const told = async (name: string): Promise<string> => {
            const found = await session.call(name, {}, { throwOnError: false });
            assert.ok(found.isError, name);
            return found.text;
        };
        assert.equal(await told("told"), "told");
        assert.equal(await told("exception"), "The tool exception failed");
        assert.equal(await told("text"), "The tool text failed");
        assert.equal(await told("result"), "ab");
        assert.equal(await told("no_json"), "The tool no_json failed");
        assert.equal(await told("no_text"), "The tool no_text failed");
        assert.equal(await told("told_later"), "begun told");
        assert.equal(await told("half"), "no such file: \ufffd");
        await assert.rejects(session.call("at_length"), {
            message: "and then it failed",
        });
        assert.equal(
            await told("exception_later"),
            "begun The tool exception_later failed",
        );
        await assert.rejects(session.call("rpc"), (error) => {
            assert.ok(error instanceof RemoteError);
            assert.deepEqual([error.message, error.data], ["wrong", { why: [1] }]);
            assert.equal(error.rpcCode, 4711);
            return true;
        });
        assert.equal(await told("of_peer"), "The tool of_peer failed");
        await assert.rejects(session.call("unknown"), SegueError);
    });
    const names = new Set(failures.map(([name]) => name));
    assert.ok(!names.has("told") && !names.has("rpc"));
    for (const name of ["exception", "text", "no_json", "exception_later", "of_peer"]) {
        assert.ok(names.has(name), name);
    }
    assert.match(String(failures.find(([name]) => name === "no_text")), /image\(\)/);
});

test("messages are told where that was asked for", async () => {
    const server = new Server({
        name: "open",
        exposeErrors: true,
        onError: () => undefined,
    });
    server.tool("fails", () => {
        throw new RangeError("out of range");
    });
    await serve({ way: "pair", era: "modern" }, server, async (session) => {
        await assert.rejects(session.call("fails"), /out of range/);
    });
});

test("an onError that throws is printed, and the call still ends", async (t) => {
    const server = new Server({
        name: "worse",
        onError: () => {
            throw new Error("worse");
        },
    });
    server.tool("fails", () => {
        throw new Error("bad");
    });
    const printed = t.mock.method(console, "error", () => undefined);
    await serve({ way: "pair", era: "modern" }, server, async (session) => {
        await assert.rejects(session.call("fails"), /The tool fails failed/);
    });
    assert.deepEqual(
        printed.mock.calls.map(({ arguments: given }) => given.map(String).join(" ")),
        [
            "segue: onError failed: Error: worse",
            'segue: the tool "fails" failed: Error: bad',
        ],
    );
});

test("definitions that cannot be", async () => {
    const server = new Server({ name: "odd" });
    const run = (): string => "";
    const policy = "sometimes" as "may";
    assert.throws(() => server.tool("t", { task: policy }, run), /never.*may.*must/);
    assert.throws(() => server.tool("t", {}, undefined as never), /a function/);
    assert.throws(() => server.tool("t", run as never, {} as never), /options/);
    const misspelt = { tsak: "may" } as object;
    assert.throws(() => server.tool("t", misspelt, run), /tool t has no option "tsak"/);
    assert.throws(() => server.resource("x://y", misspelt, run), /no option "tsak"/);
    assert.throws(() => server.prompt("p", misspelt, run), /no option "tsak"/);
    assert.throws(() => server.tool("", run), /has to be a string that is not empty/);
    assert.throws(() => new Server({} as never), /needs a name/);
    assert.throws(() => new Server({ name: "x", maxCalls: 0 }), RangeError);
    server.tool("twice", run);
    assert.throws(() => server.tool("twice", run), /already has a tool "twice"/);
    assert.equal(server.removeTool("never"), false);
    assert.equal(server.removeTool("twice"), true);
    server.tool("twice", run);
    const listener = await server.listenHttp();
    assert.throws(() => server.tool("twice", run), /already has a tool "twice"/);
    await listener.close();
});

inEachWorld("the reason of a failed stream is its last segment", async (world) => {
    const server = new Server({ name: "failing" });
    server.tool("fails", async function* () {
        yield "one ";
        throw new ToolError("no more");
    });
    await serve(world, server, async (session) => {
        const read: (string | undefined)[] = [];
        await assert.rejects(
            async () => {
                for await (const segment of session.stream("fails"))
                    read.push(segment.text);
            },
            (error) => {
                assert.ok(error instanceof ToolError);
                assert.equal(error.message, "no more");
                const { content = [] } = error.result ?? {};
                assert.deepEqual(
                    content.map((block) => (block as { text?: string }).text),
                    ["one ", "no more"],
                );
                return true;
            },
        );
        assert.deepEqual(read, ["one ", "no more"]);
    });
});

test("undefined sends nothing, and what is no value is an error", async () => {
    const seen: string[] = [];
    const server = new Server({
        name: "values",
        onError: (error) => void seen.push(String(error)),
    });
    server.tool("yields", async function* (_, ctx) {
        yield "a";
        yield undefined;
        await ctx.send(undefined);
        yield "b";
    });
    server.tool("big", async function* () {
        yield 1n;
    });
    const full = Object.assign(new Error("disk full"), { code: "ENOSPC" });
    server.tool("error", () => full);
    server.prompt("system", () => ({ role: "system", content: "x" }) as never);
    assert.throws(() => new Server(undefined as never), /needs a name: new Server/);
    await serve({ way: "pair", era: "modern" }, server, async (session) => {
        assert.equal((await session.call("yields")).text, "ab");
        await assert.rejects(session.call("big"), ToolError);
        assert.match(seen.pop() ?? "", /a bigint cannot be encoded as JSON: use String/);
        await assert.rejects(session.call("error"), ToolError);
        assert.match(seen.pop() ?? "", /an error is no value: throw it/);
        await assert.rejects(session.getPrompt("system"));
        assert.match(seen.pop() ?? "", /has to be "user" or "assistant", not "system"/);
    });
});
