/** What Node handlers learn of the HTTP request that made their call: `ctx.headers`, and
 * the AsyncLocalStorage of the app that carries the server. */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { serve } from "@hono/node-server";
import express from "express";
import { Hono } from "hono";
import { connect, type Handler, Server, type Session } from "segue-mcp";
import { Lab } from "segue-mcp/testing";
import { z } from "zod";

const timeout = 120_000;
const eras = ["auto", "legacy"] as const;
const SENT = { "X-Tenant": "blue", Authorization: "Bearer s3cret" };
const input = { name: z.string() };

function simple(): Server {
    const server = new Server({ name: "heads", exposeErrors: true });
    server.tool("tell", { input }, ({ name }, ctx) => ctx.headers.get(name) ?? "-");
    server.tool("task", { input, task: "must" }, async ({ name }, ctx) => {
        await new Promise((resolve) => setImmediate(resolve));
        return ctx.headers.get(name) ?? "-";
    });
    server.tool("names", (_, ctx) => [...ctx.headers.keys()].join());
    server.tool("tags", (_, ctx) =>
        [ctx.headers.get("x-TAG"), ctx.headers.get("cookie")].join("|"),
    );
    server.resource("heads://{name}", ({ name }, ctx) => ctx.headers.get(name) ?? "-");
    server.prompt("ask", { input }, ({ name }, ctx) => ctx.headers.get(name) ?? "-");
    return server;
}

async function check(session: Session, has: Record<string, string>): Promise<void> {
    for (const name of ["X-Tenant", "Authorization", "x-none"]) {
        const want = has[name] ?? "-";
        assert.equal((await session.call("tell", { name })).text, want);
        assert.equal((await session.call("task", { name })).text, want);
    }
    const want = has["X-Tenant"] ?? "-";
    assert.equal((await session.readResource("heads://x-tenant")).text, want);
    const prompt = await session.getPrompt("ask", { name: "x-tenant" });
    assert.deepEqual(prompt.messages[0]?.content, { type: "text", text: want });
}

for (const era of eras) {
    test(`the own listener gives the headers, ${era}`, { timeout }, async () => {
        const server = simple();
        const { url } = await server.listenHttp({ port: 0 });
        const session = await connect(url, { era, headers: SENT });
        await check(session, SENT);
        const names = (await session.call("names")).text.split(",");
        assert.ok(names.includes("authorization"));
        assert.ok(names.includes("mcp-protocol-version"));
        await session.close();
        await server.close();
    });

    test(`without HTTP there are no headers, ${era}`, { timeout }, async () => {
        const server = simple();
        const session = await connect(server, { era });
        await check(session, {});
        assert.equal((await session.call("names")).text, "");
        await session.close();
        await server.close();
    });
}

test("several values of one name", { timeout }, async () => {
    const server = simple();
    const { url } = await server.listenHttp({ port: 0 });
    const body = JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "tags", arguments: {} },
    });
    const request = http.request(url, {
        method: "POST",
        headers: {
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
            "X-Tag": ["a", "b"],
            cookie: "k=1",
        },
    });
    request.end(body);
    const [answer] = (await once(request, "response")) as [http.IncomingMessage];
    let text = "";
    for await (const piece of answer) text += piece;
    assert.equal(JSON.parse(text).result.content[0].text, "a, b|k=1");
    await server.close();
});

