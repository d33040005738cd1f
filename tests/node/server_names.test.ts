/** Which name was probably meant: the cases of tests/python/test_server_names.py. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type * as Names from "segue-mcp/names";
import { internal } from "./tree.js";

const { nearest, unknownNames } = internal<typeof Names>("names");

const KNOWN = ["color", "max_results", "to", "n"];

const CASES: [name: string, meant: string | undefined][] = [
    ["colour", "color"],
    ["Color", "color"],
    ["maxResults", "max_results"],
    ["max-result", "max_results"],
    ["too", "to"],
    ["N", "n"],
    ["m", undefined],
    ["cooler", "color"],
    ["coolr", "color"],
    ["ot", undefined], // one of two characters differs
    ["clooer", "color"],
    ["size", undefined],
    ["", undefined],
    ["c".repeat(1000), undefined],
];

for (const [name, meant] of CASES) {
    test(`the nearest name of ${JSON.stringify(name.slice(0, 20))}`, () => {
        assert.equal(nearest(name, KNOWN), meant);
    });
}

test("the text has a maximum length", () => {
    const names = Array.from({ length: 12 }, (_, number) => `${number}`.repeat(1000));
    const text = unknownNames(names, ["color"]);
    assert.equal(text.split("unknown argument").length - 1, 8);
    assert.ok(text.endsWith('and 4 more; the arguments are "color"'));
    assert.ok(text.length < 1000);
    assert.equal(
        unknownNames(['a"\n'], []),
        'unknown argument "a\\"\\n"; the tool takes no arguments',
    );
});
