/** `segue-mcp install`: the text of a configuration, and the file. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { connect } from "segue-mcp";
import { internal, PACKAGE, TREE } from "./tree.js";

type JsonText = typeof import("segue-mcp/cli/jsontext");
type Hosts = typeof import("segue-mcp/cli/hosts");
const { getMember, setMember, TextError } = internal<JsonText>("cli/jsontext");
const { HOSTS } = internal<Hosts>("cli/hosts");

interface Case {
    readonly name: string;
    readonly comments?: boolean;
    readonly before: string;
    readonly path: readonly string[];
    readonly value: unknown;
    readonly after?: string;
    readonly error?: string;
}

const file = path.join(TREE, "tests", "files", "install.json");
const { cases } = JSON.parse(fs.readFileSync(file, "utf8")) as { cases: readonly Case[] };

for (const one of cases) {
    test(`vector: ${one.name}`, () => {
        const change = (): string =>
            setMember(one.before, one.path, one.value, one.comments ?? false);
        if (one.error === undefined) {
            assert.equal(change(), one.after);
            return;
        }
        assert.throws(change, (error) => {
            assert.ok(error instanceof TextError);
            return error.message.includes(one.error ?? "");
        });
    });
}

test("deep nesting is an error", () => {
    const deep = `{"a":${"[".repeat(1000)}${"]".repeat(1000)}}`;
    assert.throws(() => setMember(deep, ["b"], 1, false), /nested too deep/);
});

test("both packages know the same hosts", () => {
    const python = fs.readFileSync(
        path.join(TREE, "python", "src", "segue", "cli", "hosts.py"),
        "utf8",
    );
    const names = [...python.matchAll(/^ {4}"([\w-]+)": Host\(/gm)].map((one) => one[1]);
    assert.deepEqual(Object.keys(HOSTS), names);
    for (const host of Object.values(HOSTS)) {
        const short = host.file.replace("$CONFIG/Code/User", "");
        assert.ok(python.includes(short), host.title);
        if (host.project) assert.ok(python.includes(`"${host.project}"`), host.title);
        if (host.member) assert.ok(python.includes(`"${host.member}"`), host.title);
    }
});

interface Done {
    readonly out: string;
    readonly err: string;
    readonly code: number | null;
}

/** A home directory, and a file with a server that imports the package. */
class Home {
    readonly root = fs.mkdtempSync(path.join(os.tmpdir(), "segue-home-"));
    readonly file = path.join(this.root, "server.cjs");

    constructor() {
        const modules = path.join(this.root, "node_modules");
        fs.mkdirSync(modules);
        fs.symlinkSync(PACKAGE, path.join(modules, "segue-mcp"));
        this.write(
            'const { Server } = require("segue-mcp"); console.log("printed");' +
                'exports.server = new Server({ name: "the server" });',
        );
    }

    write(text: string): void {
        fs.writeFileSync(this.file, text);
    }

    install(...words: string[]): Done {
        return this.run(["install", ...words]);
    }

    run(words: readonly string[], more: Record<string, string> = {}): Done {
        const command = path.join(PACKAGE, "bin", "segue-mcp");
        const { PATH } = process.env;
        const done = spawnSync(command, words, {
            encoding: "utf8",
            cwd: this.root,
            env: { PATH, HOME: this.root, COPIED: "from here", ...more },
        });
        return { out: done.stdout, err: done.stderr, code: done.status };
    }

    end(): void {
        fs.rmSync(this.root, { recursive: true });
    }
}

