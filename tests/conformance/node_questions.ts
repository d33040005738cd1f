/**
 * The fixtures of node_server.ts that ask their client: as a task, or in rounds before
 * the result of a plain call. A call asks all its questions at once, or one after
 * another, and reports the answers. It leaves out questions whose capability the client
 * has not declared.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Context, type Server, ToolError, UnsupportedError } from "segue-mcp";

interface Question {
    key?: string;
    method: string;
    params: object;
}

/** Returns the params of a form with one field. */
export function form(message: string, name: string, kind = "string"): object {
    return {
        mode: "form",
        message,
        requestedSchema: {
            type: "object",
            properties: { [name]: { type: kind } },
            required: [name],
        },
    };
}

function elicit(key: string, message: string, name: string, kind?: string): Question {
    return { key, method: "elicitation/create", params: form(message, name, kind) };
}

function unnamed({ key: _, ...rest }: Question): Question {
    return rest;
}

const CONFIRM = elicit("confirm", "Please confirm", "ok", "boolean");
const NAME = elicit("user_name", "What is your name?", "name");
const SAMPLE: Question = {
    key: "capital_question",
    method: "sampling/createMessage",
    params: {
        messages: [
            {
                role: "user",
                content: { type: "text", text: "What is the capital of France?" },
            },
        ],
        maxTokens: 50,
    },
};
const ROOTS: Question = { key: "client_roots", method: "roots/list", params: {} };
const TWO = [
    unnamed(elicit("", "Who are you?", "name")),
    unnamed(elicit("", "Go on?", "confirm", "boolean")),
];
const TURNS = [
    elicit("step1", "Step 1: What is your name?", "name"),
    elicit("step2", "Step 2: What is your favorite color?", "color"),
];
// SEP-1034: a default for each primitive type.
const DEFAULTS = {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: {
        type: "string",
        enum: ["active", "inactive", "pending"],
        default: "active",
    },
    verified: { type: "boolean", default: true },
};
const VALUES = [
    ["value1", "First"],
    ["value2", "Second"],
    ["value3", "Third"],
];
const PLAIN = ["option1", "option2", "option3"];
const titled = (what: string): object[] =>
    VALUES.map(([value, nth]) => ({ const: value, title: `${nth} ${what}` }));
// SEP-1330: each way to write a choice.
const ENUMS = {
    untitledSingle: { type: "string", enum: PLAIN },
    titledSingle: { type: "string", oneOf: titled("Option") },
    legacyEnum: {
        type: "string",
        enum: ["opt1", "opt2", "opt3"],
        enumNames: ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti: { type: "array", items: { type: "string", enum: PLAIN } },
    titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
};

function wholeForm(message: string, properties: object): Question {
    const requestedSchema = { type: "object", properties };
    const params = { mode: "form", message, requestedSchema };
    return { method: "elicitation/create", params };
}

// ---- asking

async function ask(ctx: Context, question: Question): Promise<string | undefined> {
    const { key, method, params } = question;
    try {
        return JSON.stringify(await ctx.request(method, params, { key }));
    } catch (error) {
        if (error instanceof UnsupportedError) return undefined;
        throw error;
    }
}

/** The suite wants to read "state-ok" when a state came back. */
function told(answers: readonly (string | undefined)[]): string {
    const given = answers.filter((one) => one !== undefined);
    if (!given.length) throw new ToolError("state-ok, answers: none");
    return `state-ok, answers: ${given.join(" ")}`;
}

async function askAll(ctx: Context, questions: readonly Question[]): Promise<string> {
    return told(await Promise.all(questions.map((one) => ask(ctx, one))));
}

async function askInTurn(ctx: Context, questions: readonly Question[]): Promise<string> {
    const answers: (string | undefined)[] = [];
    for (const one of questions) answers.push(await ask(ctx, one));
    return told(answers);
}

// ---- tools

const INPUT = "test_input_required_result";
const ASKING: Record<string, readonly Question[]> = {
    test_sampling: [SAMPLE],
    test_elicitation: [NAME],
    test_elicitation_sep1034_defaults: [wholeForm("Please review", DEFAULTS)],
    test_elicitation_sep1330_enums: [wholeForm("Please choose", ENUMS)],
    [`${INPUT}_elicitation`]: [NAME],
    [`${INPUT}_sampling`]: [SAMPLE],
    [`${INPUT}_list_roots`]: [ROOTS],
    [`${INPUT}_request_state`]: [CONFIRM],
    [`${INPUT}_tampered_state`]: [CONFIRM],
    [`${INPUT}_multiple_inputs`]: [NAME, SAMPLE, ROOTS],
    [`${INPUT}_capabilities`]: [NAME, SAMPLE, ROOTS],
};

/** Adds the tools that ask. */
export function addTools(server: Server): void {
    const described = { description: "Asks its client" };
    const must = { ...described, task: "must" } as const;
    const input = { type: "object", properties: { filename: { type: "string" } } };
    server.tool("confirm_delete", { ...must, input }, (_, ctx) => askAll(ctx, [CONFIRM]));
    server.tool("multi_input", must, (_, ctx) => askAll(ctx, TWO));
    const later = { ...described, task: "may", promoteAfterMs: 24 * 3600_000 } as const;
    server.tool("test_tool_with_task", later, async (_, ctx) => {
        const text = await askAll(ctx, [NAME]);
        if (ctx.defer()) await sleep(100);
        return text;
    });
    // No request may appear on the stream of the answer.
    server.tool("test_streaming_elicitation", described, (_, ctx) => {
        ctx.progress(1, 2);
        return askAll(ctx, [CONFIRM]);
    });
    // The suite calls some of them with a text.
    const text = { type: "string" };
    const texts = { type: "object", properties: { prompt: text, message: text } };
    for (const [name, questions] of Object.entries(ASKING)) {
        const options = { ...described, input: texts };
        server.tool(name, options, (_, ctx) => askAll(ctx, questions));
    }
    server.tool(`${INPUT}_multi_round`, described, (_, ctx) => askInTurn(ctx, TURNS));
}
