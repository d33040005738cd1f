/** Large results: they become a string when they are first read, and until then are only
 * held. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, Result, Server, type Session, ToolError } from "segue-mcp";
import { z } from "zod";
import { inEachWorld, serve } from "./server_worlds.js";

const TIMEOUT = { timeout: 120_000 };
/** Larger than what becomes a string at once. */
const LARGE = 300_000;
const SAMPLES: Record<string, string> = {
    ascii: "a",
    latin1: "é",
    wide: "語",
    pair: "😀",
    nul: "\u0000",
    quoted: '"\\\n',
};

function repeated(unit: string): string {
    return unit.repeat(Math.ceil(LARGE / unit.length));
}

function server(): Server {
    const made = new Server({ name: "large", maxResultBytes: 2 ** 28 });
    const input = { which: z.string() };
    made.tool("whole", { input }, ({ which }) => repeated(SAMPLES[which] as string));
    made.tool("half", () => `${"x".repeat(LARGE)}\ud83d`);
    made.tool("pieces", { input }, async function* ({ which }) {
        const unit = SAMPLES[which] as string;
        for (let i = 0; i < 3; i++) yield repeated(unit);
    });
    made.tool("wrong", () => {
        throw new ToolError("x".repeat(LARGE));
    });
    return made;
}

async function large(
    world: Parameters<typeof serve>[0],
    work: (session: Session) => Promise<void>,
): Promise<void> {
    await serve(world, server(), work, { maxResultBytes: 2 ** 28 });
}

inEachWorld("a large result has its whole text", async (world) => {
    await large(world, async (session) => {
        for (const which of Object.keys(SAMPLES)) {
            const wanted = repeated(SAMPLES[which] as string);
            const result = await session.call("whole", { which });
            assert.equal(result.isError, false);
            assert.equal(result.text, wanted, which);
            assert.equal(result.raw, result.raw);
            assert.deepEqual(JSON.parse(result.raw as string).content, result.content);
            const again = Result.fromJson(result.raw as string);
            assert.deepEqual(again.toJSON(), result.toJSON());
            assert.deepEqual(again, result);
        }
        const half = await session.call("half");
        assert.equal(half.text, `${"x".repeat(LARGE)}\ufffd`);
    });
});

inEachWorld("a large result that is streamed has all its segments", async (world) => {
    await large(world, async (session) => {
        for (const which of Object.keys(SAMPLES)) {
            const wanted = repeated(SAMPLES[which] as string);
            const stream = session.stream("pieces", { which });
            const texts: unknown[] = [];
            for await (const segment of stream) texts.push(segment.text);
            assert.deepEqual(texts, [wanted, wanted, wanted]);
            assert.equal(stream.result.text, wanted.repeat(3));
            assert.equal(stream.result, stream.result);
            const collected = await session.stream("pieces", { which }).collect();
            assert.deepEqual(collected, stream.result);
        }
    });
});

inEachWorld("a large result may be an error", async (world) => {
    await large(world, async (session) => {
        const isError = (error: unknown): boolean => {
            assert.ok(error instanceof ToolError);
            assert.equal(error.message, "x".repeat(LARGE));
            assert.equal(error.result?.isError, true);
            return true;
        };
        await assert.rejects(session.call("wrong"), isError);
        await assert.rejects(session.stream("wrong").collect(), isError);
        const given = await session.call("wrong", {}, { throwOnError: false });
        assert.equal(given.isError, true);
        assert.equal(given.text, "x".repeat(LARGE));
    });
});

test("a large result is there when its session has ended", TIMEOUT, async () => {
    const owner = server();
    const session = await connect(owner, {});
    const result = await session.call("whole", { which: "ascii" });
    await session.close();
    await owner.close();
    assert.equal(result.text, repeated("a"));
});
