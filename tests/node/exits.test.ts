/**
 * Ends of processes and workers: by themselves when nothing is pending, and by force at
 * any moment. Each case is a separate process, which must not crash, hang or print
 * errors.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { PACKAGE } from "./tree.js";

const DEADLINE = 120_000;

interface Ended {
    readonly code: number | null;
    readonly signal: string | null;
    readonly out: string;
    readonly err: string;
}

/** The common beginning of all programs: a server with a tool for each case. */
const PRELUDE = `
    const segue = require(process.argv[1]);
    const { connect, Server } = segue;
    const { setTimeout: sleep } = require("node:timers/promises");
    const server = new Server({ name: "exits" });
    server.tool("hello", {}, () => "hello");
    server.tool("late", {}, async () => { await sleep(200); return "late"; });
    server.tool("stream", { task: "may" }, async function* () {
        for (let n = 1; n <= 1000; n++) {
            yield "segment " + n;
            if (n % 10 === 0) await sleep(1);
        }
    });
    server.tool("steps", {}, async (_args, ctx) => {
        for (let n = 1; n <= 10; n++) { ctx.progress(n, 10); await sleep(1); }
    });
    server.tool("hang", {}, (_args, ctx) => new Promise((_, reject) => {
        ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason));
    }));
    server.tool("ask", {}, async (_args, ctx) => String(await ctx.ask("Name?")));
    server.tool("fail", {}, () => { throw new Error("on purpose"); });
    const say = (text) => process.stdout.write(text + "\\n");
`;

