// The client of the official TypeScript SDK on a server that it starts, for the same
// calls. official_client.mjs DIRECTORY calls WINDOW MILLISECONDS COMMAND... DIRECTORY
// contains node_modules.
import { createRequire } from "node:module";
import path from "node:path";

const [directory, , window, runMs, command, ...args] = process.argv.slice(2);
const require = createRequire(path.resolve(directory, "package.json"));
const { Client } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const WARM = 3000;
const text = "The quick brown fox";

const client = new Client(
    { name: "bench", version: "1.0.0" },
    { versionNegotiation: { mode: { pin: "2026-07-28" } } },
);
await client.connect(new StdioClientTransport({ command, args }));

async function call() {
    const result = await client.callTool({ name: "echo", arguments: { text } });
    if (result.content[0].text !== text) throw new Error("another text");
}

/** Makes calls, inFlight at once, while `goes` returns true; returns how many there
 * were. */
async function calls(inFlight, goes) {
    let done = 0;
    const caller = async () => {
        for (; goes(done); done++) await call();
    };
    await Promise.all(Array.from({ length: inFlight }, caller));
    return done;
}

const say = (name, value) => console.log(JSON.stringify({ name, value }));
await calls(Number(window), (done) => done < WARM);
const begin = performance.now();
const cpu = process.cpuUsage();
const end = begin + Number(runMs);
const done = await calls(Number(window), () => performance.now() < end);
const { user, system } = process.cpuUsage(cpu);
say("calls_per_s", (done / (performance.now() - begin)) * 1000);
say("client_cpu_us", (user + system) / done);
await client.close();
