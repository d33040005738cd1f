/** Calls that become tasks: when they do, what they report, and what is left of them when
 * a server ends. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
    connect,
    RemoteError,
    Result,
    RpcError,
    SegueError,
    Server,
    type Session,
    stores,
    ToolError,
} from "segue-mcp";
import { Lab } from "segue-mcp/testing";
import { Gate, inEachWorld, serve, type World } from "./server_worlds.js";

inEachWorld("what a task reports depends on the revision", async (world) => {
    const server = new Server({ name: "reports" });
    const seen = new Map([
        ["begun", new Gate()],
        ["reported", new Gate()],
    ]);
    server.tool("work_on", { task: "may", pollMs: 20 }, async (_, ctx) => {
        await ctx.setStatus("begun");
        await seen.get("begun")?.opened; // so the call has become a task
        ctx.progress(1, 2);
        ctx.log("logged");
        await ctx.setStatus("reported");
        await seen.get("reported")?.opened;
        return "done";
    });
    const work = async (session: Session): Promise<void> => {
        const progress: number[] = [];
        const logs: unknown[] = [];
        const task = await session.start(
            "work_on",
            {},
            {
                onProgress: (told) => progress.push(told.progress),
                onLog: (message) => logs.push(message.data),
                onStatus: (_status, text) => seen.get(text ?? "")?.open(),
            },
        );
        assert.equal((await task.result()).text, "done");
        const isModern = world.era === "modern";
        assert.deepEqual(progress, isModern ? [] : [1]);
        assert.deepEqual(logs, isModern ? [] : ["logged"]);
    };
    await serve(world, server, work, { logLevel: "info" });
});

inEachWorld("what may become a task", async (world) => {
    const server = new Server({ name: "policies" });
    const answer = async (): Promise<string> => {
        await sleep(1); // in 2025-11-25 a call that ends at once becomes no task
        return "answer";
    };
    server.tool("never", answer);
    server.tool("may", { task: "may", ttlMs: 60_000, pollMs: 50 }, answer);
    server.tool("must", { task: "must", pollMs: 50 }, answer);
    server.tool("later", { task: "may", promoteAfterMs: 3_600_000 }, answer);
    await serve(world, server, async (session) => {
        await session.listTools();
        const isTask = { never: false, may: true, must: true, later: false };
        for (const [name, is] of Object.entries(isTask)) {
            const task = await session.start(name);
            assert.equal((await task.result()).text, "answer");
            assert.equal(task.id !== undefined, is, name);
        }
        const task = await session.start("may");
        assert.equal((await task.status()).ttlMs, 60_000);
    });
});

inEachWorld("AS-34 tasks for clients that take none", async (world) => {
    const server = new Server({ name: "policies" });
    server.tool("may", { task: "may" }, async (_, ctx) => {
        assert.equal(ctx.resumed, undefined);
        return `${await ctx.checkpoint(Buffer.from("x"))} ${ctx.defer()}`;
    });
    server.tool("must", { task: "must" }, () => "never");
    await serve(
        world,
        server,
        async (session) => {
            assert.equal((await session.call("may")).text, "false false");
            await assert.rejects(session.call("must"), RemoteError);
        },
        { tasks: false },
    );
});

inEachWorld("R-2557-31 what a task tells", async (world) => {
    const server = new Server({ name: "tells" });
    const go = new Gate();
    const options = { task: "may", promoteAfterMs: 3_600_000, pollMs: 20 } as const;
    server.tool("work", options, async (_, ctx) => {
        assert.ok(ctx.defer(120_000) && ctx.defer());
        await ctx.setStatus("half way");
        assert.ok(await ctx.checkpoint({ at: 1 }));
        await go.opened;
        return "done";
    });
    await serve(world, server, async (session) => {
        await session.listTools();
        const task = await session.start("work");
        if (task.id !== undefined) {
            let status = await task.status();
            while (status.message !== "half way") status = await task.status();
            assert.equal(status.status, "working");
            // the client must ask for a task in the call
        } else assert.equal(world.era, "legacy");
        go.open();
        assert.equal((await task.result()).text, "done");
    });
});

inEachWorld("AS-54 a task that is cancelled", async (world) => {
    const server = new Server({ name: "cancelled" });
    const began = new Gate();
    const aborted = new Gate();
    server.tool("wait", { task: "may", pollMs: 20 }, async (_, { signal }) => {
        began.open();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        aborted.open();
    });
    await serve(world, server, async (session) => {
        await session.listTools();
        const task = await session.start("wait");
        await began.opened;
        await task.cancel();
        await aborted.opened;
        assert.equal((await task.status()).status, "cancelled");
        await assert.rejects(task.result());
    });
});

for (const kind of ["path", "store"] as const) {
    test(`tasks go on when a listener has closed, and the next one has them [${kind}]`, {
        timeout: 120_000,
    }, async () => {
        const directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
        const file = path.join(directory, "tasks.db");
        const store = kind === "path" ? file : await stores.sqlite(file);
        const server = new Server({ name: "next", store });
        const go = new Gate();
        server.tool("count", { task: "may", pollMs: 20 }, async function* () {
            yield "1 ";
            yield "2 ";
            await go.opened;
            yield "3";
        });
        const first = await server.listenHttp({ drainMs: 0 });
        const session = await connect(first.url, { proxy: "", maxReconnects: -1 });
        const task = await session.start("count");
        for await (const { number } of task) if (number === 2) break;
        const token = task.token ?? "";
        task.detach();
        await session.close();
        await first.close();
        const second = await server.listenHttp();
        const again = await connect(second.url, { proxy: "" });
        const result = again.resume(token).result();
        go.open();
        assert.equal((await result).text, "1 2 3");
        await again.close();
        await server.close();
        if (typeof store !== "string") await store.close();
        rmSync(directory, { recursive: true, force: true });
    });
}

test("listeners of one server share its tasks; stats tell of them", async () => {
    const server = new Server({ name: "shared", store: stores.memory() });
    server.tool("job", { task: "must", pollMs: 20 }, () => "done");
    const [first, second] = [await server.listenHttp(), await server.listenHttp()];
    const one = await connect(first.url, { proxy: "" });
    const task = await one.start("job");
    assert.equal((await task.result()).text, "done");
    await one.close();
    await first.close();
    const other = await connect(second.url, { proxy: "" });
    assert.equal((await other.task(task.id ?? "").result()).text, "done");
    const [stats] = server.stats();
    assert.equal(stats?.operations?.tasks, 1);
    await other.close();
    await server.close();
});

/** Makes a server with tools that end after two segments, in three ways. */
function failing(): Server {
    const server = new Server({ name: "fails" });
    const ends = {
        error: () => {
            throw new RpcError(-32603, "broken", { a: 1 });
        },
        tool: () => {
            throw new ToolError("oops");
        },
        never: () => new Promise<void>(() => undefined),
    };
    for (const [name, end] of Object.entries(ends)) {
        server.tool(name, { task: "may", pollMs: 50 }, async function* () {
            yield "one";
            await sleep(10); // it is a task by now
            yield "two";
            await end();
        });
    }
    return server;
}

