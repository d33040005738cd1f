/** A Node server inside an application's own HTTP server: node:http, Express, Fastify,
 * Hono and plain Requests. */
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import net from "node:net";
import { test } from "node:test";
import { serve } from "@hono/node-server";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import compression from "compression";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { connect, type Handler, RemoteError, Server } from "segue-mcp";
import { z } from "zod";

const timeout = 120_000;
const META = "io.modelcontextprotocol";

function simple(options: Partial<ConstructorParameters<typeof Server>[0]> = {}): Server {
    const server = new Server({ name: "web", ...options });
    server.tool("who", (_, ctx) => ctx.principal);
    server.tool("name", () => options.name ?? "web");
    server.tool("big", { input: { size: z.number() } }, ({ size }) => "x".repeat(size));
    server.tool(
        "story",
        { input: { n: z.number() }, task: "may" },
        async function* ({ n }) {
            for (let i = 0; i < n; i++) {
                yield `${i};`;
                await new Promise((resolve) => setTimeout(resolve, 10));
            }
        },
    );
    server.tool("hang", async (_, ctx) => {
        await new Promise<void>((resolve) => {
            ctx.signal.addEventListener("abort", () => resolve());
        });
        hung.resolve?.();
        return "";
    });
    return server;
}

const hung: { resolve?: () => void } = {};

/** A server of the application: its port, and its end. */
type Host = (mcp: Handler) => Promise<{ port: number; close: () => Promise<void> }>;

async function opened(server: http.Server): ReturnType<Host> {
    if (!server.listening) {
        server.listen(0, "127.0.0.1");
        await once(server, "listening");
    }
    return {
        port: (server.address() as AddressInfo).port,
        close: async () => {
            server.closeAllConnections();
            server.close();
            await once(server, "close");
        },
    };
}

const hosts: Record<string, Host> = {
    "node:http": (mcp) => opened(http.createServer(mcp)),
    Express: (mcp) => {
        const app = express();
        app.use("/api/mcp", mcp);
        return opened(http.createServer(app));
    },
    "Express with express.json()": (mcp) => {
        const app = express();
        app.use(express.json());
        app.all("/api/mcp", mcp);
        return opened(http.createServer(app));
    },
    Fastify: async (mcp) => {
        const app = fastify();
        app.all("/api/mcp", (request, reply) => {
            reply.hijack();
            mcp(request.raw, reply.raw, request.body);
        });
        await app.listen({ port: 0, host: "127.0.0.1" });
        return {
            port: (app.server.address() as AddressInfo).port,
            close: async () => {
                app.server.closeAllConnections();
                await app.close();
            },
        };
    },
    Hono: async (mcp) => {
        const app = new Hono();
        app.all("/api/mcp", (c) => mcp.fetch(c.req.raw));
        const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
        await once(server, "listening");
        return opened(server as http.Server);
    },
};

for (const [name, host] of Object.entries(hosts))
    for (const era of ["auto", "legacy"] as const)
        test(`calls, streams and sessions in ${name}, ${era}`, { timeout }, async () => {
            const server = simple();
            const mcp = server.handler();
            const { port, close } = await host(mcp);
            const session = await connect(`http://127.0.0.1:${port}/api/mcp`, { era });
            assert.equal((await session.call("name")).text, "web");
            const texts = [];
            for await (const { text } of session.stream("story", { n: 5 }))
                texts.push(text);
            assert.match(texts.join(""), /^0;1;2;3;4;/);
            assert.equal((await session.call("big", { size: 1e6 })).text.length, 1e6);
            await session.close();
            await mcp.close();
            await close();
            await server.close();
        });

test("events pass a middleware that compresses", { timeout }, async () => {
    const server = new Server({ name: "web" });
    const heard: { resolve?: () => void } = {};
    const isHeard = new Promise<void>((resolve) => {
        heard.resolve = resolve;
    });
    server.tool("work", async (_, ctx) => {
        ctx.progress(1, 2);
        await isHeard; // for ever, if the event waits for the end of the call
        return "x".repeat(5000);
    });
    const app = express();
    app.use(compression());
    app.use("/mcp", server.handler());
    const { port, close } = await opened(http.createServer(app));
    const client = new Client({ name: "official", version: "1" });
    const url = new URL(`http://127.0.0.1:${port}/mcp`);
    await client.connect(new StreamableHTTPClientTransport(url));
    const result = await client.callTool(
        { name: "work", arguments: {} },
        { onprogress: () => heard.resolve?.() },
    );
    assert.equal((result.content as { text: string }[])[0]?.text.length, 5000);
    await client.close();
    await server.close();
    await close();
});

