/**
 * The demo's third reader, in Node: it reads the task of the first from its first
 * segment.
 *
 *     reader.js URL STATE OUTPUT
 *
 * STATE is the state file of the first reader, whose third word is a token of the task.
 * The output on standard error is for the conductor.
 */
import { open, readFile } from "node:fs/promises";
import { connect, NotResumableError } from "segue-mcp";

function say(line: string): void {
    process.stderr.write(`reader ${line}\n`);
}

async function read(url: string, token: string, output: string): Promise<void> {
    const era = process.env["SEGUE_DEMO_ERA"] === "legacy" ? "legacy" : "auto";
    // The environment's proxy is not for this machine. The first connection may be cut.
    const session = await connect(url, { era, proxy: "", connectAttempts: 20 });
    const first = session.resume(token);
    const { id } = first;
    if (id === undefined) throw new Error("the token is of no task");
    try {
        first.detach();
    } catch (error) {
        // the request has ended by itself
        if (!(error instanceof NotResumableError)) throw error;
    }
    const task = session.task(id);
    const file = await open(output, "w");
    let count = 0;
    for await (const segment of task) {
        count++;
        if (segment.number !== count) {
            throw new Error(`segment ${segment.number} after ${count - 1}`);
        }
        await file.write(segment.text ?? "");
        say(`at ${count}`);
    }
    await file.close();
    const result = await task.result();
    if (result.isError) throw new Error(`the tool refused: ${result.text}`);
    await session.close();
}

const [url, state, output] = process.argv.slice(2) as [string, string, string];
const token = /^\S+\s+\S+\s+([\s\S]*)/.exec(await readFile(state, "utf8"))?.[1] ?? "";
try {
    await read(url, token.trim(), output);
    say("done");
} catch (error) {
    say(`failed ${error instanceof Error ? `${error.name}: ${error.message}` : error}`);
    process.exitCode = 1;
}