const KINDS = ["call", "stream", "start"] as const;

async function failureOf(
    session: Session,
    kind: (typeof KINDS)[number],
    tool: string,
    options = {},
): Promise<SegueError> {
    try {
        if (kind === "call") await session.call(tool, {}, options);
        else if (kind === "stream") {
            for await (const _ of session.stream(tool, {}, options));
        } else await (await session.start(tool, {}, options)).result();
    } catch (error) {
        assert.ok(error instanceof SegueError, String(error));
        return error;
    }
    throw new Error("it did not fail");
}

const partialOf = (error: SegueError): string => (error.partial as Result).text;

for (const way of ["pair", "http"] as const) {
    for (const era of ["legacy", "modern"] as const) {
        test(`AS-11 how it failed behind segments [${way}, ${era}]`, async () => {
            await serve({ way, era }, failing(), async (session) => {
                await session.listTools();
                for (const kind of KINDS) {
                    const error = await failureOf(session, kind, "error");
                    assert.deepEqual([error.rpcCode, error.data], [-32603, { a: 1 }]);
                    assert.match(error.message, /broken/);
                    assert.equal(partialOf(error), "onetwo");
                    const told = await failureOf(session, kind, "tool");
                    assert.ok(told instanceof ToolError);
                    assert.equal(told.message, "oops");
                    assert.equal(told.result?.text, "onetwooops");
                }
            });
        });
    }

    for (const era of ["legacy", "modern"] as const) {
        const name = `AS-8 what streams does not wait to be a task [${way}, ${era}]`;
        test(name, { timeout: 120_000 }, async () => {
            const server = new Server({ name: "streams" });
            const go = new Gate();
            const options = { task: "may", promoteAfterMs: 3_600_000 } as const;
            server.tool("count", options, async function* () {
                yield "one";
                await go.opened;
                yield "two";
            });
            await serve({ way, era }, server, async (session) => {
                await session.listTools();
                const told: (string | undefined)[] = [];
                for await (const { text } of session.stream("count")) {
                    told.push(text);
                    go.open();
                }
                assert.deepEqual(told, ["one", "two"]);
            });
        });
    }

    const legacy: World = { way, era: "legacy" };
    test(`AS-9 expiry is the same error everywhere [${way}]`, async () => {
        await serve(legacy, failing(), async (session) => {
            await session.listTools();
            for (const kind of ["stream", "start"] as const) {
                let error: SegueError | undefined;
                for (const ttlMs of [100, 1000, 10_000]) {
                    error = await failureOf(session, kind, "never", { ttlMs });
                    const { partial } = error; // a busy machine takes longer to send both
                    if (partial instanceof Result && partial.text === "onetwo") break;
                }
                assert.ok(error instanceof RemoteError);
                assert.match(error.message, /Task TTL expired/);
                assert.deepEqual([error.rpcCode, partialOf(error)], [-32603, "onetwo"]);
            }
        });
    });

    test(`AS-1 what is done at once is no task [${way}]`, async () => {
        const server = new Server({ name: "quick", firstTurnMs: 60_000 });
        server.tool("plain", { task: "may" }, () => "done");
        server.tool("async", { task: "may" }, async () => {
            await Promise.resolve();
            return "done";
        });
        await serve(legacy, server, async (session) => {
            await session.listTools();
            for (const tool of ["plain", "async"]) {
                const task = await session.start(tool);
                assert.equal((await task.result()).text, "done");
                assert.equal(task.id, undefined, tool);
            }
        });
    });
}

