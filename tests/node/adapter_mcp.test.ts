/** The connection of Segue under the official SDK's `Client`, of 2.x and of 1.x. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type * as Shared from "@modelcontextprotocol/sdk/shared/transport.js";
import { Server } from "segue-mcp";
import { SegueTransport, type SegueTransportOptions } from "segue-mcp/adapters/mcp";
import { serverTest, worldTest } from "./client_worlds.js";
import { CuttingProxy, serverCommand } from "./programs.js";

// biome-ignore-start lint/suspicious/noExplicitAny: two SDKs, in one shape
interface Sdk {
    name: string;
    connect(
        target: any,
        options?: SegueTransportOptions,
        more?: { capabilities?: object; prepare?: (client: any) => void },
    ): Promise<any>;
    call(client: any, name: string, args?: object, options?: object): Promise<any>;
    on(client: any, method: string, handle: (params: any) => void): void;
    answer(client: any, method: string, handle: (params: any) => any): void;
}

async function load(): Promise<Sdk[]> {
    const two: any = await import("@modelcontextprotocol/client");
    const one: any = await import("@modelcontextprotocol/sdk/client/index.js" as string);
    const types: any = await import("@modelcontextprotocol/sdk/types.js" as string);
    const connect =
        (Client: any): Sdk["connect"] =>
        async (target, options = {}, { capabilities = {}, prepare } = {}) => {
            const info = { name: "official", version: "1.0.0" };
            const client = new Client(info, { capabilities });
            prepare?.(client);
            await client.connect(new SegueTransport(target, options));
            return client;
        };
    const schemas: Record<string, any> = {
        "notifications/tools/list_changed": types.ToolListChangedNotificationSchema,
        "notifications/resources/updated": types.ResourceUpdatedNotificationSchema,
        "notifications/message": types.LoggingMessageNotificationSchema,
        "elicitation/create": types.ElicitRequestSchema,
        "sampling/createMessage": types.CreateMessageRequestSchema,
    };
    return [
        {
            name: "2.x",
            connect: connect(two.Client),
            call: (client, name, args, options) =>
                client.callTool({ name, arguments: args }, options),
            on: (client, method, handle) =>
                client.setNotificationHandler(method, (note: any) => handle(note.params)),
            answer: (client, method, handle) =>
                client.setRequestHandler(method, (asked: any) => handle(asked.params)),
        },
        {
            name: "1.x",
            connect: connect(one.Client),
            call: (client, name, args, options) =>
                client.callTool({ name, arguments: args }, undefined, options),
            on: (client, method, handle) =>
                client.setNotificationHandler(schemas[method], (note: any) =>
                    handle(note.params),
                ),
            answer: (client, method, handle) =>
                client.setRequestHandler(schemas[method], (asked: any) =>
                    handle(asked.params),
                ),
        },
    ];
}

const textOf = (result: any): string =>
    result.content.map((block: any) => block.text ?? "").join("");
// biome-ignore-end lint/suspicious/noExplicitAny: see above

for (const sdk of await load()) {
    worldTest(`calls, lists and errors (${sdk.name})`, async (world) => {
        const client = await sdk.connect(await world.target(), { era: world.option });
        assert.equal(client.getServerVersion().name, "segue-fixture");
        const greeting = await sdk.call(client, "greet", { name: "Ada" });
        assert.equal(textOf(greeting), "Hello, Ada!");
        assert.equal((await sdk.call(client, "fail")).isError, true);
        const { tools } = await client.listTools();
        assert.ok(tools.some((tool: { name: string }) => tool.name === "story"));
        const read = await client.readResource({ uri: "test://static-text" });
        assert.ok(read.contents[0].text);
        assert.ok((await client.getPrompt({ name: "simple" })).messages.length);
        await assert.rejects(sdk.call(client, "no such tool"), /Unknown tool/);
        await client.ping();
        await client.close();
    });

    worldTest(`results in pieces and as tasks are one (${sdk.name})`, async (world) => {
        const client = await sdk.connect(await world.target(), { era: world.option });
        const story = await sdk.call(client, "story", { n: 20, delayMs: 2 });
        assert.equal(textOf(story).split("segment").length, 21);
        const late = await sdk.call(client, "slow_compute", { ms: 50, label: "x" });
        assert.equal(textOf(late), "Computed: x");
        await client.close();
    });

    worldTest(`progress, and many at once (${sdk.name})`, async (world) => {
        const client = await sdk.connect(await world.target(), { era: world.option });
        const told: number[] = [];
        const onprogress = (one: { progress: number }): void =>
            void told.push(one.progress);
        await sdk.call(client, "steps", { n: 3 }, { onprogress });
        assert.deepEqual(told, [1, 2, 3]);
        const names = Array.from({ length: 100 }, (_, i) => String(i));
        const results = await Promise.all(
            names.map((name) => sdk.call(client, "greet", { name })),
        );
        assert.deepEqual(
            results.map(textOf),
            names.map((name) => `Hello, ${name}!`),
        );
        await client.close();
    });

    worldTest(`the server asks (${sdk.name})`, async (world) => {
        const prepare = (client: unknown): void => {
            sdk.answer(client, "elicitation/create", () => ({
                action: "accept",
                content: { name: "Ada" },
            }));
            sdk.answer(client, "sampling/createMessage", () => ({
                role: "assistant",
                content: { type: "text", text: "something" },
                model: "m",
            }));
        };
        const capabilities = { elicitation: {}, sampling: {} };
        const more = { capabilities, prepare };
        const client = await sdk.connect(
            await world.target(),
            { era: world.option },
            more,
        );
        assert.match(textOf(await sdk.call(client, "ask_name")), /Ada/);
        assert.match(textOf(await sdk.call(client, "ask_model")), /something/);
        await client.close();
        const other = await sdk.connect(await world.target(), { era: world.option });
        assert.match(textOf(await sdk.call(other, "ask_name")), /cannot ask/);
        await other.close();
    });

    worldTest(`a call that is aborted (${sdk.name})`, async (world) => {
        const client = await sdk.connect(await world.target(), { era: world.option });
        const stop = new AbortController();
        const hanging = sdk.call(client, "hang_plain", {}, { signal: stop.signal });
        await sdk.call(client, "greet");
        stop.abort(new Error("enough"));
        await assert.rejects(hanging, /enough/);
        await assert.rejects(sdk.call(client, "hang_plain", {}, { timeout: 50 }));
        assert.equal(textOf(await sdk.call(client, "greet")), "Hello, World!");
        await client.close();
    });

    worldTest(`changes and log messages are told (${sdk.name})`, async (world) => {
        const heard: string[] = [];
        let wake: () => void = () => undefined;
        const hear = (what: string) => (): void => {
            heard.push(what);
            wake();
        };
        const until = async (what: string): Promise<void> => {
            while (!heard.includes(what)) {
                await new Promise<void>((resolve) => {
                    wake = resolve;
                });
            }
        };
        const prepare = (client: unknown): void => {
            sdk.on(client, "notifications/tools/list_changed", hear("tools"));
            sdk.on(client, "notifications/resources/updated", hear("resource"));
            sdk.on(client, "notifications/message", hear("log"));
        };
        const target = await world.target();
        const client = await sdk.connect(target, { era: world.option }, { prepare });
        await sdk.call(client, "toggle");
        await until("tools");
        await client.subscribeResource({ uri: "test://static-text" });
        await sdk.call(client, "update");
        await until("resource");
        await client.unsubscribeResource({ uri: "test://static-text" });
        await client.setLoggingLevel("debug");
        await sdk.call(client, "chatty");
        await until("log");
        await client.close();
    });

    for (const how of ["fin", "rst"]) {
        serverTest(`AS-28: cut in the middle (${how}, ${sdk.name})`, async (server) => {
            const proxy = await CuttingProxy.start(server);
            const client = await sdk.connect(proxy.url);
            const call = sdk.call(client, "story", { n: 30, delayMs: 20 });
            for (let i = 0; i < 3; i += 1) {
                await sdk.call(client, "steps", { n: 2, delayMs: 50 });
                assert.match(await proxy.say(`cut ${how}`), /^cut/);
            }
            assert.equal(textOf(await call).split("segment").length, 31);
            await client.close();
            await proxy.stop();
        });
    }

    serverTest(
        `AS-93b: a server that dies in the middle (${sdk.name})`,
        async (server) => {
            const client = await sdk.connect(server.url);
            const call = sdk.call(client, "story", { n: 40, delayMs: 20 });
            await sdk.call(client, "steps", { n: 3, delayMs: 50 });
            await server.kill();
            await server.start();
            assert.equal(textOf(await call).split("segment").length, 41);
            await client.close();
        },
    );

    serverTest(`a token of the SDK's own resumption (${sdk.name})`, async (server) => {
        const client = await sdk.connect(server.url);
        const tokens: string[] = [];
        const onresumptiontoken = (token: string): void => void tokens.push(token);
        const args = { ms: 300, label: "x" };
        const first = sdk.call(client, "slow_compute", args, { onresumptiontoken });
        assert.equal(textOf(await first), "Computed: x");
        await client.close();
        const [resumptionToken] = tokens;
        assert.ok(resumptionToken);
        const other = await sdk.connect(server.url);
        const again = await sdk.call(other, "slow_compute", args, { resumptionToken });
        assert.equal(textOf(again), "Computed: x");
        await other.close();
    });

    test(`no server, and what is the client's (${sdk.name})`, async () => {
        await assert.rejects(sdk.connect("http://127.0.0.1:1/mcp"), /Failed to connect/);
        const options = { onLog: console.log } as object;
        assert.throws(
            () => new SegueTransport(serverCommand(), options),
            /the option onLog is not allowed: the Client sets it/,
        );
    });
}

// A transport of the official SDK has one connection to a server that is there already,
// whose revision the session has chosen. To the Client it is a server of 2025-11-25.
for (const era of ["modern", "legacy"] as const) {
    test(`Client 2 chooses its revision (${era} server)`, async () => {
        const { Client } = await import("@modelcontextprotocol/client");
        const connecting = async (mode: unknown) => {
            const versionNegotiation = { mode } as never;
            const info = { name: "official", version: "1.0.0" };
            const client = new Client(info, { capabilities: {}, versionNegotiation });
            const server = new Server({ name: "pinned" });
            server.tool("t", () => "t");
            await client.connect(new SegueTransport(server, { era }) as never);
            return client;
        };
        for (const mode of ["auto", "legacy", undefined]) {
            const client = await connecting(mode);
            assert.equal(client.getServerVersion()?.name, "pinned");
            assert.equal(textOf(await client.callTool({ name: "t" })), "t");
            await client.close();
        }
        const pinned = connecting({ pin: "2026-07-28" });
        await assert.rejects(pinned, /did not offer pinned protocol version 2026-07-28/);
    });
}

test("a transport that is closed", async () => {
    const transport: Shared.Transport = new SegueTransport(serverCommand());
    let closed = 0;
    transport.onclose = () => {
        closed += 1;
    };
    await assert.rejects(transport.send({ jsonrpc: "2.0", id: 1, method: "ping" }));
    await transport.start();
    await assert.rejects(transport.start(), /started before/);
    await transport.close();
    await transport.close();
    assert.equal(closed, 1);
});
