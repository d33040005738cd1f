/** A server whose tools ask, one of several servers of a service. It runs in the process
 * of its test, or as a program, `asking_program.js STORE PORT`, which prints its URL. */
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { type Context, Server } from "segue-mcp";

/** ran: collects the server of each call. */
export function asking(store: string, ran: Server[] = []): Server {
    const sealKey = Uint8Array.from({ length: 32 }, (_, at) => at);
    const server = new Server({ name: "asks", store, sealKey });
    const input = { type: "object", properties: { what: { type: "string" } } };
    const approve = async (given: unknown, ctx: Context): Promise<string> => {
        const { what } = given as { what: string };
        ran.push(server);
        const told = await ctx.elicit(`Approve ${what}?`, {
            type: "object",
            properties: {},
        });
        return `${what} got ${JSON.stringify(told.content)}`;
    };
    server.tool("approve", { input }, approve);
    server.tool("approve_task", { input, task: "must", restartable: true }, approve);
    return server;
}

if (argv[1] === fileURLToPath(import.meta.url)) {
    const [, , store = "", port = ""] = argv;
    console.log((await asking(store).listenHttp({ port: Number(port) })).url);
}
