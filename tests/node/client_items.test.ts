/** Lists, resources, prompts, completion, subscriptions, and the identity of the
 * server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
    type Change,
    connect,
    type LogMessage,
    ProtocolError,
    RemoteError,
    type Session,
    type Tool,
} from "segue-mcp";
import { serverTest, worldTest } from "./client_worlds.js";
import { serverCommand } from "./programs.js";
import { RawPeer } from "./raw_peer.js";

worldTest("lists", async (world) => {
    await world.session({}, async (session) => {
        const tools = new Map<string, Tool>();
        for await (const tool of session.listTools()) tools.set(tool.name, tool);
        const add = tools.get("add");
        assert.ok(add?.title === "Add" && add.inputSchema.type === "object");
        assert.ok(add.outputSchema);
        const all = await session.listTools();
        assert.equal(all.length, tools.size);
        const resources = await session.listResources();
        const text = resources.find((one) => one.name === "static-text");
        assert.ok(text?.uri === "test://static-text" && text.mimeType === "text/plain");
        const templates = await session.listResourceTemplates();
        const uris = templates.map((one) => one.uriTemplate);
        assert.ok(uris.includes("test://template/{id}/data"));
        const prompts = await session.listPrompts();
        const prompt = prompts.find((one) => one.name === "arguments");
        assert.equal(prompt?.arguments?.[0]?.required, true);
        const signal = AbortSignal.abort(new Error("mine"));
        await assert.rejects(session.listTools({ signal }).all(), /mine/);
    });
});

test("pages are put together, and asked for when they are needed", async () => {
    const paged = await connect(serverCommand("--page", "2"));
    const first = (await paged.request("tools/list")) as { tools: unknown[] };
    assert.equal(first.tools.length, 2);
    const whole = (await paged.listTools()).map((one) => one.name);
    const some: string[] = [];
    for await (const tool of paged.listTools()) {
        some.push(tool.name);
        if (some.length === 3) break;
    }
    assert.deepEqual(some, whole.slice(0, 3));
    await paged.close();
    const plain = await connect(serverCommand());
    assert.deepEqual(
        (await plain.listTools()).map((one) => one.name),
        whole,
    );
    await plain.close();
});

worldTest("resources are read", async (world) => {
    await world.session({}, async (session) => {
        const text = await session.readResource("test://static-text");
        assert.ok(text.text && text.contents[0]?.mimeType === "text/plain");
        assert.equal(text.bytes.toString(), text.text);
        const binary = await session.readResource("test://static-binary");
        assert.equal(binary.bytes.toString("base64"), binary.contents[0]?.blob);
        const made = await session.readResource("test://template/7/data");
        assert.match(made.text, /7/);
        await assert.rejects(session.readResource("test://nobody"), (error) => {
            assert.ok(error instanceof RemoteError);
            return [-32002, -32602].includes(error.rpcCode);
        });
    });
});

worldTest("prompts are made", async (world) => {
    await world.session({}, async (session) => {
        const prompt = await session.getPrompt("simple");
        assert.equal(prompt.messages[0]?.role, "user");
        assert.equal(prompt.messages[0]?.content.type, "text");
        const args = { arg1: "one", arg2: "two" };
        const made = await session.getPrompt("arguments", args);
        assert.match(JSON.stringify(made.messages), /one/);
        await assert.rejects(session.getPrompt("arguments"), (error) => {
            assert.ok(error instanceof RemoteError);
            return error.rpcCode === -32602;
        });
    });
});

worldTest("values are suggested", async (world) => {
    await world.session({}, async (session) => {
        const found = await session.complete("arguments", "arg1", "word-1");
        assert.ok(found.values.length > 0);
        assert.ok(found.values.every((one) => one.startsWith("word-1")));
        const [template] = await session.listResourceTemplates();
        assert.ok(template);
        const references = [template, template.uriTemplate];
        for (const of of references) {
            assert.deepEqual(await session.complete(of, "id", "word-1"), found);
        }
        const context = { arg2: "x" };
        assert.ok(await session.complete("arguments", "arg1", "", { context }));
    });
});

worldTest("a resource that changes", async (world) => {
    const told: string[] = [];
    const onNotification = (method: string): void => void told.push(method);
    await world.session({ onNotification }, async (session) => {
        const changes = await session.subscribe("test://static-text");
        await session.call("update");
        const { value } = await changes.next();
        assert.deepEqual(value, { kind: "resource", uri: "test://static-text" });
        const pending = changes.next();
        await changes.close();
        assert.equal((await pending).done, true);
        assert.ok(told.includes("notifications/resources/updated"));
        told.length = 0;
        await session.call("update");
        await session.ping();
        assert.ok(!told.includes("notifications/resources/updated"));
    });
});

worldTest("lists that change", async (world) => {
    await world.session({}, async (session) => {
        const changes = await session.subscribe({ tools: true, prompts: true });
        const heard: Change[] = [];
        const onChange = (change: Change): void => void heard.push(change);
        const other = await session.subscribe({ tools: true }, onChange);
        await session.call("toggle_items");
        assert.deepEqual((await changes.next()).value, { kind: "prompts" });
        await session.call("toggle");
        for await (const change of changes) {
            assert.deepEqual(change, { kind: "tools" });
            break; // unsubscribes
        }
        assert.equal((await changes.next()).done, true);
        assert.ok(heard.length > 0 && heard.every((one) => one.kind === "tools"));
        await other.close();
        await assert.rejects(session.subscribe({}), TypeError);
        await assert.rejects(session.subscribe([]), TypeError);
        const stop = new AbortController();
        const { signal } = stop;
        const last = await session.subscribe("test://static-text", { signal });
        const waiting = last.next();
        stop.abort(new Error("mine"));
        await assert.rejects(waiting, /mine/);
    });
});

serverTest("subscriptions survive the server", async (server) => {
    for (const era of ["auto", "legacy"] as const) {
        const session = await connect(server.url, { era });
        const changes = await session.subscribe("test://static-text");
        await server.kill();
        await server.start();
        const expected = { kind: "resource", uri: "test://static-text" };
        // the resource may have changed
        assert.deepEqual((await changes.next()).value, expected);
        await session.call("update");
        assert.deepEqual((await changes.next()).value, expected);
        await session.close();
        assert.equal((await changes.next()).done, true);
    }
});

worldTest("who the server is", async (world) => {
    await world.session({}, async (session) => {
        const { peer } = session;
        assert.ok(peer.server.name === "segue-fixture" && peer.server.version);
        assert.ok(peer.instructions && peer.capabilities.tools);
        assert.equal(peer.era, world.era);
        assert.equal(peer.protocolVersion >= "2026", world.era === "modern");
        const dialects =
            world.era === "modern"
                ? ["SEP-2663 tasks", "SEP-2694 task events"]
                : ["SEP-1686 tasks", "SEP-1905 streaming"];
        assert.deepEqual(peer.dialects.slice(0, 2), dialects);
        await session.ping();
    });
});

worldTest("the log of the server", async (world) => {
    const logged: LogMessage[] = [];
    const onLog = (message: LogMessage): void => void logged.push(message);
    await world.session({ onLog, logLevel: "emergency" }, async (session) => {
        await session.call("chatty");
        assert.equal(logged.length, 0);
        await session.setLogLevel("debug");
        await session.call("chatty");
        assert.ok(logged.length > 0);
        await assert.rejects(session.setLogLevel("loud" as "debug"), TypeError);
    });
});

worldTest("results are validated", async (world) => {
    const asked: unknown[] = [];
    const validate = (
        tool: string,
        schema: { [name: string]: unknown },
        value: unknown,
    ): string | undefined => {
        asked.push([tool, schema.type]);
        return (value as { sum: number }).sum > 10 ? "too much" : undefined;
    };
    await world.session({ validate }, async (session) => {
        await session.listTools();
        const sum = await session.call("add", { a: 1, b: 2 });
        assert.deepEqual(sum.structured, { sum: 3 });
        const large = session.call("add", { a: 10, b: 2 });
        await assert.rejects(large, (error) => {
            assert.ok(error instanceof ProtocolError);
            return /too much/.test(error.message);
        });
        assert.deepEqual(asked, [
            ["add", "object"],
            ["add", "object"],
        ]);
    });
});

// ---- servers that the test plays, line by line

type Asked = { id: unknown; method: string };

/** Opens a session of 2025-11-25 with a server that the test plays. */
async function played(
    capabilities: object,
): Promise<{ session: Session; peer: RawPeer }> {
    const peer = new RawPeer();
    const target = { _transport: () => peer.transport() } as unknown as string;
    const connecting = connect(target, { era: "legacy" });
    answer(peer, await hear(peer), {
        protocolVersion: "2025-11-25",
        capabilities,
        serverInfo: { name: "x", version: "1" },
    });
    const session = await connecting;
    await peer.hear(); // notifications/initialized
    return { session, peer };
}

