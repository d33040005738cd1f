/** Stores: how they are opened and closed while the process does other work. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { connect, RequestTimeoutError, Server, type Store, stores } from "segue-mcp";
import { type Kind, withStoreOfKind } from "./shared_stores.js";
import { internal, PACKAGE } from "./tree.js";

const { native } = internal<typeof import("segue-mcp/native")>("native");
const timeout = 120_000;

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
    const directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
    try {
        await work(directory);
    } finally {
        rmSync(directory, { recursive: true, force: true });
    }
}

/** A Redis server that accepts connections and never answers; it can hang up. */
async function silent(
    work: (url: string, hangUp: () => void) => Promise<void>,
): Promise<void> {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
        sockets.add(socket.on("error", () => undefined));
    });
    const hangUp = (): void => {
        server.close();
        for (const socket of sockets) socket.destroy();
    };
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    try {
        await work(`redis://127.0.0.1:${port}`, hangUp);
    } finally {
        hangUp();
    }
}

const REFUSED = { code: "SEGUE_E_STORE" };

test("the event loop turns while a store is opened", { timeout }, () =>
    silent(async (url, hangUp) => {
        let isOver = false;
        const opening = stores.redis(url, { timeoutMs: timeout });
        opening.catch(() => {
            isOver = true;
        });
        for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
        assert.equal(isOver, false);
        hangUp();
        await assert.rejects(opening, REFUSED);
    }),
);

test("a store that cannot be opened, and what it is", { timeout }, async () => {
    await assert.rejects(stores.sqlite("/nowhere/tasks.db"), {
        ...REFUSED,
        message: /open/,
    });
    await assert.rejects(stores.sqlite(1 as unknown as string), TypeError);
    await assert.rejects(stores.sqlite("x", { leaseMs: 1.5 }), RangeError);
    assert.throws(() => stores.memory({ durability: "some" as "full" }), TypeError);
    const secret = stores.redis("redis://u:secret@127.0.0.1:1", { timeoutMs: 100 });
    await assert.rejects(secret, (error: Error) => !/secret/.test(error.message));
    const store = stores.memory({ maxBytes: 1 << 20 });
    assert.equal(store.name, "memory");
    await Promise.all([store.close(), store.close()]);
    const server = new Server({ name: "none", store: "/nowhere/tasks.db" });
    await Promise.all([
        assert.rejects(server.listenHttp(), REFUSED),
        assert.rejects(server.listenHttp(), REFUSED),
        assert.rejects(connect(server), REFUSED),
    ]);
    assert.deepEqual(server.stats(), []);
    await server.close();
});

test("a store is closed when its promise says so", { timeout }, () =>
    inDirectory(async (directory) => {
        const file = path.join(directory, "tasks.db");
        const before = native.liveHandles()["Store"] ?? 0;
        const store = await stores.sqlite(file);
        assert.equal(store.name, file);
        assert.ok(existsSync(`${file}-wal`));
        await store[Symbol.asyncDispose]();
        assert.ok(!existsSync(`${file}-wal`)); // the last one to close removes it
        const server = new Server({ name: "late", store });
        await assert.rejects(server.listenHttp(), { code: "SEGUE_E_CLOSED" });
        await server.close();
        assert.equal(native.liveHandles()["Store"] ?? 0, before);
    }),
);

test(
    "a server that is closed while its store is opened does not begin",
    { timeout },
    () =>
        inDirectory(async (directory) => {
            const store = path.join(directory, "tasks.db");
            const before = native.liveHandles()["Store"] ?? 0;
            const server = new Server({ name: "closed", store });
            const listening = server.listenHttp();
            const refused = assert.rejects(listening, { code: "SEGUE_E_CLOSED" });
            await server.close();
            await refused;
            assert.deepEqual(server.stats(), []);
            assert.equal(native.liveHandles()["Store"] ?? 0, before);
            const [first, second] = await Promise.all([
                server.listenHttp(),
                server.listenHttp(),
            ]);
            assert.notEqual(first.url, second.url);
            assert.equal(server.stats().length, 1); // they share one store
            await server.close();
        }),
);

test("servers of one process share a store that is given to both", { timeout }, () =>
    inDirectory(async (directory) => {
        const store: Store = await stores.sqlite(path.join(directory, "tasks.db"));
        const [one, two] = ["one", "two"].map((name) => new Server({ name, store }));
        one?.tool("job", { task: "must", pollMs: 20 }, () => "done");
        const session = await connect((await one?.listenHttp())?.url ?? "");
        const task = await session.start("job");
        assert.equal((await task.result()).text, "done");
        await session.close();
        await one?.close();
        const other = await connect((await two?.listenHttp())?.url ?? "");
        assert.equal((await other.task(task.id ?? "").result()).text, "done");
        await other.close();
        await two?.close();
        await store.close();
    }),
);

/** Runs a program; returns what it printed when it has ended by itself. */
async function play(body: string, url: string): Promise<string> {
    const program = `
        const { stores } = require(process.argv[1]);
        const url = process.argv[2];
        const options = { timeoutMs: 200 };
        ${body}`;
    const cwd = mkdtempSync(path.join(os.tmpdir(), "segue-"));
    const child = spawn(process.execPath, ["-e", program, PACKAGE, url], {
        cwd,
        timeout,
        killSignal: "SIGKILL",
        stdio: ["ignore", "pipe", "inherit"],
    });
    let out = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
        out += text;
    });
    const [code, signal] = await once(child, "close");
    rmSync(cwd, { recursive: true });
    return `${out}${signal ?? code}`;
}

