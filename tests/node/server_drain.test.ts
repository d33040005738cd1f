/** A server that ends in good order: a client that was cut off from a running call comes
 * back for the rest, and new calls go to the next server. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { connect, Server } from "segue-mcp";
import { Balancer } from "./balancer.js";
import { Gate } from "./server_worlds.js";
import { withStoreOfKind } from "./shared_stores.js";

const timeout = 120_000;
const DRAIN_MS = 60_000;

/** Makes a server whose calls wait for the test. */
function gated(name: string) {
    const sealKey = Uint8Array.from({ length: 32 }, (_, at) => at);
    const server = new Server({ name, sealKey });
    const [began, go] = [new Gate(), new Gate()];
    server.tool("gate", { task: "may", pollMs: 20 }, async function* () {
        yield "first, ";
        began.open();
        await go.opened;
        yield "rest";
    });
    server.tool("where", () => name);
    return { server, began, go };
}

/** Ends what a failed test has left open; closing twice does no harm. */
function endsAfter(t: TestContext, gate: Gate, ...open: { close(): unknown }[]): void {
    t.after(async () => {
        gate.open();
        await Promise.all(open.map((one) => one.close()));
    });
}

async function until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise(setImmediate);
}

for (const era of ["auto", "legacy"] as const) {
    test(`a client comes back while the server drains: ${era}`, {
        timeout,
    }, async (t) => {
        const { server, began, go } = gated("one");
        const listener = await server.listenHttp({ drainMs: DRAIN_MS });
        const balancer = new Balancer(listener.url);
        const session = await connect(await balancer.listen(), { era, proxy: "" });
        endsAfter(t, go, session, balancer, server);
        const task = await session.start("gate");
        await began.opened;
        const closing = server.close();
        const before = balancer.count;
        balancer.cut();
        await until(() => balancer.count > before); // the client comes back,
        // and its loss was noticed
        const none = await fetch(new URL("/none", listener.url));
        assert.equal(none.status, 404);
        go.open();
        assert.equal((await task.result()).text, "first, rest");
        await session.close();
        await closing;
        balancer.close();
    });
}

test("refused calls go to the next server", { timeout }, async (t) => {
    const [one, two] = [gated("one"), gated("two")];
    const first = await one.server.listenHttp({ drainMs: DRAIN_MS });
    const second = await two.server.listenHttp();
    const keeper = await connect(first.url, { proxy: "" });
    const balancer = new Balancer(first.url, second.url);
    endsAfter(t, one.go, keeper, balancer, one.server, two.server);
    const task = await keeper.start("gate");
    await one.began.opened;
    const closing = one.server.close();
    const url = await balancer.listen();
    for (const era of ["auto", "legacy", "auto", "legacy"] as const) {
        const session = await connect(url, { era, proxy: "" });
        assert.equal((await session.call("where")).text, "two");
        await session.close();
    }
    assert.ok(balancer.count > 5); // the first server was asked, too
    one.go.open();
    assert.equal((await task.result()).text, "first, rest");
    await keeper.close();
    await closing;
    balancer.close();
    await two.server.close();
});

/** Passes what a server says on to a Redis server, unless it is held. */
class Held {
    readonly #pairs = new Map<net.Socket, net.Socket>();
    readonly #listener = net.createServer((near) => {
        const far = net.connect(this.socket);
        this.#pairs.set(near, far);
        for (const [one, other] of [
            [near, far],
            [far, near],
        ] as const) {
            one.on("error", () => other.destroy());
            one.on("close", () => other.destroy());
            one.pipe(other);
        }
    });

    constructor(readonly socket: string) {}

    async listen(): Promise<string> {
        this.#listener.listen(0, "127.0.0.1");
        await once(this.#listener, "listening");
        const { port } = this.#listener.address() as net.AddressInfo;
        return `redis://127.0.0.1:${port}`;
    }

    hold(): void {
        for (const [near, far] of this.#pairs) near.unpipe(far);
    }

    release(): void {
        for (const [near, far] of this.#pairs) near.pipe(far);
    }

    close(): void {
        for (const near of this.#pairs.keys()) near.destroy();
        this.#listener.close();
    }
}

/**
 * Sends a call that becomes a task. The server looks for the key of the call in its store
 * before it begins the call. Resolves when the call was sent, to a promise of the answer.
 */
async function callAsTask(url: string, name: string): Promise<() => Promise<string>> {
    const _meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {
            extensions: { "io.modelcontextprotocol/tasks": {} },
        },
        "dev.segue/idempotencyKey": "a key of this call",
    };
    const headers = {
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    };
    const params = { name, arguments: {}, _meta };
    const request = http.request(url, { method: "POST", headers });
    const answer = once(request, "response");
    const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
    await new Promise<void>((sent) => request.end(JSON.stringify(body), sent));
    return async () => await text((await answer)[0] as http.IncomingMessage);
}

/** Resolves when the server has handled everything before. */
async function heard(url: string): Promise<void> {
    const headers = { Connection: "close" };
    assert.equal((await fetch(new URL("/none", url), { headers })).status, 404);
}

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
    const directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
    try {
        await work(directory);
    } finally {
        rmSync(directory, { recursive: true, force: true });
    }
}

test("a call that came before the end runs", { timeout }, (t) =>
    inDirectory((directory) =>
        withStoreOfKind("redis", directory, async (store) => {
            // The store still looks for the key of the call when the server begins to
            // end, and the handler begins later. A refusal would be the result of the
            // task.
            const { server, began, go } = gated("one");
            const held = new Held(new URL(store).pathname);
            const options = { drainMs: DRAIN_MS, store: await held.listen() };
            const { url } = await server.listenHttp(options);
            endsAfter(t, go, held, server);
            await heard(url); // the server has looked for tasks of earlier servers
            held.hold();
            const answer = await callAsTask(url, "gate");
            await heard(url);
            const closing = server.close();
            await new Promise(setImmediate);
            held.release();
            const first = await Promise.race([
                began.opened.then(() => "began"),
                closing.then(() => "closed"),
            ]);
            assert.equal(first, "began");
            go.open();
            assert.doesNotMatch(await answer(), /server_ending/);
            await closing;
            held.close();
        }),
    ),
);

test("a client that has gone is not waited for", { timeout }, async (t) => {
    // Only this process has the result of the task, and nobody fetches it. The end takes
    // about the poll interval, and not all of `drainMs`.
    const { server, began, go } = gated("one");
    const { url } = await server.listenHttp({ drainMs: DRAIN_MS });
    endsAfter(t, go, server);
    const answer = await callAsTask(url, "gate");
    assert.match(await answer(), /"taskId"/);
    await began.opened;
    go.open();
    const start = performance.now();
    await server.close();
    assert.ok(performance.now() - start < DRAIN_MS / 2);
});
