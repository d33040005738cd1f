/** Lifetimes: handles and the garbage collector, environments and their ends. Cases that
 * end a process or a worker are separate programs, which must end as they say, without a
 * crash and in time. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { afterEach, test } from "node:test";
import { collect, Kind, native, nothingIsLeft, Pair } from "./binding_worlds.js";
import { PACKAGE } from "./tree.js";

afterEach(nothingIsLeft);

const DEADLINE = 120_000;
const TIMEOUT = { timeout: 2 * DEADLINE };

/** The common beginning of all programs: a pair with a tool that streams for ever, one
 * that hangs and one that answers. */
const PRELUDE = `
    const { native, Kind } = require(process.argv[1] + "/native.js");
    const { Runtime } = require(process.argv[1] + "/runtime.js");
    const runtime = Runtime.current();
    const { handle } = runtime;
    const hooks = { principal: null, validate: null, events: () => {} };
    function begin() {
        const [near, far] = native.transportPair(handle);
        const limits = { maxResultBytes: 2 ** 40, maxLogBytes: 2 ** 40 };
        const { principal, validate } = hooks;
        const server = native.serverNew(handle, limits, null, principal, validate);
        const add = (name, tool) => native.serverAdd(server, 1,
            JSON.stringify({ name, inputSchema: { type: "object" } }),
            { task: 1, promoteAfterMs: 60000 }, (_kind, call) => tool(call));
        add("hello", (call) => native.callReply(call, "hello"));
        add("hang", (call) => native.callWatch(call, () => {}));
        add("stream", (call) => {
            native.callWatch(call, () => {});
            const more = () => {
                if (runtime.isClosed) return;
                native.callSendText(call, "x".repeat(150));
                setImmediate(more).unref();
            };
            more();
        });
        native.serverAttach(server, far);
        return native.sessionOpen(handle, near, {}, hooks.events);
    }
    function call(session, name, events) {
        const params = JSON.stringify({ name, arguments: {} });
        return native.requestStart(session, "tools/call", params,
            { discard: true }, events ?? (() => {}));
    }
    const say = (text) => require("node:fs").writeSync(1, text + "\\n");
`;

interface Ended {
    readonly code: number | null;
    readonly signal: string | null;
    readonly out: string;
    readonly err: string;
}

async function play(body: string, ...options: string[]): Promise<Ended> {
    const program = `${PRELUDE}\n${body}`;
    const dist = path.join(PACKAGE, "dist");
    const child = spawn(process.execPath, [...options, "-e", program, dist], {
        timeout: DEADLINE,
        killSignal: "SIGKILL",
    });
    let out = "";
    let err = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
        out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
        err += text;
    });
    const [code, signal] = await once(child, "close");
    return { code, signal, out, err };
}

async function endsWith(expected: string, body: string, code = 0): Promise<void> {
    const ended = await play(body);
    assert.deepEqual(
        { code: ended.code, signal: ended.signal, out: ended.out.trim() },
        { code, signal: null, out: expected },
        ended.err,
    );
}

// ---- the garbage collector ----

test("what nobody freed is freed when it is collected", TIMEOUT, async () => {
    const world = new Pair({});
    const { handle } = world.runtime;
    await world.told.until(Kind.OPEN);
    const before = native.allocated();
    for (let i = 0; i < 1000; i++) native.contentNew(handle);
    assert.ok(native.allocated() > before);
    for (let round = 0; round < 50 && native.liveHandles()["Content"]; round++) {
        collect();
        await new Promise(setImmediate);
    }
    assert.equal(native.liveHandles()["Content"], undefined);
    assert.equal(native.allocated(), before);
    world.close();
});

test("a call that is forgotten fails, and does not hang", async () => {
    const world = new Pair({ forgets: () => {} });
    const events = world.call("forgets");
    const end = events.until(Kind.COMPLETE);
    const timer = setInterval(collect, 10);
    const [, status, , info] = await end;
    clearInterval(timer);
    assert.notEqual(status, 0);
    assert.equal(info[2], -32603);
    world.close();
});

