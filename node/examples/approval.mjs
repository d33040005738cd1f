/**
 * An approval half-way: the tool prepares a release, asks the user, and goes on or gives
 * up. The question reaches the user of whichever client has called.
 *
 *     node approval.mjs          a client that says yes, then one that says no
 *     node approval.mjs serve    the server, on standard input and output
 */
import { fileURLToPath } from "node:url";
import { connect, Declined, Server } from "segue-mcp";
import { z } from "zod";

const HOSTS = ["alpha", "beta", "gamma"];

const server = new Server({ name: "approval" });

async function agrees(ctx, question) {
    try {
        return await ctx.ask(question, z.boolean());
    } catch (error) {
        if (error instanceof Declined) return false;
        throw error;
    }
}

server.tool(
    "release",
    {
        description: "Releases a version to all hosts, if the user agrees.",
        input: { version: z.string() },
        task: "may",
    },
    async function* ({ version }, ctx) {
        yield `${version} is built\n`;
        if (!(await agrees(ctx, `Release ${version} to ${HOSTS.length} hosts?`))) {
            yield `${version} is withdrawn\n`;
            return;
        }
        for (const host of HOSTS) yield `${host} runs ${version}\n`;
    },
);

async function call(version, answer) {
    const session = await connect(
        [process.execPath, fileURLToPath(import.meta.url), "serve"],
        {
            onElicit({ message }) {
                console.log(`${message} ${answer ? "yes" : "no"}`);
                return { action: "accept", content: { value: answer } };
            },
        },
    );
    for await (const segment of session.stream("release", { version })) {
        process.stdout.write(segment.text ?? "");
    }
    await session.close();
}

async function main() {
    await call("1.2.0", true);
    await call("1.3.0", false);
}

await (process.argv[2] === "serve" ? server.serveStdio() : main());
