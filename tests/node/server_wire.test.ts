/**
 * The messages of a Node server over HTTP, as a client sees them that was written from
 * the proposals alone, without code of Segue. tests/python/test_server_wire.py does the
 * same.
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
const TRACKING = 2; // SEGUE_WAY_TRACKING
const DRAFT_TASKS = 4; // SEGUE_DIALECT_DRAFT_TASKS

interface Message {
    id?: unknown;
    result?: Record<string, unknown>;
}

interface Answer {
    status: number;
    messages: Message[];
    retryAfter: string | null;
}

/** A session of 2025-11-25, or of another revision. */
class Wire {
    readonly capabilities: object;
    readonly #headers: Record<string, string> = {
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
    };

    constructor(
        readonly url: string,
        token?: string,
        readonly version = "2025-11-25",
        capabilities?: object,
    ) {
        const responses = { modes: ["task", "immediate", "streaming"] };
        const tasks = { requests: { tools: { call: {} } }, responses };
        this.capabilities = capabilities ?? { tasks };
        if (token) this.#headers["Authorization"] = `Bearer ${token}`;
        if (version === "2026-07-28") this.#headers["MCP-Protocol-Version"] = version;
    }

    async initialize(): Promise<Answer> {
        return await this.post(1, "initialize", {
            protocolVersion: this.version,
            capabilities: this.capabilities,
            clientInfo: { name: "wire", version: "1" },
        });
    }

    async begin(): Promise<void> {
        assert.equal((await this.initialize()).status, 200);
        this.#headers["MCP-Protocol-Version"] = this.version;
        const method = "notifications/initialized";
        const more = { "Mcp-Method": method };
        const isOld = this.version === "2025-11-25";
        await this.post(undefined, method, {}, isOld ? {} : more);
    }

    /** Returns the status, and every message until the answer has ended. */
    async post(
        id: number | undefined,
        method: string,
        params: object = {},
        more: Record<string, string> = {},
    ): Promise<Answer> {
        const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
        const init = { method: "POST", headers: { ...this.#headers, ...more }, body };
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

    /** Sends a request that is answered at once; checks that there is one message. */
    async result(
        id: number,
        method: string,
        params: object,
        more: Record<string, string> = {},
    ): Promise<Record<string, unknown>> {
        const { status, messages } = await this.post(id, method, params, more);
        assert.equal(status, 200);
        assert.equal(messages.length, 1, JSON.stringify(messages));
        assert.equal(messages[0]?.id, id);
        return messages[0]?.result ?? {};
    }

    /** The same for later revisions: headers repeat the subject of the request. */
    async named(
        id: number,
        method: string,
        name: string,
        params: object,
    ): Promise<Record<string, unknown>> {
        const headers = { "Mcp-Method": method, "Mcp-Name": name };
        return await this.result(id, method, params, headers);
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
        await greeting({ draftWays: TRACKING }, async (wire) => {
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
        await sleep(10); // this one goes out alone
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

/** This client has not declared dev.segue/replace. */
test("R-1905-34: what was pushed stays in the result", async () => {
    type Block = { text: string };
    const server = new Server({ name: "replacing" });
    server.tool("draft", { task: "may" }, async (_input, ctx) => {
        await ctx.send("wrong");
        await ctx.replace("right");
    });
    const serving = await server.listenHttp();
    try {
        const wire = new Wire(serving.url);
        await wire.begin();
        const task = { ttl: minute, responseModes: ["streaming"] };
        const params = { name: "draft", arguments: {}, task };
        const { messages } = await wire.post(2, "tools/call", params);
        const told = messages.filter(({ id }) => id === 2);
        const blocks = told.flatMap(
            ({ result }) => (result?.["partial-content"] ?? []) as Block[],
        );
        const pushed = blocks.map(({ text }) => text);
        assert.deepEqual(pushed, ["wrong", "right"]);
        const made = told[0]?.result?.["task"] as { taskId: string } | undefined;
        const taskId = made?.taskId;
        const fetched = await wire.result(3, "tasks/result", { taskId });
        const content = fetched["content"] as Block[];
        const texts = content.map(({ text }) => text);
        assert.deepEqual(texts, pushed);
    } finally {
        await serving.close();
    }
});

/** Runs `work` with a server that has a tool that hangs and one that asks. */
async function waiting(work: (url: string) => Promise<void>): Promise<void> {
    const server = new Server({ name: "waiting", dialectsOn: DRAFT_TASKS });
    server.tool("wait", { task: "may" }, async (_input, ctx) => {
        await once(ctx.signal, "abort");
    });
    server.tool("ask", { task: "must" }, async (_input, ctx) => {
        const schema = { type: "object", properties: {} } as const;
        await ctx.elicit("Sure?", schema);
    });
    const serving = await server.listenHttp();
    await work(serving.url).finally(() => serving.close());
}

/** A client of 2026-07-28 that declares only the legacy tasks. */
test("R-2557-17: tasks of 2025-11-25 are shown to who knows no other", () =>
    waiting(async (url) => {
        const old = new Wire(url);
        const other = new Wire(url, undefined, "2026-07-28");
        await old.begin();
        const made = { name: "wait", arguments: {}, task: { ttl: minute } };
        const created = await old.result(2, "tools/call", made);
        const { taskId } = created["task"] as { taskId: string };
        const protocol = "io.modelcontextprotocol";
        const _meta = {
            [`${protocol}/protocolVersion`]: "2026-07-28",
            [`${protocol}/clientInfo`]: { name: "wire", version: "1" },
            [`${protocol}/clientCapabilities`]: { tasks: {} },
        };
        for (const [method, status] of [
            ["tasks/get", "working"],
            ["tasks/cancel", "cancelled"],
        ] as const) {
            const told = await other.named(3, method, taskId, { taskId, _meta });
            assert.deepEqual([told["taskId"], told["status"]], [taskId, status]);
        }
        const ended = await old.result(4, "tasks/get", { taskId });
        assert.equal(ended["status"], "cancelled");
    }));

test("R-2557-22: a question of the draft names its task", () =>
    waiting(async (url) => {
        const wire = new Wire(url, undefined, "DRAFT-2026-v1", { elicitation: {} });
        await wire.begin();
        const call = { name: "ask", arguments: {} };
        const made = await wire.named(2, "tools/call", "ask", call);
        const { taskId } = made["task"] as { taskId: string };
        let told = await wire.named(3, "tasks/get", taskId, { taskId });
        while (told["status"] === "working") {
            told = await wire.named(3, "tasks/get", taskId, { taskId });
        }
        const questions = told["inputRequests"] as Record<
            string,
            { params: { _meta: Record<string, object> } }
        >;
        const [question] = Object.values(questions);
        assert.deepEqual(question?.params._meta[related], { taskId });
        const ended = await wire.named(4, "tasks/cancel", taskId, { taskId });
        assert.equal(ended["status"], "cancelled");
    }));

test("R-776-31: a long list comes in pieces", async () => {
    const server = new Server({ name: "long" });
    const uris = Array.from({ length: 600 }, (_, i) => `test://item${i}`);
    for (const uri of uris) server.resource(uri, () => "text");
    const serving = await server.listenHttp();
    const listed = (result: unknown): string[] =>
        (result as { resources: { uri: string }[] }).resources.map((one) => one.uri);
    try {
        const wire = new Wire(serving.url);
        await wire.begin();
        const allowed = { _meta: { allowPartial: true } };
        const { messages } = await wire.post(2, "resources/list", allowed);
        const results = messages.map((one) => one.result ?? {});
        const more = results.map(
            (one) => (one["_meta"] as { hasMore?: boolean } | undefined)?.hasMore,
        );
        assert.deepEqual(more.slice(0, -1), [true, true]);
        assert.ok(!more.at(-1));
        assert.deepEqual(results.flatMap(listed), uris);
        assert.deepEqual(listed(await wire.result(3, "resources/list", {})), uris);
    } finally {
        await serving.close();
    }
});

test("R-776-32: the text of a resource comes in pieces", async () => {
    const server = new Server({ name: "texts" });
    server.resource("test://slow", async function* () {
        yield "con";
        await new Promise((resolve) => setTimeout(resolve, 10));
        yield "tent";
    });
    const serving = await server.listenHttp();
    type Read = {
        contents: { text: string }[];
        _meta?: { index?: number; hasMore?: boolean };
    };
    try {
        const wire = new Wire(serving.url);
        await wire.begin();
        const params = { uri: "test://slow", _meta: { allowPartial: true } };
        const { messages } = await wire.post(2, "resources/read", params);
        const results = messages.map((one) => (one.result ?? {}) as Read);
        const texts = results.flatMap((one) => one.contents.map(({ text }) => text));
        assert.deepEqual(texts, ["con", "tent"]);
        const pieces = results.filter((one) => one.contents.length);
        assert.deepEqual(
            pieces.map((one) => one._meta?.index),
            [0, 0],
        );
        const whole = (await wire.result(3, "resources/read", {
            uri: "test://slow",
        })) as Read;
        assert.deepEqual(
            whole.contents.map(({ text }) => text),
            ["content"],
        );
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

/** An authorization server that only publishes its keys. */
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

/** Segue's client comes again when it is asked to. */
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
    await assert.rejects(listening, /a key set belongs to one/);
});