/** Such a middleware ignores the callback of `write`. */
test("a large answer passes behind compression()", { timeout }, async () => {
    const server = simple();
    const app = express();
    app.use(compression());
    app.use("/mcp", server.handler());
    const { port, close } = await opened(http.createServer(app));
    const { headers, body } = call("big", { size: 3_000_000 });
    const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
        method: "POST",
        headers,
        body,
        signal: AbortSignal.timeout(30_000),
    });
    assert.equal(response.headers.get("content-encoding"), "gzip");
    const { result } = (await response.json()) as {
        result: { content: { text: string }[] };
    };
    assert.equal(result.content[0]?.text.length, 3_000_000);
    await server.close();
    await close();
});

/** Returns a call of 2026-07-28 by fetch alone. */
function call(
    tool: string,
    args: object = {},
): { headers: [string, string][]; body: string } {
    return {
        headers: Object.entries({
            host: "localhost",
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }),
        body: JSON.stringify({
            jsonrpc: "2.0",
            id: 1,
            method: "tools/call",
            params: {
                name: tool,
                arguments: args,
                _meta: {
                    [`${META}/protocolVersion`]: "2026-07-28",
                    [`${META}/clientCapabilities`]: {},
                },
            },
        }),
    };
}

function request(tool: string, args: object = {}, init: RequestInit = {}): Request {
    const { headers, body } = call(tool, args);
    return new Request("http://localhost/mcp", {
        method: "POST",
        headers,
        body,
        ...init,
    });
}

test("a Request becomes a Response", { timeout }, async () => {
    const server = simple();
    const mcp = server.handler();
    const response = await mcp.fetch(request("name"));
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "application/json");
    assert.match(await response.text(), /"text":"web"/);
    const foreign = new Request("http://evil.example/", { method: "GET" });
    assert.equal((await mcp.fetch(foreign)).status, 403);
    const large = await mcp.fetch(request("big", { size: 2e6 }));
    assert.ok((await large.text()).length > 2e6);
    await server.close();
    assert.equal((await mcp.fetch(request("name"))).status, 503);
});

test("the reader of a Response that goes ends the call", { timeout }, async () => {
    const server = simple();
    const mcp = server.handler();
    const ended = new Promise<void>((resolve) => {
        hung.resolve = resolve;
    });
    const response = await mcp.fetch(request("hang"));
    assert.equal(response.headers.get("content-type"), "text/event-stream");
    await response.body?.cancel();
    await ended;
    await server.close();
});

test("a client that goes ends its call", { timeout }, async () => {
    const server = simple();
    const { port, close } = await opened(http.createServer(server.handler()));
    const ended = new Promise<void>((resolve) => {
        hung.resolve = resolve;
    });
    const { headers, body } = call("hang");
    const asked = http.request({
        port,
        method: "POST",
        path: "/",
        headers: Object.fromEntries(headers),
    });
    asked.on("error", () => undefined);
    asked.end(body);
    const [answer] = await once(asked, "response");
    assert.equal(answer.statusCode, 200);
    asked.destroy();
    await ended;
    await server.close();
    await close();
});

test("a client that reads slowly gets all", { timeout }, async () => {
    const server = simple();
    const { port, close } = await opened(http.createServer(server.handler()));
    const { headers, body } = call("big", { size: 3e6 });
    const socket = net.connect(port, "127.0.0.1");
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    socket.pause();
    socket.write(
        `POST / HTTP/1.1\r\n${lines}connection: close\r\n` +
            `content-length: ${body.length}\r\n\r\n${body}`,
    );
    await new Promise((resolve) => setTimeout(resolve, 300));
    let got = 0;
    socket.on("data", (data) => {
        got += data.length;
    });
    socket.resume();
    await once(socket, "close");
    assert.ok(got > 3e6);
    await server.close();
    await close();
});

