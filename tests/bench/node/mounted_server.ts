/**
 * A server of the Node SDK that `node:http` carries, and what it is compared with. Prints
 * its port.
 *
 *   mounted_server.js segue|own|bare
 *
 * segue: `server.handler()` in `node:http`. own: the listener of the SDK. bare: a handler
 * of `node:http` that reads the same call as JSON, checks nothing, and answers with its
 * text.
 */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { Server } from "segue-mcp";
import { z } from "zod";

const bare: RequestListener = async (req, res) => {
    const pieces: Buffer[] = [];
    for await (const piece of req) pieces.push(piece);
    const { id, params } = JSON.parse(Buffer.concat(pieces).toString());
    const content = [{ type: "text", text: params.arguments.text }];
    const result = { content, isError: false, resultType: "complete" };
    const body = JSON.stringify({ jsonrpc: "2.0", id, result });
    const length = Buffer.byteLength(body);
    res.writeHead(200, { "content-type": "application/json", "content-length": length });
    res.end(body);
};

function makeServer(): Server {
    const server = new Server({ name: "bench" });
    server.tool("echo", { input: z.object({ text: z.string() }) }, ({ text }) => text);
    return server;
}

async function serveOwn(): Promise<void> {
    const listener = await makeServer().listenHttp({ host: "127.0.0.1", port: 0 });
    console.log(new URL(listener.url).port);
}

function serveWithNode(handler: RequestListener): void {
    const server = createServer(handler);
    server.listen(0, "127.0.0.1", () =>
        console.log((server.address() as AddressInfo).port),
    );
}

const kind = process.argv[2];
if (kind === "own") await serveOwn();
else serveWithNode(kind === "bare" ? bare : makeServer().handler());
