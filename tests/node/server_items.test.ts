/** Resources, templates, prompts, completion, and items that come and go. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import {
    assistant,
    connect,
    embedded,
    image,
    RemoteError,
    RpcError,
    Server,
    user,
} from "segue-mcp";
import { z } from "zod";
import { Gate, inEachWorld, serve } from "./server_worlds.js";

const parse = (value: unknown): Record<string, never> =>
    JSON.parse(JSON.stringify(value));

test("a template has only {name} and {+name}", () => {
    const server = new Server({ name: "templates" });
    for (const uri of ["a://{x}/y{?z}", "a://{/x}", "a://{x,y}", "a://{}"])
        assert.throws(
            () => server.resource(uri, () => ""),
            /a template cannot have \{.*\}, only \{name\} and \{\+name\}/,
        );
    assert.throws(
        () => server.resource("a://{x}{?q,r}", () => ""),
        /: write a query as text, as in a:\/\/\{x\}\?q=\{q\}&r=\{r\}$/,
    );
    server.resource("a://{x}/{+path}", ({ x, path }) => `${x} ${path}`);
    server.resource("b://{x}?q={q}&r={r}", ({ x, q, r }) => x + q + r);
});

inEachWorld("the missing argument of a prompt is named", async (world) => {
    const server = new Server({ name: "prompts" });
    const input = { code: z.string(), lines: z.string(), more: z.string().optional() };
    server.prompt("zod", { input }, ({ code }) => code);
    const properties = { code: { type: "string" }, lines: { type: "string" } };
    const json = { type: "object", properties, required: ["code", "lines"] };
    server.prompt("json", { input: json }, () => "a");
    await serve(world, server, async (session) => {
        for (const name of ["zod", "json"]) {
            for (const given of [undefined, {}, { lines: "1" }])
                await assert.rejects(session.getPrompt(name, given), {
                    rpcCode: -32602,
                    message: "A required argument is missing: code",
                });
            await assert.rejects(
                session.getPrompt(name, { code: "a" }),
                /missing: lines$/,
            );
        }
    });
});

test("an argument of a prompt takes a string", () => {
    const server = new Server({ name: "prompts" });
    for (const input of [{ n: z.number() }, z.object({ n: z.boolean().optional() })])
        assert.throws(
            () => server.prompt("p", { input }, () => ""),
            /prompt p, input, n: the arguments of a prompt are strings/,
        );
    for (const [n, advice] of [
        [z.number(), /as z\.coerce\.number\(\) does/],
        [z.boolean(), /as z\.stringbool\(\) does/],
        [z.object({ a: z.string() }), /as a z\.codec\(\) with JSON\.parse does/],
        [z.array(z.string()), /as a z\.codec\(\) with JSON\.parse does/],
    ] as const)
        assert.throws(() => server.prompt("p", { input: { n } }, () => ""), advice);
    const input = { n: z.coerce.number(), on: z.stringbool(), at: z.iso.date() };
    server.prompt("q", { input }, ({ n, on, at }) => `${n} ${on} ${at}`);
});

test("a schema without a JSON Schema names its owner and member", () => {
    const server = new Server({ name: "dates" });
    for (const input of [
        { at: z.coerce.date() },
        z.object({ n: z.number(), at: z.coerce.date() }),
    ])
        assert.throws(
            () => server.tool("plan", { input }, () => ""),
            /tool plan, input, at: .*JSON has no dates: use z\.iso\.datetime\(\)/,
        );
    const told = z.date().transform((date) => date.toISOString());
    const output = { at: told.pipe(z.iso.datetime()) };
    server.tool("now", { output }, () => ({ at: new Date(0) }));
});

test("names of the official SDK get advice", () => {
    const server = new Server({ name: "official" });
    const options = { inputSchema: { n: z.number() } } as object;
    assert.throws(
        () => server.tool("x2", options, () => ""),
        /tool x2 has no option "inputSchema": its name here is "input"/,
    );
});

inEachWorld("R-776-31: a long list is whole", async (world) => {
    const server = new Server({ name: "long" });
    const uris = Array.from({ length: 600 }, (_, i) => `test://item${i}`);
    for (const uri of uris) server.resource(uri, () => "text");
    await serve(world, server, async (session) => {
        const listed = await session.listResources();
        assert.deepEqual(
            listed.map((one) => one.uri),
            uris,
        );
    });
});

inEachWorld("R-776-32: a long text is one", async (world) => {
    const server = new Server({ name: "texts", onError: () => undefined });
    const parts = Array.from({ length: 300 }, (_, i) => `part ${i}\n`);
    const other = { uri: "test://other", text: "other" };
    server.resource("test://async", { mimeType: "text/x" }, async function* () {
        yield "con";
        await new Promise((resolve) => setImmediate(resolve));
        yield other;
        yield "tent";
    });
    server.resource("test://{name}/plain", function* ({ name }) {
        yield name;
        yield* parts;
    });
    server.resource("test://sent", async (_, ctx) => {
        await ctx.send("a", "b");
        await ctx.replace("c");
        await ctx.send("d");
        return undefined;
    });
    server.resource("test://empty", function* () {
        yield* [];
    });
    server.resource("test://twice", async (_, ctx) => {
        await ctx.send("a");
        return "b";
    });
    server.resource("test://bytes", async (_, ctx) => {
        await ctx.send(new Uint8Array(1));
        return undefined;
    });
    assert.throws(
        () => server.prompt("steps", function* () {} as never),
        /"steps": a prompt cannot be a generator/,
    );
    await serve(world, server, async (session) => {
        const read = async (uri: string): Promise<unknown[]> =>
            (await session.readResource(uri)).contents;
        const text = { uri: "test://async", mimeType: "text/x", text: "content" };
        assert.deepEqual(parse(await read("test://async")), [text, other]);
        const plain = { uri: "test://x/plain", mimeType: "text/plain" };
        const whole = `x${parts.join("")}`;
        assert.deepEqual(parse(await read("test://x/plain")), [
            { ...plain, text: whole },
        ]);
        const [sent] = await read("test://sent");
        assert.equal((sent as { text: string }).text, "cd");
        assert.deepEqual(await read("test://empty"), []);
        await assert.rejects(read("test://twice"));
        await assert.rejects(read("test://bytes"));
    });
});

inEachWorld("resources of all sorts", async (world) => {
    const server = new Server({ name: "reads", onError: () => undefined });
    server.resource("test://text", { name: "Text", mimeType: "text/x" }, () => "text");
    server.resource("test://bytes", { mimeType: "image/png" }, async () =>
        Buffer.from([1]),
    );
    server.resource("test://json", () => ({ a: 1 }));
    server.resource("test://many", (_, ctx) => [
        { uri: ctx.name, text: "one" },
        { uri: "test://other", blob: "AQ==", mimeType: "x/y" },
    ]);
    server.resource("test://none", () => null);
    server.resource("test://gone", () => readFile("/nowhere/at/all"));
    server.resource("test://broken", () => {
        throw new Error("secret");
    });
    server.resource("test://own", () => {
        throw new RpcError(4711, "own");
    });
    const options = { complete: { id: ["paris", "park", "test"] } };
    server.resource("note://{kind}/{id}", options, ({ kind, id }) => `${kind}: ${id}`);
    await serve(world, server, async (session) => {
        const read = async (uri: string) => (await session.readResource(uri)).contents;
        assert.deepEqual(parse(await read("test://text")), [
            { uri: "test://text", mimeType: "text/x", text: "text" },
        ]);
        assert.deepEqual(parse(await read("test://bytes")), [
            { uri: "test://bytes", mimeType: "image/png", blob: "AQ==" },
        ]);
        assert.deepEqual(parse(await read("test://json")), [
            { uri: "test://json", mimeType: "application/json", text: '{"a":1}' },
        ]);
        assert.equal((await read("test://many")).length, 2);
        for (const uri of ["test://none", "test://gone", "test://unknown"]) {
            await assert.rejects(read(uri), (error) => {
                assert.ok(error instanceof RemoteError);
                assert.ok(
                    [-32002, -32602].includes(error.rpcCode),
                    String(error.rpcCode),
                );
                return true;
            });
        }
        await assert.rejects(read("test://broken"), /Internal error/);
        await assert.rejects(read("test://own"), /own/);
        const [note] = await read("note://work/a%20b%2F..%2Fc");
        assert.equal(parse(note).text, "work: a b/../c");
        const [template] = parse(await session.listResourceTemplates()) as unknown as {
            uriTemplate: string;
        }[];
        assert.equal(template?.uriTemplate, "note://{kind}/{id}");
        const found = await session.complete(
            { type: "ref/resource", uri: "note://{kind}/{id}" },
            "id",
            "PAR",
        );
        assert.deepEqual(found.values, ["paris", "park"]);
    });
});

inEachWorld("prompts of all sorts", async (world) => {
    const server = new Server({ name: "prompts", onError: () => undefined });
    server.prompt("plain", () => "do it");
    server.prompt("open", { forbidExtra: false }, ({ language }) => `In ${language}`);
    const input = {
        language: z.enum(["english", "esperanto", "german"]).describe("which"),
        style: z.string().optional(),
    };
    server.prompt("ask", { title: "Ask", input }, async ({ language, style }) => [
        user(`In ${language}, ${style ?? "plainly"}`),
        assistant("Yes"),
        image("AQ=="),
        "end",
    ]);
    server.prompt("wire", () => ({
        description: "of today",
        messages: [user(embedded("file:///x", "x"))],
    }));
    server.prompt("wrong", () => [{ role: "user", content: ["a"] } as never]);
    server.prompt("fails", () => {
        throw new Error("secret");
    });
    server.completion("ask", "style", (typed, others) => [
        `${typed}|${others.language ?? ""}`,
    ]);
    await serve(world, server, async (session) => {
        const plain = await session.getPrompt("plain");
        assert.deepEqual(parse(plain.messages), [
            { role: "user", content: { type: "text", text: "do it" } },
        ]);
        const ask = await session.getPrompt("ask", { language: "german" });
        const types = ask.messages.map(({ role, content }) => [
            role,
            parse(content).type,
        ]);
        assert.deepEqual(types, [
            ["user", "text"],
            ["assistant", "text"],
            ["user", "image"],
            ["user", "text"],
        ]);
        const wire = await session.getPrompt("wire");
        assert.equal(wire.description, "of today");
        await assert.rejects(
            session.getPrompt("ask", { language: "german", ton: "" }),
            /unknown argument "ton"/,
        );
        await assert.rejects(
            session.getPrompt("plain", { language: "german" }),
            /the prompt takes no arguments/,
        );
        assert.ok((await session.getPrompt("open", { language: "german" })).messages);
        await assert.rejects(
            session.getPrompt("ask", { language: "latin" }),
            (error) => error instanceof RemoteError && error.rpcCode === -32602,
        );
        for (const name of ["wrong", "fails"]) {
            await assert.rejects(session.getPrompt(name), /Internal error/);
        }
        const listed = parse(await session.listPrompts()) as unknown as {
            name: string;
            arguments?: object[];
        }[];
        assert.deepEqual(listed.find(({ name }) => name === "ask")?.arguments, [
            { name: "language", description: "which", required: true },
            { name: "style" },
        ]);
        const of = { type: "ref/prompt", name: "ask" } as const;
        assert.deepEqual((await session.complete(of, "language", "e")).values, [
            "english",
            "esperanto",
        ]);
        const others = { context: { language: "german" } };
        const style = await session.complete(of, "style", "s", others);
        assert.deepEqual(style.values, ["s|german"]);
    });
});

test("completion: at most 100 values, failures, and what cannot be", async () => {
    const server = new Server({ name: "completes", onError: () => undefined });
    server.prompt("p", { input: { a: z.string(), b: z.string() } }, () => "");
    const many = Array.from({ length: 150 }, (_, at) => `v${at}`);
    server.completion("p", "a", async () => new Set(many));
    server.completion("p", "b", () => {
        throw new Error("secret");
    });
    assert.throws(() => server.completion("p", "c", []), /"p" has no argument "c"/);
    assert.throws(() => server.completion("q", "a", []), /no prompt or template "q"/);
    assert.throws(
        () => server.prompt("r", { complete: { x: [] } }, () => ""),
        /no argument "x"/,
    );
    assert.throws(() => server.prompt("g", function* () {} as never), /generator/);
    await serve({ way: "pair", era: "modern" }, server, async (session) => {
        const of = { type: "ref/prompt", name: "p" } as const;
        const found = await session.complete(of, "a", "");
        assert.equal(found.values.length, 100);
        assert.deepEqual([found.total, found.hasMore], [150, true]);
        await assert.rejects(session.complete(of, "b", ""), /Internal error/);
    });
});

inEachWorld("items come and go while they are served", async (world) => {
    const server = new Server({ name: "changes" });
    const first = server.tool("first", () => "1");
    server.resource("test://r", () => "r");
    await serve(world, server, async (session) => {
        const heard = new Gate();
        const updated = new Gate();
        const changes = await session.subscribe(
            { tools: true, uris: ["test://r"] },
            {
                onChange: (change) => {
                    const told = JSON.stringify(change);
                    if (told.includes("test://r")) updated.open();
                    else heard.open();
                },
            },
        );
        const names = async (): Promise<string[]> =>
            (await session.listTools()).map(({ name }) => name);
        assert.deepEqual(await names(), ["first"]);
        const second = server.tool("second", () => "2");
        await heard.opened;
        assert.deepEqual(await names(), ["first", "second"]);
        assert.equal((await session.call("second")).text, "2");
        first.remove();
        first.remove();
        assert.deepEqual(await names(), ["second"]);
        assert.equal(server.removeTool("first"), false);
        server.resourceUpdated("test://r");
        await updated.opened;
        second.remove();
        await assert.rejects(session.call("second"));
        await changes.close();
    });
});

test("one server for several clients in the process", async () => {
    const server = new Server({ name: "shared" });
    server.tool("n", () => "n");
    const sessions = await Promise.all([connect(server), connect(server)]);
    for (const session of sessions) assert.equal((await session.call("n")).text, "n");
    for (const session of sessions) await session.close();
    await server.close();
});
