/** Remote servers inside a Node server. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import {
    connect,
    Remote,
    RemoteError,
    type RemoteOptions,
    Result,
    RpcError,
    Server,
    type Session,
    type Target,
    ToolError,
} from "segue-mcp";
import { z } from "zod";
import { inEachWorld, serve } from "./server_worlds.js";
import { PACKAGE } from "./tree.js";

/** The remote server: items of each kind, and tools that use the context. */
function far(ended = new EventTarget()): Server {
    const server = new Server({ name: "far" });
    server.resource("data://now", { name: "now" }, () => "now");
    const complete = { name: ["Bern", "Basel"] };
    server.resource("data://city/{name}", { complete }, ({ name }) => `city ${name}`);
    server.resource("file:///notes/a", () => "a file");
    server.resource("data://bytes", { mimeType: "image/png" }, () => ({
        uri: "data://bytes",
        mimeType: "image/png",
        blob: "iVBORw==",
    }));
    const place = { input: { place: z.string() }, complete: { place: ["Bern"] } };
    server.prompt("ask", place, ({ place }) => `How is ${place}?`);
    const pages = { input: { pages: z.number() } };
    server.tool("report", pages, async function* ({ pages }, ctx) {
        for (let page = 1; page <= pages; page++) {
            ctx.progress(page, pages, `page ${page}`);
            ctx.log(`log ${page}`, "warning");
            yield `page ${page}\n`;
        }
        await ctx.extend(0, "and more\n");
    });
    server.tool("redo", async (_, ctx) => {
        await ctx.send("first", "second");
        await ctx.replace("third");
    });
    server.tool(
        "book",
        async (_, ctx) => `booked: ${await ctx.ask("Sure?", z.boolean())}`,
    );
    server.tool(
        "total",
        {
            description: "Adds.",
            input: { one: z.number(), others: z.array(z.number()) },
            output: { total: z.number() },
        },
        ({ one, others }) => ({ total: others.reduce((a, b) => a + b, one) }),
    );
    server.tool("fails", () => {
        throw new ToolError("no luck");
    });
    server.tool("refuses", () => {
        throw new RpcError(4711, "not today", { retry: 1 });
    });
    server.tool("traced", (_, ctx) => ({
        content: [{ type: "text", text: "traced" }],
        _meta: { trace: ctx.meta["traceparent"] },
    }));
    server.tool("waits", async (_, ctx) => {
        ctx.progress(1);
        await once(ctx.signal, "abort");
        ended.dispatchEvent(new Event("ended"));
    });
    return server;
}

/** Makes a server with the remote one inside, two levels deep. */
async function before(target: Target, options: RemoteOptions = {}) {
    const [outer, app] = [new Server({ name: "outer" }), new Server({ name: "app" })];
    const remote = await Remote.connect(target, { proxy: "", ...options });
    outer.mount(app.mount(remote, { prefix: "far" }), { prefix: "app" });
    return { outer, remote };
}

async function read(session: Session, uri: string): Promise<unknown> {
    const [contents] = (await session.readResource(uri)).contents;
    assert.equal(contents?.uri, uri);
    return (contents as { text?: string }).text;
}

async function names(session: Session): Promise<string[]> {
    return [
        ...(await session.listTools()).map(({ name }) => name),
        ...(await session.listResources()).map(({ uri }) => uri),
        ...(await session.listResourceTemplates()).map((one) => one.uriTemplate),
        ...(await session.listPrompts()).map(({ name }) => name),
    ];
}