test("a task that runs again has no headers", { timeout }, async () => {
    const runs: Record<string, string>[] = [];
    const server = new Server({ name: "again" });
    let begun = (): void => undefined;
    const first = new Promise<void>((resolve) => {
        begun = resolve;
    });
    server.tool("job", { task: "must", restartable: true }, async (_, ctx) => {
        runs.push(Object.fromEntries(ctx.headers));
        await ctx.checkpoint("here");
        begun();
        if (!ctx.resumed) await new Promise(() => undefined);
        return "done";
    });
    const directory = await mkdtemp(path.join(os.tmpdir(), "segue-heads-"));
    const lab = new Lab();
    const served = await lab.serve(server, { store: path.join(directory, "t.db") });
    const session = await served.connect({ headers: SENT });
    const call = session.call("job");
    await first;
    await served.kill();
    for (const name of readdirSync(directory))
        assert.ok(!readFileSync(path.join(directory, name)).includes("s3cret"));
    await served.start();
    assert.equal((await call).text, "done");
    assert.equal(runs[0]?.authorization, "Bearer s3cret");
    assert.deepEqual(runs.slice(1), [{}]);
    await lab.close();
    await rm(directory, { recursive: true });
});

// ---- the AsyncLocalStorage of the app

const tenant = new AsyncLocalStorage<string>();

function tenants(): Server {
    const server = new Server({ name: "tenants" });
    const mine = (): string => tenant.getStore() ?? "unset";
    server.tool("now", mine);
    server.tool("later", async () => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        return mine();
    });
    server.tool("stream", async function* () {
        for (let i = 0; i < 3; i++) {
            yield mine();
            await new Promise((resolve) => setImmediate(resolve));
        }
    });
    server.tool("task", { task: "must" }, async () => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        return mine();
    });
    server.resource("who://am/i", mine);
    server.prompt("greet", mine);
    return server;
}

type Carrier = (mcp: Handler) => Promise<http.Server>;
const carriers: Record<string, Carrier> = {
    Express: async (mcp) => {
        const app = express();
        app.use((req, _res, next) => {
            tenant.run(String(req.headers["x-tenant"]), next);
        });
        app.use("/mcp", mcp);
        return http.createServer(app).listen(0, "127.0.0.1");
    },
    Hono: async (mcp) => {
        const app = new Hono();
        app.use((c, next) => tenant.run(String(c.req.header("x-tenant")), next));
        app.all("/mcp", (c) => mcp.fetch(c.req.raw));
        const port = 0;
        return serve({ fetch: app.fetch, port, hostname: "127.0.0.1" }) as http.Server;
    },
};

for (const era of eras)
    for (const [name, carry] of Object.entries(carriers))
        test(`handlers see the storage of ${name}, ${era}`, { timeout }, async () => {
            const server = tenants();
            // a web-standard request does not tell from where it came
            const mcp = server.handler({ principal: () => "someone" });
            const carrier = await carry(mcp);
            if (!carrier.listening) await once(carrier, "listening");
            const { port } = carrier.address() as AddressInfo;
            const url = `http://127.0.0.1:${port}/mcp`;
            await Promise.all(
                ["red", "blue"].map(async (who) => {
                    const headers = { "X-Tenant": who };
                    const session = await connect(url, { era, headers });
                    for (const tool of ["now", "later", "task"])
                        assert.equal((await session.call(tool)).text, who);
                    const texts = [];
                    for await (const { text } of session.stream("stream"))
                        texts.push(text);
                    assert.deepEqual(texts, [who, who, who]);
                    assert.equal((await session.readResource("who://am/i")).text, who);
                    const { messages } = await session.getPrompt("greet");
                    assert.deepEqual(messages[0]?.content, { type: "text", text: who });
                    await session.close();
                }),
            );
            assert.equal(tenant.getStore(), undefined);
            await mcp.close();
            carrier.closeAllConnections();
            carrier.close();
            await server.close();
        });

for (const era of eras)
    test(`a carried server gives the headers, ${era}`, { timeout }, async () => {
        const server = simple();
        const mcp = server.handler();
        const carrier = http.createServer(mcp).listen(0, "127.0.0.1");
        await once(carrier, "listening");
        const { port } = carrier.address() as AddressInfo;
        const session = await connect(`http://127.0.0.1:${port}/`, {
            era,
            headers: SENT,
        });
        await check(session, SENT);
        await session.close();
        await mcp.close();
        carrier.closeAllConnections();
        carrier.close();
        await server.close();
    });
