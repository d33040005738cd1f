/** A user's answer reaches the question that was asked, with several servers behind one
 * address: each knows the session, and only one of them has asked. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { connect, type ElicitResult, type OnElicit, type Server } from "segue-mcp";
import { asking } from "./asking_program.js";
import { Balancer } from "./balancer.js";
import { Gate } from "./server_worlds.js";

const timeout = 120_000;

interface Message {
    id: unknown;
    params: { message: string };
    result: { content: { text: string }[] };
}

/** Makes one POST without the SDK; returns the messages that answer it. */
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
        // Sent to the other server: it goes to the one that asked, and B is not approved.
        assert.equal(await answer(two, a.id, "a"), 202);
        assert.equal(await answer(two, 1, "a"), 202); // no question has this id
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

function answerOf(message: string): ElicitResult {
    const word = message.replace(/^Approve |\?$/g, "");
    return { action: "accept", content: { for: word } };
}

// Both servers ask all questions before any answer comes; an answer may go to either.
test("a client behind a balancer answers each call", { timeout }, async () => {
    const directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
    const store = path.join(directory, "tasks.db");
    const ran: Server[] = [];
    const servers = [asking(store, ran), asking(store, ran)] as const;
    const urls = [
        (await servers[0].listenHttp()).url,
        (await servers[1].listenHttp()).url,
    ];
    const balancer = new Balancer(...urls);
    const words = ["a", "b", "c", "d"];
    const asked = new Set<string>();
    let allAsked = new Gate();
    const onElicit: OnElicit = async ({ message }) => {
        asked.add(message);
        if (asked.size === words.length) allAsked.open();
        await allAsked.opened;
        return answerOf(message);
    };
    const url = await balancer.listen();
    const session = await connect(url, { era: "legacy", proxy: "", onElicit });
    try {
        for (const tool of ["approve", "approve_task"]) {
            const told = await Promise.all(
                words.map((what) => session.call(tool, { what })),
            );
            assert.deepEqual(
                told.map((one) => one.text),
                words.map((what) => `${what} got {"for":"${what}"}`),
            );
            asked.clear();
            allAsked = new Gate();
        }
        assert.equal(ran.length, 2 * words.length);
        assert.equal(new Set(ran).size, 2);
    } finally {
        await session.close();
        balancer.close();
        for (const server of servers) await server.close();
        rmSync(directory, { recursive: true, force: true });
    }
});

const PROGRAM = fileURLToPath(new URL("asking_program.js", import.meta.url));

/** Starts the server as a process; returns it with its URL. */
async function begin(store: string, port: string): Promise<[ChildProcess, string]> {
    const stdio = ["ignore", "pipe", "inherit"] as const;
    const child = spawn(process.execPath, [PROGRAM, store, port], { stdio: [...stdio] });
    assert.ok(child.stdout);
    const [line] = await once(readline.createInterface({ input: child.stdout }), "line");
    return [child, String(line)];
}

async function kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
}

// The user is asked again, and the new decision reaches the task.
test("a task is answered after its server was killed", { timeout }, async () => {
    const directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
    const store = path.join(directory, "tasks.db");
    const asked = [new Gate(), new Gate()] as const;
    let canDecide = false;
    const onElicit: OnElicit = async ({ message }) => {
        asked[canDecide ? 1 : 0].open();
        if (!canDecide) await new Promise(() => undefined); // the user has not decided
        return answerOf(message);
    };
    let [child, url] = await begin(store, "0");
    const session = await connect(url, {
        era: "legacy",
        proxy: "",
        maxReconnects: 1000,
        reconnectTimeoutMs: Infinity,
        onElicit,
    });
    try {
        const task = await session.start("approve_task", { what: "x" });
        await asked[0].opened;
        canDecide = true;
        await kill(child);
        [child] = await begin(store, new URL(url).port);
        await asked[1].opened;
        assert.equal((await task.result()).text, 'x got {"for":"x"}');
    } finally {
        await session.close();
        await kill(child);
        rmSync(directory, { recursive: true, force: true });
    }
});
