/** `segue-mcp run` and `segue-mcp dev`. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { type TestContext, test } from "node:test";
import { connect, type Session, UnauthorizedError } from "segue-mcp";
import { internal, PACKAGE } from "./tree.js";

const COMMAND = path.join(PACKAGE, "bin", "segue-mcp");
const timeout = 120_000;

const SERVER = `
    import fs from "node:fs";
    import { setTimeout as sleep } from "node:timers/promises";
    import { Server } from "segue-mcp";
    import { WORD } from "./helper.mjs";
    console.log("printed while it is loaded");
    export const server = new Server({ name: "ran", version: "3" });
    export { server as again };
    const opens = async (file) => { while (!fs.existsSync(file)) await sleep(10); };
    const input = { type: "object", properties: { file: { type: "string" } } };
    server.tool("word", () => { console.log("printed while it runs"); return WORD; });
    server.tool("words", () => process.argv.slice(2).join());
    server.tool("hold", { input }, async (given) => {
        await opens(given.file);
        return WORD;
    });
    const kept = { input, task: "may", restartable: true };
    server.tool("steps", kept, async function* ({ file }, ctx) {
        if (!ctx.resumed) { yield "first in " + WORD; await opens(file); }
        yield "second in " + WORD;
    });
`;

/** A directory with a server and a module that it imports. */
class Project {
    readonly root = fs.mkdtempSync(path.join(os.tmpdir(), "segue-project-"));
    readonly heard: string[] = [];
    #wake: () => void = () => undefined;
    #seen = 0;

    constructor(context: TestContext) {
        const modules = path.join(this.root, "node_modules");
        fs.mkdirSync(modules);
        fs.symlinkSync(PACKAGE, path.join(modules, "segue-mcp"));
        this.write("server.mjs", SERVER);
        this.word("one");
        context.after(() => fs.rmSync(this.root, { recursive: true }));
    }

    path(name: string): string {
        return path.join(this.root, name);
    }

    write(name: string, text: string): void {
        fs.writeFileSync(this.path(name), text);
    }

    word(word: string): void {
        this.write("helper.mjs", `export const WORD = ${JSON.stringify(word)};\n`);
    }

    readonly hear = (line: string): void => {
        this.heard.push(line);
        this.#wake();
    };

