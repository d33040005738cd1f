/**
 * The adapters for frameworks of agents, with the real packages and a model that only
 * says what it was told to say.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { AIMessage, type ToolMessage } from "@langchain/core/messages";
import { stepCountIs, streamText } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { image, Server, type Session, ToolError } from "segue-mcp";
import * as aiAdapter from "segue-mcp/adapters/ai";
import * as langchainAdapter from "segue-mcp/adapters/langchain";
import { withLab } from "segue-mcp/testing";
import { PACKAGE, TREE } from "./tree.js";

const timeout = 120_000;
const server = new Server({ name: "shop" });
const kept = { task: "may", restartable: true } as const;
server.tool("add", { input: { type: "object" } }, (args) => Number(args["a"]) + 1);
server.tool("picture", () => ["a dot", image(Buffer.from([1, 2]), "image/png")]);
server.tool("only", () => image(Buffer.from([1, 2]), "image/png"));
server.tool("mixed", () => [
    ...["before", " it"],
    image(Buffer.from([1, 2]), "image/png"),
    "after it",
]);
server.tool("fail", () => {
    throw new ToolError("sold out");
});
server.tool("report", kept, async function* (_, ctx) {
    for (let page = ctx.resumed?.segments ?? 0; page < 3; page++) {
        yield `page ${page}\n`;
        if (page === 1 && !ctx.resumed) {
            await new Promise((_resolve, reject) => {
                ctx.signal.addEventListener("abort", reject);
            });
        }
    }
});

interface Asked {
    readonly name: string;
    readonly args?: object;
    readonly heard?: string[];
    readonly tokens?: Map<string, string>;
    readonly signal?: AbortSignal;
}

/** Runs an agent whose model calls one tool. Returns what the model then sees. */
type Run = (session: Session, asked: Asked) => Promise<unknown>;

async function runAi(session: Session, asked: Asked): Promise<unknown> {
    const { name, args = {}, heard = [], tokens, signal } = asked;
    let seen: unknown;
    const usage = {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
    };
    const model = new MockLanguageModelV3({
        doStream: async ({ prompt }) => {
            const last = prompt.at(-1);
            const isEnd = last?.role === "tool";
            if (isEnd) seen = last.content;
            const input = JSON.stringify(args);
            const said = isEnd
                ? []
                : [
                      {
                          type: "tool-call",
                          toolCallId: "c1",
                          toolName: name,
                          input,
                      } as const,
                  ];
            const unified = isEnd ? ("stop" as const) : ("tool-calls" as const);
            const finishReason = { unified, raw: undefined };
            const chunks = [...said, { type: "finish", finishReason, usage } as const];
            return { stream: simulateReadableStream({ chunks }) };
        },
    });
    const tools = await aiAdapter.tools(session, { tokens });
    const result = streamText({
        model,
        tools,
        prompt: "go",
        stopWhen: stepCountIs(3),
        ...(signal && { abortSignal: signal }),
        onError: () => undefined,
    });
    for await (const part of result.fullStream) {
        if (part.type === "tool-result" && part.preliminary) {
            const { content } = part.output as { content: { text: string }[] };
            heard.push(content[0]?.text ?? "");
        }
    }
    return seen;
}

async function runLangchain(session: Session, asked: Asked): Promise<unknown> {
    const { name, args = {}, heard = [], tokens, signal } = asked;
    const tools = await langchainAdapter.tools(session, { tokens });
    const tool = tools.find((one) => one.name === name);
    assert.ok(tool);
    const tool_calls = [
        { name, args: { ...args }, id: "c1", type: "tool_call" as const },
    ];
    const call = new AIMessage({ content: "", tool_calls }).tool_calls?.[0];
    assert.ok(call);
    let text = "";
    let made: ToolMessage | undefined;
    const options = { version: "v2", ...(signal && { signal }) } as const;
    try {
        // biome-ignore lint/suspicious/noExplicitAny: a tool also takes a call of a tool
        for await (const event of tool.streamEvents(call as any, options)) {
            if (event.event === "on_custom_event") {
                assert.equal(event.name, "segue_segment");
                text += (event.data as { text?: string }).text;
                heard.push(text);
            }
            if (event.event === "on_tool_end") made = event.data.output;
        }
    } catch (error) {
        return String(error);
    }
    assert.equal(made?.tool_call_id, "c1");
    return made?.content;
}

const RUNS: { readonly [name: string]: Run } = { ai: runAi, langchain: runLangchain };
const PAGES = ["page 0\n", "page 0\npage 1\n", "page 0\npage 1\npage 2\n"];