test("the application says who calls", { timeout }, async () => {
    const server = simple();
    // the type of the request may be that of the framework
    const typed = {
        express: (req: express.Request) => req.get("x-name"),
        node: (req: http.IncomingMessage) => req.headers.authorization,
        web: (req: Request) => req.headers.get("x-name"),
    };
    for (const principal of Object.values(typed))
        await simple().handler({ principal }).close();
    const mcp = server.handler({
        principal: async (req) =>
            req instanceof Request
                ? req.headers.get("x-name")
                : (req.headers["x-name"] as string | undefined),
    });
    const { port, close } = await opened(http.createServer(mcp));
    const url = `http://127.0.0.1:${port}/`;
    const named = await connect(url, { headers: { "x-name": "ada" } });
    assert.equal((await named.call("who")).text, "ada");
    await named.close();
    const nobody = await connect(url);
    assert.equal((await nobody.call("who")).text, "");
    await nobody.close();
    const asked = request("who");
    asked.headers.set("x-name", "eve");
    assert.match(await (await mcp.fetch(asked)).text(), /"text":"eve"/);
    await server.close();
    await close();
});

test("a request with several credentials is refused, also if a Request joins them", {
    timeout,
}, async () => {
    const asked: (string | null)[] = [];
    const server = simple();
    const mcp = server.handler({
        principal: (req: Request) => {
            asked.push(req.headers.get("authorization"));
            return "ada";
        },
    });
    const answer = async (...values: string[]) => {
        const made = request("who");
        for (const value of values) made.headers.append("authorization", value);
        const response = await mcp.fetch(made);
        return [response.status, await response.text()] as const;
    };
    for (const values of [
        ["Bearer one", "Bearer two"],
        ["one", "two"],
        ["Basic YWI=", "Bearer two"],
        ['Digest realm="a, b", nonce=1', "Bearer two"],
        ["Bearer one", ""],
    ]) {
        const [status, text] = await answer(...values);
        assert.equal(status, 400, values.join());
        assert.match(text, /Header mismatch: Authorization is repeated/);
    }
    assert.deepEqual(asked, []);
    for (const value of ["Bearer one", 'Digest realm="a, b", nonce=1, qop=auth'])
        assert.equal((await answer(value))[0], 200, value);
    assert.equal((await answer())[0], 200);
    assert.deepEqual(asked, [
        "Bearer one",
        'Digest realm="a, b", nonce=1, qop=auth',
        null,
    ]);
    await server.close();
});

test("two servers in one app", { timeout }, async () => {
    const servers = [simple({ name: "one" }), simple({ name: "two" })];
    const app = express();
    for (const server of servers) app.use(`/${server.name}`, server.handler());
    const { port, close } = await opened(http.createServer(app));
    for (const server of servers) {
        const session = await connect(`http://127.0.0.1:${port}/${server.name}`);
        assert.equal((await session.call("name")).text, server.name);
        await session.close();
    }
    for (const server of servers) await server.close();
    await close();
});

test("hosts, paths and tokens are checked", { timeout }, async () => {
    const server = simple();
    const { port, close } = await opened(
        http.createServer(server.handler({ path: "/mcp", hosts: ["api.example"] })),
    );
    const status = async (path: string, host: string) => {
        const { headers, body } = call("name");
        const all = { ...Object.fromEntries(headers), host };
        const asked = http.request({ port, method: "POST", path, headers: all });
        asked.end(body);
        const [answer] = await once(asked, "response");
        answer.resume();
        return answer.statusCode;
    };
    assert.equal(await status("/mcp", "api.example"), 200);
    assert.equal(await status("/mcp", "localhost"), 403);
    assert.equal(await status("/other", "api.example"), 404);
    await server.close();
    assert.equal(await status("/mcp", "api.example"), 503);
    await close();
});

test("a principal that is no string is reported", { timeout }, async () => {
    const errors: unknown[] = [];
    const server = simple({ onError: (error) => errors.push(error) });
    // @ts-expect-error: no string
    const mcp = server.handler({ principal: () => 7 });
    const { port, close } = await opened(http.createServer(mcp));
    await assert
        .rejects(
            async () => (await connect(`http://127.0.0.1:${port}/`)).call("who"),
            RemoteError,
        )
        .catch(() => undefined);
    assert.ok(errors.length > 0);
    assert.match(String(errors[0]), /principal has to return a string/);
    await assert.rejects(mcp.fetch(request("who")), TypeError);
    await server.close();
    await close();
});
