// Follows the quick start of node/README.md, or a section of README.md, as a new user
// would.
//
// quick_start.mjs README DIRECTORY [SECTION]: saves the two programs in a new directory
// below that one, where the package is installed, starts the server, runs the client, and
// compares the output with the page. Only the port is another one.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { blocks, section } from "./page.mjs";

const DEADLINE = 30_000;

function freePort() {
    return new Promise((resolve) => {
        const probe = createServer().listen(0, "127.0.0.1", () => {
            const { port } = probe.address();
            probe.close(() => resolve(String(port)));
        });
    });
}

/** Starts the server and waits until it prints where it listens. */
function start(directory) {
    const server = spawn(process.execPath, ["server.mjs"], {
        cwd: directory,
        stdio: ["ignore", "pipe", "inherit"],
    });
    const ready = new Promise((resolve, reject) => {
        server.stdout.once("data", resolve);
        server.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
        setTimeout(() => reject(new Error("no server")), DEADLINE).unref();
    });
    return { server, ready };
}

function runClient(directory) {
    const done = spawnSync(process.execPath, ["client.mjs"], {
        cwd: directory,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "inherit"],
        timeout: DEADLINE,
    });
    if (done.status !== 0) throw new Error(`client.mjs ended with ${done.status}`);
    return done.stdout;
}

/** Returns what the client prints by the page: a block, or one number a line. */
function outputOf(page) {
    const block = blocks(page).find(({ before }) => before.endsWith("prints"));
    if (block) return block.code;
    const sentence = /The client prints((?:\s|\d+|,|and)+)\./.exec(page);
    if (!sentence) throw new Error("the page does not say what the client prints");
    return sentence[1]
        .match(/\d+/g)
        .map((number) => `${number}\n`)
        .join("");
}

async function play(readme, directory, title) {
    const port = await freePort();
    const page = section(readFileSync(readme, "utf8"), title);
    const parts = blocks(page);
    for (const { before, language, code } of parts) {
        const name = /`(\w+\.mjs)`/.exec(before)?.[1];
        if (language !== "js" || !name) continue;
        writeFileSync(path.join(directory, name), code.replace("8000", port));
    }
    const wanted = outputOf(page);
    const { server, ready } = start(directory);
    try {
        await ready;
        const printed = runClient(directory);
        if (printed !== wanted) throw new Error(`printed\n${printed}\nnot\n${wanted}`);
    } finally {
        server.removeAllListeners("exit");
        server.kill();
    }
}

const [readme, place, title = "Quick start"] = process.argv.slice(2);
const directory = mkdtempSync(path.join(path.resolve(place), "quick-start-"));
try {
    await play(readme, directory, title);
    console.log(`${readme}: ok with Node ${process.version}`);
} finally {
    rmSync(directory, { recursive: true });
}