async function hear(peer: RawPeer): Promise<Asked> {
    return JSON.parse(await peer.hear()) as Asked;
}

function answer(peer: RawPeer, { id }: Asked, result: object): void {
    peer.say(JSON.stringify({ jsonrpc: "2.0", id, result }));
}

test("pages that do not end, and what is no list", async () => {
    const { session, peer } = await played({ tools: {} });
    const listing = session.listTools().all();
    for (let i = 0; i < 2; i += 1) {
        answer(peer, await hear(peer), { tools: [], nextCursor: "c" });
    }
    await assert.rejects(listing, /sent more pages/);
    const wrong = [
        { tools: [{ title: "none" }] },
        { tools: { a: 1 } },
        { tools: [], nextCursor: 7 },
    ];
    for (const result of wrong) {
        const asking = session.listTools().all();
        answer(peer, await hear(peer), result);
        await assert.rejects(asking, ProtocolError);
    }
    await session.close();
});

test("answers that are none of their method", async () => {
    const { session, peer } = await played({
        resources: {},
        prompts: {},
        completions: {},
    });
    const asks: [() => Promise<unknown>, object][] = [
        [() => session.readResource("a:b"), { contents: [{ text: "no uri" }] }],
        [() => session.readResource("a:b"), { contents: [{ uri: "a:b", blob: 7 }] }],
        [() => session.getPrompt("p"), { messages: [{ role: "nobody", content: {} }] }],
        [() => session.complete("p", "a"), { completion: { values: [7] } }],
    ];
    for (const [ask, result] of asks) {
        const asking = ask();
        answer(peer, await hear(peer), result);
        await assert.rejects(asking, ProtocolError);
    }
    await session.close();
});

test("a word for the model while a task runs, and how it is", async () => {
    const { session, peer } = await played({
        tools: {},
        tasks: { requests: { tools: { call: {} } } },
    });
    const told: unknown[] = [];
    const onStatus = (status: string, text?: string): void =>
        void told.push([status, text]);
    const starting = session.start("t", {}, { onStatus });
    const listed = { name: "t", inputSchema: { type: "object" } };
    const tools = [{ ...listed, execution: { taskSupport: "required" } }];
    answer(peer, await hear(peer), { tools });
    const call = await hear(peer);
    assert.equal(call.method, "tools/call");
    const now = "2026-01-01T00:00:00Z";
    const task = {
        taskId: "T",
        status: "working",
        statusMessage: "on it",
        ttl: null,
        pollInterval: 5000,
        createdAt: now,
        lastUpdatedAt: now,
    };
    const word = "io.modelcontextprotocol/model-immediate-response";
    answer(peer, call, { task, _meta: { [word]: "It takes a while." } });
    const begun = await starting;
    assert.deepEqual([begun.id, begun.immediate], ["T", "It takes a while."]);
    assert.deepEqual(told, [["working", "on it"]]);
    await session.close();
    assert.equal(begun.immediate, "It takes a while.");
});
