/** A Node server over HTTP: where it listens, who has access, and what a bare fetch
 * sees. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { type BearerAuth, connect, type Listener, RemoteError, Server } from "segue-mcp";
import { Gate } from "./server_worlds.js";

const timeout = 120_000;
const META = "io.modelcontextprotocol";

function simple(options: Partial<ConstructorParameters<typeof Server>[0]> = {}): Server {
    const server = new Server({ name: "web", ...options });
    server.tool("who", (_, ctx) => ctx.principal);
    server.tool("write", { scopes: ["notes:write"] }, (_, ctx) =>
        ["notes:write", "notes:read", "admin"].map((one) => ctx.hasScope(one)).join(" "),
    );
    server.tool("story", async function* () {
        yield "once ";
        yield "upon";
    });
    return server;
}

/** Makes a call with fetch alone, as clients of 2026-07-28 make it. */
async function post(
    url: string,
    method: string,
    params: object = {},
    headers: Record<string, string> = {},
): Promise<Response> {
    const name = (params as { name?: string }).name;
    return fetch(url, {
        method: "POST",
        headers: {
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": method,
            ...(name && { "mcp-name": name }),
            connection: "close",
            ...headers,
        },
        body: JSON.stringify({
            jsonrpc: "2.0",
            id: 1,
            method,
            params: {
                ...params,
                _meta: {
                    [`${META}/protocolVersion`]: "2026-07-28",
                    [`${META}/clientInfo`]: { name: "raw", version: "1" },
                    [`${META}/clientCapabilities`]: {},
                },
            },
        }),
    });
}

// biome-ignore lint/suspicious/noExplicitAny: JSON
async function answer(response: Response): Promise<any> {
    const text = await response.text();
    const data = /^data: (.*)$/gm;
    const events = [...text.matchAll(data)].map((found) => found[1] ?? "");
    return JSON.parse(events.at(-1) ?? text);
}

test("a bare client of 2026-07-28", { timeout }, async () => {
    const server = simple();
    const { url } = await server.listenHttp();
    const discovered = await answer(await post(url, "server/discover"));
    assert.equal(discovered.result.serverInfo?.name ?? "web", "web");
    const tools = await answer(await post(url, "tools/list"));
    const names = tools.result.tools.map(({ name }: { name: string }) => name);
    assert.deepEqual(names, ["who", "write", "story"]);
    const story = await answer(
        await post(url, "tools/call", { name: "story", arguments: {} }),
    );
    assert.equal(
        story.result.content.map(({ text }: { text: string }) => text).join(""),
        "once upon",
    );
    const none = await post(url, "tools/call", { name: "none" });
    assert.equal((await answer(none)).error.code, -32602);
    await server.close();
});

