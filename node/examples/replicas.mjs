/**
 * Two replicas on one store and with one key: a task that the first one began goes on at
 * the second one. On several machines the store is Redis or PostgreSQL.
 *
 *     node replicas.mjs                a client that starts both and ends the first
 *     node replicas.mjs serve STORE    a replica, over HTTP on a free port
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import readline from "node:readline";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connect, resume, Server } from "segue-mcp";
import { z } from "zod";

const KEY = process.env.SEAL_KEY ?? randomBytes(32).toString("hex");

const server = new Server({ name: "replicas", sealKey: Buffer.from(KEY, "hex") });

server.tool(
    "count",
    {
        description: "Counts.",
        input: { to: z.number().int() },
        task: "must",
        restartable: true,
    },
    async function* ({ to }, ctx) {
        for (let number = ctx.resumed?.segments ?? 0; number < to; number++) {
            yield `${number + 1}\n`;
            await setTimeout(300);
        }
    },
);

/** Starts a replica, and returns its process and its URL. */
async function start(store) {
    const child = spawn(
        process.execPath,
        [fileURLToPath(import.meta.url), "serve", store],
        {
            stdio: ["ignore", "pipe", "inherit"],
            env: { ...process.env, SEAL_KEY: KEY },
        },
    );
    const [url] = await once(readline.createInterface(child.stdout), "line");
    return { child, url };
}

async function kill({ child }) {
    child.kill("SIGKILL");
    await once(child, "exit");
}

async function main() {
    const place = await mkdtemp(path.join(tmpdir(), "replicas-"));
    const store = path.join(place, "tasks.db");
    const [first, second] = [await start(store), await start(store)];

    const session = await connect(first.url);
    const task = await session.start("count", { to: 5 });
    for await (const segment of task) {
        process.stdout.write(`first: ${segment.text}`);
        if (segment.number === 2) break;
    }
    const { token } = task;
    task.detach();
    await session.close();
    await kill(first);

    const rest = await resume(token, second.url);
    for await (const segment of rest) process.stdout.write(`second: ${segment.text}`);
    await kill(second);
    await rm(place, { recursive: true });
}

if (process.argv[2] === "serve") {
    const { url } = await server.listenHttp({ store: process.argv[3] });
    console.log(url);
} else {
    await main();
}
