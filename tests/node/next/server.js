// The server of the route app/mcp/route.js. Next loads it once in a process.
import { once } from "node:events";
import { Server } from "segue-mcp";
import { z } from "zod";

const server = new Server({ name: "next" });
export const handler = server.handler();

let goOn;
let aborted = 0;
server.tool("add", { input: { a: z.number(), b: z.number() } }, ({ a, b }) => a + b);
server.tool("held", async function* () {
    const going = new Promise((resolve) => {
        goOn = resolve;
    });
    yield "first\n";
    await going;
    yield "second\n";
});
server.tool("go_on", () => goOn());
server.tool("sure", async (_, ctx) => String(await ctx.ask("Sure?", z.boolean())));
server.tool("waits", async (_, ctx) => {
    ctx.progress(1);
    await once(ctx.signal, "abort");
    aborted++;
});
server.tool("aborted", () => aborted);
