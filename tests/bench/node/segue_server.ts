/** A server of the Node SDK over HTTP. Prints its port. */
import { Server } from "segue-mcp";
import { z } from "zod";

const server = new Server({ name: "bench" });
server.tool("echo", { input: z.object({ text: z.string() }) }, ({ text }) => text);
const listener = await server.listenHttp({ host: "127.0.0.1", port: 0 });
console.log(new URL(listener.url).port);
