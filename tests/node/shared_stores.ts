/** Stores for one test: a file, a Redis server, a PostgreSQL server. The servers end with
 * the test's work. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import path from "node:path";
import readline from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { program } from "./programs.js";

type Work = (store: string) => Promise<void>;

/**
 * Resolves to whether a server accepts connections on this socket. A server makes the
 * file of its socket a moment before it listens.
 */
async function accepts(path: string): Promise<boolean> {
    return new Promise((resolve) => {
        const socket = net.connect(path);
        socket.once("connect", () => socket.destroy());
        socket.once("error", () => undefined);
        socket.once("close", (failed) => resolve(!failed));
    });
}

/** Starts a server in this directory, without persistence, and passes on its URL. */
async function withRedis(directory: string, work: Work): Promise<void> {
    const socket = path.join(directory, "redis");
    const place = ["--dir", directory, "--logfile", "redis.log"];
    const socketOnly = ["--port", "0", "--unixsocket", socket, "--save", ""];
    const child = spawn("redis-server", [...socketOnly, ...place], { stdio: "ignore" });
    await once(child, "spawn");
    const closed = once(child, "close");
    try {
        while (!(await accepts(socket))) {
            assert.equal(child.exitCode, null);
            await sleep(10);
        }
        await work(`unix://${socket}`);
    } finally {
        child.kill("SIGKILL");
        await closed;
    }
}

/** Starts a server in a directory of its own, and passes on its URL. A user without
 * rights runs it, who cannot read every directory. */
async function withPostgres(work: Work): Promise<void> {
    // PostgreSQL hangs under the sanitizers that are preloaded into Node
    const { LD_PRELOAD: _, ...env } = process.env;
    const child: ChildProcess = spawn(program("tools/postgres_server"), {
        env,
        stdio: ["pipe", "pipe", "inherit"],
    });
    const closed = once(child, "close");
    assert.ok(child.stdin && child.stdout);
    try {
        const lines = readline.createInterface({ input: child.stdout });
        const { value } = await lines[Symbol.asyncIterator]().next();
        assert.ok(value, "PostgreSQL does not start");
        await work(value as string);
    } finally {
        child.stdin.end();
        await closed;
    }
}

export type Kind = "file" | "redis" | "postgres";

/** Runs `work` with what names a store of this kind; its files are in the directory. */
export function withStoreOfKind(
    kind: Kind,
    directory: string,
    work: Work,
): Promise<void> {
    if (kind === "redis") return withRedis(directory, work);
    if (kind === "postgres") return withPostgres(work);
    return work(path.join(directory, "tasks.db"));
}
