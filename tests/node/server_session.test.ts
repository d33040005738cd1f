/** The session of a call, its state, and its end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, Server, type ServerSession, type Session } from "segue-mcp";
import { z } from "zod";
import { Gate, inEachWorld, serve } from "./server_worlds.js";

declare module "segue-mcp" {
    interface SessionState {
        cart?: string[];
    }
}

const LONG = { timeout: 120_000 };

class Shop {
    readonly lines: string[] = [];
    ended = new Gate();
    readonly go = new Gate();
    readonly server: Server;

    constructor(sealKey?: Uint8Array) {
        this.server = new Server({
            name: "shop",
            sealKey,
            onError: (error, { what }) => this.lines.push(`${what}: ${String(error)}`),
        });
        this.server.tool("put", { input: { item: z.string() } }, ({ item }, ctx) => {
            const { session } = ctx;
            if (!session) return "no session";
            assert.equal(ctx.session, session);
            assert.equal(session.closed, false);
            if (!session.state.cart) {
                session.state.cart = [];
                session.onEnd(() => this.close(session));
                session.onEnd(() => this.lines.push("first"));
            }
            session.state.cart.push(item);
            return session.state.cart.join(" ");
        });
        this.server.tool("who", (_, { session }) => {
            return `${session?.protocolVersion} ${session?.clientInfo?.name}`;
        });
        const late = { task: "may", input: { reads: z.boolean() } } as const;
        this.server.tool("late", late, async ({ reads }, ctx) => {
            const before = reads ? ctx.session : undefined;
            await this.go.opened;
            this.lines.push(`${before?.closed} ${ctx.session === before}`);
            return "done";
        });
    }

    async close(session: ServerSession): Promise<void> {
        assert.ok(session.closed);
        await new Promise(setImmediate);
        this.lines.push(`close ${session.state.cart?.join(" ")}`);
        this.ended.open();
    }
}

async function put(session: Session, item: string): Promise<string> {
    return (await session.call("put", { item })).text;
}

for (const [era, way] of [
    ["legacy", "http"],
    ["legacy", "pair"],
    ["modern", "pair"],
] as const) {
    test(`each session has its state [${way}, ${era}]`, LONG, async () => {
        const shop = new Shop();
        const { url } = await shop.server.listenHttp({ drainMs: 0 });
        const open = () =>
            way === "http"
                ? connect(url, { proxy: "", era })
                : connect(shop.server, { era });
        const one = await open();
        const two = await open();
        assert.equal(await put(one, "tea"), "tea");
        assert.equal(await put(one, "milk"), "tea milk");
        assert.equal(await put(two, "soap"), "soap");
        await two.close();
        await shop.ended.opened;
        assert.deepEqual(shop.lines, ["first", "close soap"]);
        shop.ended = new Gate();
        assert.equal(await put(one, "jam"), "tea milk jam");
        await one.close();
        await shop.ended.opened;
        assert.deepEqual(shop.lines.slice(2), ["first", "close tea milk jam"]);
        await shop.server.close({ drainMs: 0 });
    });
}

test("over HTTP 2026-07-28 has none", LONG, async () => {
    const shop = new Shop();
    const { url } = await shop.server.listenHttp({ drainMs: 0 });
    const session = await connect(url, { proxy: "", era: "modern" });
    assert.equal(await put(session, "tea"), "no session");
    await session.close();
    await shop.server.close({ drainMs: 0 });
    assert.deepEqual(shop.lines, []);
});

for (const [era, revision] of [
    ["legacy", "2025-11-25"],
    ["modern", "2026-07-28"],
] as const) {
    test(`who the client is [${era}]`, LONG, async () => {
        const { server } = new Shop();
        const session = await connect(server, { era, name: "till", version: "1" });
        assert.equal((await session.call("who")).text, `${revision} till`);
        await session.close();
        await server.close({ drainMs: 0 });
    });
}

test("the end of the server ends sessions", LONG, async () => {
    const shop = new Shop();
    const { url } = await shop.server.listenHttp({ drainMs: 0 });
    const session = await connect(url, { proxy: "", era: "legacy" });
    await put(session, "tea");
    await shop.server.close({ drainMs: 0 });
    assert.deepEqual(shop.lines, ["first", "close tea"]);
    await session.close();
});

test("a task may outlive its session", LONG, async () => {
    const shop = new Shop();
    const { url } = await shop.server.listenHttp({ drainMs: 0 });
    for (const reads of [true, false]) {
        shop.ended = new Gate();
        const session = await connect(url, { proxy: "", era: "legacy" });
        await put(session, "tea");
        await session.start("late", { reads });
        await session.close();
        await shop.ended.opened;
    }
    shop.go.open();
    while (shop.lines.length < 6) await new Promise(setImmediate);
    assert.deepEqual(shop.lines.slice(4).sort(), ["true true", "undefined true"]);
    await shop.server.close({ drainMs: 0 });
});

test("onError gets the failures of the end", LONG, async () => {
    const shop = new Shop();
    let found: ServerSession | undefined;
    shop.server.tool("begin", (_, { session }) => {
        assert.ok(session);
        found = session;
        session.onEnd(() => shop.ended.open());
        session.onEnd(async () => {
            throw new RangeError("no luck");
        });
        assert.throws(() => session.onEnd("no" as never), /onEnd takes a function/);
        return "begun";
    });
    const session = await connect(shop.server);
    await session.call("begin");
    // a server in memory holds no process
    const alive = setInterval(() => undefined, 1000);
    await session.close();
    await shop.ended.opened;
    clearInterval(alive);
    assert.throws(() => found?.onEnd(() => undefined), /has ended/);
    assert.deepEqual(shop.lines, ["session: RangeError: no luck"]);
    await shop.server.close({ drainMs: 0 });
});

test("another server has a state of its own", LONG, async () => {
    const key = Uint8Array.from({ length: 32 }, (_, place) => place);
    const one = new Shop(key);
    const two = new Shop(key);
    const { url } = await one.server.listenHttp({ drainMs: 0 });
    const session = await connect(url, { proxy: "", era: "legacy" });
    assert.equal(await put(session, "tea"), "tea");
    await one.server.close({ drainMs: 0 });
    await two.server.listenHttp({ port: Number(new URL(url).port), drainMs: 0 });
    assert.equal(await put(session, "milk"), "milk");
    assert.equal((await session.call("who")).text, "2025-11-25 undefined");
    await session.close();
    await two.ended.opened;
    assert.deepEqual(two.lines, ["first", "close milk"]);
    await two.server.close({ drainMs: 0 });
});

inEachWorld("a call knows whether it has a session", async (world) => {
    const server = new Server({ name: "plain" });
    server.tool("has", (_, { session }) => String(session !== undefined));
    await serve(world, server, async (session) => {
        const wanted = !(world.way === "http" && world.era === "modern");
        assert.equal((await session.call("has")).text, String(wanted));
    });
});