for (const era of ["modern", "legacy"] as const) {
    inEachWorld(`everything passes to a remote of ${era}`, async (world) => {
        const ended = new EventTarget();
        const inner = far(ended);
        const { url } = await inner.listenHttp({ port: 0 });
        const { outer, remote } = await before(url, { era });
        const seen: unknown[] = [];
        await serve(
            world,
            outer,
            async (session) => {
                await items(session);
                await calls(session, seen);
                const stop = new AbortController();
                const over = once(ended as never, "ended");
                const onProgress = (): void => stop.abort();
                const { signal } = stop;
                const waits = session.call("app_far_waits", {}, { signal, onProgress });
                await assert.rejects(waits);
                await over;
            },
            {
                onElicit: () => ({ action: "accept", content: { value: true } }),
                onLog: ({ level, data }) => seen.push([level, data]),
            },
        );
        await remote.close();
        await inner.close();
    });

    inEachWorld(`progress of a tool that may be a task (${era})`, async (world) => {
        const inner = new Server({ name: "inner" });
        inner.tool("may", { task: "may" }, async function* (_, ctx) {
            for (let step = 1; step <= 3; step++) {
                ctx.progress(step, 3);
                ctx.log(`log ${step}`, "warning");
                yield `page ${step}`;
                await turn();
            }
        });
        inner.tool("must", { task: "must" }, function* () {
            yield "one";
            yield "two";
        });
        const { url } = await inner.listenHttp({ port: 0 });
        const { outer, remote } = await before(url, { era });
        for (const tasks of [true, false]) {
            const seen: unknown[] = [];
            const work = async (session: Session): Promise<void> => {
                const result = await session.call(
                    "app_far_may",
                    {},
                    {
                        onProgress: ({ progress }) => seen.push(progress),
                        onLog: ({ data }) => seen.push(data),
                    },
                );
                assert.equal(result.text, "page 1page 2page 3");
                const onProgress = (): void => undefined;
                for (let i = 0; i < 2; i++) {
                    // The second call knows that it must be a task.
                    const told = await session.call("app_far_must", {}, { onProgress });
                    assert.equal(told.text, "onetwo");
                }
            };
            await serve(world, outer, work, { tasks, logLevel: "info" });
            // A task of 2026-07-28 has no progress.
            const isTask = world.era === "modern" && tasks;
            const all = [1, "log 1", 2, "log 2", 3, "log 3"];
            assert.deepEqual(seen, isTask ? [] : all);
        }
        await remote.close();
        await inner.close();
    });

    test(`the lists of a remote of ${era} are live`, { timeout: 120_000 }, async () => {
        const inner = new Server({ name: "inner" });
        inner.tool("first", () => "1");
        const one = inner.resource("data://one", () => "one");
        inner.prompt("first", () => "1");
        const { url } = await inner.listenHttp({ port: 0 });
        const { outer, remote } = await before(url, { era });
        const failures: string[] = [];
        Object.assign(remote, { report: (error: Error) => failures.push(error.message) });
        outer.tool("app_far_third", () => "ours");
        const session = await connect(outer);
        const changes = await session.subscribe({
            tools: true,
            resources: true,
            prompts: true,
        });
        const each = changes[Symbol.asyncIterator]();
        const until = async (...wanted: string[]): Promise<void> => {
            const all = [...wanted, "app_far_third"].sort();
            while ((await names(session)).sort().join() !== all.join()) await each.next();
        };
        const first = "app_far_first";
        await until(first, first, "data://app/far/one");
        inner.tool("second", () => "2");
        inner.tool("third", () => "theirs, which ours hides");
        await until(first, first, "data://app/far/one", "app_far_second");
        assert.equal((await session.call("app_far_third")).text, "ours");
        inner.removeTool("first");
        one.remove();
        inner.resource("data://{name}/two", ({ name }) => name);
        inner.removePrompt("first");
        inner.prompt("again", () => "2");
        await until("app_far_second", "data://app/far/{name}/two", "app_far_again");
        assert.match(failures.join(), /"outer" already has a tool "app_far_third"/);
        await session.close();
        await outer.close();
        await remote.close();
        await inner.close();
    });
}

