/** The life of a client: in the process of its server, over sockets, and what keeps a
 * process alive. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { ClosedError, connect, type Segment, Server } from "segue-mcp";
import { all } from "./client_worlds.js";
import { HttpServer, serverCommand } from "./programs.js";
import { PACKAGE } from "./tree.js";

const run = promisify(execFile);

function makeServer(): Server {
    const server = new Server({ name: "in-process", version: "2" });
    server.tool("greet", () => "Hello!");
    server.tool("story", { task: "may" }, async function* () {
        for (const word of ["one ", "two ", "three "]) yield word;
    });
    server.tool("hang", (_args, context) => {
        return new Promise((_, reject) => {
            context.signal.addEventListener("abort", () => reject(context.signal.reason));
        });
    });
    return server;
}

for (const era of ["modern", "legacy"] as const) {
    test(`a server of this process (${era})`, async () => {
        const server = makeServer();
        await using session = await connect(server, { era });
        assert.equal(session.peer.server.name, "in-process");
        assert.equal((await session.call("greet")).text, "Hello!");
        const segments = await all<Segment>(session.stream("story"));
        assert.equal(segments.join(""), "one two three ");
        const stop = new AbortController();
        const hanging = session.call("hang", {}, { signal: stop.signal });
        await session.call("greet");
        stop.abort(new Error("mine"));
        await assert.rejects(hanging, /mine/);
        const other = await connect(server);
        assert.equal((await other.call("greet")).text, "Hello!");
        await other.close();
        assert.ok(other.isClosed && !session.isClosed);
    });
}

test("waits that are given up leave nothing", async () => {
    const server = makeServer();
    const session = await connect(server);
    const { waiters } = session as unknown as { waiters: { size: number } };
    for (let i = 0; i < 50; i += 1) {
        const stop = new AbortController();
        const waiting = session.waitClosed({ signal: stop.signal });
        stop.abort();
        await assert.rejects(waiting, { name: "AbortError" });
    }
    assert.equal(waiters.size, 0);
    await session.close();
    await assert.rejects(session.ping(), ClosedError);
});

test("a URL as an object, and a socket of the file system", async () => {
    const http = await HttpServer.start();
    const session = await connect(new URL(http.url));
    assert.ok((await session.call("greet")).text);
    await session.close();
    await http.kill();
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "segue-unix-"));
    const server = makeServer();
    const place = `unix:${path.join(directory, "s.sock")}`;
    const listener = await server.listenHttp({ address: place });
    const other = await connect(listener.url);
    assert.equal((await other.call("greet")).text, "Hello!");
    await other.close();
    await server.close();
    fs.rmSync(directory, { recursive: true });
});

// ---- separate processes

/** Runs a program that has the package as `segue`; returns what it prints. */
async function play(program: string): Promise<string> {
    const command = JSON.stringify(serverCommand());
    const code = `
        const segue = require(${JSON.stringify(PACKAGE)});
        const command = ${command};
        (async () => { ${program} })();`;
    const { stdout } = await run(process.execPath, ["-e", code], { timeout: 120_000 });
    return stdout;
}

/** Resolves when a process has ended. */
async function hasEnded(pid: number, signal: AbortSignal): Promise<void> {
    const isThere = (): boolean => {
        try {
            return process.kill(pid, 0);
        } catch {
            return false;
        }
    };
    while (isThere()) await sleep(5, undefined, { signal });
}

const withIt = "an open session keeps no process alive, and its child ends with it";
test(withIt, { timeout: 120_000 }, async ({ signal }) => {
    const said = await play(`
        const session = await segue.connect(["sh", "-c", 'echo $$ >&2; exec "$0"',
            ...command], { onStderr: (pid) => console.log(pid), onNotification() {} });
        await session.call("greet");`);
    assert.match(said, /^\d+\n$/);
    await hasEnded(Number(said), signal);
});

test("what is waited for keeps it alive", async () => {
    const said = await play(`
        const session = await segue.connect(command);
        session.call("slow_compute", { ms: 100, label: "a" })
            .then((result) => console.log(result.text));
        const task = await session.start("slow_compute", { ms: 150, label: "b" });
        task.result().then((result) => console.log(result.text));`);
    assert.deepEqual(said.trim().split("\n").sort(), ["Computed: a", "Computed: b"]);
});

test("a task that nobody waits for does not", async () => {
    const said = await play(`
        const session = await segue.connect(command);
        const task = await session.start("hang");
        const stream = session.stream("story", { n: 100000, delayMs: 5 });
        console.log((await stream.next()).value.number, typeof task.id);`);
    assert.equal(said, "1 string\n");
});

test("a callback for changes does, until it is closed", async () => {
    const said = await play(`
        const session = await segue.connect(command);
        const changes = await session.subscribe({ tools: true }, async (change) => {
            console.log(change.kind);
            await changes.close();
        });
        setTimeout(() => session.call("toggle"), 50).unref();`);
    assert.equal(said, "tools\n");
});

test("a transport of the official SDK does, until it is closed", async () => {
    const adapter = JSON.stringify(path.join(PACKAGE, "dist", "adapters", "mcp.js"));
    const said = await play(`
        const { SegueTransport } = require(${adapter});
        const transport = new SegueTransport(command);
        await transport.start();
        setTimeout(async () => {
            await transport.close();
            console.log("closed");
        }, 50).unref();`);
    assert.equal(said, "closed\n");
});
