/**
 * One worker of several that serve the same port with the same store:
 * prefork_program.js PORT STORE. It prints its process id and the URL of a port of its
 * own, at which a test asks this worker and no other.
 */
import { type Context, Server } from "segue-mcp";
import { z } from "zod";

const [port, store = ""] = process.argv.slice(2);
const server = new Server({ name: "prefork", store });
const never = new Promise<never>(() => undefined);

const count = {
    input: { to: z.number() },
    task: "may",
    restartable: true,
} as const;
/** Counts, and says which worker counts. In the first run it waits for ever at 3. */
server.tool("count", count, async function* ({ to }, ctx) {
    for (let number = (ctx.resumed?.segments ?? 0) + 1; number <= to; number++) {
        if (number === 3 && !ctx.resumed) await never;
        yield `${number}:${process.pid} `;
    }
});
/** Reports its worker as its progress. In the first run it waits for ever. */
async function plain(_: unknown, ctx: Context): Promise<string> {
    ctx.progress(process.pid);
    if (!ctx.resumed) await never;
    return String(process.pid);
}
server.tool("plain", { stored: true, restartable: true }, plain);

server.closeOnSignals();
await server.listenHttp({ port: Number(port), reusePort: true });
const own = await server.listenHttp({ port: 0 });
console.log(process.pid, own.url);