    /** Waits for a line of standard error after those that were waited for before. */
    async until(text: string): Promise<string> {
        for (;;) {
            while (this.#seen < this.heard.length) {
                const line = this.heard[this.#seen++] as string;
                if (line.includes(text)) return line;
            }
            await new Promise<void>((resolve) => {
                this.#wake = resolve;
            });
        }
    }

    /** Starts a command, whose standard error is heard. It ends with the test. */
    start(context: TestContext, ...words: string[]): ChildProcess {
        const child = spawn(COMMAND, words, {
            cwd: this.root,
            stdio: ["ignore", "ignore", "pipe"],
        });
        assert.ok(child.stderr);
        readline.createInterface({ input: child.stderr }).on("line", this.hear);
        const ended = once(child, "exit");
        context.after(async () => {
            child.kill("SIGINT");
            assert.deepEqual(await ended, [0, null], this.heard.join("\n"));
        });
        return child;
    }
}

async function word(session: Session): Promise<string> {
    return (await session.call("word")).text;
}

test("run serves standard input and output", { timeout }, async (context) => {
    const project = new Project(context);
    for (const file of ["server.mjs", "server.mjs:again"]) {
        const command = [COMMAND, "run", project.path(file), "--", "--fast", "x"];
        const session = await connect(command, { onStderr: project.hear });
        assert.equal(session.peer.server.version, "3");
        assert.equal((await session.call("words")).text, "--fast,x");
        assert.equal(await word(session), "one");
        await session.close();
    }
    assert.equal(await project.until("while it is loaded"), "printed while it is loaded");
    assert.equal(await project.until("while it runs"), "printed while it runs");
});

test("run serves HTTP with tokens and a store", { timeout }, async (context) => {
    const project = new Project(context);
    // the SHA-256 of "secret"
    const digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    project.write("tokens.txt", `ada ${digest}\n`);
    const paths = ["--path", "/here", "--metrics-path", "/metrics"];
    const address = ["--http", "127.0.0.1:0", ...paths];
    const kept = ["--tokens", "tokens.txt", "--store", "tasks.db", "--drain", "1"];
    project.start(context, "run", "server.mjs", ...address, ...kept);
    const url = (await project.until("http://")).replace(
        "The server ran listens on ",
        "",
    );
    assert.ok(url.endsWith("/here"));
    await assert.rejects(connect(url), UnauthorizedError);
    const session = await connect(url, { auth: "secret" });
    const task = await session.start("steps", { file: project.root });
    assert.ok((await task.result()).text.endsWith("second in one"));
    await session.close();
    const headers = { authorization: "Bearer secret" };
    const metrics = await fetch(url.replace("/here", "/metrics"), { headers });
    assert.match(await metrics.text(), /^segue_operations_tasks_total{.*} 1$/m);
    assert.ok(fs.existsSync(project.path("tasks.db")));
});

test("run logs events as lines of JSON", { timeout }, async (context) => {
    const project = new Project(context);
    const words = ["--http", "127.0.0.1:0", "--log", "json"];
    const child = project.start(context, "run", "server.mjs", ...words);
    const url = (await project.until(" listens on ")).split(" listens on ")[1] ?? "";
    const session = await connect(url);
    await session.call("hold", { file: project.root });
    await session.close();
    child.kill("SIGINT");
    await once(child, "close");
    const lines = project.heard.filter((line) => line.startsWith("{"));
    const names = new Set(lines.map((line) => JSON.parse(line).event));
    for (const name of ["listener_opened", "call_ended", "listener_closed"])
        assert.ok(names.has(name), name);
    assert.ok(!lines.join().includes(project.root), "an argument");
});

const LIFE = `
    import fs from "node:fs";
    import { Server } from "segue-mcp";
    import { WORD } from "./helper.mjs";
    const note = (text) => fs.appendFileSync("life", text + " " + WORD + "\\n");
    const lifespan = async function* () {
        note("begin");
        try { yield { word: WORD }; }
        finally { await new Promise((resolve) => setTimeout(resolve, 50)); note("end"); }
    };
    export const server = new Server({ name: "lives", lifespan });
    server.tool("word", (_, ctx) => ctx.lifespan.word);
`;

test("run: the lifespan begins and ends", { timeout }, async (context) => {
    const project = new Project(context);
    project.write("server.mjs", LIFE);
    const lived = () => fs.readFileSync(project.path("life"), "utf8");
    const command = [COMMAND, "run", "server.mjs"];
    const overStdio = await connect(command, { cwd: project.root, onStderr() {} });
    assert.equal(await word(overStdio), "one");
    await overStdio.close();
    assert.equal(lived(), "begin one\nend one\n");
    fs.rmSync(project.path("life"));
    const child = project.start(context, "run", "server.mjs", "--http", "127.0.0.1:0");
    const url = (await project.until("http://")).split(" listens on ")[1] ?? "";
    const session = await connect(url);
    assert.equal(await word(session), "one");
    await session.close();
    child.kill("SIGINT");
    await once(child, "exit");
    assert.equal(lived(), "begin one\nend one\n");
});

test("dev: each process has a lifespan", { timeout }, async (context) => {
    const project = new Project(context);
    project.write("server.mjs", LIFE);
    const words = ["--http", "127.0.0.1:0", "--drain", "1"];
    const child = project.start(context, "dev", "server.mjs", ...words);
    const url = (await project.until("Ctrl-C ends it")).split(" ")[2] ?? "";
    const session = await connect(url);
    assert.equal(await word(session), "one");
    project.word("two");
    await project.until("reloaded");
    while ((await word(session)) !== "two");
    await session.close();
    child.kill("SIGINT");
    await once(child, "exit");
    const lived = fs.readFileSync(project.path("life"), "utf8").split("\n");
    assert.deepEqual(lived.sort(), ["", "begin one", "begin two", "end one", "end two"]);
});

test("run says what is wrong", { timeout }, async (context) => {
    const project = new Project(context);
    const cases: [words: string[], why: RegExp, text?: string][] = [
        [["x.mjs"], /^segue-mcp: x\.mjs exports no Server/, "export const a = 1;"],
        [
            ["x.mjs"],
            /has several servers: name one, x\.mjs:a or x\.mjs:b/,
            'import { Server } from "segue-mcp";' +
                'export const a = new Server({name: "a"}), b = new Server({name: "b"});',
        ],
        [["server.mjs:servr"], /has no "servr"; did you mean server\.mjs:server\?/],
        [
            ["x.mjs:a"],
            /a is not a Server of segue-mcp, but number/,
            "export const a = 1;",
        ],
        [
            ["x.mjs"],
            /Error: mine\n {4}at file:.*x\.mjs:1:7\nsegue-mcp:/,
            'throw new Error("mine")',
        ],
        [["x.mjs"], /^file:.*x\.mjs:2\nconst = 1\n/, "const a = 0;\nconst = 1\n"],
        [["x.mjs"], /Cannot find module .*none\.mjs/, 'import "./none.mjs";'],
        [["server.mjs", "--tokens", "t"], /--tokens needs --http/],
        [["server.mjs", "--metrics-path", "/m"], /--metrics-path needs --http/],
        [["server.mjs", "--board-path", "/b"], /--board-path needs --http/],
        [["server.mjs", "--http", "nowhere"], /has to be host:port/],
        [["server.mjs", "--drain", "soon"], /'soon' is no number of seconds/],
        [["server.mjs", "--unknown"], /Unknown option '--unknown'/],
        [["server.mjs", "more"], /unexpected argument 'more'/],
        [["none.mjs"], /none\.mjs: there is no such file/],
        [["."], /\. is a directory/],
        [["x.json"], /x\.json is no file of JavaScript/, "{}"],
    ];
    for (const [words, why, text] of cases) {
        if (text !== undefined) project.write(words[0]?.split(":")[0] ?? "", text);
        const done = spawnSync(COMMAND, ["run", ...words], {
            encoding: "utf8",
            cwd: project.root,
            input: "",
        });
        assert.match(done.stderr.replace("printed while it is loaded\n", ""), why);
        assert.equal(done.status, 2, done.stderr);
    }
    for (const words of [["tools", "x"], []]) {
        const done = spawnSync(COMMAND, words, { encoding: "utf8" });
        assert.match(done.stderr, /segue of the Python package/);
        assert.equal(done.status, 2);
    }
});

for (const era of ["auto", "legacy"] as const) {
    test(`dev: clients, calls and tasks go on (${era})`, { timeout }, async (context) => {
        const project = new Project(context);
        const words = ["--http", "127.0.0.1:0", "--drain", "1"];
        project.start(context, "dev", "server.mjs", ...words);
        const url = (await project.until("Ctrl-C ends it")).split(" ")[2] ?? "";
        const session = await connect(url, { era });
        assert.equal(await word(session), "one");
        const gate = project.path("gate");
        const held = session.call("hold", { file: gate });
        const stream = session.stream("steps", { file: project.path("never") });
        const segments = stream[Symbol.asyncIterator]();
        assert.equal((await segments.next()).value?.text, "first in one");
        project.word("two");
        await project.until("reloaded");
        // The old process may still answer for a moment.
        while ((await word(session)) !== "two");
        fs.writeFileSync(gate, "");
        assert.equal((await held).text, "one");
        assert.equal((await segments.next()).value?.text, "second in two");
        assert.equal((await segments.next()).done, true);
        await stream.result;

        project.write("helper.mjs", "const = 1\n");
        await project.until("SyntaxError");
        await project.until("the server before the change goes on");
        assert.equal(await word(session), "two");
        await session.close();
    });
}

test("dev: over stdio the client stays connected", { timeout }, async (context) => {
    const project = new Project(context);
    const command = [COMMAND, "dev", "--stdio", project.path("server.mjs")];
    const session = await connect(command, { onStderr: project.hear });
    assert.equal(await word(session), "one");
    const changes = await session.subscribe({ tools: true });
    const heard = changes[Symbol.asyncIterator]();
    let change = heard.next(); // this wait keeps the process alive
    project.write("server.mjs", `${SERVER}server.tool("more", () => "more");`);
    await project.until("reloaded");
    for (;;) {
        assert.equal((await change).value?.kind, "tools");
        const tools = await session.listTools();
        if (tools.some((tool) => tool.name === "more")) break; // not the old process
        change = heard.next();
    }
    assert.equal((await session.call("more")).text, "more");
    assert.equal(session.connections, 1);
    await session.close();
});

test("dev: the official client hears of changes", { timeout }, async (context) => {
    const load = (name: string) => import(`@modelcontextprotocol/sdk/${name}.js`);
    const { Client } = await load("client/index");
    const { StreamableHTTPClientTransport } = await load("client/streamableHttp");
    const { ToolListChangedNotificationSchema } = await load("types");
    const project = new Project(context);
    project.start(context, "dev", "server.mjs", "--http", "127.0.0.1:0", "--drain", "1");
    const url = (await project.until("Ctrl-C ends it")).split(" ")[2] ?? "";
    const client = new Client({ name: "official", version: "1" });
    let wake: () => void = () => undefined;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => wake());
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    for (const name of ["first", "second"]) {
        let changed = new Promise<void>((resolve) => {
            wake = resolve;
        });
        project.write("server.mjs", `${SERVER}server.tool("${name}", () => "more");`);
        await project.until("reloaded");
        for (;;) {
            await changed;
            changed = new Promise((resolve) => {
                wake = resolve;
            });
            const { tools } = await client.listTools();
            // Otherwise the old process has answered.
            if (tools.some((tool: { name: string }) => tool.name === name)) break;
        }
    }
    await client.close();
});

