/** Results that are read while they are made. */
import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
    type ConnectOptions,
    NotResumableError,
    RemoteError,
    RequestTimeoutError,
    Result,
    type Segment,
    StateError,
    type Stream,
    ToolError,
} from "segue-mcp";
import { all, isCancelled, story, worldTest } from "./client_worlds.js";

worldTest("AS-4: segments come as they are made", async (world) => {
    await world.session({}, async (session) => {
        const stream = session.stream("story", { n: 5 });
        assert.throws(() => stream.result, StateError);
        assert.equal(stream.token, undefined);
        assert.equal(stream.taskId, undefined);
        const segments = await all<Segment>(stream);
        assert.deepEqual(
            segments.map((one) => one.number),
            [1, 2, 3, 4, 5],
        );
        assert.deepEqual(
            segments.map((one) => one.text),
            story(1, 5),
        );
        assert.deepEqual(
            segments.map((one) => one.index),
            [0, 1, 2, 3, 4],
        );
        assert.ok(segments.every((one) => one.type === "text" && !one.replaces));
        assert.ok(stream.done);
        assert.equal(stream.result.text, story(1, 5).join(""));
    });
});

worldTest("a plain result is segments, too", async (world) => {
    await world.session({}, async (session) => {
        const stream = session.stream("greet");
        assert.deepEqual((await all<Segment>(stream)).map(String), ["Hello, World!"]);
        assert.equal(stream.result.text, "Hello, World!");
        assert.equal(stream.taskId, undefined);
        assert.throws(() => session.stream("greet").detach(), NotResumableError);
    });
});

worldTest("AS-4: a slow reader holds up the server", async (world) => {
    await world.session({}, async (session) => {
        const stream = session.stream("story", { n: 300 }, { window: 4 });
        const texts: unknown[] = [];
        const flow = (): { queue: unknown[]; head: number } =>
            (stream as unknown as { flow: { queue: unknown[]; head: number } }).flow;
        for await (const segment of stream) {
            const { queue, head } = flow();
            assert.ok(queue.length - head <= 4);
            texts.push(segment.text);
            // the stream goes on
            if (segment.number % 50 === 0) await session.call("greet");
        }
        assert.deepEqual(texts, story(1, 300));
        assert.throws(() => session.stream("story", {}, { window: 0 }), RangeError);
    });
});

worldTest("blocks of all kinds", async (world) => {
    await world.session({}, async (session) => {
        const stream = session.stream("media");
        const blocks = (await all<Segment>(stream)).map((one) => one.content);
        assert.deepEqual(blocks, stream.result.content);
        assert.ok(blocks.some((one) => one.type === "image"));
    });
});

worldTest("batches", async (world) => {
    await world.session({}, async (session) => {
        const stream = session.stream("story", { n: 500 });
        const batches = await all(stream.batches());
        const numbers = batches.flat().map((one) => one.number);
        assert.deepEqual(
            numbers,
            Array.from({ length: 500 }, (_, i) => i + 1),
        );
        assert.ok(stream.result.text.endsWith("segment 500 of the story"));
    });
});

worldTest("results that are not collected, and ones that nobody reads", async (world) => {
    await world.session({}, async (session) => {
        const args = { n: 20, delayMs: 1 };
        const stream = session.stream("story", args, { collect: false });
        assert.equal((await all(stream)).length, 20);
        assert.deepEqual(stream.result.content, []);
        const result = await session.stream("story", { n: 20 }).collect();
        assert.equal(result.text, story(1, 20).join(""));
    });
});

worldTest("AS-11: a tool that fails behind segments", async (world) => {
    await world.session({}, async (session) => {
        const seen: unknown[] = [];
        await assert.rejects(async () => {
            for await (const one of session.stream("fail_after", { n: 2 })) {
                seen.push(one.text);
            }
        }, ToolError);
        assert.deepEqual(seen.slice(0, 2), story(1, 2));
        const stream = session.stream("fail_after", { n: 2 }, { throwOnError: false });
        await all(stream);
        assert.ok(stream.result.isError);
    });
});

/** Returns the length of the longest text that is parsed during `run`. */
async function longestParsed(run: () => Promise<void>): Promise<number> {
    const { parse } = JSON;
    let longest = 0;
    JSON.parse = (text: string): unknown => {
        longest = Math.max(longest, text.length);
        return parse(text);
    };
    await run().finally(() => {
        JSON.parse = parse;
    });
    return longest;
}

