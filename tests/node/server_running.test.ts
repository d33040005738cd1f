/** A server as a process: its standard input and output, its signals, its crash. */
import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
    connect,
    DisconnectedError,
    RemoteError,
    SegueError,
    type Session,
    TaskLostError,
} from "segue-mcp";
import { withStoreOfKind } from "./shared_stores.js";

const PROGRAM = fileURLToPath(new URL("server_program.js", import.meta.url));
const COMMAND = [process.execPath, PROGRAM];
const timeout = 120_000;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

function start(...args: string[]): Child {
    const [node = "", ...rest] = COMMAND;
    return spawn(node, [...rest, ...args], { stdio: ["pipe", "pipe", "pipe"] });
}

/** Returns a function that reads the next line; undefined after the last one. */
function reader(stream: Readable): () => Promise<string | undefined> {
    const lines = readline.createInterface({ input: stream })[Symbol.asyncIterator]();
    return async () => (await lines.next()).value as string | undefined;
}

async function ended(child: Child): Promise<number | string> {
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    return child.exitCode ?? String(child.signalCode);
}

function lines(...messages: object[]): string {
    const told = messages.map((one) => JSON.stringify({ jsonrpc: "2.0", ...one }));
    return `${told.join("\n")}\n`;
}

const HELLO = lines(
    {
        id: 0,
        method: "initialize",
        params: {
            protocolVersion: "2025-11-25",
            capabilities: {},
            clientInfo: { name: "raw", version: "1" },
        },
    },
    { method: "notifications/initialized" },
);

function call(id: number, name: string, args: object = {}): string {
    return lines({ id, method: "tools/call", params: { name, arguments: args } });
}

/** Runs `work` with a directory of its own. */
async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
    const directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
    try {
        await work(directory);
    } finally {
        rmSync(directory, { recursive: true, force: true });
    }
}

// ---- standard input and output

test("nothing but messages on standard output", { timeout }, async () => {
    const child = start();
    const errors = text(child.stderr);
    const line = reader(child.stdout);
    child.stdin.write(HELLO + call(1, "noisy", { text: "hé" }));
    const hello = JSON.parse((await line()) ?? "");
    const answer = JSON.parse((await line()) ?? "");
    assert.equal(hello.result.serverInfo.name, "program");
    // standard input has one caller, so tasks are listed without a principal
    assert.deepEqual(hello.result.capabilities.tasks.list, {});
    assert.equal(answer.result.content[0].text, "hé ");
    child.stdin.end();
    // Afterwards the program can use standard output again.
    assert.equal(await line(), "ended");
    assert.equal(await line(), undefined);
    assert.equal(await ended(child), 0);
    for (const one of ["printed hé", "written", "to standard error"]) {
        assert.ok((await errors).includes(`${one}\n`), one);
    }
});

test("a session over standard input and output", { timeout }, async () => {
    for (const era of ["modern", "legacy"] as const) {
        await inDirectory(async (directory) => {
            const file = path.join(directory, "gate");
            // A child gets only part of the environment, as the specification wants.
            const env = { SEGUE_NODE_ADDON: process.env["SEGUE_NODE_ADDON"] };
            const options = { era, env, restart: false, onStderr: () => undefined };
            const session = await connect(COMMAND, options);
            const waiting = session.call("gate", { file });
            assert.equal((await session.call("noisy", { text: "x" })).text, "x ");
            writeFileSync(file, "");
            assert.equal((await waiting).text, "through");
            await session.close();
        });
    }
});

test("what is under way is answered before a signal ends it", { timeout }, () =>
    inDirectory(async (directory) => {
        const file = path.join(directory, "gate");
        const child = start();
        child.stderr.resume();
        const line = reader(child.stdout);
        child.stdin.write(HELLO + call(1, "gate", { file }));
        child.stdin.write(call(2, "noisy", { text: "there" }));
        await line();
        assert.equal(JSON.parse((await line()) ?? "").id, 2); // so the other call runs
        child.kill("SIGTERM");
        writeFileSync(file, "");
        const answer = JSON.parse((await line()) ?? "");
        assert.equal(answer.result.content[0].text, "through");
        assert.equal(await ended(child), 0);
    }),
);

test("a peer that is gone ends the process, also in mid-call", {
    timeout,
}, async () => {
    const child = start();
    child.stderr.resume();
    const line = reader(child.stdout);
    child.stdin.write(HELLO + call(1, "stuck"));
    await line();
    child.stdin.end();
    assert.equal(await line(), "ended");
    child.kill("SIGKILL"); // the promise of "stuck" holds nothing; this makes sure
    assert.ok([0, "SIGKILL"].includes(await ended(child)));
});

