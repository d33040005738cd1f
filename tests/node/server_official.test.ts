/**
 * The official SDK's clients, of 2.x and of 1.x, and a Node server of Segue, over stdio
 * and over HTTP.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { audio, image, Server, ToolError } from "segue-mcp";
import { z } from "zod";
import { built } from "./tree.js";

const PROGRAM = fileURLToPath(new URL("server_program.js", import.meta.url));
const timeout = 120_000;

// biome-ignore-start lint/suspicious/noExplicitAny: two SDKs, in one shape
interface Sdk {
    name: string;
    makeClient(): any;
    http(url: string): any;
    stdio(options: object): any;
    answer(client: any, method: string, handle: (params: any) => object): void;
    call(client: any, name: string, args?: object, options?: object): Promise<any>;
}

const CAPABILITIES = { sampling: {}, elicitation: {}, roots: {} };
const INFO = { name: "official", version: "1" };

async function two(mode: unknown, name: string): Promise<Sdk> {
    const sdk: any = await import("@modelcontextprotocol/client" as string);
    const stdio: any = await import("@modelcontextprotocol/client/stdio" as string);
    const versionNegotiation = { mode };
    return {
        name,
        makeClient: () =>
            new sdk.Client(INFO, { capabilities: CAPABILITIES, versionNegotiation }),
        http: (url) => new sdk.StreamableHTTPClientTransport(new URL(url)),
        stdio: (options) => new stdio.StdioClientTransport(options),
        answer: (client, method, handle) =>
            client.setRequestHandler(method, async ({ params }: any) => handle(params)),
        call: (client, name, args = {}, options) =>
            client.callTool({ name, arguments: args }, options),
    };
}

async function one(): Promise<Sdk> {
    const load = (name: string): Promise<any> =>
        import(`@modelcontextprotocol/sdk/${name}.js` as string);
    const sdk = await load("client/index");
    const http = await load("client/streamableHttp");
    const stdio = await load("client/stdio");
    const types = await load("types");
    const questions: Record<string, unknown> = {
        "elicitation/create": types.ElicitRequestSchema,
        "sampling/createMessage": types.CreateMessageRequestSchema,
        "roots/list": types.ListRootsRequestSchema,
    };
    return {
        name: "1.x",
        makeClient: () => new sdk.Client(INFO, { capabilities: CAPABILITIES }),
        http: (url) => new http.StreamableHTTPClientTransport(new URL(url)),
        stdio: (options) => new stdio.StdioClientTransport(options),
        answer: (client, method, handle) =>
            client.setRequestHandler(questions[method], async ({ params }: any) =>
                handle(params),
            ),
        call: (client, name, args = {}, options) =>
            client.callTool({ name, arguments: args }, undefined, options),
    };
}

const SDKS = [await two({ pin: "2026-07-28" }, "2.x"), await two("legacy", "2.x legacy")];
SDKS.push(await one());

function makeServer(): Server {
    const server = new Server({ name: "ours", version: "1" });
    server.tool(
        "add",
        {
            description: "Adds.",
            input: { a: z.number().describe("the first"), b: z.number() },
            output: { sum: z.number() },
        },
        ({ a, b }, ctx) => {
            ctx.progress(1, 2, "half");
            return { sum: a + b };
        },
    );
    server.tool("media", () => ["text", image("AQ=="), audio("Ag==")]);
    server.tool("words", async function* () {
        yield "one ";
        yield "two";
    });
    server.tool("fails", () => {
        throw new ToolError("no");
    });
    server.tool("asks", async (_, ctx) => {
        const agreed = await ctx.ask("Really?", z.boolean());
        const said = await ctx.sample("hello", 9);
        const roots = await ctx.listRoots();
        return `${agreed} ${said.text} ${roots.length}`;
    });
    const complete = { id: ["one", "two"] };
    server.resource("note://{id}", { complete }, ({ id }) => `note ${id}`);
    server.prompt(
        "hello",
        { input: { name: z.string() } },
        ({ name }) => `Hello, ${name}`,
    );
    return server;
}

/** Runs `work` with a client of the official SDK at a server of Segue. */
async function overHttp(sdk: Sdk, work: (client: any) => Promise<void>): Promise<void> {
    const server = makeServer();
    const { url } = await server.listenHttp({ drainMs: 500 });
    const client = sdk.makeClient();
    sdk.answer(client, "elicitation/create", () => ({
        action: "accept",
        content: { value: true },
    }));
    sdk.answer(client, "sampling/createMessage", () => ({
        role: "assistant",
        content: { type: "text", text: "hi" },
        model: "m",
    }));
    sdk.answer(client, "roots/list", () => ({ roots: [] }));
    await client.connect(sdk.http(url));
    try {
        await work(client);
    } finally {
        await client.close();
        await server.close();
    }
}