async function play(body: string, ...options: string[]): Promise<Ended> {
    const program = `${PRELUDE}(async () => {${body}})();`;
    const child = spawn(process.execPath, [...options, "-e", program, PACKAGE], {
        stdio: ["ignore", "pipe", "pipe"],
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
    const [code, signal] = (await once(child, "close")) as [number | null, string | null];
    return { code, signal, out, err };
}

function ends(title: string, body: string, code: number, out: string): void {
    test(title, async () => {
        assert.deepEqual(await play(body), { code, signal: null, out, err: "" });
    });
}

/** The two ways from a client to the server of the prelude. */
const WAYS = {
    pair: "const session = await connect(server);",
    HTTP: `const listener = await server.listenHttp({ port: 0 });
        const session = await connect(listener.url, { proxy: "" });
        listener.unref();`,
};

// ---- by itself

ends("a program that only loads the package ends", "say('on');", 0, "on\n");

ends(
    "a session that was closed",
    `${WAYS.pair} say((await session.call("hello")).text); await session.close();`,
    0,
    "hello\n",
);

for (const [way, open] of Object.entries(WAYS)) {
    ends(
        `a session that is open and idle does not keep the process (${way})`,
        `${open} say((await session.call("hello")).text);`,
        0,
        "hello\n",
    );
    ends(
        `a call that is under way keeps it (${way})`,
        `${open} session.call("late").then((result) => say(result.text));`,
        0,
        "late\n",
    );
    ends(
        `a stream that is read keeps it (${way})`,
        `${open} let count = 0;
        for await (const segment of session.stream("stream")) count = segment.number;
        say(String(count));`,
        0,
        "1000\n",
    );
    ends(
        `a task that was let go does not (${way})`,
        `${open} const task = await session.start("stream"); task.detach(); say("gone");`,
        0,
        "gone\n",
    );
}

ends(
    "a listener keeps it until it is closed",
    `const listener = await server.listenHttp({ port: 0 });
    setTimeout(() => { say("closing"); void listener.close(); }, 100);`,
    0,
    "closing\n",
);

ends(
    "a listener that was unref'd does not",
    `(await server.listenHttp({ port: 0 })).unref(); say("on");`,
    0,
    "on\n",
);

// ---- by force, at every stage of a request

const STAGES: Record<string, string> = {
    "while it connects": `connect(server); END;`,
    "while it connects over HTTP": `
        const listener = await server.listenHttp({ port: 0 });
        connect(listener.url, { proxy: "" }); END;`,
    "when it is connected": `${WAYS.HTTP} END;`,
    "when a call was sent": `${WAYS.HTTP} session.call("hang").catch(() => {}); END;`,
    "while the tool runs": `${WAYS.HTTP}
        server.tool("end", {}, () => { END; }); await session.call("end");`,
    "at the first segment": `${WAYS.HTTP}
        for await (const _ of session.stream("stream")) END;`,
    "in mid-stream": `${WAYS.pair}
        for await (const segment of session.stream("stream"))
            if (segment.number === 500) END;`,
    "behind the last segment": `${WAYS.pair}
        for await (const segment of session.stream("stream"))
            if (segment.number === 1000) END;`,
    "when the result is there": `${WAYS.HTTP} await session.call("hello"); END;`,
    "while a call is cancelled": `${WAYS.HTTP} const controller = new AbortController();
        session.call("hang", {}, { signal: controller.signal }).catch(() => {});
        await sleep(20); controller.abort(); END;`,
    "while a task runs": `${WAYS.HTTP} await session.start("stream"); END;`,
    "while it closes": `${WAYS.HTTP} session.call("hang").catch(() => {});
        void session.close(); END;`,
    "while a listener closes": `${WAYS.HTTP} session.call("hang").catch(() => {});
        await sleep(20); void listener.close(); END;`,
    "in onProgress": `${WAYS.pair}
        await session.call("steps", {}, { onProgress: () => { END; } });`,
    "in onElicit": `const session = await connect(server, { onElicit: () => { END; } });
        await session.call("ask");`,
    "in principal, which the library waits for": `
        const other = new Server({ name: "other", principal: () => { END; } });
        const listener = await other.listenHttp({ port: 0 });
        await connect(listener.url, { proxy: "" });`,
    "in a bearer token's verify": `
        const auth = { issuer: "https://issuer.example", verify: () => { END; } };
        const listener = await server.listenHttp({ port: 0, auth });
        await connect(listener.url, { proxy: "", auth: "token" });`,
    "in auth of a client, which the library waits for": `
        const listener = await server.listenHttp({ port: 0 });
        await connect(listener.url, { proxy: "", auth: () => { END; } });`,
};

for (const [stage, body] of Object.entries(STAGES)) {
    ends(`process.exit ${stage}`, body.replace("END", "process.exit(7)"), 7, "");
}

test("a signal in mid-stream", async () => {
    const body = STAGES["in mid-stream"]?.replace("END", "process.kill(process.pid)");
    const { signal, err } = await play(String(body));
    assert.deepEqual([signal, err], ["SIGTERM", ""]);
});

// ---- exceptions

ends(
    "what a handler throws is a result of the tool",
    `${WAYS.pair}
    const quiet = new Server({ name: "quiet", onError: (error) => say(error.message) });
    quiet.tool("fail", {}, () => { throw new Error("on purpose"); });
    const other = await connect(quiet);
    try { await other.call("fail"); } catch (error) {
        say(String(error instanceof segue.ToolError));
    }
    say((await session.call("hello")).text);`,
    0,
    "on purpose\ntrue\nhello\n",
);

/** Callbacks that throw: the part of a program that meets one, and its name. */
const THROWING: Record<string, string> = {
    onProgress: `await session.call("steps", {}, { onProgress: fails });`,
    "onProgress, later": `await session.call("steps", {}, {
        onProgress: async () => fails() });`,
    onLog: `const other = await connect(server, { onLog: fails });
        await other.call("says");`,
    onStatus: `let go;
        const going = new Promise((resolve) => { go = resolve; });
        server.tool("work", { task: "must" }, async (_, ctx) => {
            ctx.progress(1, undefined, "at work"); await going; return "b"; });
        const onStatus = () => { go(); fails(); };
        await (await session.start("work", {}, { onStatus })).result();`,
    onTask: `for await (const _ of session.stream("long", {}, { onTask: fails }));`,
    onChange: `await session.subscribe({ tools: true }, fails);
        server.tool("new", {}, () => "");
        while (!failed) await new Promise((resolve) => setTimeout(resolve, 5));`,
    onNotification: `const other = await connect(server, {
            onNotification: fails, era: "legacy" });
        server.tool("new", {}, () => "");
        while (!failed) await new Promise((resolve) => setTimeout(resolve, 5));`,
    onElicit: `const other = await connect(server, { onElicit: fails });
        say((await other.call("asks")).text);`,
    validate: `const other = await connect(server, { validate: fails });
        await other.listTools();
        await other.call("typed").catch(() => undefined);`,
    onStderr: `const other = await connect([process.execPath, "-e",
            'console.error("line"); setTimeout(() => undefined, 9e5)'],
            { onStderr: fails, connectTimeoutMs: 100 }).catch(() => undefined);
        while (!failed) await new Promise((resolve) => setTimeout(resolve, 5));`,
};
for (const [name, body] of Object.entries(THROWING)) {
    const callback = name.split(",")[0];
    test(`what ${name} throws is printed, and the process goes on`, async () => {
        const { code, signal, err, out } = await play(`${WAYS.pair}
            let failed = 0;
            const fails = () => { failed++; throw new Error("mine"); };
            server.tool("says", {}, (_, ctx) => { ctx.log("it"); return ""; });
            server.tool("long", { task: "must" }, async (_, ctx) => {
                await ctx.send("a"); return "b"; });
            server.tool("asks", {}, async (_, ctx) =>
                (await ctx.elicit("?", { type: "object", properties: {} })).action);
            server.tool("typed", { output: { type: "object" } }, () => ({ a: 1 }));
            ${body}
            say((await session.call("hello")).text);
            process.exit();`);
        assert.deepEqual([code, signal], [0, null], err);
        const said = name === "onElicit" ? "cancel\nhello\n" : "hello\n";
        assert.equal(out, said);
        const told = `segue: the callback ${callback} failed: Error: mine\n`;
        assert.ok(err.includes(told), err);
    });
}

ends(
    "an onError that throws is printed with the error",
    `const lines = []; console.error = (...words) => lines.push(words.join(" "));
    const fails = () => { throw new Error("mine"); };
    const session = await connect(server, {
        onError: () => { throw new Error("worse"); } });
    await session.call("steps", {}, { onProgress: fails });
    say([...new Set(lines)].join());
    say((await session.call("hello")).text);`,
    0,
    "segue: onError failed: Error: worse," +
        "segue: the callback onProgress failed: Error: mine\nhello\n",
);

// ---- workers

/** Runs `body` in a worker; \`worker\` and \`parentPort\` are there. */
function inWorker(body: string): string {
    const text = JSON.stringify(`${PRELUDE}
        const { parentPort } = require("node:worker_threads");
        (async () => {${body}})();`);
    const program = `${text}.replaceAll("process.argv[1]", "process.argv[2]")`;
    return `new Worker(${program}, { eval: true, argv: [process.argv[1]] })`;
}

const WORKERS = `const { Worker } = require("node:worker_threads");
    const { once } = require("node:events");`;

ends(
    "workers serve and call beside each other, and end by themselves",
    `${WORKERS} ${WAYS.HTTP}
    const workers = Array.from({ length: 4 }, () => ${inWorker(`${WAYS.HTTP}
        const stream = session.stream("stream"); let count = 0;
        for await (const segment of stream) count = segment.number;
        parentPort.postMessage(count);`)});
    const counts = workers.map((worker) => once(worker, "message"));
    const codes = workers.map((worker) => once(worker, "exit"));
    say((await Promise.all(counts)).join()); say((await Promise.all(codes)).join());
    say((await session.call("hello")).text);`,
    0,
    "1000,1000,1000,1000\n0,0,0,0\nhello\n",
);

ends(
    "workers that are terminated in mid-stream leave the others alone",
    `${WORKERS} ${WAYS.HTTP}
    for (let round = 0; round < 8; round++) {
        const worker = ${inWorker(`${WAYS.HTTP}
            for await (const segment of session.stream("stream"))
                if (segment.number === 10) parentPort.postMessage("on");`)};
        await once(worker, "message");
        await sleep(round);
        await worker.terminate();
    }
    say((await session.call("hello")).text);`,
    0,
    "hello\n",
);

ends(
    "a worker that calls a server of the main thread, and exits in its callback",
    `${WORKERS} const listener = await server.listenHttp({ port: 0 });
    const worker = ${inWorker(`parentPort.once("message", async (url) => {
            const session = await connect(url, { proxy: "" });
            for await (const _ of session.stream("stream")) process.exit(3);
        });`)};
    worker.postMessage(listener.url);
    say(String((await once(worker, "exit"))[0]));
    await listener.close({ drainMs: 0 });`,
    0,
    "3\n",
);

// ---- child processes

test("a server that was started ends with its client", async () => {
    const text = JSON.stringify(`${PRELUDE} void server.serveStdio();`);
    const body = `const command = [process.execPath, "-e", ${text}, process.argv[1]];
        server.tool("pid", {}, () => process.pid);
        const session = await connect(command, { onStderr: () => {} });
        say((await session.call("hello")).text);`;
    const { code, out, err } = await play(body);
    assert.deepEqual([code, out, err], [0, "hello\n", ""]);
});
