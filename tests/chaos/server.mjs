/**
 * The server of a chaos run in Node. Arguments, environment, output and end are those of
 * the kill matrix' server (tests/kill_matrix/server.c): STORE PORT PARENT.
 */
import { createHash, randomBytes } from "node:crypto";
import { openSync, writeSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { RpcError, Server, stores } from "segue-mcp";

const [where, port, parent] = process.argv.slice(2);
const TTL_MS = 120_000;
const LEASE_MS = 1000;
const DRAIN_MS = Math.random() < 0.5 ? 0 : 1000; // 0: running calls are cancelled at once
const CHECKPOINT_EVERY = 8; // segments, as in tests/kill_matrix/weaver.c
const DRAFT_TASKS = 4; // SEGUE_DIALECT_DRAFT_TASKS
const FROM_START = 8; // SEGUE_WAY_FROM_START
const BITS = [
    ...["warp ", "weft ", "\u00e9t\u00e9 ", '"', "\\", "\n", "\t", "</x>"],
    ...["🧵", "0", "{", "\u2028"],
];
const PARTS = Array.from({ length: 256 }, () =>
    Array.from({ length: 24 }, () => pick(BITS)).join(""),
);

const file = openSync(process.env.SEGUE_HISTORY, "a", 0o600);

/** Each line is one write. */
function write(...words) {
    writeSync(file, `${words.join(" ")}\n`);
}

function made(call, number, text) {
    const sum = createHash("sha256").update(text).digest("hex").slice(0, 16);
    write("made", call, number, sum);
}

function pick(list) {
    return list[Math.floor(Math.random() * list.length)];
}

/** Returns a text that no other run of a tool makes. */
function textOf(number, nonce, size) {
    const text = [`${number} run ${nonce} at ${process.hrtime.bigint()}: `];
    let left = Math.floor(Math.random() * size) - text[0].length;
    while (left > 0) {
        const part = pick(left > 200 ? PARTS : BITS);
        text.push(part);
        left -= Buffer.byteLength(part);
    }
    return text.join("");
}

/**
 * Returns whether the checkpoint is the last one before the segments that a run goes on
 * from. A crash may have come between a segment and its checkpoint.
 */
function fits(done, found) {
    const last = done - (done % CHECKPOINT_EVERY);
    return found === last || (done === last && found + CHECKPOINT_EVERY === last);
}

async function* weave({ call, count, size, paceUs }, ctx) {
    const nonce = randomBytes(8).toString("hex");
    const { segments: done = 0, data: found = 0 } = ctx.resumed ?? {};
    const pace = paceUs / 1000;
    let due = performance.now();
    if (!fits(done, found)) {
        throw new RpcError(-32603, `behind segment ${done} the checkpoint is ${found}`);
    }
    if (done && done % CHECKPOINT_EVERY === 0) await ctx.checkpoint(done);
    for (let number = done + 1; number <= count; number++) {
        const text = textOf(number, nonce, size);
        made(call, number, text);
        yield text;
        if (number % CHECKPOINT_EVERY === 0) await ctx.checkpoint(number);
        // A run that was stopped goes on at its pace.
        due = Math.max(due + pace, performance.now() - 10 * pace);
        await setTimeout(due - performance.now(), undefined, { signal: ctx.signal });
    }
}

function effect({ call }) {
    write("effect", call);
    made(call, 1, call);
    return call;
}

function open() {
    const options = { leaseMs: LEASE_MS };
    if (where === "memory") return stores.memory();
    if (where.startsWith("postgresql:")) return stores.postgres(where, options);
    return where.includes("://") ? stores.redis(where, options) : stores.sqlite(where);
}

setInterval(() => process.ppid === Number(parent) || process.exit(1), 500).unref();
const server = new Server({
    name: "chaos",
    store: await open(),
    sealKey: Buffer.from("the kill matrix has nothing to h"),
    dialectsOn: DRAFT_TASKS,
    draftWays: FROM_START,
    maxTasks: 10_000,
    maxTtlMs: TTL_MS,
    graceMs: TTL_MS,
    lookupsPerSecond: 100_000,
    fetchesPerSecond: 100_000,
});
const options = {
    task: "may",
    resumable: true,
    incremental: true,
    ttlMs: TTL_MS,
    pollMs: 50,
    forbidExtra: false, // all clients of the chaos send the same arguments
};
server.tool("weave", { ...options, restartable: true }, weave);
server.tool("effect", options, effect);
await server.listenHttp({ port: Number(port), drainMs: DRAIN_MS });
server.closeOnSignals({ signals: ["SIGTERM"], drainMs: DRAIN_MS });
console.log(`listens ${port}`);
