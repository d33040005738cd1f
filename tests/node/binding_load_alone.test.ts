/** A hundred thousand calls leave nothing behind, and the loop is not held. */
import assert from "node:assert/strict";
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
/** What they may add to the memory of the process, in bytes: a tenth of one leaked handle
 * each. */
const GROWTH = 12 << 20;

/** Runs calls, so many at once, and gives the number that succeeded. */
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

/** What a hundred thousand calls add to the memory of the process, in bytes. */
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
        // Caches and heaps are full then.
        assert.equal(await run(world, CALLS / 4), CALLS / 4);
        // The collector may let the heap grow once or twice. What leaks grows each time.
        let grown = await growth(world);
        for (let more = 0; more < 3 && grown >= GROWTH; more++)
            grown = await growth(world);
        assert.ok(grown < GROWTH, `the process has grown by ${grown} bytes each time`);
    } finally {
        world.close();
    }
});

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
    // A turn of the loop in which only the runtime works: of many some are held by what
    // else the machine does, so that it is the median of the longest that counts.
    const turns: number[] = [];
    let last = performance.now();
    const timer = setInterval(() => {
        const now = performance.now();
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
    assert.ok(high < 12, `one turn in ten takes ${high} ms`);
    world.close();
});