for (const kind of ["call", "stream", "start"] as const)
    test(`a lost task is the same error in both eras: ${kind}`, async () => {
        const lost = async (era: "auto" | "legacy"): Promise<Record<string, unknown>> => {
            const server = new Server({ name: "streams" });
            const sent = new Gate();
            server.tool("job", { task: "must", incremental: true }, async (_, ctx) => {
                await ctx.send("one");
                sent.open();
                await new Promise(() => undefined);
            });
            const lab = new Lab();
            const served = await lab.serve(server);
            const session = await served.connect({ era });
            const stray: string[] = [];
            const work = async (): Promise<void> => {
                if (kind === "call") await session.call("job");
                else if (kind === "start") await (await session.start("job")).result();
                else
                    for await (const { text } of session.stream("job"))
                        if (text !== "one") stray.push(String(text));
            };
            const calling = work().then(
                () => assert.fail("the task has not been lost"),
                (error: SegueError) => error,
            );
            await sent.opened;
            await served.restart();
            const error = await calling;
            await lab.close();
            const { message, rpcCode, dataJson, retryable } = error;
            const told = { name: error.constructor.name, message, rpcCode, dataJson };
            const partial = kind === "start" ? "" : partialOf(error);
            return { ...told, retryable, partial, stray };
        };
        const modern = await lost("auto");
        assert.equal(modern.name, "TaskLostError");
        assert.deepEqual(await lost("legacy"), modern);
    });