for (const sdk of SDKS) {
    test(`tools [${sdk.name}]`, { timeout }, () =>
        overHttp(sdk, async (client) => {
            const { tools } = await client.listTools();
            const add = tools.find((tool: any) => tool.name === "add");
            assert.deepEqual(add.inputSchema.required, ["a", "b"]);
            assert.equal(add.description, "Adds.");
            const told: any[] = [];
            const onprogress = (one: any): void => void told.push(one);
            const args = { a: 1, b: 2 };
            const sum = await sdk.call(client, "add", args, { onprogress });
            assert.deepEqual(sum.structuredContent, { sum: 3 });
            assert.equal(told[0]?.message, "half");
            const media = await sdk.call(client, "media");
            assert.deepEqual(
                media.content.map((block: any) => block.type),
                ["text", "image", "audio"],
            );
            const words = await sdk.call(client, "words");
            assert.equal(
                words.content.map((block: any) => block.text).join(""),
                "one two",
            );
            const failed = await sdk.call(client, "fails");
            assert.ok(failed.isError);
            assert.equal(failed.content[0].text, "no");
            const bad = await sdk.call(client, "add", { a: "x", b: 2 });
            assert.match(bad.content[0].text, /Invalid arguments for tool add: a: /);
            const numbers = Array.from({ length: 50 }, (_, n) => n);
            const many = numbers.map((n) => sdk.call(client, "add", { a: n, b: n }));
            const sums = (await Promise.all(many)).map(
                (one) => one.structuredContent.sum,
            );
            assert.deepEqual(
                sums,
                numbers.map((n) => 2 * n),
            );
        }),
    );

    test(`questions [${sdk.name}]`, { timeout }, () =>
        overHttp(sdk, async (client) => {
            const asked = await sdk.call(client, "asks");
            assert.equal(asked.content[0].text, "true hi 0");
        }),
    );

    test(`resources, prompts, completion [${sdk.name}]`, { timeout }, () =>
        overHttp(sdk, async (client) => {
            const read = await client.readResource({ uri: "note://7" });
            assert.equal(read.contents[0].text, "note 7");
            const prompt = await client.getPrompt({
                name: "hello",
                arguments: { name: "Ada" },
            });
            assert.equal(prompt.messages[0].content.text, "Hello, Ada");
            const found = await client.complete({
                ref: { type: "ref/resource", uri: "note://{id}" },
                argument: { name: "id", value: "t" },
            });
            assert.deepEqual(found.completion.values, ["two"]);
        }),
    );

    test(`over standard input and output [${sdk.name}]`, { timeout }, async () => {
        const client = sdk.makeClient();
        const { env, execPath: command } = process;
        const options = { command, args: [PROGRAM], env, stderr: "ignore" };
        await client.connect(sdk.stdio(options));
        const result = await sdk.call(client, "noisy", { text: "x" });
        assert.equal(result.content[0].text, "x ");
        await client.close();
    });
}
// biome-ignore-end lint/suspicious/noExplicitAny: two SDKs, in one shape

const C_CLIENT = built("examples/client");

test("the example client in C, over HTTP and over standard input and output", {
    timeout,
    skip: !existsSync(C_CLIENT) && `${C_CLIENT} is not built`,
}, async () => {
    const server = makeServer();
    const { url } = await server.listenHttp({ drainMs: 500 });
    const run = promisify(execFile);
    const words = await run(C_CLIENT, ["words", "{}", url]);
    assert.match(words.stdout, /one[\s\S]*two/);
    await server.close();
    const noisy = ["noisy", '{"text":"hé"}', process.execPath, PROGRAM];
    const told = await run(C_CLIENT, noisy);
    assert.match(told.stdout, /hé/);
});