worldTest("large results are parsed when they are asked for", async (world) => {
    await world.session({}, async (session) => {
        const stream = session.stream("story", { n: 40, chunk: 4000 });
        const whenRead = await longestParsed(async () => {
            assert.equal((await all(stream)).length, 40);
        });
        assert.ok(whenRead < 10_000, `${whenRead}`);
        const whenAsked = await longestParsed(async () => {
            assert.ok(stream.result.text.length > 100_000);
            assert.equal(stream.result.content.length, 40);
        });
        assert.ok(whenAsked > 100_000);
        assert.equal(stream.result, stream.result);
        const failing = session.stream("fail_after", { n: 40, chunk: 4000 });
        await assert.rejects(all(failing), ToolError);
    });
});

worldTest("an error has what had come", async (world) => {
    await world.session({}, async (session) => {
        await assert.rejects(all(session.stream("no such tool")), (error) => {
            assert.ok(error instanceof RemoteError);
            return error.rpcCode === -32602;
        });
        const args = { n: 100_000, delayMs: 20 };
        let count = 0;
        // A busy machine takes longer until something has come.
        for (let timeoutMs = 300; count === 0; timeoutMs *= 2) {
            const stream = session.stream("story", args, { timeoutMs });
            const read = async (): Promise<void> => {
                for await (const _ of stream) count += 1;
            };
            await assert.rejects(read(), (error) => {
                assert.ok(error instanceof RequestTimeoutError);
                if (count === 0) return true;
                assert.ok(error.partial instanceof Result);
                return error.partial.text.startsWith("segment 1 of the story");
            });
        }
    });
});

worldTest("AS-10: break cancels", async (world) => {
    await world.session({}, async (session) => {
        const stream = session.stream("story", { n: 100_000, delayMs: 5 });
        for await (const segment of stream) if (segment.number === 2) break;
        assert.ok(stream.done);
        assert.deepEqual(await all(stream), []);
        if (stream.taskId) assert.ok(await isCancelled(session.task(stream.taskId)));
        const other = session.stream("story", { n: 100_000, delayMs: 5 });
        await assert.rejects(async () => {
            for await (const _ of other) throw new Error("mine");
        }, /mine/);
        assert.ok(other.done);
    });
});

worldTest("AS-87: a signal cancels a stream", async (world) => {
    await world.session({}, async (session) => {
        const stop = new AbortController();
        const { signal } = stop;
        const args = { n: 100_000, delayMs: 5 };
        const stream = session.stream("story", args, { signal });
        const reason = new Error("enough");
        let last = 0;
        await assert.rejects(
            async () => {
                for await (const segment of stream) {
                    last = segment.number;
                    if (last === 3) stop.abort(reason);
                }
            },
            (error) => error === reason,
        );
        assert.ok(last >= 3);
        if (stream.taskId) assert.ok(await isCancelled(session.task(stream.taskId)));
        const late = session.stream("story", { n: 1 }, { signal });
        await assert.rejects(all(late), (error) => error === reason);
    });
});

worldTest("who leaves may come back", async (world) => {
    await world.session({}, async (session) => {
        const args = { n: 10, delayMs: 20 };
        const stream = session.stream("story", args, { onLeave: "detach" });
        let token: string | undefined;
        let last = 0;
        for await (const segment of stream) {
            token = stream.token;
            last = segment.number;
            if (last >= 3 && token !== undefined) break;
        }
        assert.ok(token);
        const task = session.resume(token);
        const rest = (await all<Segment>(task)).map((one) => one.text);
        assert.deepEqual(rest, story(last + 1, 10));
        assert.equal((await task.result()).text, story(1, 10).join(""));
    });
});

worldTest("reading step by step", async (world) => {
    await world.session({}, async (session) => {
        const stream = session.stream("story", { n: 6 });
        const first = await stream.next();
        assert.equal(first.value?.number, 1);
        const steps = await Promise.all([stream.next(), stream.next(), stream.next()]);
        assert.deepEqual(
            steps.map((one) => one.value?.number),
            [2, 3, 4],
        );
        await stream.started();
        const rest = (await all<Segment>(stream)).map((one) => one.text);
        assert.deepEqual(rest, story(5, 6));
        assert.equal((await stream.next()).done, true);
        assert.equal(stream.take(), undefined);
    });
});

