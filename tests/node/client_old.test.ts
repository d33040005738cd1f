/**
 * Servers of the transport HTTP+SSE of 2024-11-05: tests/proxy/old_server.py is one.
 * tests/python/test_client_old.py has the same scenes.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import readline from "node:readline";
import { test } from "node:test";
import { connect, NegotiationError } from "segue-mcp";
import { TREE } from "./tree.js";

const OLD = path.join(TREE, "tests/proxy/old_server.py");

/** Runs `work` with the URL of an old server. */
async function withOldServer(work: (url: string) => Promise<void>): Promise<void> {
    const child = spawn("python3", ["-B", OLD], { stdio: ["pipe", "pipe", "inherit"] });
    const ended = once(child, "exit");
    try {
        const lines = readline.createInterface({ input: child.stdout });
        const [url] = (await once(lines, "line")) as [string];
        await work(url);
    } finally {
        child.stdin.end();
        await ended;
    }
}

for (const httpSse of ["auto", "only"] as const) {
    test(`R-0-9, R-0-11 a server of 2024-11-05 works: ${httpSse}`, async () => {
        await withOldServer(async (url) => {
            const steps: number[] = [];
            const session = await connect(url, {
                httpSse,
                onElicit: () => ({ action: "accept", content: { x: 1 } }),
            });
            try {
                const tools = await session.listTools();
                assert.equal(tools[0]?.name, "odd");
                const done = await session.call(
                    "steps",
                    {},
                    { onProgress: ({ progress }) => steps.push(progress) },
                );
                assert.equal(done.text, "done");
                assert.deepEqual(steps, [0.5, 1.5, 2.5]);
                const asked = await session.call("ask", {
                    method: "elicitation/create",
                    params: {
                        message: "m",
                        requestedSchema: { type: "object", properties: {} },
                    },
                });
                const { result } = asked.structured as { result: { action: string } };
                assert.equal(result.action, "accept");
            } finally {
                await session.close();
            }
        });
    });
}

test("R-0-11 it can be switched off", async () => {
    await withOldServer((url) =>
        assert.rejects(connect(url, { httpSse: "never" }), (error) => {
            assert.ok(error instanceof NegotiationError);
            assert.match(error.message, /HTTP 405/);
            return true;
        }),
    );
});

test("R-0-11 with only the refusal of the stream is told", async () => {
    await withOldServer((url) =>
        assert.rejects(connect(`${url}/nothing`, { httpSse: "only" }), /HTTP 404/),
    );
});

test("an unknown choice is refused", async () => {
    const httpSse = "perhaps" as "auto";
    await assert.rejects(
        connect("http://127.0.0.1:1/sse", { httpSse }),
        /auto, never, only/,
    );
});
