/** What a server loads and when: a client that waits for a server that was restarted must
 * not wait for the validator of JSON Schemas. Each case is a process of its own. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { PACKAGE } from "./tree.js";

/** Runs a program with a server, and returns the object that it prints. */
async function play(body: string): Promise<Record<string, boolean>> {
    const program = `
        const { connect, Server } = require(process.argv[1]);
        const http = require("node:http");
        const server = new Server({ name: "loads" });
        const isLoaded = () =>
            Object.keys(require.cache).some((one) => one.includes("/node_modules/ajv/"));
        (async () => {
            ${body}
            await server.close();
        })();`;
    const run = promisify(execFile);
    const { stdout } = await run(process.execPath, ["-e", program, PACKAGE]);
    return JSON.parse(stdout) as Record<string, boolean>;
}

const TYPED = `server.tool(
    "typed",
    { input: { type: "object", properties: { n: { type: "integer" } } } },
    ({ n }) => String(n),
);`;

test("a tool without input needs no validator", async () => {
    const seen = await play(`
        server.tool("plain", () => "text");
        server.tool("open", { forbidExtra: false }, (args) => JSON.stringify(args));
        const session = await connect(server);
        const plain = (await session.call("plain")).text === "text";
        const open = (await session.call("open", { a: 1 })).text === '{"a":1}';
        const bad = session.call("plain", { a: 1 });
        const refused = await bad.then(() => false, () => true);
        await session.close();
        console.log(JSON.stringify({ plain, open, refused, loaded: isLoaded() }));
    `);
    assert.deepEqual(seen, { plain: true, open: true, refused: true, loaded: false });
});

test("a server over HTTP has its validators before it listens", async () => {
    const seen = await play(`
        ${TYPED}
        const listener = await server.listenHttp({ port: 0 });
        console.log(JSON.stringify({ listening: isLoaded() }));
    `);
    assert.deepEqual(seen, { listening: true });
});

test("a handler has its validators before it answers", async () => {
    const seen = await play(`
        ${TYPED}
        const mcp = server.handler();
        const listener = http.createServer(mcp).listen(0, "127.0.0.1");
        await new Promise((resolve) => listener.once("listening", resolve));
        const { port } = listener.address();
        const session = await connect("http://127.0.0.1:" + port + "/mcp");
        const answered = isLoaded();
        await session.close();
        await mcp.close();
        listener.close();
        console.log(JSON.stringify({ answered }));
    `);
    assert.deepEqual(seen, { answered: true });
});
