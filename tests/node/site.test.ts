/** The programs in JavaScript of the site's pages run, and print what the pages say. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { PACKAGE, TREE } from "./tree.js";

const PAGES = path.join(TREE, "core/docs/site/pages");
const PLAY = path.join(TREE, "tests/site/play.py");
const ENV = path.join(PACKAGE, "../..");

const pages = readdirSync(PAGES, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .filter((name) => readFileSync(path.join(PAGES, name), "utf8").includes("\n```js\n"))
    .sort();

assert.ok(pages.length >= 3, `${pages.length} pages are too few`);
for (const page of pages) {
    test(page, () => {
        const done = spawnSync(
            "python3",
            ["-B", PLAY, "node", ENV, path.join(PAGES, page)],
            { encoding: "utf8", timeout: 300_000 },
        );
        assert.equal(done.status, 0, done.stdout + done.stderr);
    });
}

test("the page of the command", () => {
    const done = spawnSync(
        "python3",
        [
            "-B",
            path.join(TREE, "tests/site/help_pages.py"),
            "node",
            path.join(ENV, "node_modules/.bin/segue-mcp"),
        ],
        { encoding: "utf8", timeout: 300_000 },
    );
    assert.equal(done.status, 0, done.stdout + done.stderr);
});
