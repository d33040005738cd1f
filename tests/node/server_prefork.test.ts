/** Several processes of a Node server share one port (SO_REUSEPORT) and one store. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { connect, type Session } from "segue-mcp";

const PROGRAM = fileURLToPath(new URL("prefork_program.js", import.meta.url));
const WORKERS = 3;

/** A process of the server, and the URL at which only this process answers. */
interface Worker {
    readonly child: ChildProcess;
    readonly url: string;
}

/** All workers by their process ids, and the URL that they share. */
class Site {
    readonly workers = new Map<number, Worker>();
    readonly url: string;

    private constructor(port: number) {
        this.url = `http://127.0.0.1:${port}/mcp`;
    }

    static async open(store: string): Promise<Site> {
        const probe = net.createServer().listen(0, "127.0.0.1");
        await once(probe, "listening");
        const { port } = probe.address() as net.AddressInfo;
        probe.close();
        await once(probe, "close");
        const site = new Site(port);
        for (let count = 0; count < WORKERS; count++) {
            const child = spawn(process.execPath, [PROGRAM, String(port), store], {
                stdio: ["ignore", "pipe", "inherit"],
            });
            const lines = readline.createInterface({ input: child.stdout });
            const [line] = (await once(lines, "line")) as [string];
            const [pid, url = ""] = line.split(" ");
            site.workers.set(Number(pid), { child, url });
        }
        return site;
    }

    async end(pid: number, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
        const worker = this.workers.get(pid) as Worker;
        this.workers.delete(pid);
        const ended = once(worker.child, "exit");
        worker.child.kill(signal);
        await ended;
    }

    async close(): Promise<void> {
        for (const pid of [...this.workers.keys()]) await this.end(pid);
    }

    /** Returns what each worker says of a task. */
    async statuses(id: string): Promise<string[]> {
        const told: string[] = [];
        for (const { url } of this.workers.values()) {
            const session = await connect(url, { proxy: "" });
            told.push((await session.task(id).status()).status);
            await session.close();
        }
        return told;
    }
}

function withSite(
    name: string,
    work: (site: Site, session: Session) => Promise<void>,
): void {
    test(name, { timeout: 240_000 }, async () => {
        const directory = mkdtempSync(path.join(os.tmpdir(), "segue-prefork-"));
        const site = await Site.open(path.join(directory, "tasks.db"));
        try {
            const session = await connect(site.url, { proxy: "" });
            await work(site, session);
            await session.close();
        } finally {
            await site.close();
            rmSync(directory, { recursive: true });
        }
    });
}

withSite("each worker finds the tasks of the others", async (site, session) => {
    const task = await session.start("count", { to: 2 });
    const { text } = await task.result();
    assert.match(text, /^1:/);
    for (const { url } of site.workers.values()) {
        const other = await connect(url, { proxy: "" });
        assert.equal((await other.task(String(task.id)).result()).text, text);
        await other.close();
    }
});

withSite("a task survives the kill of its worker", async (site, session) => {
    const task = await session.start("count", { to: 4 });
    const seen: [number, number][] = [];
    for await (const { text = "" } of task) {
        const [number, pid] = text.split(":").map(Number) as [number, number];
        seen.push([number, pid]);
        if (seen.length !== 2) continue;
        const working = Array(WORKERS).fill("working");
        assert.deepEqual(await site.statuses(String(task.id)), working);
        await site.end(pid);
    }
    assert.deepEqual(
        seen.map(([number]) => number),
        [1, 2, 3, 4],
    );
    const later = new Set(seen.slice(2).map(([, pid]) => pid));
    assert.equal(later.size, 1);
    for (const pid of later) assert.ok(site.workers.has(pid));
    const completed = Array(WORKERS - 1).fill("completed");
    assert.deepEqual(await site.statuses(String(task.id)), completed);
});

withSite("a plain call survives the kill of its worker", async (site, session) => {
    let killed: Promise<void> | undefined;
    const result = await session.call(
        "plain",
        {},
        {
            onProgress: ({ progress }) => {
                killed ??= site.end(progress);
            },
        },
    );
    await killed;
    assert.ok(killed);
    assert.ok(site.workers.has(Number(result.text)));
});

withSite("a worker that ends leaves its place to the others", async (site, session) => {
    for (const pid of [...site.workers.keys()].slice(1)) {
        await site.end(pid, "SIGTERM");
        const task = await session.start("count", { to: 2 });
        assert.match((await task.result()).text, /^1:/);
    }
});
