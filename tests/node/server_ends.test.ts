/** Tasks of a server that ends in a process that goes on: another server on the store
 * takes them over. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import {
    type Context,
    connect,
    Server,
    type Session,
    type Store,
    stores,
} from "segue-mcp";
import { z } from "zod";
import { Gate } from "./server_worlds.js";
import { internal } from "./tree.js";

const { native } = internal<typeof import("segue-mcp/native")>("native");
const timeout = 120_000;

async function inDirectory(work: (store: string) => Promise<void>): Promise<void> {
    const directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
    try {
        await work(path.join(directory, "tasks.db"));
    } finally {
        rmSync(directory, { recursive: true, force: true });
    }
}

async function open(url: string): Promise<Session> {
    return connect(url, { proxy: "", maxReconnects: -1 });
}

function aborted({ signal }: Context): Promise<void> {
    return new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve(), { once: true });
    });
}

/** How first runs react to the end of their server; `ends` collects what each has
 * noticed. */
const KINDS = {
    "a handler that heeds its signal": async (ctx: Context, ends: string[]) => {
        await ctx.send("1 ");
        await aborted(ctx);
        ends.push("heard");
        ctx.signal.throwIfAborted();
        return "never";
    },
    "a generator that nothing wakes": async function* (ctx: Context, ends: string[]) {
        yield "1 ";
        ctx.signal.addEventListener("abort", () => ends.push("heard"));
        await new Promise(() => undefined);
    },
    "a handler that goes on": async (ctx: Context, ends: string[], go: Gate) => {
        await ctx.send("1 ");
        await aborted(ctx);
        ends.push("heard");
        await go.opened;
        await assert.rejects(ctx.send("what comes too late"));
        await assert.rejects(ctx.checkpoint("too late"));
        ctx.progress(1);
        ends.push("went on");
        return "what comes too late";
    },
} as const;

type Kind = keyof typeof KINDS;

/** Makes a server whose tool ends at once when it runs for the second time. */
function counting(name: string, store: string, runs: number[], kind: Kind) {
    const server = new Server({ name, store, onError: assert.fail });
    const ends: string[] = [];
    const go = new Gate();
    const options = { task: "may", restartable: true, pollMs: 20 } as const;
    server.tool("count", options, (_, ctx) => {
        runs.push(ctx.resumed?.segments ?? 0);
        return ctx.resumed ? "2" : KINDS[kind](ctx, ends, go);
    });
    server.tool("lost", { task: "may", pollMs: 20 }, async function* () {
        yield "1 ";
        await new Promise(() => undefined);
    });
    return { server, ends, go };
}

/** Returns tokens of a task of each tool, whose first segment has come. */
async function begin(url: string): Promise<string[]> {
    const session = await open(url);
    const tokens: string[] = [];
    for (const name of ["count", "lost"]) {
        const task = await session.start(name);
        for await (const _ of task) break;
        tokens.push(task.token ?? "");
        task.detach();
    }
    await session.close();
    return tokens;
}

async function takeOver(url: string, [token = "", lost = ""]: string[]): Promise<void> {
    const session = await open(url);
    assert.equal((await session.resume(token).result()).text, "1 2");
    await assert.rejects(session.resume(lost).result(), { code: "SEGUE_E_TASK_LOST" });
    await session.close();
}

for (const kind of Object.keys(KINDS) as Kind[]) {
    test(`AS-78 a server that ends lets tasks go: ${kind}`, { timeout }, () =>
        inDirectory(async (store) => {
            const before = native.liveHandles()["Call"] ?? 0;
            const runs: number[] = [];
            const first = counting("first", store, runs, kind);
            const { url } = await first.server.listenHttp({ drainMs: 0 });
            const tokens = await begin(url);
            await first.server.close();
            assert.deepEqual([runs, first.ends], [[0], ["heard"]]);
            assert.equal(native.liveHandles()["Call"] ?? 0, before);
            const { server } = counting("next", store, runs, kind);
            await takeOver((await server.listenHttp()).url, tokens);
            assert.deepEqual(runs, [0, 1]);
            first.go.open();
            while (kind === "a handler that goes on" && first.ends.length < 2) {
                await new Promise(setImmediate);
            }
            await server.close();
        }),
    );
}

