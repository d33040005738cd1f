/**
 * The response modes of SEP-1905: chosen for a session and for a call, declared, listed,
 * and followed by the server.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
    type ConnectOptions,
    connect,
    InvalidError,
    type ResponseMode,
    type Task,
} from "segue-mcp";
import { worldTest } from "./client_worlds.js";
import { RawPeer } from "./raw_peer.js";

const MODES: ResponseMode[] = ["task", "immediate", "streaming"];

interface Heard {
    id: number;
    method: string;
    params: {
        task: { responseModes: string[] };
        capabilities: { tasks: { responses: { modes: string[] } } };
    };
}

async function heard(peer: RawPeer): Promise<Heard> {
    return JSON.parse(await peer.hear()) as Heard;
}

function answer(peer: RawPeer, request: Heard, result: object): void {
    peer.say(JSON.stringify({ jsonrpc: "2.0", id: request.id, result }));
}

test("what is chosen is declared and listed", { timeout: 120_000 }, async () => {
    const peer = new RawPeer();
    const target = { _transport: () => peer.transport() } as unknown as string;
    const options: ConnectOptions = {
        era: "legacy",
        responseModes: ["streaming", "task"],
    };
    const connecting = connect(target, options);
    const hello = await heard(peer);
    assert.equal(hello.method, "initialize");
    const declared = hello.params.capabilities.tasks.responses.modes;
    assert.deepEqual(declared, ["task", "streaming"]);
    answer(peer, hello, {
        protocolVersion: "2025-11-25",
        serverInfo: { name: "x", version: "1" },
        capabilities: {
            tools: {},
            tasks: {
                requests: { tools: { call: {} } },
                responses: { modes: MODES },
            },
        },
    });
    assert.equal((await heard(peer)).method, "notifications/initialized");
    const session = await connecting;
    const streaming = { responseModes: ["streaming"] as ResponseMode[] };
    const ways: [() => Promise<unknown>, string[]][] = [
        [() => session.call("t"), ["task", "streaming"]],
        [() => session.call("t", {}, { responseModes: ["task"] }), ["task"]],
        [() => session.start("t", {}, streaming), ["streaming"]],
        [() => session.stream("t", {}, streaming).next(), ["streaming"]],
    ];
    for (const [ask, listed] of ways) {
        const asked = ask();
        let request = await heard(peer);
        if (request.method === "tools/list") {
            const execution = { taskSupport: "optional" };
            const tool = { name: "t", inputSchema: { type: "object" }, execution };
            answer(peer, request, { tools: [tool] });
            request = await heard(peer);
        }
        assert.deepEqual(request.params.task.responseModes, listed);
        answer(peer, request, { content: [{ type: "text", text: "a" }] });
        await asked;
    }
    await session.close();
});

/** `fields` ends at once; `story` sends one segment after the other. */
worldTest("the server keeps to the response modes that are chosen", async (world) => {
    if (world.era === "modern") return;
    await world.session({}, async (session) => {
        const start = (mode: ResponseMode, tool = "fields", args = {}): Promise<Task> =>
            session.start(tool, args, { responseModes: [mode] });
        for (const mode of MODES) {
            const task = await start(mode);
            assert.equal(task.id === undefined, mode === "immediate", mode);
            assert.equal((await task.result()).text, "right");
        }
        let task = await start("streaming", "story", { n: 9000, delayMs: 20 });
        assert.equal((await task.next()).value?.number, 1);
        assert.equal((await task.status()).status, "working");
        await task.cancel();
        task = await start("task", "story", { n: 3, delayMs: 20 });
        assert.equal((await task.next()).value?.number, 1);
        assert.ok((await task.status()).isFinal);
        assert.equal((await task.result()).content.length, 3);
    });
    await world.session({ responseModes: ["task"] }, async (session) => {
        const task = await session.start("fields");
        assert.ok(task.id);
        assert.equal((await task.result()).text, "right");
        await assert.rejects(
            session.call("fields", {}, { responseModes: ["immediate"] }),
            (error: Error) =>
                error instanceof InvalidError && /mode "immediate"/.test(error.message),
        );
    });
});

worldTest("response modes that cannot be", async (world) => {
    const wrong: [unknown, RegExp][] = [
        [["streming"], /unknown response mode: "streming"; the modes are "task", /],
        [[], /responseModes is empty/],
        ["task", /responseModes has to be an array of names, not "task"/],
    ];
    await world.session({}, async (session) => {
        for (const [modes, message] of wrong) {
            const options = { responseModes: modes as ResponseMode[] };
            const failure = { name: "TypeError", message };
            await assert.rejects(session.call("fields", {}, options), failure);
            assert.throws(() => session.stream("fields", {}, options), failure);
            await assert.rejects(session.start("fields", {}, options), failure);
            const target = await world.target();
            await assert.rejects(connect(target, options), failure);
        }
        if (world.era === "legacy") return;
        // Without a request for a task the choice has no effect.
        const result = await session.call("fields", {}, { responseModes: ["immediate"] });
        assert.equal(result.text, "right");
    });
});
