/** A hundred thousand calls leave nothing behind, and the loop is not blocked. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, test } from "node:test";
import {
    collect,
    Kind,
    native,
    nothingIsLeft,
    Pair,
    type Tool,
} from "./binding_worlds.js";

afterEach(nothingIsLeft);

const CALLS = 100_000;
const AT_ONCE = 64;
/** The growth of the process that they may cause, in bytes: a tenth of one leaked handle
 * each. */
const GROWTH = 12 << 20;

/** Runs `count` calls, a limited number at once; returns how many succeeded. */
async function run(world: Pair, count: number): Promise<number> {
    let good = 0;
    let left = count;
    async function lane(): Promise<void> {
        while (left-- > 0) {
            const events = world.call("hello", null, 1 << Kind.COMPLETE);
            const [, status] = await events.until(Kind.COMPLETE);
            good += status === 0 ? 1 : 0;
            native.requestFree(events.request);
        }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    return good;
}

async function settle(): Promise<number> {
    for (let round = 0; round < 10; round++) {
        collect();
        await new Promise(setImmediate);
    }
    return process.memoryUsage().rss;
}

/** Returns by how many bytes a hundred thousand calls grow the process. */
async function growth(world: Pair): Promise<number> {
    const rss = await settle();
    const held = native.allocated();
    assert.equal(await run(world, CALLS), CALLS);
    const grown = (await settle()) - rss;
    assert.ok(native.allocated() <= held + 65_536, "the library has grown");
    assert.deepEqual(native.liveHandles(), { Runtime: 1, Server: 1, Session: 1 });
    return grown;
}

test("a hundred thousand calls leave nothing behind", { timeout: 600_000 }, async () => {
    const world = new Pair({ hello: (call) => native.callReply(call, "hello") });
    try {
        // This fills caches and heaps.
        assert.equal(await run(world, CALLS / 4), CALLS / 4);
        // The collector may let the heap grow once or twice. A leak grows it each time.
        let grown = await growth(world);
        for (let more = 0; more < 3 && grown >= GROWTH; more++)
            grown = await growth(world);
        assert.ok(grown < GROWTH, `the process has grown by ${grown} bytes each time`);
    } finally {
        world.close();
    }
});

/** Returns the processor time of the loop's thread, in milliseconds. The kernel updates
 * the count when the process asks for all of its time. */
function worked(): number {
    process.cpuUsage();
    return Number(readFileSync("/proc/self/schedstat", "utf8").split(" ")[0]) / 1e6;
}

test("a stream does not hold the loop", { timeout: 120_000 }, async () => {
    const tools: Record<string, Tool> = {
        stream(call) {
            let left = 100_000;
            const more = () => {
                for (let n = 0; n < 200 && left > 0; n++, left--) {
                    if (!native.callSendText(call, "x".repeat(150))) return;
                }
                if (left > 0) setImmediate(more);
                else native.callReply(call);
            };
            native.callWatch(call, (kind) => {
                if (kind === Kind.DRAIN) more();
            });
            more();
        },
    };
    const world = new Pair(tools, {}, { maxResultBytes: 2 ** 40 });
    // The processor time of each turn of the loop: a busy machine takes the processor
    // away, which is not the library's work.
    const turns: number[] = [];
    let last = worked();
    const timer = setInterval(() => {
        const now = worked();
        turns.push(now - last);
        last = now;
    }, 1);
    let count = 0;
    const events = world.call("stream", { discard: true });
    await events.until(Kind.COMPLETE);
    clearInterval(timer);
    for (const event of events.of(Kind.SEGMENTS)) count += event[1].length;
    assert.equal(count, 100_000);
    turns.sort((a, b) => a - b);
    const high = turns[Math.floor(turns.length * 0.9)] ?? 0;
    assert.ok(turns.length > 10, "the loop did not turn");
    assert.ok(high < 12, `one turn in ten works for ${high} ms`);
    world.close();
});
