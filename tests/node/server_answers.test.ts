/** What a user answers reaches the question that was asked, with several servers behind
 * one address: each has the session, and only one of them has asked. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { Server } from "segue-mcp";

const timeout = 120_000;

interface Message {
    id: unknown;
    params: { message: string };
    result: { content: { text: string }[] };
}

/** One POST of a client that is nobody's, and the messages that answer it. */
async function post(
    url: string,
    session: string | null,
    body: object,
): Promise<Response> {
    const headers: Record<string, string> = {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
    };
    if (session) {
        headers["mcp-session-id"] = session;
        headers["mcp-protocol-version"] = "2025-11-25";
    }
    const message = JSON.stringify({ jsonrpc: "2.0", ...body });
    return fetch(url, { method: "POST", headers, body: message });
}

async function* messages(response: Response): AsyncGenerator<Message, void> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const bytes of response.body as AsyncIterable<Uint8Array>) {
        text += decoder.decode(bytes, { stream: true });
        for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
            const line = text.slice(0, end).trim();
            text = text.slice(end + 1);
            const data = line.startsWith("data:") ? line.slice(5).trim() : "";
            if (data) yield JSON.parse(data) as Message;
        }
    }
}

async function next(from: AsyncGenerator<Message, void>): Promise<Message> {
    const { value } = await from.next();
    assert.ok(value, "the stream has ended");
    return value;
}

function asking(store: string): Server {
    const sealKey = Uint8Array.from({ length: 32 }, (_, at) => at);
    const server = new Server({ name: "asks", store, sealKey });
    server.tool(
        "approve",
        { input: { type: "object", properties: { what: { type: "string" } } } },
        async (input, ctx) => {
            const { what } = input as { what: string };
            const schema = { type: "object", properties: {} };
            const told = await ctx.elicit(`Approve ${what}?`, schema);
            return `${what} got ${JSON.stringify(told.content)}`;
        },
    );
    return server;
}

test("a yes to one never approves another", { timeout }, async () => {
    const directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
    const store = path.join(directory, "tasks.db");
    const servers = [asking(store), asking(store)] as const;
    try {
        const one = (await servers[0].listenHttp()).url;
        const two = (await servers[1].listenHttp()).url;
        const hello = await post(one, null, {
            id: 0,
            method: "initialize",
            params: {
                protocolVersion: "2025-11-25",
                capabilities: { elicitation: {} },
                clientInfo: { name: "raw", version: "1" },
            },
        });
        const session = hello.headers.get("mcp-session-id");
        await hello.text();
        const ask = async (url: string, what: string) => {
            const params = { name: "approve", arguments: { what } };
            const body = { id: what, method: "tools/call", params };
            const from = messages(await post(url, session, body));
            const asked = await next(from);
            assert.equal(asked.params.message, `Approve ${what}?`);
            return { from, id: asked.id };
        };
        const answer = async (url: string, id: unknown, word: string) => {
            const result = { action: "accept", content: { for: word } };
            const sent = await post(url, session, { id, result });
            await sent.text();
            return sent.status;
        };
        const a = await ask(one, "a");
        const b = await ask(two, "b");
        assert.notEqual(a.id, b.id);
        // at the other server: it goes to the one that asked, and B is not approved
        assert.equal(await answer(two, a.id, "a"), 202);
        assert.equal(await answer(two, 1, "a"), 202); // nobody asked that
        assert.equal(await answer(two, b.id, "b"), 202);
        for (const [what, { from }] of [
            ["a", a],
            ["b", b],
        ] as const) {
            const told = await next(from);
            assert.equal(told.result.content[0]?.text, `${what} got {"for":"${what}"}`);
        }
    } finally {
        for (const server of servers) await server.close();
        rmSync(directory, { recursive: true, force: true });
    }
});