// ---- signals

/** Runs `work` with a server over HTTP, and ends the server. */
async function overHttp(
    args: string[],
    work: (url: string, child: Child) => Promise<void>,
): Promise<void> {
    const child = start("--http", "0", ...args);
    child.stderr.resume();
    try {
        await work((await reader(child.stdout)()) ?? "", child);
    } finally {
        child.kill("SIGKILL");
        await ended(child);
    }
}

async function open(url: string): Promise<Session> {
    return connect(url, { proxy: "", maxReconnects: -1 });
}

test("a signal lets calls end", { timeout }, () =>
    inDirectory((directory) =>
        overHttp([], async (url, child) => {
            const file = path.join(directory, "gate");
            const session = await open(url);
            const answer = await new Promise<{ text: string }>((resolve, reject) => {
                const onProgress = (): void => {
                    child.kill("SIGTERM");
                    writeFileSync(file, "");
                };
                session.call("gate", { file }, { onProgress }).then(resolve, reject);
            });
            assert.equal(answer.text, "through");
            await session.close();
            assert.equal(await ended(child), 0);
        }),
    ),
);

test("what handlers share is closed after the server", { timeout }, () =>
    inDirectory((directory) => {
        const file = path.join(directory, "closed");
        return overHttp(["--closes", file], async (url, child) => {
            const session = await open(url);
            await session.close();
            child.kill("SIGTERM");
            assert.equal(await ended(child), 0);
            assert.equal(readFileSync(file, "utf8"), "begins, 0 served\nends\n");
        });
    }),
);

for (const [signal, number] of [
    ["SIGINT", 2],
    ["SIGTERM", 15],
] as const) {
    test(`a second ${signal} ends at once`, { timeout }, () =>
        overHttp(["--drain", "60000"], async (url, child) => {
            const session = await open(url);
            const onProgress = (): void => void child.kill(signal);
            const stuck = session.call("stuck", {}, { onProgress });
            stuck.catch(() => undefined);
            // Once no connection is accepted, the first signal was handled.
            while (await gets(url));
            child.kill(signal);
            assert.equal(await ended(child), 128 + number);
            await assert.rejects(stuck, SegueError);
            await session.close();
        }),
    );
}

/**
 * Returns whether a server listens at the URL. In Node 20 a `fetch` whose connection
 * closes before the answer may never end.
 */
async function gets(url: string): Promise<boolean> {
    const { hostname, port } = new URL(url);
    return new Promise((resolve) => {
        const socket = net.connect(Number(port), hostname);
        socket.once("connect", () => socket.destroy());
        socket.once("error", () => undefined);
        socket.once("close", (failed) => resolve(!failed));
    });
}

// ---- a crash

/**
 * Ends a server in the middle of a task that can go on and of one that cannot; returns
 * their tokens.
 */
async function leftBy(url: string, child: Child, end: NodeJS.Signals): Promise<string[]> {
    const session = await open(url);
    const args = { to: 6, pauseAt: 4 };
    const stream = session.stream("count", args, { onLeave: "detach" });
    for await (const { number } of stream) if (number === 3) break;
    const lost = await session.start("lost");
    for await (const _ of lost) break;
    child.kill(end);
    assert.equal(await ended(child), end === "SIGTERM" ? 0 : end);
    await session.close();
    assert.ok(stream.token && lost.token);
    return [stream.token, lost.token];
}

/** Checks that another server has the tasks. */
async function goneOnWith(url: string, [token = "", lost = ""]: string[]): Promise<void> {
    const session = await open(url);
    const { text: told } = await session.resume(token).result();
    assert.equal(told, "1 2 3 4 5 6 in 2 runs");
    await assert.rejects(session.resume(lost).result(), SegueError);
    await session.close();
}

for (const kind of ["file", "redis", "postgres"] as const) {
    const withOptions = (work: (options: string[]) => Promise<void>): Promise<void> =>
        inDirectory((directory) =>
            withStoreOfKind(kind, directory, (store) =>
                work(["--store", store, "--lease", "1000", "--drain", "0"]),
            ),
        );
    for (const end of ["SIGKILL", "SIGTERM"] as const) {
        const name = `AS-78 AS-93b: a task goes on in the next process [${kind}, ${end}]`;
        test(name, { timeout }, () =>
            withOptions(async (options) => {
                let tokens: string[] = [];
                await overHttp(options, async (url, child) => {
                    tokens = await leftBy(url, child, end);
                });
                await overHttp(options, (url) => goneOnWith(url, tokens));
            }),
        );
    }
    const name = `a second server takes over the tasks of one that was killed [${kind}]`;
    test(name, { timeout }, () =>
        withOptions((options) =>
            overHttp(options, async (second) => {
                await overHttp(options, async (url, child) =>
                    goneOnWith(second, await leftBy(url, child, "SIGKILL")),
                );
            }),
        ),
    );
}

