/**
 * A chat host: it has the tools of two servers, and shows each piece of a result as it
 * comes. The model is a stand-in that chooses the tool whose description has most words
 * of the question. Put a real model into `choose`.
 *
 *     node chat.mjs                 a conversation that is in this file
 *     node chat.mjs - <questions    each line of the input is a question
 */
import readline from "node:readline";
import { fileURLToPath } from "node:url";
import { connect } from "segue-mcp";

const SERVERS = ["report.mjs", "answer.mjs"];
const QUESTIONS = [
    "Please write a report about the texts",
    "A question about bread: which dough tastes better?",
    "Sing a song",
];

const wordsOf = (text) => new Set(text?.toLowerCase().match(/[a-z]{4,}/g) ?? []);

/** Returns the tool to call and its arguments, as a model would. */
function choose(question, tools) {
    const asked = wordsOf(question);
    let best;
    let most = 0;
    for (const tool of tools.values()) {
        const score = [...wordsOf(tool.description)].filter((word) =>
            asked.has(word),
        ).length;
        if (score > most) [best, most] = [tool, score];
    }
    if (!best) return undefined;
    return {
        tool: best,
        args: "question" in best.inputSchema.properties ? { question } : {},
    };
}

async function answer(question, tools) {
    console.log(`you: ${question}`);
    const chosen = choose(question, tools);
    if (!chosen) {
        console.log("model: I have no tool for this.");
        return;
    }
    const { tool, args } = chosen;
    console.log(`model: I call ${tool.name}.`);
    for await (const segment of tool.session.stream(tool.name, args)) {
        for (const line of segment.text?.trimEnd().split("\n") ?? [])
            console.log(`  ${line}`);
    }
}

const tools = new Map();
const sessions = [];
for (const name of SERVERS) {
    const file = fileURLToPath(new URL(name, import.meta.url));
    const session = await connect([process.execPath, file, "serve"]);
    sessions.push(session);
    for await (const tool of session.listTools())
        tools.set(tool.name, { ...tool, session });
}
const input =
    process.argv[2] === "-" ? readline.createInterface(process.stdin) : QUESTIONS;
for await (const question of input) await answer(question, tools);
for (const session of sessions) await session.close();
