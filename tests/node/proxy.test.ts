/** `segue-mcp proxy`, the program segue-proxy that the package carries. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readlinkSync } from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { test } from "node:test";
import { connect } from "segue-mcp";
import { serverCommand } from "./programs.js";
import { internal, PACKAGE } from "./tree.js";

/** The link that npm makes, which npx runs. */
const COMMAND = path.join(path.dirname(PACKAGE), ".bin", "segue-mcp");

function finish(...args: string[]): [number | null, string, string] {
    const done = spawnSync(COMMAND, args, { encoding: "utf8", input: "" });
    return [done.status, done.stdout, done.stderr];
}

test("it has the version of the package", () => {
    const { native } = internal<{ native: { version(): string } }>("native");
    const told = `segue-proxy ${native.version()}\n`;
    assert.deepEqual(finish("proxy", "--version"), [0, told, ""]);
});

test("its options and its exit status are those of the program", () => {
    assert.match(finish("proxy", "--help")[1], /--task-after TIME/);
    const [status, , told] = finish("proxy");
    assert.equal(status, 2);
    assert.match(told, /name an upstream/);
    assert.equal(finish("proxy", "--", "/nowhere/program")[0], 3);
});

test("segue-mcp store is a command of the program", () => {
    assert.match(finish("store", "--help")[1], /^usage: segue-proxy store ls STORE/);
    const [status, , told] = finish("store", "ls", "/nowhere/tasks.db");
    assert.equal(status, 1);
    assert.match(told, /nowhere.*No such file/);
});

test("the command says what it can do", () => {
    assert.match(finish()[2], /^usage: segue-mcp run .*^ +segue-mcp proxy /ms);
    assert.equal(finish("tools")[0], 2);
});

test("a call passes", async () => {
    const args = ["proxy", "--", ...serverCommand()];
    const session = await connect({ command: COMMAND, args });
    assert.equal((await session.call("greet", { name: "Ada" })).text, "Hello, Ada!");
    await session.close();
});

test("the process becomes the proxy", async () => {
    const args = ["proxy", "--listen", "127.0.0.1:0", "--", ...serverCommand()];
    const child = spawn(COMMAND, args, { stdio: ["ignore", "ignore", "pipe"] });
    const [line] = await once(readline.createInterface({ input: child.stderr }), "line");
    assert.match(line, /serving http:/);
    const program = readlinkSync(`/proc/${child.pid}/exe`);
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    assert.deepEqual(await ended, [0, null]);
    assert.equal(path.basename(program), "segue-proxy");
    assert.ok(program.startsWith(PACKAGE));
});
