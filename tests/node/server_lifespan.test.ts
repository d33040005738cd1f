/** The lifespan of a Node server: when it begins and ends, and who gets its errors. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { asyncDispose, connect, Server } from "segue-mcp";
import { Gate, inEachWorld, serve } from "./server_worlds.js";

const LONG = { timeout: 120_000 };

interface Database {
    readonly name: string;
}

/** A server with a lifespan, and what happened. */
class Shop {
    readonly lines: string[] = [];
    problem: Error | undefined;
    late: Error | undefined;
    readonly server: Server<Database>;

    constructor(name = "shop") {
        const shop = this;
        this.server = new Server({
            name,
            onError: (error, { what, name: of }) =>
                this.lines.push(`${what} ${of}: ${(error as Error).message}`),
            lifespan: async function* (server) {
                shop.lines.push(`begin ${server.name}`);
                await new Promise(setImmediate);
                if (shop.problem) throw shop.problem;
                yield { name: `database of ${server.name}` };
                await new Promise(setImmediate);
                if (shop.late) throw shop.late;
                shop.lines.push(`end ${server.name}`);
            },
        });
        // the type of the value is that of the lifespan
        this.server.tool("name", (_, { lifespan }) => lifespan.name);
        this.server.resource("note://{id}", (_, { lifespan }) => lifespan.name);
    }
}

inEachWorld("handlers have the value", async (world) => {
    const shop = new Shop();
    await serve(world, shop.server, async (session) => {
        assert.deepEqual(shop.lines, ["begin shop"]);
        assert.equal((await session.call("name")).text, "database of shop");
        const [note] = (await session.readResource("note://1")).contents;
        assert.equal((note as { text?: string }).text, "database of shop");
    });
    assert.deepEqual(shop.lines, ["begin shop", "end shop"]);
});

test("closing a listener or a handler waits for its end", LONG, async () => {
    for (const open of [
        (shop: Shop) => shop.server.listenHttp({ drainMs: 0 }),
        async (shop: Shop) => shop.server.handler(),
    ]) {
        const shop = new Shop();
        const serving = await open(shop);
        await serving.close();
        assert.deepEqual(shop.lines, ["begin shop", "end shop"]);
        await shop.server.close();
    }
});

test("without a lifespan the value is undefined", LONG, async () => {
    const server = new Server({ name: "bare" });
    server.tool("name", (_, { lifespan }) => String(lifespan));
    const session = await connect(server);
    assert.equal((await session.call("name")).text, "undefined");
    await session.close();
    await server.close();
});

test("all transports share it, and it may begin again", LONG, async () => {
    const shop = new Shop();
    for (let turn = 0; turn < 2; turn++) {
        const [one, two] = await Promise.all([
            shop.server.listenHttp({ drainMs: 0 }),
            shop.server.listenHttp({ drainMs: 0 }),
        ]);
        assert.deepEqual(shop.lines, ["begin shop"]);
        await one.close();
        const session = await connect(two.url, { proxy: "" });
        assert.equal((await session.call("name")).text, "database of shop");
        await session.close();
        assert.deepEqual(shop.lines, ["begin shop"]);
        await two.close();
        await shop.server.close();
        assert.deepEqual(shop.lines.splice(0), ["begin shop", "end shop"]);
    }
});

test("a handler ends before it", LONG, async () => {
    const shop = new Shop();
    const runs = new Gate();
    shop.server.tool("long", { task: "may" }, async (_, ctx) => {
        const { signal, lifespan } = ctx;
        runs.open();
        await once(signal, "abort");
        await new Promise(setImmediate);
        shop.lines.push(`aborted with ${lifespan.name}, ${ctx.lifespan?.name}`);
    });
    const listener = await shop.server.listenHttp({ drainMs: 0 });
    const session = await connect(listener.url, { proxy: "" });
    await session.start("long");
    await runs.opened;
    await session.close();
    await listener.close();
    assert.deepEqual(shop.lines, ["begin shop"]); // the task goes on
    await shop.server.close();
    const name = "database of shop";
    assert.deepEqual(shop.lines, [
        "begin shop",
        `aborted with ${name}, ${name}`,
        "end shop",
    ]);
});

test("a lifespan that cannot begin", LONG, async () => {
    const shop = new Shop();
    shop.problem = new Error("no database");
    const reason = { message: "no database" };
    await assert.rejects(shop.server.listenHttp(), reason);
    await assert.rejects(async () => connect(shop.server), reason);
    const handler = shop.server.handler();
    await assert.rejects(handler.close(), reason);
    await assert.rejects(handler.fetch(new Request("http://127.0.0.1/mcp")), reason);
    const lines = shop.lines.splice(0).filter((line) => line !== "begin shop");
    assert.deepEqual(lines, ["handler : no database"]);
    shop.problem = undefined;
    await shop.server.listenHttp({ drainMs: 0 });
    await shop.server.close();
    assert.deepEqual(shop.lines, ["begin shop", "end shop"]);
});