/** Runs `work` with a session, and asks the server to end meanwhile, by the end of its
 * input or by a signal. */
async function whileItRuns(
    way: string,
    options: string[],
    work: (session: Session) => Promise<void>,
): Promise<void> {
    const calls = { era: "legacy", tasks: false, maxReconnects: -1 } as const;
    if (way === "stdio") {
        const env = { SEGUE_NODE_ADDON: process.env["SEGUE_NODE_ADDON"] };
        const how = { ...calls, env, onStderr: () => undefined };
        const session = await connect([...COMMAND, ...options], how);
        await work(session);
        await session.close();
        return;
    }
    await overHttp(options, async (url, child) => {
        const session = await connect(url, { proxy: "", ...calls });
        await work(session);
        await session.close();
        child.kill("SIGTERM");
        assert.equal(await ended(child), 0);
    });
}

for (const way of ["stdio", "http"]) {
    const late = `R-975-27: a call whose client was away for too long [${way}]`;
    test(late, { timeout }, () =>
        inDirectory(async (directory) => {
            const options = ["--store", path.join(directory, "calls.db"), "--drain", "0"];
            const file = path.join(directory, "ran");
            let token = "";
            await whileItRuns(way, options, async (session) => {
                const how = { onLeave: "detach" } as const;
                const stream = session.stream("parked_shortly", { file }, how);
                for await (const _ of stream) break;
                token = stream.token ?? "";
            });
            await sleep(1500); // longer than the client may be away, without a server
            await whileItRuns(way, options, async (session) => {
                await assert.rejects(session.resume(token).result(), (error) => {
                    assert.ok(error instanceof RemoteError);
                    assert.deepEqual(error.data, { reason: "expired" });
                    return true;
                });
            });
            assert.equal(readFileSync(file, "utf8"), "ran\n");
        }),
    );

    const name = `R-975-29: a parked call goes on in the next process [${way}]`;
    test(name, { timeout: 120_000 }, () =>
        inDirectory(async (directory) => {
            const options = ["--store", path.join(directory, "calls.db"), "--drain", "0"];
            const tokens: string[] = [];
            const during = (work: (session: Session) => Promise<void>) =>
                whileItRuns(way, options, work);
            await during(async (session) => {
                for (const [tool, args] of [
                    ["parked", { to: 6, pauseAt: 4 }],
                    ["parked_lost", {}],
                ] as const) {
                    const stream = session.stream(tool, args, { onLeave: "detach" });
                    const last = tool === "parked" ? 3 : 1;
                    for await (const { number } of stream) if (number === last) break;
                    tokens.push(stream.token ?? "");
                }
            });
            await during(async (session) => {
                const [token = "", lost = ""] = tokens;
                assert.ok(token && lost);
                const { text: told } = await session.resume(token).result();
                assert.equal(told, "1 2 3 4 5 6 in 2 runs");
                await assert.rejects(session.resume(lost).result(), (error) => {
                    assert.ok(error instanceof TaskLostError);
                    assert.deepEqual(error.data, { reason: "server_restarted" });
                    return true;
                });
            });
        }),
    );
}

for (const era of ["auto", "legacy"] as const) {
    const name = `R-975-25: a call that kills its server has an end [${era}]`;
    test(name, { timeout: 120_000 }, () =>
        inDirectory(async (directory) => {
            const died = path.join(directory, "died");
            const env = { SEGUE_NODE_ADDON: process.env["SEGUE_NODE_ADDON"] };
            const ignore = (): undefined => undefined;
            // A server that keeps nothing gives no token: with one the call would run
            // twice.
            const resumable = false;
            const once = { era, env, resumable, maxReconnects: -1, onStderr: ignore };
            const bare = await connect(COMMAND, once);
            await assert.rejects(
                bare.call("die", { file: died }),
                (error) =>
                    error instanceof DisconnectedError && error.token === undefined,
            );
            await bare.close();
            rmSync(died);
            const command = [...COMMAND, "--store", path.join(directory, "calls.db")];
            const options = { era, env, maxReconnects: 2, onStderr: ignore };
            const session = await connect(command, options);
            await assert.rejects(session.call("die", { file: died }), DisconnectedError);
            await session.close();
            const times = readFileSync(died, "utf8").split("\n").length - 1;
            // Tries of the session, times those of the call.
            assert.ok(times > 1 && times <= (2 + 1) ** 2, `${times}`);
        }),
    );
}
