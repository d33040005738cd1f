/**
 * A generator of reports: each chapter is a segment, so a client shows the first one
 * while the second one is written. The numbers come as a structured result at the end.
 *
 *     node report.mjs          a client that starts the server and prints the report
 *     node report.mjs serve    the server, on standard input and output
 */
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { connect, Result, Server, ToolError } from "segue-mcp";
import { z } from "zod";

const FILE = fileURLToPath(import.meta.url);
const LIBRARY = fileURLToPath(new URL("../../core/examples/library/", import.meta.url));

const server = new Server({ name: "report" });

server.tool(
    "write_report",
    {
        description: "Writes a report about the texts in a directory.",
        input: { directory: z.string().default(LIBRARY) },
        task: "may",
    },
    async function* ({ directory }, ctx) {
        const names = (await readdir(directory)).filter((name) => name.endsWith(".txt"));
        if (names.length === 0) throw new ToolError(`there is no text in ${directory}`);
        let words = 0;
        for (const [index, name] of names.sort().entries()) {
            const text = await readFile(path.join(directory, name), "utf8");
            words += text.split(/\s+/).filter(Boolean).length;
            const lines = text.trimEnd().split("\n");
            yield `# ${name}: ${lines.length} lines\n${lines[0]}\n`;
            ctx.progress(index + 1, names.length, name);
        }
        yield new Result([], { structured: { files: names.length, words } });
    },
);

async function main() {
    const session = await connect([process.execPath, FILE, "serve"]);
    const stream = session.stream("write_report", {});
    for await (const segment of stream) process.stdout.write(segment.text ?? "");
    const { files, words } = stream.result.structured;
    console.log(`${files} files, ${words} words`);
    await session.close();
}

await (process.argv[2] === "serve" ? server.serveStdio() : main());