test("a limit is told by the name of its option in JavaScript", {
    timeout,
}, async () => {
    const server = simple({ lookupsPerSecond: 1 });
    await using listener = await server.listenHttp({ port: 0, maxHeaderBytes: 8192 });
    const told = async (headers: Record<string, string>) => {
        const response = await post(listener.url, "tools/list", {}, headers);
        return [response.status, await response.text()] as const;
    };
    const many = Array.from({ length: 120 }, (_, i) => [`x-${i}`, "a"]);
    const [many431, text] = await told(Object.fromEntries(many));
    assert.equal(many431, 431);
    assert.match(text, /the request has too many headers: at most 100"/);
    const [large431, large] = await told({ "x-large": "a".repeat(9000) });
    assert.equal(large431, 431);
    assert.match(large, /maxHeaderBytes is 8192"/);
    server.tool("long", { task: "must" }, () => "a");
    await using session = await connect(listener.url);
    let last: unknown;
    for (let i = 0; i < 20 && !/Too many/.test(String(last)); i++)
        last = await session.request("tasks/get", { taskId: "none" }).catch((e) => e);
    assert.ok(last instanceof RemoteError);
    assert.equal(last.message, "Too many failed look-ups: lookupsPerSecond is 1");
    assert.equal((last.data as { limit: string }).limit, "lookups_per_second");
});

test("where it listens", { timeout }, async () => {
    const server = simple();
    const directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
    const socket = path.join(directory, "s");
    const first = await server.listenHttp({ path: "/api", healthPath: "/health" });
    assert.match(first.url, /^http:\/\/127\.0\.0\.1:\d+\/api$/);
    const health = await fetch(first.url.replace("/api", "/health"));
    assert.equal(health.status, 200);
    const second = await server.listenHttp({ host: `unix:${socket}` });
    assert.equal(second.url, `unix:${socket}:/mcp`);
    const over = await connect("http://localhost/mcp", { unixSocket: socket, proxy: "" });
    assert.equal((await over.call("who")).text, "");
    await over.close();
    const third = await server.listenHttp({ host: "localhost" });
    assert.match(third.url, /127\.0\.0\.1/);
    await second.close();
    assert.equal((await fetch(first.url.replace("/api", "/health"))).status, 200);
    await server.close();
    await assert.rejects(fetch(first.url));
    rmSync(directory, { recursive: true, force: true });
});

test("a request about a task may lack its name if the listener is lenient", {
    timeout,
}, async () => {
    const server = simple();
    const strict = await server.listenHttp();
    const lenient = await server.listenHttp({ lenientHeaders: true });
    const refused = await post(strict.url, "tasks/get", { taskId: "none" });
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /Mcp-Name is missing.*lenient_headers/);
    const accepted = await post(lenient.url, "tasks/get", { taskId: "none" });
    assert.notEqual((await answer(accepted)).error.code, -32020);
    await server.close();
});

test("an address that cannot be had leaves nothing behind", { timeout }, async () => {
    const server = simple();
    const { url } = await server.listenHttp();
    const port = Number(new URL(url).port);
    await assert.rejects(server.listenHttp({ port }), { code: "SEGUE_E_IO" });
    await assert.rejects(server.listenHttp({ port: 70_000 }), {
        code: "SEGUE_E_INVALID",
    });
    await assert.rejects(server.listenHttp({ nonsense: 1 } as object), TypeError);
    await assert.rejects(server.listenHttp({ certFile: "/nowhere" }), {
        code: "SEGUE_E_IO",
    });
    await server.close();
    const again = await server.listenHttp({ port });
    assert.equal((await post(again.url, "tools/list")).status, 200);
    await again.close();
});

test("the ends of a listener: close, dispose, a signal", { timeout }, async () => {
    const server = simple();
    const abort = new AbortController();
    const first = await server.listenHttp({ signal: abort.signal });
    abort.abort();
    await first.closed;
    await assert.rejects(fetch(first.url));
    await assert.rejects(server.listenHttp({ signal: abort.signal }), {
        name: "AbortError",
    });
    const second = await server.listenHttp();
    await second[Symbol.asyncDispose]();
    await second.close();
    await second.closed;
    await server[Symbol.asyncDispose]();
    await server.close();
});

test("calls that run may end within the drain, new ones are refused", {
    timeout,
}, async () => {
    const server = simple();
    const began = new Gate();
    const go = new Gate();
    server.tool("wait", async () => {
        began.open();
        await go.opened;
        return "done";
    });
    const { url } = await server.listenHttp();
    const waiting = post(url, "tools/call", { name: "wait", arguments: {} });
    await began.opened;
    const closing = server.close();
    go.open();
    assert.equal((await answer(await waiting)).result.content[0].text, "done");
    await closing;
});

test("what does not end within the drain is aborted", { timeout }, async () => {
    const server = simple();
    const began = new Gate();
    const aborted = new Gate();
    server.tool("wait", async (_, { signal }) => {
        signal.addEventListener("abort", aborted.open);
        began.open();
        await new Promise(() => undefined);
    });
    const { url } = await server.listenHttp({ drainMs: 50 });
    const waiting = post(url, "tools/call", { name: "wait", arguments: {} });
    waiting.then((response) => response.text()).catch(() => undefined);
    await began.opened;
    await server.close();
    await aborted.opened;
});

test("who a caller is", { timeout }, async () => {
    const server = simple({
        principal: ({ address, header }) => {
            assert.match(address, /^127\.0\.0\.1:\d+$/);
            assert.equal(header("x-absent"), null);
            return header("X-User");
        },
    });
    const { url } = await server.listenHttp();
    for (const user of ["ada", "eve"]) {
        const headers = { "x-user": user };
        const found = await answer(
            await post(url, "tools/call", { name: "who", arguments: {} }, headers),
        );
        assert.equal(found.result.content[0].text, user);
    }
    await server.close();
});

test("a principal that throws refuses the caller and is reported", {
    timeout,
}, async () => {
    const told: unknown[] = [];
    const server = simple({
        principal: ({ header }) => {
            if (header("X-Broken")) throw new RangeError("broken");
            return "ada";
        },
        onError: (error, failure) => told.push(String(error), failure),
    });
    const { url } = await server.listenHttp();
    const call = { name: "who", arguments: {} };
    const refused = await post(url, "tools/call", call, { "x-broken": "1" });
    assert.equal(refused.status, 401);
    assert.deepEqual(told, ["RangeError: broken", { what: "auth", name: "principal" }]);
    const found = await answer(await post(url, "tools/call", call));
    assert.equal(found.result.content[0].text, "ada");
    await server.close();
});

test("one name for all callers", { timeout }, async () => {
    const server = simple({ principal: "ada" });
    const { url } = await server.listenHttp();
    const found = await answer(
        await post(url, "tools/call", { name: "who", arguments: {} }),
    );
    assert.equal(found.result.content[0].text, "ada");
    await server.close();
    assert.throws(() => simple({ principal: "" }), /not empty/);
});

const AUTH: BearerAuth = {
    issuer: "https://as.example.org",
    scopesSupported: ["notes:read"],
    impliedScopes: { "notes:write": ["notes:read"] },
    verify: async (token) => {
        if (token === "ada") {
            const expiresAt = new Date(Date.now() + 3_600_000);
            return { principal: "ada", scopes: ["notes:write"], expiresAt };
        }
        if (token === "broken") throw new Error("broken");
        if (token === "odd") return { principal: 3 } as never;
        return token === "reader" ? "reader" : null;
    },
};

async function status(url: string, token: string | undefined): Promise<number> {
    const headers: Record<string, string> = token
        ? { authorization: `Bearer ${token}` }
        : {};
    const response = await post(url, "tools/list", {}, headers);
    await response.text();
    return response.status;
}

test("tokens that a function decides about", { timeout }, async () => {
    const failures: [string, string][] = [];
    const server = simple({
        onError: (error, { what }) => failures.push([what, String(error)]),
    });
    const { url } = await server.listenHttp({ auth: AUTH });
    assert.equal(await status(url, undefined), 401);
    assert.equal(await status(url, "eve"), 401);
    assert.equal(await status(url, "broken"), 503);
    assert.equal(await status(url, "odd"), 503);
    assert.equal(await status(url, "reader"), 200);
    const session = await connect(url, { auth: "ada", proxy: "" });
    assert.equal((await session.call("who")).text, "ada");
    assert.equal((await session.call("write")).text, "true true false");
    await session.close();
    const reader = await connect(url, { auth: "reader", proxy: "" });
    await assert.rejects(reader.call("write"), RemoteError);
    await reader.close();
    const known = `${url.replace("/mcp", "")}/.well-known/oauth-protected-resource/mcp`;
    const told = (await (await fetch(known)).json()) as Record<string, unknown>;
    assert.deepEqual(told.authorization_servers, ["https://as.example.org"]);
    await server.close();
    assert.deepEqual(
        failures.map(([what]) => what),
        ["auth", "auth"],
    );
    await assert.rejects(server.listenHttp({ auth: { issuer: "https://x" } }), /verify/);
    await server.close();
});

test("tokens in a file", { timeout }, async () => {
    const directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
    const tokensFile = path.join(directory, "tokens");
    const digest = createHash("sha256").update("secret").digest("hex");
    writeFileSync(tokensFile, `ada ${digest}\n`);
    const server = simple();
    const { url } = await server.listenHttp({ tokensFile });
    assert.equal(await status(url, undefined), 401);
    assert.equal(await status(url, "other"), 401);
    const session = await connect(url, { auth: "secret", proxy: "" });
    assert.equal((await session.call("who")).text, "ada");
    await session.close();
    await server.close();
    rmSync(directory, { recursive: true });
});

test("TLS, and certificates that are read again", { timeout }, async () => {
    const directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
    const [certFile, keyFile] = ["cert.pem", "key.pem"].map((name) =>
        path.join(directory, name),
    ) as [string, string];
    const args =
        "req -x509 -newkey ec -nodes -days 2 -pkeyopt ec_paramgen_curve:prime256v1";
    const name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    const files = ["-keyout", keyFile, "-out", certFile];
    execFileSync("openssl", [...args.split(" "), ...files, ...name], { stdio: "ignore" });
    const server = simple();
    const listener = await server.listenHttp({ certFile, keyFile });
    assert.ok(listener.url.startsWith("https://"));
    listener.reload();
    const url = listener.url.replace("127.0.0.1", "localhost");
    const session = await connect(url, { tls: { caFile: certFile }, proxy: "" });
    assert.equal((await session.call("who")).text, "");
    await session.close();
    const plain: Listener = await server.listenHttp();
    assert.throws(() => plain.reload(), { code: "SEGUE_E_STATE" });
    await server.close();
    rmSync(directory, { recursive: true, force: true });
});

test("pages of elsewhere are kept out, unless they are named", {
    timeout,
}, async () => {
    const server = simple();
    const { url } = await server.listenHttp();
    const origins = ["https://good.example", "https://fine.example"];
    const open = await server.listenHttp({ origins, cors: true, hosts: ["mcp.example"] });
    const from = async (to: string, origin: string): Promise<Response> => {
        const response = await post(to, "tools/list", {}, { origin });
        await response.text();
        return response;
    };
    assert.equal((await from(url, "https://evil.example")).status, 403);
    assert.equal((await from(open.url, "https://evil.example")).status, 403);
    assert.equal((await statusByHost(url, "mcp.example")) >= 400, true);
    const good = await from(open.url, "https://good.example").catch(() => undefined);
    if (good?.status === 200) {
        const allowed = good.headers.get("access-control-allow-origin");
        assert.equal(allowed, "https://good.example");
    }
    assert.equal(await statusByHost(open.url, "mcp.example"), 200);
    await server.close();
});

/** Sends a request with this Host, which fetch does not allow; returns the status. */
async function statusByHost(url: string, host: string): Promise<number> {
    return new Promise((resolve, reject) => {
        const headers = {
            host,
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
        };
        const init = {
            jsonrpc: "2.0",
            id: 1,
            method: "initialize",
            params: {
                protocolVersion: "2025-11-25",
                capabilities: {},
                clientInfo: { name: "raw", version: "1" },
            },
        };
        const request = http.request(url, { method: "POST", headers, agent: false });
        request.on("response", (response) => {
            response.resume();
            response.on("end", () => resolve(response.statusCode ?? 0));
        });
        request.on("error", reject);
        request.end(JSON.stringify(init));
    });
}

test("an era that was chosen is that of its session", { timeout }, async () => {
    const server = simple();
    const { url } = await server.listenHttp();
    for (const [era, found] of [
        ["legacy", "legacy"],
        ["auto", "modern"],
    ] as const) {
        const session = await connect(url, { era, proxy: "" });
        assert.equal(session.peer.era, found);
        await session.close();
    }
    await server.close();
});

test("options of HTTP are refused over standard input and output", async () => {
    const server = simple();
    for (const name of ["auth", "tokensFile", "certFile", "hosts", "port"]) {
        const options = { [name]: "x" } as object;
        await assert.rejects(server.serveStdio(options), (error: Error) => {
            assert.match(error.message, new RegExp(`no option "${name}".*listenHttp`));
            return error instanceof TypeError;
        });
    }
    await server.close();
});
