/** The helpers for tests, as node:test and vitest use them. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Context, Server, TransportError } from "segue-mcp";
import { Clock, Lab, withLab } from "segue-mcp/testing";
import { TREE } from "./tree.js";

function made(): Server {
    const server = new Server({ name: "tested" });
    server.tool("name", () => server.name);
    server.tool("slow", async () => {
        for (let n = 0; n < 10; n++) await sleep(60_000);
        return "done";
    });
    const kept = { task: "may", restartable: true } as const;
    server.tool("report", kept, async function* (_, ctx) {
        for (let page = ctx.resumed?.segments ?? 0; page < 3; page++) {
            yield `page ${page}`;
            if (page === 1 && !ctx.resumed) {
                await new Promise((_, reject) => {
                    ctx.signal.addEventListener("abort", reject);
                });
            }
        }
    });
    return server;
}

test(
    "a session in memory, and time",
    withLab(async (lab) => {
        const clock = lab.fakeClock();
        const session = await lab.connect(made());
        assert.equal((await session.call("name")).text, "tested");
        const call = session.call("slow");
        for (let n = 0; n < 10; n++) assert.equal(await clock.next(), 60_000);
        assert.equal((await call).text, "done");
        assert.equal(clock.now(), 600_000);
    }),
);

test(
    "a cut, and a crash",
    withLab(async (lab) => {
        const served = await lab.serve(made());
        const session = await served.connect();
        const texts: string[] = [];
        for await (const segment of session.stream("report")) {
            texts.push(String(segment));
            if (texts.length === 1) served.cut();
            if (texts.length === 2) await served.restart();
        }
        assert.deepEqual(texts, ["page 0", "page 1", "page 2"]);
        await served.kill();
        await assert.rejects(served.connect(), TransportError);
        await served.start();
        assert.equal((await (await served.connect()).call("name")).text, "tested");
    }),
);

/** Tools whose handlers go on after the server has crashed: they ignore their signals. */
function stubborn(): { server: Server; late: string[]; done: Promise<void>[] } {
    const server = new Server({ name: "stubborn" });
    const late: string[] = [];
    const done: Promise<void>[] = [];
    const goOn = async (ctx: Context): Promise<void> => {
        while (!ctx.signal.aborted) await sleep(1);
        for (const [name, deed] of [
            ["send", () => ctx.send("late")],
            ["checkpoint", () => ctx.checkpoint({ late: true })],
        ] as const) {
            await deed().then(
                () => late.push(name),
                () => undefined,
            );
        }
        ctx.progress(9);
    };
    const run = async (_: unknown, ctx: Context): Promise<string> => {
        const resumed = ctx.resumed;
        if (resumed) return `resumed after ${resumed.segments} at ${resumed.data}`;
        if (await ctx.checkpoint("here")) await ctx.send("early");
        const going = goOn(ctx);
        done.push(going);
        await going;
        return "late";
    };
    server.tool("lost", { task: "must" }, run);
    server.tool("kept", { task: "must", restartable: true }, run);
    server.tool("plain", run);
    return { server, late, done };
}

for (const era of ["auto", "legacy"] as const)
    test(
        `handlers that go on after a crash do nothing more, ${era}`,
        { timeout: 60_000 },
        withLab(async (lab) => {
            const { server, late, done } = stubborn();
            const served = await lab.serve(server);
            const session = await served.connect({ era });
            const calls = ["lost", "kept", "plain"].map(async (name) => {
                try {
                    return (await session.call(name)).text;
                } catch (error) {
                    return String((error as Error).message);
                }
            });
            while (done.length < 3) await sleep(1);
            await served.restart();
            await Promise.all(done);
            const [lost, kept, plain] = await Promise.all(calls);
            assert.match(String(lost), /Server restarted/);
            assert.equal(kept, "earlyresumed after 1 at here");
            assert.match(String(plain), /Server restarted/);
            assert.deepEqual(late, []);
        }),
    );

test("a lab leaves nothing open", async () => {
    const lab = new Lab();
    const served = await lab.serve(made());
    const { url } = served;
    await served.connect();
    await lab.close();
    await assert.rejects(fetch(url));
});

test("the clock", async () => {
    const real = globalThis.setTimeout;
    const clock = new Clock();
    try {
        const woken: number[] = [];
        const wake = async (...all: number[]): Promise<void> => {
            for (const ms of all) {
                await sleep(ms);
                woken.push(clock.now());
            }
        };
        const one = wake(10, 10, 100);
        const two = wake(15);
        const ticking = setInterval(() => woken.push(-clock.now()), 12);
        const never = setTimeout(() => woken.push(-1), 5);
        clearTimeout(never);
        await clock.advance(30);
        clearInterval(ticking);
        assert.deepEqual(woken, [10, -12, 15, 20, -24]);
        assert.equal(await clock.next(), 90);
        await Promise.all([one, two]);
        await assert.rejects(clock.advance(-1), RangeError);
        const controller = new AbortController();
        const aborted = sleep(5, undefined, { signal: controller.signal });
        controller.abort();
        await assert.rejects(aborted);
    } finally {
        clock.restore();
    }
    assert.equal(globalThis.setTimeout, real);
    await sleep(1);
});

const SUITE = `
    import { expect, test, vi } from "vitest";
    import { setTimeout as sleep } from "node:timers/promises";
    import { Server } from "segue-mcp";
    import { withLab } from "segue-mcp/testing";
    const server = new Server({ name: "tested" });
    server.tool("slow", async () => { await sleep(60_000); return "done"; });
    server.tool("fast", () => "done");
    test("a call and time", withLab(async (lab) => {
        const clock = lab.fakeClock();
        const session = await lab.connect(server);
        const call = session.call("slow");
        expect(await clock.next()).toBe(60_000);
        expect((await call).text).toBe("done");
    }));
    test("a crash", withLab(async (lab) => {
        const served = await lab.serve(server);
        const session = await served.connect();
        await served.restart();
        expect((await session.call("fast")).text).toBe("done");
    }));
    test("the fake timers of vitest", withLab(async (lab) => {
        vi.useFakeTimers();
        const session = await lab.connect(server);
        expect((await session.call("fast")).text).toBe("done");
        vi.useRealTimers();
        expect((await session.call("fast")).text).toBe("done");
    }));
    test("fails", withLab(async (lab) => {
        const session = await lab.connect(server);
        expect((await session.call("fast")).text).toBe("slow");
    }));
`;

test("a suite of vitest", { timeout: 120_000 }, () => {
    // beside node_modules, where vitest and the package are
    const place = fs.mkdtempSync(path.join(TREE, "build", "node", "env", "suite-"));
    try {
        fs.writeFileSync(path.join(place, "suite.test.mjs"), SUITE);
        const vitest = path.join(place, "..", "node_modules", "vitest", "vitest.mjs");
        const words = [vitest, "run", "--root", place, "--reporter", "verbose"];
        const done = spawnSync(process.execPath, words, {
            encoding: "utf8",
            env: { ...process.env, NO_COLOR: "1", NODE_TEST_CONTEXT: undefined },
        });
        const said = done.stdout + done.stderr;
        assert.match(said, /expected 'done' to be 'slow'/);
        assert.match(said, /1 failed \| 3 passed/);
    } finally {
        fs.rmSync(place, { recursive: true });
    }
});
