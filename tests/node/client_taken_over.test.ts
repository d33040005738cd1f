/** Another server goes on with a session of 2025-11-25, and the client repeats its
 * settings there. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, Server } from "segue-mcp";

const timeout = 120_000;
const WATCHED = "note://today";

function service(): Server {
    const sealKey = Uint8Array.from({ length: 32 }, (_, at) => at);
    const server = new Server({ name: "service", sealKey });
    server.resource(WATCHED, {}, () => "nothing planned");
    server.tool("talk", (_input, ctx) => {
        ctx.log("said", "info");
    });
    return server;
}

test("subscriptions and the log level are set again", { timeout }, async () => {
    let heard = 0;
    const first = service();
    const second = service();
    const { url } = await first.listenHttp();
    const { port } = new URL(url);
    const session = await connect(url, {
        era: "legacy",
        logLevel: "info",
        onLog: () => (heard += 1),
    });
    try {
        const changes = await session.subscribe({ uris: [WATCHED], tools: true });
        await session.call("talk");
        await first.close();
        await second.listenHttp({ port: Number(port) });
        const next = async (): Promise<string> => {
            const { value, done } = await changes.next();
            assert.ok(!done);
            return value.kind;
        };
        const told = [await next(), await next()];
        assert.deepEqual(told.sort(), ["resource", "tools"]);
        second.resourceUpdated(WATCHED);
        // the new server says, too, that its tools may be others
        let kind = await next();
        while (kind === "tools") kind = await next();
        assert.equal(kind, "resource");
        heard = 0;
        await session.call("talk");
        assert.equal(heard, 1);
    } finally {
        await session.close();
        await first.close();
        await second.close();
    }
});
