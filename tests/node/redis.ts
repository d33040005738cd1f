/** A Redis server for one test; it ends with the test's work. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Starts a server in this directory, without persistence, and passes on its URL. */
export async function withRedis(
    directory: string,
    work: (url: string) => Promise<void>,
): Promise<void> {
    const socket = path.join(directory, "redis");
    const place = ["--dir", directory, "--logfile", "redis.log"];
    const socketOnly = ["--port", "0", "--unixsocket", socket, "--save", ""];
    const child = spawn("redis-server", [...socketOnly, ...place], { stdio: "ignore" });
    await once(child, "spawn");
    const closed = once(child, "close");
    try {
        while (!existsSync(socket)) {
            assert.equal(child.exitCode, null);
            await sleep(10);
        }
        await work(`unix://${socket}`);
    } finally {
        child.kill("SIGKILL");
        await closed;
    }
}