test("dev: an address that is in use is an error", { timeout }, async (context) => {
    const project = new Project(context);
    const held = net.createServer().listen(0, "127.0.0.1");
    await once(held, "listening");
    const address = `127.0.0.1:${(held.address() as net.AddressInfo).port}`;
    const words = ["dev", "server.mjs", "--http", address];
    const child = spawn(COMMAND, words, {
        cwd: project.root,
        stdio: ["ignore", 1, "pipe"],
    });
    assert.ok(child.stderr);
    readline.createInterface({ input: child.stderr }).on("line", project.hear);
    assert.deepEqual(await once(child, "exit"), [4, null]);
    await project.until(`${address}: Address already in use`);
    held.close();
});

test("changes that follow each other count as one", async (context) => {
    const { Watch } = internal<typeof import("segue-mcp/cli/watching")>("cli/watching");
    const project = new Project(context);
    const files = ["a.mjs", "b.mjs"].map((name) => project.path(name));
    const watch = new Watch();
    watch.add(files);
    for (const file of files) fs.writeFileSync(file, "");
    assert.ok(watch.look() && !watch.look());
    await watch.wait(new AbortController().signal);
    assert.deepEqual(watch.take(), files);
    assert.deepEqual([watch.changed.size, watch.size], [0, 2]);
});

test("an unknown command is named", () => {
    const done = spawnSync(COMMAND, ["serve", "server.mjs"], { encoding: "utf8" });
    assert.equal(done.status, 2);
    assert.match(done.stderr, /^segue-mcp: there is no command 'serve'\nusage: /);
});