test("garbage is collected while calls run", async () => {
    const world = new Pair({ hello: (call) => native.callReply(call, "hello") });
    for (let round = 0; round < 20; round++) {
        const ends = [];
        for (let i = 0; i < 50; i++) ends.push(world.call("hello").until(Kind.COMPLETE));
        collect();
        await Promise.all(ends);
    }
    assert.ok((native.liveHandles()["Call"] ?? 0) <= 1);
    world.close();
});

test("an external of another addon is no handle", async () => {
    await endsWith(
        "TypeError TypeError",
        `
        const other = require("node:crypto").createSecretKey(Buffer.from("x"));
        const free = (handle) => {
            try { native.callFree(handle); return "no error"; }
            catch (error) { return error.name; }
        };
        say(free(other) + " " + free(process));
        `,
    );
});

// ---- ends of the process ----

test("nothing that is open keeps a process alive by itself", async () => {
    await endsWith("end", `call(begin(), "hang"); process.on("exit", () => say("end"));`);
});

test("what is held keeps it alive, and no longer than that", async () => {
    await endsWith(
        "complete 0",
        `
        runtime.hold();
        call(begin(), "hello", (kind, status) => {
            if (kind !== Kind.COMPLETE) return;
            say("complete " + status);
            runtime.release();
        });
        `,
    );
});

const STAGES: Record<string, string> = {
    "before anything": "process.exit(7);",
    "with a session that is not open": "begin(); process.exit(7);",
    "in the handler of OPEN": `hooks.events = () => process.exit(7);
        runtime.hold(); begin();`,
    "with a request that is not sent": `call(begin(), "hang"); process.exit(7);`,
    "in the handler of a segment": `runtime.hold();
        call(begin(), "stream", (kind) => kind === Kind.SEGMENTS && process.exit(7));`,
    "in the handler of COMPLETE": `runtime.hold();
        call(begin(), "hello", (kind) => kind === Kind.COMPLETE && process.exit(7));`,
    "inside of principal": `hooks.principal = () => process.exit(7);
        runtime.hold(); call(begin(), "hello");`,
    "inside of validate": `hooks.validate = () => process.exit(7);
        runtime.hold(); call(begin(), "hello");`,
    "after the runtime was closed": `call(begin(), "stream"); runtime.close();
        process.exit(7);`,
};

for (const [stage, body] of Object.entries(STAGES)) {
    test(`process.exit ${stage}`, () => endsWith("", body, 7));
}

test("an exception in a handler is uncaught, and the rest still comes", async () => {
    await endsWith(
        "boom complete",
        `
        const said = [];
        process.on("uncaughtException", (error) => said.push(error.message));
        runtime.hold();
        call(begin(), "hello", (kind) => {
            if (kind === Kind.SEGMENTS) throw new Error("boom");
            if (kind !== Kind.COMPLETE) return;
            setTimeout(() => { say(said.join() + " complete"); runtime.release(); }, 20);
        });
        `,
    );
    const ended = await play(`
        runtime.hold();
        call(begin(), "hello", () => { throw new Error("boom"); });
    `);
    assert.equal(ended.code, 1);
    assert.match(ended.err, /boom/);
});

test("who closes in a handler gets each of the other events once", async () => {
    const world = new Pair({ hello: (call) => void native.callReply(call, "hello") });
    await world.told.until(Kind.OPEN);
    const order: string[] = [];
    const all = ["a", "b", "c", "d"];
    const ended = new Promise<void>((resolve) => {
        for (const name of all)
            native.requestStart(
                world.session,
                "tools/call",
                '{"name":"hello","arguments":{}}',
                null,
                (kind) => {
                    if (kind !== Kind.COMPLETE) return;
                    order.push(name);
                    if (order.length > 1) return;
                    world.close();
                    setImmediate(resolve); // by then the outer handler has gone on
                },
            );
    });
    await ended;
    assert.deepEqual(order.sort(), all);
});

test("a child process is none of the runtime's business", async () => {
    await endsWith(
        "child complete",
        `
        const { execFile } = require("node:child_process");
        const session = begin();
        call(session, "stream");
        runtime.hold();
        execFile("/bin/echo", ["child"], (_error, text) => {
            call(session, "hello", (kind) => {
                if (kind !== Kind.COMPLETE) return;
                say(text.trim() + " complete");
                runtime.release();
            });
        });
        `,
    );
});

