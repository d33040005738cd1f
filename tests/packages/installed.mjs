// Uses installed Node packages as the guides show: over stdio, through the proxy, and over
// HTTP with a server that is killed during a call.
//
// installed.mjs DIRECTORY: the packages are installed in DIRECTORY. `ldd` may name no
// library that is outside of the package, except those of the C library. An emulator may
// run the programs. Prints the time that the import takes. tests/node/quick_start.mjs does
// the same over HTTP.
import assert from "node:assert";
import { spawn, spawnSync } from "node:child_process";
import {
    mkdtempSync,
    readdirSync,
    readFileSync,
    readlinkSync,
    rmSync,
    writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const SERVER = `
import { Server } from "segue-mcp";
const server = new Server({ name: "counter" });
server.tool("count", { task: "may" }, async function* () {
    for (let number = 1; number <= 3; number++) yield \`\${number}\\n\`;
});
await server.serveStdio();
`;
const KILLED = `
import { Server } from "segue-mcp";
const server = new Server({ name: "killed" });
server.tool("pages", { task: "may", restartable: true }, async function* (_, ctx) {
    for (let page = ctx.resumed?.segments ?? 0; page < 5; page++) {
        yield \`page \${page + 1}\\n\`;
        if (page === 2 && !ctx.resumed) await new Promise(() => {}); // until it is killed
    }
});
const port = Number(process.argv[2]);
const listener = await server.listenHttp({ port, store: "tasks.db" });
console.log(listener.url);
`;
// Without a vdso, as in qemu, the loader lists the file itself, too, without a name.
const INSIDE_LIBC =
    /^(\(0x|linux-vdso|\/?[\w/.-]*ld-(linux|musl)|lib(c|m|dl|rt|pthread|resolv)\.(so|musl-))/;
// ldd of musl misses the functions that Node has for addons, and refuses static programs.
const OF_MUSL = /^.*: (napi_\w+: symbol not found|Not a valid dynamic program)\n/gm;
const DEADLINE = 240_000; // an emulator on a busy machine is slow

const place = path.resolve(process.argv[2]);
const require = createRequire(path.join(place, "x.mjs"));
const { connect } = require("segue-mcp");

/** Returns the directory with the native files of this platform. */
function nativeFiles() {
    const modules = path.join(place, "node_modules");
    const found = readdirSync(modules).filter((name) => /^segue-mcp-linux-/.test(name));
    assert.strictEqual(found.length, 1, `${found}`);
    return path.join(modules, found[0]);
}

function checkLibraries(directory) {
    const files = ["segue.node", "libsegue.so.0.2", "segue-proxy", "segue-proxy-guard"];
    for (const file of files) {
        const arguments_ = [path.join(directory, file)];
        const said = spawnSync("ldd", arguments_, { encoding: "utf8" });
        const missing = said.stderr.replaceAll(OF_MUSL, "");
        assert(said.status === 0 || (said.stderr && !missing), missing);
        for (const line of said.stdout.split("\n").filter(Boolean)) {
            const [name, found = ""] = line.trim().split(" => ");
            const inside = found.startsWith(`${directory}/`);
            assert(INSIDE_LIBC.test(name) || inside, line);
        }
    }
    console.log(`ldd: ok, ${files.length} files`);
}

async function count(command) {
    const texts = [];
    const session = await connect(command);
    for await (const segment of session.stream("count")) texts.push(segment.text ?? "");
    assert.strictEqual(texts.join(""), "1\n2\n3\n");
    return session;
}

/** Returns whether a process of the program is there. */
function runs(program) {
    return readdirSync("/proc").some((pid) => {
        try {
            if (!/^\d+$/.test(pid)) return false;
            const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
            return readlinkSync(`/proc/${pid}/exe`) === program || words.includes(program);
        } catch {
            return false; // the process has ended, or is another user's
        }
    });
}

/** The proxy speaks stdio with the client, and with the server. The guard of the server
 * is the small program of the package. */
async function throughProxy(server, directory) {
    const command = path.join(place, "node_modules", ".bin", "segue-mcp");
    const session = await count([command, "proxy", "--", process.execPath, server]);
    assert(runs(path.join(directory, "segue-proxy-guard")));
    await session.close();
}

/** Starts the server, and waits until it prints its address. */
async function serve(server, port) {
    const process_ = spawn(process.execPath, [server, port], {
        cwd: path.dirname(server),
        stdio: ["ignore", "pipe", "inherit"],
    });
    const [first] = await process_.stdout.take(1).toArray();
    assert(first, "the server ended");
    return { process_, url: String(first).trim() };
}

/** Kills the server after the third segment. The next one continues the call. */
async function killed(file) {
    let { process_, url } = await serve(file, "0");
    const texts = [];
    try {
        const session = await connect(url);
        for await (const segment of session.stream("pages")) {
            texts.push(segment.text ?? "");
            if (texts.length !== 3) continue;
            const ended = new Promise((resolve) => process_.once("exit", resolve));
            process_.kill("SIGKILL");
            await ended;
            ({ process_ } = await serve(file, new URL(url).port));
        }
        await session.close();
    } finally {
        process_.kill("SIGKILL");
    }
    const wanted = [1, 2, 3, 4, 5].map((page) => `page ${page}\n`);
    assert.deepStrictEqual(texts, wanted);
}

function startTime() {
    const begun = performance.now();
    const code = 'require("segue-mcp")';
    const done = spawnSync(process.execPath, ["-e", code], { cwd: place });
    assert.strictEqual(done.status, 0, String(done.stderr));
    return (performance.now() - begun) / 1000;
}

setTimeout(() => {
    throw new Error(`not over after ${DEADLINE / 1000} s`);
}, DEADLINE).unref();
const native = nativeFiles();
checkLibraries(native);
const directory = mkdtempSync(path.join(place, "installed-"));
try {
    const server = path.join(directory, "server.mjs");
    writeFileSync(server, SERVER);
    await (await count([process.execPath, server])).close();
    console.log("stdio: ok");
    await throughProxy(server, native);
    console.log("proxy: ok");
    writeFileSync(server, KILLED);
    await killed(server);
    console.log("kill and resume: ok");
} finally {
    rmSync(directory, { recursive: true });
}
const least = Math.min(startTime(), startTime(), startTime());
console.log(`require("segue-mcp"): ${least.toFixed(3)} s with Node ${process.version}`);
