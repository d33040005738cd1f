/** Limits that all sessions and servers of an environment share. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import {
    configure,
    connect,
    type Limits,
    Server,
    StateError,
    TooLargeError,
} from "segue-mcp";
import { serve } from "./server_worlds.js";
import { internal } from "./tree.js";

const { Runtime } = internal<typeof import("segue-mcp/runtime")>("runtime");

function texts(): Server {
    const server = new Server({ name: "large" });
    server.tool("small", { forbidExtra: false }, () => "x".repeat(50_000));
    server.tool("large", () => "x".repeat(200_000));
    return server;
}

afterEach(() => {
    Runtime.current().close();
    configure();
});

test("a message is limited", { timeout: 120_000 }, async () => {
    configure({ maxMessageBytes: 100_000 });
    await serve({ way: "http", era: "modern" }, texts(), async (session) => {
        assert.equal((await session.call("small")).text.length, 50_000);
        await assert.rejects(session.call("large"), (error) => {
            assert.ok(error instanceof TooLargeError);
            assert.match(error.message, /maxMessageBytes is 100000/);
            return true;
        });
    });
});

test("each call replaces the one before", { timeout: 120_000 }, async () => {
    configure({ maxMessageBytes: 100_000 });
    configure({ maxQueueBytes: 65_536, maxDepth: undefined });
    await serve({ way: "http", era: "modern" }, texts(), async (session) => {
        const { text } = await session.call("large");
        assert.equal(text.length, 200_000);
    });
});

test("the nesting of JSON is limited", { timeout: 120_000 }, async () => {
    let deep: unknown = [];
    for (let level = 0; level < 40; level++) deep = [deep];
    const call = async () => {
        const server = texts();
        await serve({ way: "pair", era: "modern" }, server, async (session) => {
            await session.call("small", { deep });
        });
    };
    await call();
    Runtime.current().close();
    configure({ maxDepth: 20 });
    await assert.rejects(call());
});

test("limits cannot change while the library is in use", async () => {
    configure({ maxMessageBytes: 100_000 });
    const session = await connect(texts());
    assert.throws(() => configure(), StateError);
    await session.close();
    assert.throws(() => configure({ maxDepth: 9 }), /before the first session/);
});

test("bad limits are refused", () => {
    for (const name of ["maxMessageBytes", "maxDepth", "maxQueueBytes"])
        for (const value of [0, -1, 1.5, 2 ** 60, Number.NaN, "1", null])
            assert.throws(() => configure({ [name]: value } as Limits), RangeError);
    assert.throws(() => configure({ maxMessages: 1 } as Limits), /no limit has the name/);
});