async function items(session: Session): Promise<void> {
    const listed = await session.listTools();
    const total = listed.find(({ name }) => name === "app_far_total");
    assert.equal(total?.description, "Adds.");
    assert.deepEqual(total.outputSchema?.["required"], ["total"]);
    assert.equal(await read(session, "data://app/far/now"), "now");
    assert.equal(await read(session, "data://app/far/city/Bern%20a"), "city Bern a");
    assert.equal(await read(session, "file://app/far/notes/a"), "a file");
    const [picture] = (await session.readResource("data://app/far/bytes")).contents;
    assert.deepEqual(
        [picture?.mimeType, (picture as { blob?: string }).blob],
        ["image/png", "iVBORw=="],
    );
    const uri = "data://app/far/city/{name}";
    const city = { type: "ref/resource", uri } as const;
    assert.deepEqual((await session.complete(city, "name", "be")).values, ["Bern"]);
    const ask = { type: "ref/prompt", name: "app_far_ask" } as const;
    assert.deepEqual((await session.complete(ask, "place", "b")).values, ["Bern"]);
    const { messages } = await session.getPrompt("app_far_ask", { place: "Bern" });
    assert.deepEqual(messages[0]?.content, { type: "text", text: "How is Bern?" });
    await assert.rejects(session.getPrompt("app_far_ask"), /place/);
}

async function calls(session: Session, seen: unknown[]): Promise<void> {
    const steps: unknown[] = [];
    const stream = session.stream(
        "app_far_report",
        { pages: 2 },
        {
            onProgress: ({ progress, total, message }) =>
                steps.push([progress, total, message]),
        },
    );
    assert.equal((await stream.collect()).text, "page 1\nand more\npage 2\n");
    assert.deepEqual(steps, [
        [1, 2, "page 1"],
        [2, 2, "page 2"],
    ]);
    assert.deepEqual(seen, [
        ["warning", "log 1"],
        ["warning", "log 2"],
    ]);
    assert.equal((await session.call("app_far_redo")).text, "third");
    assert.equal((await session.call("app_far_book")).text, "booked: true");
    const total = await session.call("app_far_total", { one: 1, others: [2, 3] });
    assert.deepEqual(total.structured, { total: 6 });
    const meta = { traceparent: "00-1-2-3" };
    const traced = await session.call("app_far_traced", {}, { meta });
    assert.equal(traced.meta?.["trace"], "00-1-2-3");
    await assert.rejects(session.call("app_far_fails"), /no luck/);
    const bad = session.call("app_far_total", { one: 1, other: [] });
    await assert.rejects(bad, /unknown argument "other"/);
    await assert.rejects(session.call("app_far_refuses"), (error: RemoteError) => {
        assert.ok(error instanceof RemoteError);
        assert.deepEqual([error.rpcCode, error.data], [4711, { retry: 1 }]);
        return /not today/.test(error.message);
    });
}

test("a command comes back, and ends with its remote", { timeout: 120_000 }, async () => {
    const program = `
        import { Server } from ${JSON.stringify(`${PACKAGE}/dist/index.mjs`)};
        const server = new Server({ name: "child" });
        server.tool("pid", () => String(process.pid));
        server.tool("ends", () => process.exit(1));
        await server.serveStdio();`;
    const command = [process.execPath, "--input-type=module", "-e", program];
    const seen: string[] = [];
    const onError = (_: unknown, { name }: { name: string }): void =>
        void seen.push(name);
    const { outer, remote } = await before(command, { onError });
    const session = await connect(outer);
    const first = (await session.call("app_far_pid")).text;
    await assert.rejects(session.call("app_far_ends"));
    assert.deepEqual(seen, ["app_far_ends"]);
    const second = (await session.call("app_far_pid")).text;
    assert.notEqual(second, first);
    await session.close();
    await outer.close();
    await remote.close();
    while (isAlive(Number(second))) await new Promise(setImmediate);
});

