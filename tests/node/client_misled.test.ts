/** Tasks at a server that handles one method well and fails another. The test plays the
 * server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ConnectOptions, connect, RemoteError, type Session } from "segue-mcp";
import { RawPeer } from "./raw_peer.js";

type Answer = (method: string) => object;

const now = "2026-01-01T00:00:00Z";
const serverInfo = { name: "x", version: "1" };
const discovered = {
    resultType: "complete",
    supportedVersions: ["2026-07-28"],
    capabilities: { tools: {}, extensions: { "io.modelcontextprotocol/tasks": {} } },
    serverInfo,
    ttlMs: 0,
    cacheScope: "private",
    _meta: { "io.modelcontextprotocol/serverInfo": serverInfo },
};

function task(status: string, more: object = {}): { result: object } {
    const stamps = { createdAt: now, lastUpdatedAt: now };
    const times = { ttlMs: null, pollIntervalMs: 100 };
    const told = { taskId: "T", status, ...stamps, ...times };
    return { result: { resultType: "complete", ...told, ...more } };
}

function asking(method: string): object {
    const params = { message: "?", requestedSchema: { type: "object", properties: {} } };
    return task("input_required", { inputRequests: { q: { method, params } } });
}

/** Runs `work` with a session whose server answers this way. */
async function misled(
    answer: Answer,
    options: ConnectOptions,
    work: (session: Session) => Promise<void>,
): Promise<void> {
    const peer = new RawPeer();
    const target = { _transport: () => peer.transport() } as unknown as string;
    const serve = async (): Promise<void> => {
        while (!peer.isClosed) {
            const line = peer.lines.shift();
            if (line === undefined) {
                await peer.change();
                continue;
            }
            const { id, method } = JSON.parse(line);
            if (id === undefined) continue;
            const told =
                method === "server/discover"
                    ? { result: discovered }
                    : method === "tools/call"
                      ? task("working", { resultType: "task" })
                      : answer(method);
            peer.say(JSON.stringify({ jsonrpc: "2.0", id, ...told }));
        }
    };
    const serving = serve();
    const session = await connect(target, options);
    try {
        await work(session);
    } finally {
        await session.close();
        await serving;
    }
}

test("an answer that stays refused ends the call", async () => {
    const heard: string[] = [];
    const answer = (method: string): object => {
        heard.push(method);
        if (method === "tasks/get") return asking("elicitation/create");
        return { error: { code: -32603, message: "no" } };
    };
    const onElicit = () => ({ action: "accept" as const, content: {} });
    await misled(answer, { onElicit, maxReconnects: 2 }, async (session) => {
        await assert.rejects(session.call("t"), (error) => {
            assert.ok(error instanceof RemoteError && error.rpcCode === -32603);
            assert.match(error.message, /tasks\/update failed 3 times/);
            return true;
        });
        assert.equal(heard.filter((one) => one === "tasks/update").length, 3);
    });
});

test("R-2557-47: an end that was told stays the answer", async () => {
    const states = ["working", "completed", "working", "cancelled"];
    await misled(
        () => task(states.shift() ?? ""),
        {},
        async (session) => {
            const found = session.task("T");
            const told: string[] = [];
            for (let i = 0; i < 4; i++) told.push((await found.status()).status);
            assert.deepEqual(told, ["working", "completed", "completed", "completed"]);
        },
    );
});

test("a question of an unknown kind does not cancel the task", async () => {
    const heard: string[] = [];
    const answer = (method: string): object => {
        heard.push(method);
        if (method === "tasks/update") return { result: { resultType: "complete" } };
        if (!heard.includes("tasks/update")) return asking("future/ask");
        const content = [{ type: "text", text: "without it" }];
        return task("completed", { result: { content } });
    };
    await misled(answer, { onElicit: () => null }, async (session) => {
        assert.equal((await session.call("t")).text, "without it");
        assert.ok(!heard.includes("tasks/cancel"));
    });
});

for (const first of ["answer", "refusal"]) {
    // The server finds both requests, answers one and refuses the other.
    test(`a server that starts slowly is found out: ${first} first`, async () => {
        const data = { supported: ["2026-07-28"], requested: "2025-11-25" };
        const told: Record<string, object> = {
            "server/discover": { result: discovered },
            initialize: { error: { code: -32022, message: "no", data } },
        };
        const peer = new RawPeer();
        const target = { _transport: () => peer.transport() } as unknown as string;
        const opening = connect(target, { probeTimeoutMs: 50 });
        const lines: string[] = [];
        while (lines.length < 2) {
            const { id, method } = JSON.parse(await peer.hear());
            lines.push(JSON.stringify({ jsonrpc: "2.0", id, ...told[method] }));
        }
        if (first === "refusal") lines.reverse();
        // sent together, because a refusal waits only for a short time
        peer.say(lines.join("\n"));
        const session = await opening;
        assert.equal(session.peer.protocolVersion, "2026-07-28");
        await session.close();
    });
}
