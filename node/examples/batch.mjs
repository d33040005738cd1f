/**
 * A batch of files with checkpoints: the server is killed half-way and started again.
 * The task goes on behind the last file that was done, and the client notices nothing.
 *
 *     node batch.mjs                     a client that starts, kills and restarts the server
 *     node batch.mjs serve PORT STORE    the server, over HTTP
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connect, Server, setLogger } from "segue-mcp";
import { z } from "zod";

const LIBRARY = fileURLToPath(new URL("../../core/examples/library/", import.meta.url));

const server = new Server({ name: "batch" });

server.tool(
    "count_words",
    {
        description: "Counts the words of all texts in a directory.",
        input: { directory: z.string() },
        task: "must",
        restartable: true,
    },
    async function* ({ directory }, ctx) {
        const done = ctx.resumed?.data ?? {};
        const sent = ctx.resumed?.segments ?? 0;
        const before = Object.keys(done).length;
        for (const [index, name] of (await readdir(directory)).sort().entries()) {
            if (!(name in done)) {
                await setTimeout(300); // as if it were much work
                const text = await readFile(path.join(directory, name), "utf8");
                done[name] = text.split(/\s+/).filter(Boolean).length;
                await ctx.checkpoint(done);
            }
            // A crash may come between the checkpoint and the segment.
            if (index >= sent) yield `${name}: ${done[name]} words\n`;
        }
        const counts = Object.values(done);
        const words = counts.reduce((a, b) => a + b);
        const now = counts.length - before;
        yield `${words} words in ${counts.length} files, ${now} counted in this run\n`;
    },
);

const start = (port, store) =>
    spawn(process.execPath, [fileURLToPath(import.meta.url), "serve", port, store], {
        stdio: ["ignore", "inherit", "inherit"],
    });

async function end(child, signal) {
    child.kill(signal);
    await once(child, "exit");
}

async function main() {
    setLogger(() => undefined); // the client says that it connects again
    const place = await mkdtemp(path.join(tmpdir(), "batch-"));
    const store = path.join(place, "tasks.db");
    const free = net.createServer().listen(0, "127.0.0.1");
    await once(free, "listening");
    const port = String(free.address().port);
    await new Promise((resolve) => free.close(resolve));

    let child = start(port, store);
    const session = await connect(`http://127.0.0.1:${port}/mcp`, {
        connectAttempts: 50,
    });
    for await (const segment of session.stream("count_words", { directory: LIBRARY })) {
        process.stdout.write(segment.text ?? "");
        if (segment.number === 3) {
            console.log("(the server is killed and started again)");
            await end(child, "SIGKILL");
            child = start(port, store);
        }
    }
    await session.close();
    await end(child, "SIGTERM");
    await rm(place, { recursive: true });
}

if (process.argv[2] === "serve") {
    await server.listenHttp({ port: Number(process.argv[3]), store: process.argv[4] });
    server.closeOnSignals();
} else {
    await main();
}
