/**
 * The programs of node/examples run as their first lines say, and print what is in
 * core/examples/expected, where the examples of the other languages find it, too.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
    cpSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    writeFileSync,
} from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import { connect } from "segue-mcp";
import { PACKAGE, TREE } from "./tree.js";

// Beside the installed package and zod. The programs look for the texts two levels up.
const ENV = path.join(PACKAGE, "../..");
const scratch = mkdtempSync(path.join(ENV, "examples-"));
after(() => rmSync(scratch, { recursive: true }));
for (const part of ["node/examples", "core/examples/library"]) {
    cpSync(path.join(TREE, part), path.join(scratch, part), { recursive: true });
}
const EXPECTED = path.join(TREE, "core/examples/expected");
const names = readdirSync(path.join(scratch, "node/examples"))
    .filter((name) => name.endsWith(".mjs"))
    .map((name) => path.parse(name).name);

function run(name: string, args: string[] = [], input?: string): string {
    const file = path.join(scratch, "node/examples", `${name}.mjs`);
    const done = spawnSync(process.execPath, [file, ...args], {
        encoding: "utf8",
        ...(input === undefined ? {} : { input }),
        timeout: 120_000,
    });
    assert.equal(done.status, 0, done.stderr);
    return done.stdout;
}

test("there are ten", () => {
    assert.equal(names.length, 10);
    const expected = readdirSync(EXPECTED).map((name) => path.parse(name).name);
    assert.deepEqual(names.sort(), expected.sort());
});

for (const name of names) {
    test(`${name} prints what is expected`, () => {
        const expected = readFileSync(path.join(EXPECTED, `${name}.txt`), "utf8");
        assert.equal(run(name), expected);
    });

    test(`the first lines of ${name} say how to run it`, () => {
        const file = path.join(scratch, "node/examples", `${name}.mjs`);
        const [comment = ""] = readFileSync(file, "utf8").split("*/");
        assert.ok(comment.includes(`     node ${name}.mjs `));
    });
}

test("the chat reads its input", () => {
    const question = "A question: what does a quartz clock count?";
    assert.deepEqual(run("chat", ["-"], `${question}\n`).split("\n").slice(0, 3), [
        `you: ${question}`,
        "model: I call ask.",
        "  A quartz clock counts the vibrations of a crystal.",
    ]);
});

test("a client that cancels ends all of a step", { timeout: 120_000 }, async () => {
    const file = path.join(scratch, "node/examples/build.mjs");
    const long = path.join(scratch, "node/examples/long_build.mjs");
    const fifo = path.join(scratch, "fifo");
    execFileSync("mkfifo", [fifo]);
    const step = `exec 9>${fifo}; echo begun; sleep 1000 & wait`;
    const text = readFileSync(file, "utf8").replace(
        /compile: .*/,
        `compile: ${JSON.stringify(step)},`,
    );
    assert.ok(text.includes(step));
    writeFileSync(long, text);
    const reader = spawn("cat", [fifo], { stdio: "ignore" }); // until the step has ended
    const ended = once(reader, "close");
    const session = await connect([process.execPath, long, "serve"]);
    for await (const segment of session.stream("run_build", { steps: ["compile"] })) {
        assert.equal(segment.text, "[compile] begun\n");
        break; // cancels
    }
    await ended;
    const after = await session.call("run_build", { steps: ["test"] });
    assert.match(after.text, /12 tests passed/);
    await session.close();
});
