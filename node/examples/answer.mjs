/**
 * Answers from documents (RAG without a network): the sentences of a directory are
 * scored by the words of the question, rare words count more, and the best ones are
 * streamed, each with a link to its file.
 *
 *     node answer.mjs                    a client that starts the server and asks
 *     node answer.mjs "Why is it so?"    the same with your question
 *     node answer.mjs serve              the server, on standard input and output
 */
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { connect, resourceLink, Server, ToolError } from "segue-mcp";
import { z } from "zod";

const LIBRARY = new URL("../../core/examples/library/", import.meta.url);
const MOST = 3; // sentences of an answer

const server = new Server({ name: "answer" });

const wordsOf = (text) => new Set(text.toLowerCase().match(/[a-z]{3,}/g) ?? []);

/** Returns the best sentences and their files; the best one is first. */
async function find(question) {
    const lines = [];
    for (const name of (await readdir(LIBRARY)).sort()) {
        const text = await readFile(new URL(name, LIBRARY), "utf8");
        for (const line of text.trimEnd().split("\n")) lines.push({ name, line });
    }
    const uses = new Map();
    for (const { line } of lines) {
        for (const word of wordsOf(line)) uses.set(word, (uses.get(word) ?? 0) + 1);
    }
    const asked = wordsOf(question);
    for (const one of lines) {
        one.score = 0;
        for (const word of wordsOf(one.line)) {
            if (asked.has(word)) one.score += Math.floor(1000 / uses.get(word));
        }
    }
    const best = lines.sort((a, b) => b.score - a.score).slice(0, MOST);
    return best.filter(({ score }) => score > 0);
}

server.tool(
    "ask",
    {
        description: "Answers a question about bees, bread, bridges, clocks or tides.",
        input: { question: z.string() },
    },
    async function* ({ question }) {
        const found = await find(question);
        if (found.length === 0)
            throw new ToolError("the library says nothing about this");
        for (const { name, line } of found) {
            yield `${line}\n`;
            yield resourceLink(new URL(name, LIBRARY).href, name);
        }
    },
);

async function main() {
    const question =
        process.argv[2] ?? "Where do bees find flowers, and how do they tell?";
    const session = await connect([
        process.execPath,
        fileURLToPath(import.meta.url),
        "serve",
    ]);
    for await (const { text, content } of session.stream("ask", { question })) {
        process.stdout.write(text ?? `    from ${content.name}\n`);
    }
    await session.close();
}

await (process.argv[2] === "serve" ? server.serveStdio() : main());