// ---- workers ----

/** Makes a program whose workers run `body` in the prelude's world. */
function workers(count: number, body: string, rest: string): string {
    return `
        const { Worker } = require("node:worker_threads");
        const body = ${JSON.stringify(`${PRELUDE}\n${body}`)};
        const make = () => new Worker(
            "process.argv[1] = require('node:worker_threads').workerData;" +
            "const { parentPort } = require('node:worker_threads');" + body,
            { eval: true, workerData: process.argv[1] });
        const all = Array.from({ length: ${count} }, make);
        ${rest}
    `;
}

test("several environments at once, each with a runtime of its own", async () => {
    await endsWith(
        "40 0",
        workers(
            4,
            `
            runtime.hold();
            const session = begin();
            let left = 10;
            for (let i = 0; i < 10; i++) call(session, "hello", (kind, status) => {
                if (kind !== Kind.COMPLETE) return;
                parentPort.postMessage(status);
                if (--left === 0) runtime.release();
            });
            `,
            `
            let sum = 0, count = 0, gone = 0;
            for (const worker of all) {
                worker.on("message", (status) => { count++; sum += status; });
                worker.on("exit", () => { if (++gone === 4) say(count + " " + sum); });
            }
            `,
        ),
    );
});

test("a worker that is terminated in mid-stream takes its runtime along", async () => {
    await endsWith(
        "1,1,1,1 hello",
        workers(
            4,
            `
            runtime.hold();
            let told = false;
            call(begin(), "stream", (kind) => {
                if (kind !== Kind.SEGMENTS || told) return;
                told = true;
                parentPort.postMessage("streams");
            });
            `,
            `
            const ends = all.map((worker) => new Promise((resolve) => {
                worker.once("message", () => worker.terminate().then(resolve));
            }));
            Promise.all(ends).then((codes) => {
                runtime.hold();
                call(begin(), "hello", (kind) => {
                    if (kind !== Kind.COMPLETE) return;
                    say(codes.join() + " hello");
                    runtime.release();
                });
            });
            `,
        ),
    );
});

test("a worker that is terminated inside of a hook", async () => {
    await endsWith(
        "1,1",
        workers(
            2,
            `
            hooks.principal = () => { parentPort.postMessage("asked"); for (;;); };
            runtime.hold();
            call(begin(), "hello");
            `,
            `
            Promise.all(all.map((worker) => new Promise((resolve) => {
                worker.once("message", () => worker.terminate().then(resolve));
            }))).then((codes) => say(codes.join()));
            `,
        ),
    );
});

test("a worker that ends by process.exit, and one that throws", async () => {
    await endsWith(
        "3,1",
        `
        const { Worker } = require("node:worker_threads");
        const prelude = ${JSON.stringify(PRELUDE)};
        const run = (body) => new Promise((resolve) => {
            const worker = new Worker(
                "process.argv[1] = require('node:worker_threads').workerData;" +
                prelude + "runtime.hold();" +
                "call(begin(), 'stream', (kind) => {" + body + "})",
                { eval: true, workerData: process.argv[1] });
            worker.on("error", () => {});
            worker.on("exit", resolve);
        });
        Promise.all([
            run("kind === 9 && process.exit(3);"),
            run("throw new Error('x');"),
        ]).then((codes) => say(codes.join()));
        `,
    );
});

test("workers come and go", async () => {
    await endsWith(
        "10",
        `
        const { Worker } = require("node:worker_threads");
        const body = ${JSON.stringify(`${PRELUDE}\nruntime.hold();
            call(begin(), "hello", (kind) =>
                kind === Kind.COMPLETE && runtime.release());`)};
        (async () => {
            let ends = 0;
            for (let i = 0; i < 10; i++) {
                const worker = new Worker(
                    "process.argv[1] = require('node:worker_threads').workerData;" + body,
                    { eval: true, workerData: process.argv[1] });
                ends += await new Promise((resolve) => worker.on("exit", resolve)) === 0;
            }
            say(String(ends));
        })();
        `,
    );
});