for (const way of ["pair", "http"] as const) {
    test(`R-975-29 a server that ends lets parked calls go [${way}]`, { timeout }, () =>
        inDirectory(async (store) => {
            const runs: number[] = [];
            let token = "";
            const during = async (work: (session: Session) => Promise<void>) => {
                const server = new Server({ name: "parks", store });
                const options = { resumable: true, restartable: true } as const;
                server.tool("count", options, async function* (_, { resumed }) {
                    runs.push(resumed?.segments ?? 0);
                    if (!resumed) {
                        yield "1 ";
                        await new Promise(() => undefined);
                    }
                    yield "2";
                });
                const calls = { era: "legacy", tasks: false, proxy: "" } as const;
                const target = way === "pair" ? server : (await server.listenHttp()).url;
                const session = await connect(target, calls);
                await work(session);
                await session.close();
                await server.close({ drainMs: 0 });
            };
            await during(async (session) => {
                const stream = session.stream("count", {}, { onLeave: "detach" });
                for await (const _ of stream) break;
                token = stream.token ?? "";
            });
            await during(async (session) => {
                assert.equal((await session.resume(token).result()).text, "1 2");
            });
            assert.deepEqual(runs, [0, 1]);
        }),
    );
}

test(
    "AS-78 a server that was there before has the tasks of one that ends",
    {
        timeout,
    },
    () =>
        inDirectory(async (store) => {
            const runs: number[] = [];
            const kind = "a generator that nothing wakes";
            const next = counting("next", store, runs, kind);
            const first = counting("first", store, runs, kind);
            const other = await next.server.listenHttp();
            const tokens = await begin(
                (await first.server.listenHttp({ drainMs: 0 })).url,
            );
            assert.deepEqual(runs, [0]);
            await first.server.close();
            await takeOver(other.url, tokens);
            assert.deepEqual(runs, [0, 1]);
            await next.server.close();
        }),
);

test("a handler may come to its end while its server does", { timeout }, () =>
    inDirectory(async (store) => {
        const server = new Server({ name: "waits", store });
        server.tool("tidy", { task: "must", pollMs: 20 }, async (_, ctx) => {
            await ctx.send("begun, ");
            await aborted(ctx);
            await new Promise(setImmediate);
            await ctx.send("ended");
        });
        const { url } = await server.listenHttp({ drainMs: 0 });
        let session = await open(url);
        const task = await session.start("tidy");
        for await (const _ of task) break;
        const token = task.token ?? "";
        task.detach();
        await session.close();
        await Promise.all([server.close(), server.close()]);
        session = await open((await server.listenHttp()).url);
        assert.equal((await session.resume(token).result()).text, "begun, ended");
        await session.close();
        await server.close();
    }),
);

test(
    "a server that is about to end leaves what it takes over to the next one",
    {
        timeout,
    },
    () =>
        inDirectory(async (store) => {
            const before = calls();
            const runs: number[] = [];
            const kind = "a generator that nothing wakes";
            const first = counting("first", store, runs, kind);
            const tokens = await begin(
                (await first.server.listenHttp({ drainMs: 0 })).url,
            );

            const next = counting("next", store, runs, kind);
            const [began, go] = [new Gate(), new Gate()];
            next.server.tool("gate", async () => {
                began.open();
                await go.opened;
                return "through";
            });
            const listener = await next.server.listenHttp();
            const session = await open(listener.url);
            const through = session.call("gate");
            await began.opened;
            const closing = next.server.close();
            await first.server.close();
            // the call of the gate, and that of the task
            await until(() => calls() === before + 2);
            go.open();
            assert.equal((await through).text, "through");
            await session.close();
            await closing;
            assert.deepEqual(runs, [0]);

            const last = counting("last", store, runs, kind);
            await takeOver((await last.server.listenHttp()).url, tokens);
            assert.deepEqual(runs, [0, 1]);
            await last.server.close();
        }),
);

/** Leaves five tasks that a server has begun; returns their tokens. */
async function leaveFive(store: string): Promise<string[]> {
    const server = new Server({ name: "first", store });
    const input = { number: z.number() };
    const options = { input, task: "may", restartable: true, pollMs: 20 } as const;
    server.tool("wait", options, async function* () {
        yield "1 ";
        await new Promise(() => undefined);
    });
    const session = await open((await server.listenHttp({ drainMs: 0 })).url);
    const tokens: string[] = [];
    for (let number = 0; number < 5; number++) {
        const task = await session.start("wait", { number });
        for await (const _ of task) break;
        tokens.push(task.token ?? "");
        task.detach();
    }
    await session.close();
    await server.close();
    return tokens;
}

