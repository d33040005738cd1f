/** The server that plays tests/vectors: the tools of its README. */
import { setTimeout as sleep } from "node:timers/promises";
import {
    type Context,
    RpcError,
    Server,
    ToolError,
    type ToolHandler,
    type ToolOptions,
    UnsupportedError,
} from "segue-mcp";

const FORM = {
    mode: "form",
    message: "Are you sure?",
    requestedSchema: { type: "object", properties: { confirm: { type: "boolean" } } },
};
const NAME = {
    mode: "form",
    message: "Name?",
    requestedSchema: { type: "object", properties: {} },
};
const TWO_TEXTS: [number | null, string][] = [
    [null, "con"],
    [0, "tent 1."],
    [null, "cont"],
    [1, "ent 2."],
    [0, " Again."],
    [null, "end"],
];
const MESSAGES = [{ role: "user", content: { type: "text", text: "Say hello" } }];
const DRAFT_TASKS = 4;
const POLL = { pollMs: 100 };

// biome-ignore lint/suspicious/noExplicitAny: the vectors say what the arguments are
type Args = any;
type Add = (name: string, options: ToolOptions, run: ToolHandler<Args, Args>) => void;

/** Makes a server of its own for each vector. */
export function makeServer(isDraft: boolean, asksAsTasks: boolean): Server {
    const server = new Server({
        name: "segue",
        version: "0",
        principal: () => "ada",
        dialectsOn: isDraft ? DRAFT_TASKS : 0,
        questionTtlMs: asksAsTasks ? 60_000 : 0,
        firstTurnMs: 60_000, // a first turn never times out on a busy machine
    });
    const resume = { resumable: true, resumeMinWaitMs: 1500, resumeMaxWaitMs: 10_000 };
    const add: Add = (name, options, run) => {
        // The vectors send arguments to every tool.
        server.tool(name, { forbidExtra: false, ...resume, ...options }, run);
    };
    addPlain(server, add);
    addStreams(add);
    addQuestions(add);
    if (asksAsTasks) addModels(add);
    return server;
}

function never(): Promise<never> {
    return new Promise(() => undefined);
}

function addPlain(server: Server, add: Add): void {
    server.resource("test://somebody", { name: "somebody" }, () => "somebody");
    add("greet", {}, ({ name = "World" }) => `Hello, ${name}!`);
    add("hang_plain", {}, never);
    add("hang", { task: "may" }, never);
    add("slow_compute", { task: "may" }, async ({ ms = 1000, label = "done" }) => {
        await sleep(ms);
        return `Computed: ${label}`;
    });
    add("big", { task: "may", ...POLL }, ({ bytes }) => "x".repeat(bytes));
    add("failing_job", { task: "must" }, async ({ ms = 1000 }) => {
        await sleep(ms);
        throw new ToolError("The job failed");
    });
    add("protocol_error_job", { task: "may" }, async () => {
        await sleep(100);
        throw new RpcError(-32603, "Protocol level failure", { hint: "on purpose" });
    });
}

async function* segments(n: number, delayMs: number): AsyncGenerator<string, void> {
    for (let number = 1; number <= n; number++) {
        if (number > 1 && delayMs) await sleep(delayMs);
        yield `segment ${number} of the story`;
    }
    if (delayMs) await sleep(delayMs);
}

function addStreams(add: Add): void {
    const options = { task: "may", ...POLL } as const;
    add("story", { ...options, restartable: true }, ({ n = 3, delayMs = 0 }) =>
        segments(n, delayMs),
    );
    add("two_texts", options, async ({ delayMs = 0 }, ctx) => {
        for (const [into, text] of TWO_TEXTS) {
            await (into === null ? ctx.send(text) : ctx.extend(into, text));
            if (delayMs) await sleep(delayMs);
        }
    });
    add("fail_after", options, async function* ({ n = 3, delayMs = 0 }) {
        yield* segments(n, delayMs);
        throw new ToolError("The job failed");
    });
    add("reporter", options, async ({ n = 2, delayMs = 20 }, ctx) => {
        for (let number = 1; number <= n; number++) {
            await sleep(delayMs);
            ctx.progress(number, n);
            ctx.log(`step ${number}`);
            await ctx.setStatus(`step ${number}`);
        }
        return "reported";
    });
    add("fields", options, async (_, ctx) => {
        await ctx.send("wrong");
        await ctx.replace("right");
        await ctx.setField("structuredContent", { a: 1 });
        await ctx.setField("structuredContent", { a: 2 });
        await ctx.setField("_meta", { "com.example/k": true });
        await ctx.setStatus("almost");
    });
}

function addQuestions(add: Add): void {
    const ask = async (_: Args, ctx: Context): Promise<string> => {
        try {
            return JSON.stringify(await ctx.request("elicitation/create", FORM));
        } catch (error) {
            if (!(error instanceof UnsupportedError)) throw error;
            return "cannot ask: UNSUPPORTED";
        }
    };
    add("confirm_delete", { task: "must", restartable: true }, ask);
    add("ask_once", { restartable: true }, ask);
    add("ask_both", {}, async (_, ctx) => {
        const answers = await Promise.all([
            ctx.request("elicitation/create", FORM),
            ctx.request("elicitation/create", NAME),
        ]);
        return answers.map((one) => JSON.stringify(one)).join("");
    });
}

function addModels(add: Add): void {
    const ask = async (_: Args, ctx: Context): Promise<string> => {
        const params = { messages: MESSAGES, maxTokens: 100 };
        try {
            return JSON.stringify(await ctx.request("sampling/createMessage", params));
        } catch (error) {
            if (!(error instanceof RpcError)) throw error;
            const { rpcCode: code, message, data } = error;
            throw new ToolError(JSON.stringify({ code, message, data }));
        }
    };
    add("ask_model", POLL, ask);
    add("ask_model_task", { task: "must", ...POLL }, ask);
}
