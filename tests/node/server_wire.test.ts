/**
 * What a Node server says over HTTP, seen by a client that is written from the proposals:
 * no line of ours is in it. tests/python/test_server_wire.py does the same.
 */
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, Server, type ServerOptions } from "segue-mcp";

const related = "io.modelcontextprotocol/related-task";
const minute = 60_000;
const TRACKING = 1024; // SEGUE_DIALECT_TRACKING

interface Message {
    id?: unknown;
    result?: Record<string, unknown>;
}

interface Answer {
    status: number;
    messages: Message[];
    retryAfter: string | null;
}

/** A session of 2025-11-25. */
class Wire {
    readonly #headers: Record<string, string> = {
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
    };

    constructor(
        readonly url: string,
        token?: string,
    ) {
        if (token) this.#headers["Authorization"] = `Bearer ${token}`;
    }

    async initialize(): Promise<Answer> {
        const responses = { modes: ["task", "immediate", "streaming"] };
        const tasks = { requests: { tools: { call: {} } }, responses };
        return await this.post(1, "initialize", {
            protocolVersion: "2025-11-25",
            capabilities: { tasks },
            clientInfo: { name: "wire", version: "1" },
        });
    }

    async begin(): Promise<void> {
        assert.equal((await this.initialize()).status, 200);
        this.#headers["MCP-Protocol-Version"] = "2025-11-25";
        await this.post(undefined, "notifications/initialized");
    }

    /** The status, and every message until the answer has ended. */
    async post(
        id: number | undefined,
        method: string,
        params: object = {},
    ): Promise<Answer> {
        const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
        const init = { method: "POST", headers: this.#headers, body };
        const response = await fetch(this.url, init);
        const session = response.headers.get("mcp-session-id");
        if (session) this.#headers["Mcp-Session-Id"] = session;
        const text = await response.text();
        const isStream = response.headers.get("content-type")?.includes("event-stream");
        const data = text.split("\n").filter((line) => line.startsWith("data:"));
        const parts = isStream ? data.map((line) => line.slice(5)) : [text];
        const messages = response.ok
            ? parts
                  .filter((part) => part.trim())
                  .map((part) => JSON.parse(part) as Message)
            : [];
        const retryAfter = response.headers.get("retry-after");
        return { status: response.status, messages, retryAfter };
    }

    /** Of a request that is answered at once: there is one message. */
    async result(
        id: number,
        method: string,
        params: object,
    ): Promise<Record<string, unknown>> {
        const { status, messages } = await this.post(id, method, params);
        assert.equal(status, 200);
        assert.equal(messages.length, 1, JSON.stringify(messages));
        assert.equal(messages[0]?.id, id);
        return messages[0]?.result ?? {};
    }
}

const tools = ["greet", "greetPlainly"];
const greeted = (name: string): object => ({
    name,
    arguments: {},
    task: { ttl: minute, responseModes: ["immediate"] },
});

async function greeting(
    options: Partial<ServerOptions>,
    work: (wire: Wire) => Promise<void>,
): Promise<void> {
    const server = new Server({ name: "greeter", firstTurnMs: minute, ...options });
    server.tool("greet", { task: "may" }, async () => "Hello, X!");
    server.tool("greetPlainly", { task: "may" }, () => "Hello, X!");
    const serving = await server.listenHttp();
    try {
        const wire = new Wire(serving.url);
        await wire.begin();
        await work(wire);
    } finally {
        await serving.close();
    }
}

function textOf(result: Record<string, unknown>): string | undefined {
    return (result["content"] as { text: string }[])[0]?.text;
}

function hasNoSigns(result: object): void {
    for (const sign of ["task", "partial-content", "isComplete"]) {
        assert.ok(!(sign in result), sign);
    }
}

for (const tool of tools) {
    test(`AS-1: a tool that is done at once is answered at once: ${tool}`, async () => {
        await greeting({}, async (wire) => {
            const result = await wire.result(2, "tools/call", greeted(tool));
            assert.equal(textOf(result), "Hello, X!");
            hasNoSigns(result);
            assert.ok(!(related in ((result["_meta"] as object | undefined) ?? {})));
        });
    });

    test(`AS-31: a result that is tracked has a task that ended: ${tool}`, async () => {
        await greeting({ dialectsOn: TRACKING }, async (wire) => {
            const result = await wire.result(2, "tools/call", greeted(tool));
            hasNoSigns(result);
            const meta = result["_meta"] as Record<string, { taskId: string }>;
            const taskId = meta[related]?.taskId;
            const told = await wire.result(3, "tasks/get", { taskId });
            assert.equal(told["status"], "completed");
            const again = await wire.result(4, "tasks/result", { taskId });
            assert.equal(textOf(result), "Hello, X!");
            assert.deepEqual({ ...again, _meta: 0 }, { ...result, _meta: 0 });
        });
    });
}

/** The next response waits 2 ms for more, unless it is full. */
test("R-1905-28: segments in quick succession go out together", async () => {
    const many = 2000;
    const server = new Server({ name: "counter" });
    server.tool("count", { task: "may" }, async function* () {
        yield "first";
        await sleep(10); // which goes out
        for (let number = 0; number < many; number++) {
            await new Promise(setImmediate);
            yield `${number} `;
        }
    });
    const serving = await server.listenHttp();
    try {
        const wire = new Wire(serving.url);
        await wire.begin();
        const task = { ttl: minute, responseModes: ["streaming"] };
        const params = { name: "count", arguments: {}, task };
        const began = performance.now();
        const { messages } = await wire.post(2, "tools/call", params);
        const ms = performance.now() - began;
        const told = messages.filter(({ id }) => id === 2);
        const blocks = told.flatMap(
            ({ result }) => (result?.["partial-content"] ?? []) as { seqNr: number }[],
        );
        const numbers = blocks.map(({ seqNr }) => seqNr);
        const wanted = Array.from({ length: many + 1 }, (_, at) => at + 1);
        assert.deepEqual(numbers, wanted);
        assert.ok(told.length <= ms + 10, `${told.length} responses in ${ms} ms`);
    } finally {
        await serving.close();
    }
});