for (const [name, run] of Object.entries(RUNS)) {
    test(
        `${name}: a call`,
        { timeout },
        withLab(async (lab) => {
            const session = await lab.connect(server);
            const shown = async (asked: Asked): Promise<string> =>
                JSON.stringify(await run(session, asked));
            assert.match(await shown({ name: "add", args: { a: 4 } }), /"5"/);
            assert.match(await shown({ name: "picture" }), /a dot.*AQI=/);
            assert.match(await shown({ name: "fail" }), /sold out/);
        }),
    );

    test(
        `${name}: segments come at once and survive a crash`,
        { timeout },
        withLab(async (lab) => {
            const served = await lab.serve(server);
            const heard: string[] = [];
            const running = run(await served.connect(), { name: "report", heard });
            while (heard.length < 2) await turn();
            await served.restart();
            assert.ok(JSON.stringify(await running).includes("page 2"));
            assert.deepEqual(heard.slice(0, 3), PAGES);
        }),
    );

    test(
        `${name}: another run continues a call`,
        { timeout },
        withLab(async (lab) => {
            const served = await lab.serve(server);
            const tokens = new Map<string, string>();
            const heard: string[] = [];
            const first = await served.connect();
            const asked = { name: "report", heard, tokens };
            const running = run(first, asked).catch(() => undefined);
            while (heard.length < 2) await turn();
            assert.deepEqual([...tokens.keys()], ["c1"]);
            await first.close();
            await served.restart();
            await running;
            const second = await served.connect();
            const seen = JSON.stringify(await run(second, { name: "report", tokens }));
            assert.ok(seen.includes("page 0\\npage 1\\npage 2\\n"), seen);
            assert.equal(tokens.size, 0);
        }),
    );

    for (const era of ["modern", "legacy"] as const) {
        test(
            `${name}: a plain call that is aborted ends at once and is cancelled: ${era}`,
            { timeout },
            withLab(async (lab) => {
                const waiting = new Server({ name: "waits" });
                let isBegun = false;
                let isCancelled = false;
                waiting.tool("wait", async (_, ctx) => {
                    isBegun = true;
                    await new Promise((_resolve, reject) => {
                        ctx.signal.addEventListener("abort", reject);
                    }).finally(() => {
                        isCancelled = true;
                    });
                });
                const session = await lab.connect(waiting, { era });
                const tokens = new Map<string, string>();
                const stop = new AbortController();
                const asked = { name: "wait", tokens, signal: stop.signal };
                const running = run(session, asked).catch(() => undefined);
                while (!isBegun) await turn();
                stop.abort(new Error("enough"));
                await running;
                while (!isCancelled) await turn();
                assert.equal(tokens.size, 0);
            }),
        );
    }

    test(
        `${name}: an aborted call whose token is kept goes on`,
        { timeout },
        withLab(async (lab) => {
            const served = await lab.serve(server);
            const tokens = new Map<string, string>();
            const heard: string[] = [];
            const stop = new AbortController();
            const session = await served.connect();
            const asked = { name: "report", heard, tokens, signal: stop.signal };
            const running = run(session, asked).catch(() => undefined);
            while (heard.length < 2) await turn();
            stop.abort(new Error("enough"));
            await running;
            const [token] = tokens.values();
            assert.ok(token);
            const status = await session.resume(token).status();
            assert.equal(status.status, "working");
        }),
    );

    test(
        `${name}: blocks keep their order, and no text is empty`,
        { timeout },
        withLab(async (lab) => {
            const session = await lab.connect(server);
            const only = JSON.stringify(await run(session, { name: "only" }));
            assert.match(only, /AQI=/);
            assert.doesNotMatch(only, /"text":""/);
            const mixed = JSON.stringify(await run(session, { name: "mixed" }));
            assert.match(mixed, /before it.*AQI=.*after it/);
        }),
    );

    test(`${name}: a framework that is missing, and the length`, () => {
        const file = path.join(TREE, "node", "src", "adapters", `${name}.ts`);
        assert.ok(fs.readFileSync(file, "utf8").split("\n").length <= 61);
        const program = `
            const { tools } = require(process.argv[1]);
            const session = { listTools: async () => [] };
            tools(session).catch((error) => console.log(error.message));
        `;
        // without the node_modules of the tests: the package's own place has none of them
        const place = fs.realpathSync(PACKAGE);
        const hide = `
            const module = require("node:module");
            const real = module._resolveFilename;
            module._resolveFilename = function (name, ...rest) {
                if (/^(ai|@langchain)/.test(name)) throw new Error("Cannot find " + name);
                return real.call(this, name, ...rest);
            };
        `;
        const adapter = path.join(place, "dist", "adapters", `${name}.js`);
        const done = spawnSync(process.execPath, ["-e", hide + program, adapter], {
            encoding: "utf8",
        });
        assert.match(done.stdout, new RegExp(`adapters/${name} needs .*: npm install`));
    });
}
