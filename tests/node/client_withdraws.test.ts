/** A cancelled call is withdrawn by its key until the server accepts that. The test plays
 * the server, over HTTP, and refuses the first withdrawal. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { connect } from "segue-mcp";

interface Message {
    id?: number;
    method: string;
    params: { _meta: Record<string, unknown> };
}

const serverInfo = { name: "x", version: "1" };
const discovered = {
    resultType: "complete",
    supportedVersions: ["2026-07-28"],
    capabilities: { tools: {}, extensions: { "dev.segue/idempotency": {} } },
    serverInfo,
    ttlMs: 0,
    cacheScope: "private",
    _meta: { "io.modelcontextprotocol/serverInfo": serverInfo },
};

function keyOf({ params }: Message): unknown {
    return params._meta["dev.segue/idempotencyKey"];
}

test("a withdrawal that is turned away is said again", { timeout: 60_000 }, async () => {
    const heard: Message[] = [];
    let wake = (): void => undefined;
    const next = async (): Promise<Message> => {
        for (;;) {
            const message = heard.shift();
            if (message) return message;
            await new Promise<void>((resolve) => {
                wake = resolve;
            });
        }
    };
    let statuses = [503, 202];
    const serve = async (got: IncomingMessage, told: ServerResponse): Promise<void> => {
        const message = JSON.parse(await text(got)) as Message;
        if (message.method === "server/discover") {
            const { id } = message;
            told.writeHead(200, { "content-type": "application/json" });
            told.end(JSON.stringify({ jsonrpc: "2.0", id, result: discovered }));
            return;
        }
        if (message.method !== "tools/call") {
            const [status = 202, ...others] = statuses;
            statuses = others;
            told.writeHead(status).end();
        } // a call is never answered
        heard.push(message);
        wake();
    };
    const server = createServer((got, told) => void serve(got, told));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const session = await connect(`http://127.0.0.1:${port}/mcp`, { proxy: "" });
    const controller = new AbortController();
    const call = session.call("t", {}, { signal: controller.signal });
    const key = keyOf(await next());
    assert.equal(typeof key, "string");
    controller.abort();
    await assert.rejects(call);
    for (let times = 0; times < 2; times++) {
        const message = await next();
        assert.equal(message.method, "notifications/cancelled");
        assert.equal(keyOf(message), key);
    }
    await session.close();
    server.close();
    server.closeAllConnections();
});