test("install enters a server, and the host can start it", async () => {
    const home = new Home();
    try {
        const config = path.join(home.root, ".cursor", "mcp.json");
        const words = ["cursor", "server.cjs", "--env", "A=b", "--env", "COPIED"];
        const dry = home.install(...words, "--dry-run");
        assert.ok(dry.out.includes('"the-server": {'), dry.err);
        assert.ok(!fs.existsSync(config));

        fs.mkdirSync(path.dirname(config));
        const before =
            '{ "theme":"dark",\n  "mcpServers": {"other": {"command":"x"}} }\n';
        fs.writeFileSync(config, before);
        fs.chmodSync(config, 0o640);
        const done = home.install(...words);
        assert.equal(done.code, 0, done.err);
        assert.ok(done.out.startsWith("Added the server the-server of Cursor: "));
        assert.ok(!done.out.includes("printed"));
        const after = fs.readFileSync(config, "utf8");
        assert.ok(after.startsWith(before.slice(0, before.indexOf("}}"))));
        assert.equal(fs.statSync(config).mode & 0o777, 0o640);
        const found = fs.readdirSync(path.dirname(config));
        const backup = found.find((name) => name.endsWith(".bak")) ?? "";
        assert.equal(
            fs.readFileSync(path.join(path.dirname(config), backup), "utf8"),
            before,
        );
        assert.equal(found.length, 2);

        const { command, args, env } = JSON.parse(after).mcpServers["the-server"];
        assert.deepEqual(env, { A: "b", COPIED: "from here" });
        const session = await connect([command, ...args]);
        assert.equal(session.peer.server.name, "the server");
        await session.close();

        assert.ok(home.install(...words).out.includes("already"));
        const changed = home.install(
            "cursor",
            "server.cjs",
            "--store",
            "t.db",
            "--",
            "-x",
        );
        assert.ok(changed.out.startsWith("Changed the server the-server"));
        const now = JSON.parse(fs.readFileSync(config, "utf8")).mcpServers["the-server"];
        assert.deepEqual(now.env, env);
        const store = path.join(fs.realpathSync(home.root), "t.db");
        assert.deepEqual(now.args.slice(-4), ["--store", store, "--", "-x"]);
    } finally {
        home.end();
    }
});

test("install keeps the modules that Node loads first", async () => {
    const home = new Home();
    try {
        fs.mkdirSync(path.join(home.root, "node_modules", "hook"));
        const hook = path.join(home.root, "node_modules", "hook", "index.js");
        fs.writeFileSync(hook, "globalThis.hooks = (globalThis.hooks ?? 0) + 1;");
        fs.writeFileSync(path.join(home.root, "own.mjs"), "globalThis.hooks += 10;");
        home.write(
            'const { Server } = require("segue-mcp");' +
                'exports.server = new Server({ name: "hooks " + globalThis.hooks });',
        );
        const options = '--max-old-space-size=512 --require=hook --import "./own.mjs"';
        const words = ["cursor", "server.cjs", "--name", "it", "--env", "NODE_OPTIONS"];
        const done = home.run(["install", ...words], { NODE_OPTIONS: options });
        assert.equal(done.code, 0, done.err);
        const config = path.join(home.root, ".cursor", "mcp.json");
        const entry = JSON.parse(fs.readFileSync(config, "utf8")).mcpServers.it;
        assert.deepEqual(entry.env, { NODE_OPTIONS: "--max-old-space-size=512" });
        const session = await connect([entry.command, ...entry.args], { cwd: "/" });
        assert.equal(session.peer.server.name, "hooks 11");
        await session.close();
        assert.match(home.run(["--version"]).out, /^\d+\.\d+\.\d+\n$/);
    } finally {
        home.end();
    }
});

test("install refuses what is wrong, and writes nothing", () => {
    const home = new Home();
    try {
        const config = path.join(home.root, "mcp.json");
        const words = ["server.cjs", "--config", config];
        const refused = (why: string, ...more: string[]): void => {
            const done = home.install(...more);
            assert.ok(done.err.includes(why), done.err);
            assert.deepEqual([done.code, done.out], [2, ""]);
        };
        refused("unknown host 'cursr'; did you mean cursor?", "cursr", ...words);
        refused("--env NONE: there is no such", "cursor", ...words, "--env", "NONE");
        refused("windsurf has no configuration", "windsurf", "server.cjs", "--project");
        refused("no host is given", ...[]);
        refused("no file is given", "cursor");
        fs.writeFileSync(config, '{"mcpServers": {,}}');
        refused("because it is broken: line 1, column 17", "cursor", ...words);
        fs.writeFileSync(config, Buffer.from([0x7b, 0xff, 0x7d]));
        refused("because it is not UTF-8", "cursor", ...words);
        fs.writeFileSync(config, "{}");
        home.write('throw new Error("on purpose")');
        refused("Error: on purpose", "cursor", ...words);
        home.write("exports.other = 1");
        refused("server.cjs exports no Server", "cursor", ...words);
        assert.equal(fs.readFileSync(config, "utf8"), "{}");
        assert.equal(getMember("{}", ["a"], false), undefined);
    } finally {
        home.end();
    }
});