test("onError gets the error of a clean-up", LONG, async () => {
    const shop = new Shop();
    shop.late = new Error("cannot close");
    await shop.server.listenHttp({ drainMs: 0 });
    await shop.server.close();
    assert.deepEqual(shop.lines, ["begin shop", "lifespan shop: cannot close"]);
});

test("a server that cannot listen leaves it", LONG, async () => {
    const shop = new Shop();
    await assert.rejects(shop.server.listenHttp({ certFile: "no" }));
    assert.deepEqual(shop.lines, ["begin shop", "end shop"]);
});

test("a server that is closed while it begins", LONG, async () => {
    const shop = new Shop();
    const opening = shop.server.listenHttp();
    await shop.server.close();
    await assert.rejects(opening, { name: "ClosedError" });
    assert.deepEqual(shop.lines, ["begin shop", "end shop"]);
});

test("a handler in an app has it", LONG, async () => {
    const shop = new Shop();
    const handler = shop.server.handler({ drainMs: 0 });
    const app = createServer(handler).listen(0, "127.0.0.1");
    await once(app, "listening");
    const { port } = app.address() as AddressInfo;
    const session = await connect(`http://127.0.0.1:${port}/mcp`, { proxy: "" });
    assert.equal((await session.call("name")).text, "database of shop");
    await session.close();
    await handler.close();
    await shop.server.close();
    assert.deepEqual(shop.lines, ["begin shop", "end shop"]);
    app.close();
});

test("mounted servers have their own", LONG, async () => {
    const all = new Shop("all");
    const part = new Shop("part");
    all.server.mount(part.server, { prefix: "part" });
    await all.server.listenHttp({ drainMs: 0 });
    const session = await connect(all.server);
    assert.equal((await session.call("part_name")).text, "database of part");
    assert.equal((await session.call("name")).text, "database of all");
    await session.close();
    assert.throws(() => all.server.mount(new Shop("late").server), {
        name: "StateError",
        message: /"late" has a lifespan.*mount it before "all" is served/,
    });
    await all.server.close();
    assert.deepEqual(all.lines, ["begin all", "end all"]);
    assert.deepEqual(part.lines, ["begin part", "end part"]);
});

test("it may be a value with a method for its end", LONG, async () => {
    const lines: string[] = [];
    const server = new Server({
        name: "disposed",
        lifespan: async () => ({
            name: "pool",
            async [asyncDispose]() {
                lines.push("disposed");
            },
        }),
    });
    server.tool("name", (_, { lifespan }) => lifespan.name);
    const session = await connect(server);
    assert.equal((await session.call("name")).text, "pool");
    await session.close();
    await server[asyncDispose]();
    assert.deepEqual(lines, ["disposed"]);
});

for (const [title, lifespan, wanted] of [
    ["never", async function* () {}, /has to yield once: it ended before/],
    ["is none", "database", /lifespan has to be a function, not string/],
] as const) {
    test(`what ${title} yields is no lifespan`, LONG, async () => {
        await assert.rejects(async () => {
            await new Server({ name: "x", lifespan: lifespan as never }).listenHttp();
        }, wanted);
    });
}

test("a lifespan that yields twice", LONG, async () => {
    const lines: string[] = [];
    const server = new Server({
        name: "twice",
        onError: (error) => lines.push((error as Error).message),
        lifespan: function* () {
            try {
                yield 1;
                yield 2;
            } finally {
                lines.push("closed");
            }
        },
    });
    await server.listenHttp({ drainMs: 0 });
    await server.close();
    assert.deepEqual(lines, ["closed", "lifespan has to yield once: it yielded again"]);
});

test("the end of standard input ends it", LONG, async () => {
    const program = `
        const { Server } = require("segue-mcp");
        const server = new Server({
            name: "stdio",
            lifespan: async function* () {
                console.error("begin");
                yield 1;
                await new Promise((resolve) => setTimeout(resolve, 1));
                console.error("end");
            },
        });
        server.serveStdio().then(() => process.exit());
    `;
    const child = spawn(process.execPath, ["-e", program], {
        cwd: import.meta.dirname,
        stdio: ["pipe", "ignore", "pipe"],
    });
    let text = "";
    child.stderr.on("data", (piece) => {
        text += piece;
        if (text === "begin\n") child.stdin.end();
    });
    await once(child, "close");
    assert.equal(text, "begin\nend\n");
});