/** Its `_meta` names the server that made it, and this server names itself. */
inEachWorld("a result of another server passes", async (world) => {
    const inner = new Server({ name: "inner" });
    inner.tool("traced", () => new Result(["x"], { meta: { trace: 1 } }));
    const near = new Server({ name: "near" });
    near.tool("relay", async () => {
        const session = await connect(inner);
        try {
            return await session.call("traced");
        } finally {
            await session.close();
        }
    });
    await serve(world, near, async (session) => {
        const { text, meta } = await session.call("relay");
        assert.deepEqual([text, meta?.["trace"]], ["x", 1]);
        const told = meta?.["io.modelcontextprotocol/serverInfo"] as { name: string };
        assert.equal(told?.name ?? "near", "near");
        await inner.close();
    });
});

/** Makes an official server, of 1.x, whose questions name no call. */
async function officialServer(http: HttpServer) {
    const load = (name: string) => import(`@modelcontextprotocol/sdk/${name}.js`);
    const { McpServer } = await load("server/mcp");
    const { StreamableHTTPServerTransport } = await load("server/streamableHttp");
    const server = new McpServer({ name: "official", version: "1" });
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
        open = resolve;
    });
    let hold: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
        hold = resolve;
    });
    const text = (said: string) => ({ content: [{ type: "text", text: said }] });
    server.registerTool("asks", {}, async () => {
        const { action, content } = await server.server.elicitInput({
            message: "Who?",
            requestedSchema: { type: "object", properties: { name: { type: "string" } } },
        });
        return text(`${action} ${content?.name}`);
    });
    server.registerTool("holds", {}, async () => {
        hold();
        await gate;
        return text("held");
    });
    const sessionIdGenerator = () => "one";
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator });
    const streams = new Promise<void>((resolve) => {
        http.on("request", (request, response) => {
            if (request.method === "GET") setImmediate(resolve);
            void transport.handleRequest(request, response);
        });
    });
    await server.connect(transport);
    return { server, open, held, streams };
}

test("a question that names no call is that of the only call", async () => {
    const http = createServer();
    const { server, open, held, streams } = await officialServer(http);
    await once(http.listen(0, "127.0.0.1"), "listening");
    const { port } = http.address() as AddressInfo;
    const { outer, remote } = await before(`http://127.0.0.1:${port}/mcp`);
    await streams;
    for (const era of ["modern", "legacy"] as const) {
        const content = { name: "Ada" };
        const onElicit = () => ({ action: "accept", content }) as const;
        const session = await connect(outer, { era, onElicit });
        assert.equal((await session.call("app_far_asks")).text, "accept Ada");
        if (era === "legacy") {
            const holds = session.call("app_far_holds");
            await held;
            const asks = session.call("app_far_asks", {}, { throwOnError: false });
            assert.match((await asks).text, /names no call, and 2 calls are open/);
            open();
            assert.equal((await holds).text, "held");
        }
        await session.close();
    }
    await outer.close();
    await remote.close();
    await server.close();
    http.close();
});

function isAlive(pid: number): boolean {
    try {
        return process.kill(pid, 0);
    } catch {
        return false;
    }
}

test("a remote that is not there, and one that is a server", async () => {
    const inner = far();
    const { url } = await inner.listenHttp({ port: 0 });
    await inner.close();
    await assert.rejects(Remote.connect(url, { proxy: "" }), /127\.0\.0\.1/);
    await assert.rejects(Remote.connect(inner), /mount a Server itself/);
    const wrong = url as unknown as Server;
    assert.throws(
        () => new Server({ name: "app" }).mount(wrong),
        /Remote\.connect makes/,
    );
});

test("a remote does not keep the process alive", { timeout: 60_000 }, async () => {
    const inner = far();
    const { url } = await inner.listenHttp({ port: 0 });
    const program = `
        import { Remote } from ${JSON.stringify(`${PACKAGE}/dist/index.mjs`)};
        const remote = await Remote.connect(${JSON.stringify(url)}, { proxy: "" });
        console.log((await remote.session.call("total", { one: 1, others: [] })).text);`;
    const args = ["--input-type=module", "-e", program];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    assert.equal(stdout.trim(), '{"total":1}');
    await inner.close();
});
