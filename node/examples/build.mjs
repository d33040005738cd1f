/**
 * A runner of builds with a live log: each line of a step is a segment as soon as the
 * step prints it. A step that fails ends the build, and a client that cancels ends the
 * step.
 *
 *     node build.mjs          a client that starts the server and runs two builds
 *     node build.mjs serve    the server, on standard input and output
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import readline from "node:readline";
import { fileURLToPath } from "node:url";
import { connect, Server, ToolError } from "segue-mcp";
import { z } from "zod";

const STEPS = {
    compile: "for name in main parse print; do echo compiling $name.c; done",
    test: "echo 12 tests passed",
    package: "echo packing; echo no space left on the disk; exit 3",
    publish: "echo publishing",
};

const server = new Server({ name: "build" });

server.tool(
    "run_build",
    {
        description: "Runs steps of the build, one after the other.",
        input: { steps: z.array(z.enum(Object.keys(STEPS))) },
    },
    async function* ({ steps }, ctx) {
        for (const name of steps) {
            const child = spawn(STEPS[name], {
                shell: true,
                stdio: ["ignore", "pipe", "inherit"],
                detached: true, // the step is a group of processes, which end together
            });
            await once(child, "spawn");
            const ended = once(child, "close");
            const end = () => {
                if (child.exitCode === null && child.signalCode === null)
                    process.kill(-child.pid, "SIGKILL");
            };
            ctx.signal.addEventListener("abort", end); // the client has cancelled
            if (ctx.signal.aborted) end();
            try {
                const lines = readline.createInterface({ input: child.stdout });
                for await (const line of lines) yield `[${name}] ${line}\n`;
                const [status] = await ended;
                if (status !== 0)
                    throw new ToolError(`${name} failed with status ${status}\n`);
            } finally {
                ctx.signal.removeEventListener("abort", end);
                end();
            }
        }
        yield "the build is done\n";
    },
);

async function main() {
    const session = await connect([
        process.execPath,
        fileURLToPath(import.meta.url),
        "serve",
    ]);
    for (const steps of [
        ["compile", "test"],
        ["test", "package", "publish"],
    ]) {
        const stream = session.stream("run_build", { steps });
        try {
            for await (const segment of stream) process.stdout.write(segment.text ?? "");
        } catch (error) {
            if (!(error instanceof ToolError)) throw error; // its text was the last segment
        }
    }
    await session.close();
}

await (process.argv[2] === "serve" ? server.serveStdio() : main());