const ENDS = {
    "the process waits for it": `
        const failed = ({ code }) => process.stdout.write(code + " ");
        stores.redis(url, options).catch(failed);`,
    "process.exit": "stores.redis(url, options); setImmediate(() => process.exit(7));",
    "the end of a worker": `
        const { Worker } = require("node:worker_threads");
        const body = "const { stores } = require(" +
            JSON.stringify(process.argv[1]) + ");" +
            "stores.redis(" + JSON.stringify(url) +
            ", { timeoutMs: 200 }).catch(() => {});" +
            "stores.sqlite(" + JSON.stringify("opened.db") + ");" +
            "setInterval(() => {}, 1000);" + // it does not end by itself
            "require('node:worker_threads').parentPort.postMessage('begun');";
        const worker = new Worker(body, { eval: true });
        worker.once("message", async () => {
            process.stdout.write(await worker.terminate() + " ");
        });`,
};
const TOLD: Record<string, string> = {
    "the process waits for it": "SEGUE_E_STORE 0",
    "process.exit": "7",
    "the end of a worker": "1 0",
};

for (const [end, body] of Object.entries(ENDS)) {
    test(`a store is being opened, and ${end}`, { timeout }, () =>
        silent(async (url) => {
            assert.equal(await play(body, url), TOLD[end]);
        }),
    );
}

/** Runs `work` with a store of this kind, as a server accepts it. */
const withStore = (
    kind: Kind | "memory",
    work: (store: string | Store) => Promise<void>,
): Promise<void> =>
    inDirectory((directory) =>
        kind === "memory"
            ? work(stores.memory())
            : withStoreOfKind(kind, directory, work),
    );

/** A store keeps a call whose connection closes, but not one that was given up. */
for (const [era, kind] of [
    ["auto", "file"],
    ["legacy", "file"],
    ["auto", "redis"],
    ["legacy", "redis"],
    ["auto", "postgres"],
    ["legacy", "postgres"],
] as const)
    test(`a caller that goes ends its call, ${era}, ${kind}`, { timeout }, () =>
        withStore(kind, async (store) => {
            const server = new Server({ name: "kept", store });
            const began: (() => void)[] = [];
            const ended: (() => void)[] = [];
            server.tool("wait", {}, async (_input, ctx) => {
                began.shift()?.();
                await new Promise((resolve) =>
                    ctx.signal.addEventListener("abort", resolve),
                );
                ended.shift()?.();
            });
            try {
                const { url } = await server.listenHttp();
                for (const how of ["abort", "close", "timeout"]) {
                    let isBegun = false;
                    const begins = new Promise<void>((resolve) => {
                        began.push(() => {
                            isBegun = true;
                            resolve();
                        });
                    });
                    const ends = new Promise<void>((resolve) => ended.push(resolve));
                    const session = await connect(url, { era });
                    const leave = new AbortController();
                    const { signal } = leave;
                    // A busy machine takes longer to start.
                    for (let ms = 1000; how === "timeout" && !isBegun; ms *= 5) {
                        const call = session.call("wait", {}, { timeoutMs: ms });
                        await assert.rejects(call, RequestTimeoutError);
                    }
                    if (how !== "timeout") {
                        const call = session.call("wait", {}, { signal });
                        const fails = assert.rejects(call);
                        await begins;
                        if (how === "abort") leave.abort();
                        else await session.close();
                        await fails;
                    }
                    await ends;
                    await session.close();
                }
            } finally {
                await server.close();
            }
        }),
    );

/** Makes a call of 2026-07-28 with fetch alone. */
async function strangerCalls(
    url: string,
    more: object,
    signal?: AbortSignal,
): Promise<string> {
    const protocol = "io.modelcontextprotocol";
    const _meta = {
        [`${protocol}/protocolVersion`]: "2026-07-28",
        [`${protocol}/clientInfo`]: { name: "raw", version: "1" },
        [`${protocol}/clientCapabilities`]: {},
        ...more,
    };
    const params = { name: "wait", arguments: {}, _meta };
    const response = await fetch(url, {
        method: "POST",
        headers: {
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": "wait",
            connection: "close",
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
        signal: signal ?? null,
    });
    return response.text();
}

for (const kind of ["memory", "file", "redis", "postgres"] as const) {
    const name = `R-2557-11: a stranger who closes cancels unless he has a key [${kind}]`;
    test(name, { timeout }, () =>
        withStore(kind, async (store) => {
            const server = new Server({ name: "kept", store });
            const aborts: (() => void)[] = [];
            const begins: (() => void)[] = [];
            const answers: ((text: string) => void)[] = [];
            server.tool("wait", {}, (_input, { signal }) => {
                return new Promise<string>((resolve) => {
                    signal.addEventListener("abort", () => {
                        resolve("left");
                        aborts.shift()?.();
                    });
                    answers.push(resolve);
                    begins.shift()?.();
                });
            });
            const leaves = async (url: string, more: object): Promise<void> => {
                const begun = new Promise<void>((resolve) => begins.push(resolve));
                const leave = new AbortController();
                const fails = assert.rejects(strangerCalls(url, more, leave.signal));
                await begun;
                leave.abort();
                await fails;
            };
            try {
                const { url } = await server.listenHttp();
                const aborted = new Promise<void>((resolve) => aborts.push(resolve));
                await leaves(url, {});
                await aborted;
                const key = { "dev.segue/idempotencyKey": "a key of a stranger" };
                await leaves(url, key);
                const again = strangerCalls(url, key);
                answers[1]?.("waited");
                assert.match(await again, /waited/);
                assert.equal(answers.length, 2);
            } finally {
                await server.close();
            }
        }),
    );
}
