/** Questions of the server: forms, models, roots; answers that fail or never come. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
    type CallbackFailure,
    connect,
    type ElicitResult,
    InvalidError,
    type OnElicit,
    type Question,
    Refused,
    RemoteError,
    RequestTimeoutError,
    Server,
} from "segue-mcp";
import { all, worldTest } from "./client_worlds.js";
import { RawPeer } from "./raw_peer.js";

/** An error that a callback of the user throws. */
class LookupFailure extends Error {}

worldTest("a form is filled in", async (world) => {
    const onElicit: OnElicit = async (asked, { key, signal }) => {
        assert.ok(asked.message && asked.requestedSchema && key && !signal.aborted);
        await new Promise((resolve) => setImmediate(resolve));
        return { action: "accept", content: { name: "Ada" } };
    };
    await world.session({ onElicit }, async (session) => {
        assert.match((await session.call("ask_name")).text, /"Ada"/);
        const task = await session.start("confirm_delete");
        assert.match((await task.result()).text, /Ada/);
    });
});

for (const reply of [undefined, null, { action: "decline" } as ElicitResult]) {
    worldTest(`the user declines (${JSON.stringify(reply)})`, async (world) => {
        await world.session({ onElicit: () => reply }, async (session) => {
            assert.match((await session.call("ask_name")).text, /decline/);
        });
    });
}

worldTest("a model and roots are asked", async (world) => {
    const options = {
        onSample: (asked: { maxTokens: number; messages: unknown[] }) => {
            assert.equal(asked.maxTokens, 100);
            assert.equal(asked.messages.length, 1);
            const content = { type: "text", text: "something" };
            return { role: "assistant" as const, content, model: "m-1" };
        },
        roots: async () => ["file:///a", { uri: "file:///b", name: "B" }],
    };
    await world.session(options, async (session) => {
        assert.match((await session.call("ask_model")).text, /something/);
        assert.match((await session.call("ask_roots")).text, /file:\/\/\/b/);
    });
    await world.session({ roots: ["file:///c"] }, async (session) => {
        assert.match((await session.call("ask_roots")).text, /file:\/\/\/c/);
        assert.match((await session.call("ask_model")).text, /cannot ask/);
    });
});

worldTest("any question", async (world) => {
    const asked: Question[] = [];
    const onInput = (question: Question): object => {
        asked.push(question);
        return { action: "accept", content: { name: "any" } };
    };
    await world.session({ onInput }, async (session) => {
        assert.match((await session.call("ask_name")).text, /"any"/);
        const mine: string[] = [];
        const other = (question: Question): object => {
            mine.push(question.method);
            return { action: "cancel" };
        };
        const result = await session.call("ask_name", {}, { onInput: other });
        assert.match(result.text, /cancel/);
        assert.deepEqual(mine, ["elicitation/create"]);
    });
    assert.equal(asked.length, 1);
    assert.equal(asked[0]?.params.message, "Your name?");
});

worldTest("nobody can be asked", async (world) => {
    await world.session({}, async (session) => {
        assert.match((await session.call("ask_name")).text, /cannot ask/);
    });
});

worldTest("a callback refuses", async (world) => {
    const onElicit = (): never => {
        throw new Refused("not now", -7);
    };
    await world.session({ onElicit }, async (session) => {
        const said = (await session.call("ask_name")).text;
        assert.match(said, world.era === "legacy" ? /not now/ : /cancel/);
    });
});

const noAnswers = [
    LookupFailure,
    7,
    "yes",
    [1],
    { answer: 1 }, // the content of a form, without an action
    { action: "acept", content: {} },
    { action: "accept", content: { name: 7 } }, // does not fit the form
];
for (const reply of noAnswers) {
    const what = reply === LookupFailure ? "throws" : JSON.stringify(reply);
    worldTest(`a callback that fails (${what})`, async (world) => {
        const onElicit = (): ElicitResult => {
            if (reply === LookupFailure) throw new LookupFailure("mine");
            return reply as unknown as ElicitResult;
        };
        const found: unknown[] = [];
        const onError = (error: unknown, { callback }: CallbackFailure): void =>
            void found.push(callback, error);
        await world.session({ onElicit, onError }, async (session) => {
            const said = (await session.call("ask_name")).text;
            assert.match(said, /cancel/);
        });
        assert.equal(found.length, 2);
        assert.equal(found[0], "onElicit");
        const expected =
            reply === LookupFailure ? /mine/ : /elicitation\/create|action: "accept"/;
        assert.match(String(found[1]), expected);
    });
}