test("R-776-26: a cancelled call gets no answer", async () => {
    let begun = (): void => {};
    const server = new Server({ name: "waiter" });
    const input = { type: "object", properties: { how: { type: "string" } } } as const;
    server.tool("wait", { input }, async (args, ctx) => {
        begun();
        await once(ctx.signal, "abort");
        if ((args as { how: string }).how === "give up") throw ctx.signal.reason;
        return "too late";
    });
    const serving = await server.listenHttp();
    try {
        const wire = new Wire(serving.url);
        await wire.begin();
        for (const [id, how] of [
            [2, "give up"],
            [3, "answer"],
        ] as const) {
            const isBegun = new Promise<void>((resolve) => {
                begun = resolve;
            });
            const call = wire.post(id, "tools/call", {
                name: "wait",
                arguments: { how },
            });
            await isBegun;
            const cancel = { requestId: id };
            const took = await wire.post(undefined, "notifications/cancelled", cancel);
            assert.deepEqual([took.status, took.messages], [202, []]);
            const { messages } = await call;
            assert.ok(!messages.some((one) => one.id === id), JSON.stringify(messages));
        }
    } finally {
        await serving.close();
    }
});

/** An authorization server that tells its keys and nothing else. */
class Keys {
    looks = 0;
    isAway = false;
    url = "";
    #kid = "one";
    #pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
    readonly #server = createServer((_, response) => {
        this.looks++;
        const key = { kid: this.#kid, alg: "ES256", use: "sig" };
        const jwk = { ...this.#pair.publicKey.export({ format: "jwk" }), ...key };
        response.statusCode = this.isAway ? 503 : 200;
        response.setHeader("Content-Type", "application/json");
        response.end(JSON.stringify({ keys: [jwk] }));
    });

    async start(): Promise<void> {
        this.#server.listen(0, "127.0.0.1");
        await once(this.#server, "listening");
        const { port } = this.#server.address() as AddressInfo;
        this.url = `http://127.0.0.1:${port}`;
    }

    async close(): Promise<void> {
        this.#server.closeAllConnections();
        this.#server.close();
        await once(this.#server, "close");
    }

    rotate(): void {
        this.#pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
        this.#kid = "two";
    }

    token(aud: string, kid = this.#kid, claims: object = {}): string {
        const now = Math.floor(Date.now() / 1000);
        const stamps = { iat: now, exp: now + 3600, jti: "1" };
        const who = { iss: this.url, sub: "ann", aud, client_id: "c" };
        const parts = [
            { alg: "ES256", typ: "at+jwt", kid },
            { ...who, ...stamps, ...claims },
        ].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
        const key: KeyObject = this.#pair.privateKey;
        const said = Buffer.from(parts.join("."));
        const signature = sign("sha256", said, { key, dsaEncoding: "ieee-p1363" });
        return [...parts, signature.toString("base64url")].join(".");
    }
}

test("unknown keys do not shut out who is honest", async () => {
    const keys = new Keys();
    await keys.start();
    const auth = { issuer: keys.url, jwksUrl: `${keys.url}/keys` };
    const serving = await new Server({ name: "guarded" }).listenHttp({ auth });
    const ask = async (token: string) => await new Wire(url, token).initialize();
    const { url } = serving;
    try {
        assert.equal((await ask(keys.token(url))).status, 200);
        const strange = keys.token(url, undefined, { sub: "ann\n" });
        assert.equal((await ask(strange)).status, 401);
        for (let n = 0; n < 20; n++) {
            const expired = keys.token(url, `bad${n}`, { exp: 1 });
            assert.equal((await ask(expired)).status, 401);
        }
        const before = keys.looks;
        keys.rotate();
        assert.equal((await ask(keys.token(url))).status, 200);
        assert.equal(keys.looks, before + 1);
        let last: Answer | undefined;
        for (let n = 0; n < 20; n++) last = await ask(keys.token(url, `new${n}`));
        assert.ok(keys.looks <= before + 2);
        assert.equal(last?.status, 503);
        assert.ok(Number(last.retryAfter) > 0);
        assert.equal((await ask(keys.token(url))).status, 200);
    } finally {
        await serving.close();
        await keys.close();
    }
});

/** Our client does, where it is asked to. */
test("who comes before the keys comes again", { timeout: 2 * minute }, async () => {
    const keys = new Keys();
    await keys.start();
    keys.isAway = true;
    const auth = { issuer: keys.url, jwksUrl: `${keys.url}/keys` };
    const serving = await new Server({ name: "guarded" }).listenHttp({ auth });
    try {
        const token = keys.token(serving.url);
        const options = { auth: token, proxy: "", connectTimeoutMs: minute };
        const connecting = connect(serving.url, options);
        while (!keys.looks) await sleep(10);
        keys.isAway = false;
        const session = await connecting;
        assert.equal(session.peer.server.name, "guarded");
        await session.close();
    } finally {
        await serving.close();
        await keys.close();
    }
});

test("a key set is that of one issuer", async () => {
    const issuer = ["https://one.example", "https://other.example"];
    const auth = { issuer, jwksUrl: "https://one.example/keys" };
    const listening = new Server({ name: "guarded" }).listenHttp({ auth });
    await assert.rejects(listening, /that of one issuer/);
});
