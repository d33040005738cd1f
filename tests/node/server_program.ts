/**
 * A server as a process, for tests of its standard input and output, its signals and its
 * crash: `server_program.js [--http PORT] [--store STORE] [--lease MS] [--drain MS]
 * [--deaf] [--closes FILE]`. With `--closes`, the program writes to the file after the
 * server has closed, before a signal ends the process.
 */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, watch } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { type Context, RpcError, Server, type Store, stores } from "segue-mcp";
import { z } from "zod";

const { values } = parseArgs({
    options: {
        http: { type: "string" },
        store: { type: "string" },
        lease: { type: "string" },
        drain: { type: "string", default: "10000" },
        deaf: { type: "boolean", default: false },
        closes: { type: "string" },
    },
});

/** Resolves when the file exists. */
async function fileIsThere(file: string, signal: AbortSignal): Promise<void> {
    const watcher = watch(path.dirname(file), { signal });
    try {
        while (!existsSync(file)) await once(watcher, "change", { signal });
    } finally {
        watcher.close();
    }
}

/** Opens the store, whose lease the URL of the store cannot set. */
async function open(): Promise<string | Store | undefined> {
    const { store, lease } = values;
    if (store === undefined || lease === undefined) return store;
    const options = { leaseMs: Number(lease) };
    if (/^(redis|unix):/.test(store)) return stores.redis(store, options);
    if (/^postgresql:/.test(store)) return stores.postgres(store, options);
    return store;
}

const server = new Server({ name: "program", version: "1", store: await open() });

server.tool("noisy", { input: { text: z.string() } }, ({ text }) => {
    console.log(`printed ${text}`);
    process.stdout.write("written\n");
    console.error("to standard error");
    return `${text} ${execFileSync("cat", { stdio: ["ignore", "pipe", "inherit"] })}`;
});
server.tool("gate", { input: { file: z.string() } }, async ({ file }, ctx) => {
    ctx.progress(1);
    await fileIsThere(file, ctx.signal);
    return "through";
});
server.tool("stuck", (_, ctx) => {
    ctx.progress(1);
    return new Promise(() => undefined);
});
/** Counts; in the first run it waits for ever at one number. */
async function* counting(
    { to, pauseAt }: { to: number; pauseAt: number },
    ctx: Context,
): AsyncGenerator<string, void> {
    const { resumed } = ctx;
    const before = resumed?.data as { runs: number } | undefined;
    const runs = (before?.runs ?? 0) + 1;
    await ctx.checkpoint({ runs });
    for (let number = (resumed?.segments ?? 0) + 1; number <= to; number++) {
        if (number === pauseAt && !resumed) await new Promise(() => undefined);
        yield `${number} `;
    }
    yield `in ${runs} runs`;
}

async function* begun(): AsyncGenerator<string, void> {
    yield "begun";
    await new Promise(() => undefined);
}

const input = { to: z.number(), pauseAt: z.number() };
server.tool("count", { input, task: "may", restartable: true }, counting);
server.tool("parked", { input, resumable: true, restartable: true }, counting);
server.tool("lost", { task: "may" }, begun);
const file = { input: { file: z.string() }, task: "may" } as const;
/** Fails after two segments, when the file exists. */
server.tool("fails", file, async function* ({ file }, ctx) {
    yield "one ";
    await fileIsThere(file, ctx.signal);
    yield "two ";
    throw new RpcError(5, "why", { more: 1 });
});
const fatal = { input: { file: z.string() }, resumable: true, restartable: true };
server.tool("die", fatal, ({ file }) => {
    appendFileSync(file, "died\n");
    process.exit(3);
});
const shortly = { ...fatal, resumeMaxWaitMs: 1000 };
/** Runs for a second at most without its client. */
server.tool("parked_shortly", shortly, async function* ({ file }) {
    appendFileSync(file, "ran\n");
    yield* begun();
});
server.tool("parked_lost", { resumable: true }, begun);

const drainMs = Number(values.drain);
const { closes } = values;
/** Takes more than one turn of the event loop, as closing a database does. */
async function onClosed(): Promise<void> {
    if (closes === undefined) return;
    appendFileSync(closes, `begins, ${server.stats().length} served\n`);
    await new Promise(setImmediate);
    appendFileSync(closes, "ends\n");
}
if (!values.deaf) server.closeOnSignals({ drainMs, onClosed });
if (values.http === undefined) {
    await server.serveStdio({ drainMs });
    console.log("ended");
} else {
    const listener = await server.listenHttp({ port: Number(values.http), drainMs });
    console.log(listener.url);
}
