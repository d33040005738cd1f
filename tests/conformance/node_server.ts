#!/usr/bin/env node
/**
 * The fixtures of server.c as a Node server, for run.py --server.
 *
 * They are the tools, resources and prompts that the suite names, with the texts that it
 * asks for. The server listens over HTTP on a free port of loopback, prints its URL, and
 * runs until SIGINT or SIGTERM.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
    audio,
    embedded,
    image,
    type Registered,
    RpcError,
    Server,
    ToolError,
    user,
} from "segue-mcp";
import { z } from "zod";
import { addTools, form } from "./node_questions.js";

const RED_DOT =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADHja" +
    "Y/jPwAAAAwEBAPcDQUMAAAAASUVORK5CYII=";
const HEADER =
    "RIFF,\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0\x80>\0\0\x02\0\x10\0data\x08";
const SILENCE = Buffer.concat([Buffer.from(HEADER, "latin1"), Buffer.alloc(11)]);
const SCHEMA_2020_12 = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: {
        address: {
            $anchor: "addressDef",
            type: "object",
            properties: { street: { type: "string" }, city: { type: "string" } },
        },
    },
    properties: {
        name: { type: "string" },
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: { type: "string" },
        email: { type: "string" },
    },
    allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
    if: {
        properties: { contactMethod: { const: "phone" } },
        required: ["contactMethod"],
    },
    // biome-ignore lint/suspicious/noThenProperty: a keyword
    then: { required: ["phone"] },
    else: { required: ["email"] },
    additionalProperties: false,
};
const WORDS = ["paris", "park", "party", "test"];
const SIMPLE = "This is a simple text response for testing.";

const server = new Server({ name: "segue-conformance", version: "0.1.0" });
/** The suite requires descriptions everywhere. */
const described = (name: string): { description: string } => ({ description: name });

// ---- content

// The suite calls the first tool to check headers, so that tool accepts any arguments.
server.tool("test_simple_text", { description: "One block of text" }, () => SIMPLE);
server.tool("test_image_content", described("test_image_content"), () => image(RED_DOT));
server.tool("test_audio_content", described("test_audio_content"), () => audio(SILENCE));
server.tool("test_embedded_resource", described("test_embedded_resource"), async () =>
    embedded(
        "test://embedded-resource",
        "This is an embedded resource content.",
        "text/plain",
    ),
);
server.tool(
    "test_multiple_content_types",
    described("test_multiple_content_types"),
    async () => [
        "Multiple content types test:",
        image(RED_DOT),
        embedded(
            "test://mixed-content-resource",
            '{"test":"data","value":123}',
            "application/json",
        ),
    ],
);
server.tool("test_error_handling", described("test_error_handling"), () => {
    throw new ToolError("This tool intentionally returns an error for testing");
});
server.tool(
    "json_schema_2020_12_tool",
    { description: "Tool with JSON Schema 2020-12 features", input: SCHEMA_2020_12 },
    () => "The schema is what matters",
);

// ---- progress and log

server.tool(
    "test_tool_with_logging",
    described("test_tool_with_logging"),
    async (_, ctx) => {
        for (const step of [
            "execution started",
            "processing data",
            "execution completed",
        ]) {
            ctx.log(`Tool ${step}`);
            await sleep(50);
        }
        return "Logged three times";
    },
);
server.tool(
    "test_tool_with_progress",
    described("test_tool_with_progress"),
    async (_, ctx) => {
        for (const progress of [0, 50, 100]) {
            ctx.progress(progress, 100);
            await sleep(50);
        }
        return "Reported progress three times";
    },
);
// Hangs up: the result comes while the client is away.
server.tool("test_reconnection", described("test_reconnection"), async (_, ctx) => {
    ctx.hangUp(500);
    await sleep(100);
    return "Reconnection test completed successfully";
});
server.tool("test_logging_tool", described("test_logging_tool"), (_, ctx) => {
    ctx.log("Nobody asked for this", "emergency");
    return "Logging evaluated";
});

// ---- capabilities of the client

