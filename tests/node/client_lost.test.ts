/** What a client gets of its tasks when the server was killed and is there again, on its
 * store. It is the same in both eras. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { connect, RemoteError, type Task, TaskLostError } from "segue-mcp";
import { Program } from "./programs.js";

const timeout = 120_000;
const PROGRAM = fileURLToPath(new URL("server_program.js", import.meta.url));

type Era = "auto" | "legacy";

/** A server on a port of its own that is killed and started again. */
class Killed {
    url = "";
    #program: Program | undefined;

    constructor(readonly directory: string) {}

    async start(): Promise<void> {
        const port = this.url && new URL(this.url).port;
        const store = path.join(this.directory, "tasks.db");
        const options = ["--http", port || "0", "--store", store, "--lease", "1000"];
        this.#program = new Program([process.execPath, PROGRAM, ...options]);
        this.url = await this.#program.line();
    }

    async kill(): Promise<void> {
        await this.#program?.end("SIGKILL");
    }
}

for (const era of ["auto", "legacy"] as const)
    for (const [name, work] of [
        ["a task that cannot run again is lost", lost],
        ["a task that failed is resumed with its segments", failed],
    ] as const)
        test(`${name} [${era}]`, { timeout }, async () => {
            const directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
            const server = new Killed(directory);
            try {
                await server.start();
                await work(server, era);
            } finally {
                await server.kill();
                rmSync(directory, { recursive: true, force: true });
            }
        });

/** Reads all segments; returns their texts and the error at the end. */
async function read(task: Task): Promise<[string[], unknown]> {
    const seen: string[] = [];
    try {
        for await (const { text } of task) seen.push(text ?? "");
    } catch (error) {
        return [seen, error];
    }
    return [seen, undefined];
}

async function failureOf(promise: PromiseLike<unknown>): Promise<unknown> {
    return promise.then(
        () => undefined,
        (error: unknown) => error,
    );
}

function isLost(error: unknown): void {
    assert.ok(error instanceof TaskLostError, String(error));
    assert.deepEqual(error.data, { reason: "server_restarted" });
    assert.equal(error.partial?.text, "begun");
}

async function lost(server: Killed, era: Era): Promise<void> {
    const session = await connect(server.url, { era, proxy: "" });
    const task = await session.start("lost");
    const { token } = task; // a later one would continue behind what was read
    assert.ok(token);
    for await (const _ of task) break;
    await server.kill();
    await server.start();
    isLost(await failureOf(task.result())); // the client that has waited
    const [seen, error] = await read(session.resume(token));
    assert.deepEqual(seen, ["begun"]);
    isLost(error);
    await session.close();
    const other = await connect(server.url, { era, proxy: "" }); // a new one
    const again = other.resume(token);
    assert.equal((await again.status()).status, "failed");
    isLost(await failureOf(again.result()));
    await other.close();
}

async function failed(server: Killed, era: Era): Promise<void> {
    const session = await connect(server.url, { era, proxy: "" });
    const file = path.join(server.directory, "go");
    const task = await session.start("fails", { file });
    const { token } = task;
    assert.ok(token);
    writeFileSync(file, "");
    const told = (error: unknown): void => {
        assert.ok(error instanceof RemoteError, String(error));
        assert.equal(error.rpcCode, 5);
        assert.equal(error.message, "why");
        assert.deepEqual(error.data, { more: 1 });
        assert.equal(error.partial?.text, "one two ");
    };
    const [first, error] = await read(task);
    assert.deepEqual(first, ["one ", "two "]);
    told(error);
    await session.close();
    await server.kill();
    await server.start();
    const other = await connect(server.url, { era, proxy: "" });
    const [again, same] = await read(other.resume(token));
    assert.deepEqual(again, ["one ", "two "]);
    told(same);
    told(await failureOf(other.resume(token).result()));
    await other.close();
}