for (const era of ["modern", "legacy"] as const) {
    test(`a callback that fails is named (${era})`, async () => {
        const server = new Server({ name: "asks" });
        server.tool("ask", async (_, ctx) => (await ctx.sample("hi", 5)).text);
        const mine = new LookupFailure("no model");
        const options = {
            era,
            onSample: async () => Promise.reject(mine),
            onError: () => undefined,
        };
        await using session = await connect(server, options);
        for (const read of [
            async () => session.call("ask"),
            async () => (await session.start("ask")).result(),
            async () => all(session.stream("ask")),
        ]) {
            await assert.rejects(read, (error: RemoteError) => {
                const why = "the callback that answers sampling/createMessage failed: ";
                assert.equal(error.constructor, RemoteError);
                assert.equal(error.message, `${why}Error: no model`);
                assert.equal(error.rpcCode, -32603);
                assert.equal(error.cause, mine);
                return true;
            });
        }
        const refuses = () => {
            throw new Refused("not now", -7);
        };
        await using second = await connect(server, { era, onSample: refuses });
        await assert.rejects(second.call("ask"), /not now/);
        // In 2026-07-28 a server is not told that a question gets no answer.
        await server.close({ drainMs: 0 });
    });
}

worldTest("an answer that never comes", async (world) => {
    const ended: unknown[] = [];
    const onElicit: OnElicit = (_, { signal }) =>
        new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => {
                ended.push((signal.reason as Error).name);
                reject(signal.reason);
            });
        });
    await world.session({ onElicit }, async (session) => {
        // A busy machine takes longer to ask.
        for (let timeoutMs = 100; ended.length === 0; timeoutMs *= 2) {
            const asking = session.call("ask_name", {}, { timeoutMs });
            await assert.rejects(asking, RequestTimeoutError);
            assert.ok((await session.call("greet")).text);
        }
    });
    assert.deepEqual(ended, ["AbortError"]);
});

worldTest("several questions of one call", async (world) => {
    const onElicit = (): ElicitResult => ({ action: "accept", content: {} });
    await world.session({ onElicit }, async (session) => {
        assert.ok((await session.call("ask_both")).text);
        assert.ok((await session.call("ask_rounds")).content);
    });
});

// Servers ask for the roots right after initialize.
test("servers ask while there is no request", async () => {
    const peer = new RawPeer();
    const target = { _transport: () => peer.transport() } as unknown as string;
    const say = (message: object): void =>
        peer.say(JSON.stringify({ jsonrpc: "2.0", ...message }));
    const hear = async (): Promise<Record<string, unknown>> =>
        JSON.parse(await peer.hear()) as Record<string, unknown>;
    const connecting = connect(target, { era: "legacy", roots: ["file:///w"] });
    const { id } = await hear();
    const serverInfo = { name: "x", version: "1" };
    say({
        id,
        result: { protocolVersion: "2025-11-25", capabilities: {}, serverInfo },
    });
    await hear(); // notifications/initialized
    say({ id: 0, method: "roots/list" });
    const heard = await hear();
    assert.equal(heard.id, 0);
    assert.deepEqual(heard.result, { roots: [{ uri: "file:///w" }] });
    const session = await connecting;
    say({ id: 1, method: "roots/list" });
    assert.ok("result" in (await hear()));
    say({ id: 2, method: "sampling/createMessage", params: {} });
    assert.equal(((await hear()).error as { code: number }).code, -32601);
    // this request could never end
    await assert.rejects(session.request(""), InvalidError);
    await session.close();
});
