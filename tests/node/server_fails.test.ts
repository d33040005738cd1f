/** Tools that fail before they have waited for anything. `start` has a task in both eras,
 * which then fails, and the error is the same. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { RemoteError, type Result, RpcError, Server, ToolError } from "segue-mcp";
import { serve } from "./server_worlds.js";

const ROUNDS = 10;

/** Makes a server whose tools fail in their first turn, each in its own way. */
function failing(): Server {
    const server = new Server({ name: "fails", firstTurnMs: 60_000 });
    const options = { task: "may", pollMs: 50 } as const;
    const broken = (): never => {
        throw new RpcError(-32603, "broken", { a: 1 });
    };
    server.tool("plain", options, broken);
    server.tool("late", options, async () => {
        await Promise.resolve();
        broken();
    });
    server.tool("growing", { ...options, incremental: true }, broken);
    server.tool("behind", options, async function* () {
        yield "one";
        broken();
    });
    server.tool("wrong", options, () => {
        throw new ToolError("oops");
    });
    return server;
}

for (const way of ["pair", "http"] as const)
    for (const era of ["legacy", "modern"] as const) {
        const world = { way, era };
        const where = `[${way}, ${era}]`;

        test(`AS-11 a tool that fails at once makes a task that fails ${where}`, () =>
            serve(world, failing(), async (session) => {
                await session.listTools();
                for (let round = 0; round < ROUNDS; round++)
                    for (const tool of ["plain", "late", "growing", "behind"]) {
                        const task = await session.start(tool);
                        assert.notEqual(task.id, undefined, tool);
                        const error = await task.result().then(
                            () => undefined,
                            (thrown: unknown) => thrown,
                        );
                        assert.ok(error instanceof RemoteError, String(error));
                        assert.deepEqual([error.rpcCode, error.data], [-32603, { a: 1 }]);
                        assert.match(error.message, /broken/);
                        if (tool === "behind")
                            assert.equal((error.partial as Result).text, "one");
                        assert.equal((await task.status()).status, "failed", tool);
                    }
            }));

        test(`AS-1 a result that is an error is thrown by the task ${where}`, () =>
            serve(world, failing(), async (session) => {
                await session.listTools();
                for (let round = 0; round < ROUNDS; round++) {
                    const task = await session.start("wrong");
                    await assert.rejects(task.result(), ToolError);
                }
            }));

        test(`AS-11 what the server refuses is no task ${where}`, () =>
            serve(world, failing(), async (session) => {
                await session.listTools();
                await assert.rejects(session.start("nobody"), { rpcCode: -32602 });
            }));
    }