worldTest("a call that can be resumed has started with its token", async (world) => {
    if (world.era === "modern") return;
    await world.session({}, async (session) => {
        const stream = await session.stream("hang_plain").started();
        assert.equal(stream.taskId, undefined);
        assert.equal(stream.take(), undefined);
        assert.ok(!stream.done);
        assert.ok(stream.token);
        const task = await session.start("hang_plain");
        assert.equal(task.id, undefined);
        assert.equal((await task.status()).status, "working");
        await task.cancel();
        await stream.cancel();
    });
});

worldTest("a stream that nobody holds is cancelled", async (world) => {
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as () => void;
    await world.session({}, async (session) => {
        let id: string | undefined;
        const onTask = (stream: Stream): void => {
            id = stream.taskId;
        };
        const args = { n: 100_000, delayMs: 5 };
        await (async () => {
            const stream = session.stream("story", args, { onTask });
            await stream.next();
        })();
        for (let i = 0; i < 5; i += 1) {
            gc();
            await new Promise((resolve) => setImmediate(resolve));
        }
        if (id !== undefined) assert.ok(await isCancelled(session.task(id)));
    });
});

worldTest("many streams at once", async (world) => {
    await world.session({}, async (session) => {
        const sizes = Array.from({ length: 59 }, (_, i) => i + 1);
        const counts = await Promise.all(
            sizes.map(async (n) => (await all(session.stream("story", { n }))).length),
        );
        assert.deepEqual(counts, sizes);
    });
});

worldTest("segments in any order have a token all the same", async (world) => {
    await world.session({}, async (session) => {
        const args = { n: 20, delayMs: 5 };
        const stream = session.stream("story", args, { unordered: true });
        const numbers: number[] = [];
        let token: string | undefined;
        for await (const segment of stream) {
            numbers.push(segment.number);
            token = stream.token ?? token;
        }
        numbers.sort((a, b) => a - b);
        assert.deepEqual(
            numbers,
            Array.from({ length: 20 }, (_, i) => i + 1),
        );
        assert.ok(token);
        const again = (await all<Segment>(session.resume(token))).map(
            (one) => one.number,
        );
        assert.ok(again.length === 0 || again.at(-1) === 20);
    });
});

for (const number of [1, 5, 17, 40]) {
    worldTest(`C-9: a token covers what was read (${number})`, async (world) => {
        await world.session({}, async (session) => {
            const args = { n: 60, delayMs: 1 };
            const stream = session.stream("story", args, { window: 64 });
            let read = 0;
            let token: string | undefined;
            while (read < number || token === undefined) {
                const step = await stream.next();
                assert.ok(!step.done, "it has ended without a token");
                read = step.value.number;
                token = stream.token;
            }
            const task = session.resume(token);
            const numbers = (await all<Segment>(task)).map((one) => one.number);
            assert.deepEqual(
                numbers,
                Array.from({ length: 60 - read }, (_, i) => read + 1 + i),
            );
            assert.equal((await task.result()).text, story(1, 60).join(""));
            await stream.close();
        });
    });
}

/** The kinds of calls whose token can be resumed. The draft belongs to the handshake
 * eras. */
const forms: [string, ConnectOptions][] = [
    ["task", {}],
    ["draft", { draftTasks: true }],
    ["keyed", { tasks: false, resumable: false }],
    ["resumable", { tasks: false }],
];

for (const [form, options] of forms) {
    for (const number of [1, 13]) {
        const name = `a token when all has come: what was read (${form}, ${number})`;
        worldTest(name, async (world) => {
            if (form === "draft" && world.era === "modern") return;
            const read: number[] = [];
            let token: string | undefined;
            await world.session(options, async (session) => {
                const args = { n: 40, delayMs: 1 };
                const stream = session.stream("story", args, { window: 64 });
                while (read.length < number) {
                    const step = await stream.next();
                    assert.ok(!step.done);
                    read.push(step.value.number);
                }
                const { flow } = stream as unknown as { flow: { outcome: unknown } };
                while (flow.outcome === null)
                    await new Promise((done) => setTimeout(done, 10));
                token = stream.token;
                await stream.close();
            });
            assert.ok(token);
            const saved = token;
            await world.session(options, async (session) => {
                const task = session.resume(saved);
                for (const one of await all<Segment>(task)) read.push(one.number);
                assert.deepEqual(
                    read,
                    Array.from({ length: 40 }, (_, i) => i + 1),
                );
                assert.equal((await task.result()).text, story(1, 40).join(""));
            });
        });
    }
}