server.tool(
    "test_missing_capability",
    described("test_missing_capability"),
    async (_, ctx) => {
        const declared = ctx.meta["io.modelcontextprotocol/clientCapabilities"] ?? {};
        if ("sampling" in (declared as object)) return "Sampling is declared";
        throw new RpcError(-32021, "Missing required client capability: sampling", {
            requiredCapabilities: { sampling: {} },
        });
    },
);
const repeated = {
    region: z.string().meta({ "x-mcp-header": "Region" }),
    shard: z.int().meta({ "x-mcp-header": "Shard" }),
};
server.tool(
    "test_custom_headers",
    { ...described("headers"), input: repeated },
    ({ region }) => region,
);
addTools(server);

// ---- lists that change

let extraTool: Registered | undefined;
server.tool("test_trigger_tool_change", described("test_trigger_tool_change"), () => {
    const had = extraTool;
    extraTool = had ? undefined : server.tool("extra", described("extra"), () => SIMPLE);
    had?.remove();
    return "Mutation triggered";
});
let extraPrompt: Registered | undefined;
server.tool("test_trigger_prompt_change", described("test_trigger_prompt_change"), () => {
    const had = extraPrompt;
    extraPrompt = had
        ? undefined
        : server.prompt("extra", described("extra"), () => "extra");
    had?.remove();
    return "Mutation triggered";
});

// ---- tasks

server.tool(
    "greet",
    { ...described("Says hello"), input: { name: z.string().default("World") } },
    ({ name }) => `Hello, ${name}!`,
);
server.tool(
    "slow_compute",
    {
        description: "Computes for some seconds; can be cancelled",
        input: { seconds: z.int().default(1), label: z.string().default("done") },
        task: "may",
    },
    async ({ seconds, label }, { signal }) => {
        await sleep(seconds * 1000, undefined, { signal });
        return `Computed: ${label}`;
    },
);
server.tool("failing_job", { ...described("failing_job"), task: "must" }, async () => {
    await sleep(1000);
    throw new ToolError("The job failed");
});
server.tool(
    "protocol_error_job",
    { ...described("protocol_error_job"), task: "must" },
    async () => {
        await sleep(100);
        throw new RpcError(-32603, "The job broke the protocol");
    },
);

// ---- resources

server.resource(
    "test://static-text",
    { name: "Static text", mimeType: "text/plain" },
    () => "This is the content of the static text resource.",
);
server.resource(
    "test://static-binary",
    { name: "Static binary", mimeType: "image/png" },
    async () => Buffer.from(RED_DOT, "base64"),
);
server.resource(
    "test://watched-resource",
    { name: "Watched resource", mimeType: "text/plain" },
    () => "Watched resource content",
);
server.resource(
    "test://template/{id}/data",
    { name: "Template", mimeType: "application/json", complete: { id: WORDS } },
    ({ id }) => ({ id, templateTest: true, data: `Data for ID: ${id}` }),
);

// ---- prompts

server.prompt(
    "test_simple_prompt",
    described("Simple"),
    () => "This is a simple prompt for testing.",
);
server.prompt(
    "test_prompt_with_arguments",
    {
        ...described("With arguments"),
        input: { arg1: z.string().describe("arg1"), arg2: z.string().describe("arg2") },
        complete: {
            arg1: WORDS,
            arg2: async (typed) => WORDS.filter((word) => word.startsWith(typed)),
        },
    },
    ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
);
server.prompt(
    "test_prompt_with_embedded_resource",
    { ...described("With a resource"), input: { resourceUri: z.string() } },
    ({ resourceUri }) => [
        user(
            embedded(resourceUri, "Embedded resource content for testing.", "text/plain"),
        ),
        "Please process the embedded resource above.",
    ],
);
server.prompt("test_prompt_with_image", described("Image"), async () => [
    image(RED_DOT),
    "Please analyze the image above.",
]);
server.prompt("test_input_required_result_prompt", described("Asks"), async (_, ctx) => {
    const question = form("What context should the prompt use?", "context");
    const answer = await ctx.request("elicitation/create", question, {
        key: "user_context",
    });
    return `The context: ${JSON.stringify(answer)}`;
});

server.closeOnSignals({ drainMs: 1000 });
const { url } = await server.listenHttp({ drainMs: 1000 });
process.stdout.write(`${url}\n`);