/** Makes a server that runs this many of them at once. */
function taking(store: string, maxCalls: number, go: Promise<void>) {
    const server = new Server({ name: "next", store, maxCalls });
    const input = { number: z.number() };
    const options = { input, task: "may", restartable: true, pollMs: 20 } as const;
    const begun: number[] = [];
    const counts = { running: 0, most: 0 };
    server.tool("wait", options, async ({ number }) => {
        begun.push(number);
        counts.most = Math.max(counts.most, ++counts.running);
        await go;
        counts.running--;
        return "2";
    });
    return { server, begun, counts };
}

const calls = (): number => native.liveHandles()["Call"] ?? 0;

async function until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise(setImmediate);
}

test("tasks that were taken over begin when there is room", { timeout }, () =>
    inDirectory(async (store) => {
        const before = calls();
        const tokens = await leaveFive(store);
        const go = new Gate();
        const { server, begun, counts } = taking(store, 2, go.opened);
        const session = await open((await server.listenHttp()).url);
        await until(() => calls() === before + 5);
        assert.equal(counts.running, 2);

        const unwanted = [0, 1, 2, 3, 4].find((one) => !begun.includes(one)) ?? -1;
        await session.resume(tokens[unwanted] ?? "").cancel();
        await until(() => calls() === before + 4);
        go.open();
        const wanted = tokens.filter((_, number) => number !== unwanted);
        const results = wanted.map((token) => session.resume(token).result());
        for (const { text } of await Promise.all(results)) assert.equal(text, "1 2");
        assert.equal(begun.length, 4);
        assert.ok(!begun.includes(unwanted));
        assert.equal(counts.most, 2);
        await until(() => calls() === before);
        await session.close();
        await server.close();
    }),
);

test("tasks that wait for room are left to the next server", { timeout }, () =>
    inDirectory(async (store) => {
        const before = calls();
        const tokens = await leaveFive(store);
        const full = taking(store, 2, new Promise(() => undefined));
        await full.server.listenHttp({ drainMs: 0 });
        await until(() => calls() === before + 5);
        await full.server.close();
        assert.equal(calls(), before);

        const { server, begun } = taking(store, 5, Promise.resolve());
        const session = await open((await server.listenHttp()).url);
        const results = tokens.map((token) => session.resume(token).result());
        for (const { text } of await Promise.all(results)) assert.equal(text, "1 2");
        assert.equal(begun.length, 5);
        await session.close();
        await server.close();
    }),
);

test("tasks that have not begun are not waited for", { timeout }, () =>
    inDirectory(async (store) => {
        const before = calls();
        const tokens = await leaveFive(store);
        const go = new Gate();
        const full = taking(store, 2, go.opened);
        await full.server.listenHttp({ drainMs: 3_600_000 });
        await until(() => calls() === before + 5);
        const closed = full.server.close();
        await new Promise(setImmediate); // from here on no task begins
        go.open();
        await closed;
        assert.equal(full.begun.length, 2);
        assert.equal(calls(), before);

        const { server, begun } = taking(store, 5, Promise.resolve());
        const session = await open((await server.listenHttp()).url);
        const results = tokens.map((token) => session.resume(token).result());
        for (const { text } of await Promise.all(results)) assert.equal(text, "1 2");
        assert.equal(begun.length, 3);
        await session.close();
        await server.close();
    }),
);

test("while a store is closed a server is given another one", { timeout }, () =>
    inDirectory(async (name) => {
        const server = new Server({ name: "again", store: name });
        server.tool("hello", () => "hello");
        await server.listenHttp({ drainMs: 0 });
        const [closing, go] = [new Gate(), new Gate()];
        const kind = Object.getPrototypeOf(stores.memory()) as Store;
        const close = kind.close;
        kind.close = async function () {
            await close.call(this);
            closing.open();
            await go.opened;
        };
        try {
            const ends = [server.close(), server.close()];
            await closing.opened;
            const session = await open((await server.listenHttp()).url);
            assert.equal((await session.call("hello")).text, "hello");
            await session.close();
            let hasEnded = false;
            void Promise.race(ends).then(() => {
                hasEnded = true;
            });
            await new Promise(setImmediate);
            assert.equal(hasEnded, false);
            go.open();
            await Promise.all(ends);
        } finally {
            kind.close = close;
        }
        await server.close();
    }),
);
