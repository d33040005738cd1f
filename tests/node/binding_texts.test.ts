/** Long texts of results, which are handles until they are read. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import {
    type Call,
    errors,
    Kind,
    native,
    nothingIsLeft,
    Pair,
    Status,
} from "./binding_worlds.js";

afterEach(nothingIsLeft);

const TIMEOUT = { timeout: 120_000 };
/** Larger than what becomes a string at once. */
const LARGE = 300_000;

/** A world whose tool answers with one long text. */
function world(): Pair {
    return new Pair({
        long(call: Call) {
            const block = { type: "text", text: "x".repeat(LARGE) };
            native.callReply(call, "", [JSON.stringify(block)]);
        },
    });
}

test("a text is a handle, and may outlive its runtime", TIMEOUT, async () => {
    const pair = world();
    const events = pair.call("long");
    const [, status, text, saysError] = await events.until(Kind.COMPLETE);
    assert.equal(status, Status.OK);
    assert.equal(saysError, false);
    assert.equal(native.liveHandles().Text, 1);
    pair.close();
    const read = native.textRead(text);
    assert.match(read, /^\{.*"text":"x{300000}"/);
    assert.equal(native.textRead(text), read);
    native.textFree(text);
    assert.equal(native.liveHandles().Text, undefined);
    assert.throws(() => native.textRead(text), errors.ClosedError);
    assert.throws(() => native.textFree(text), errors.ClosedError);
    assert.throws(() => native.textRead({} as never), TypeError);
});

test("a text that nobody reads is freed", TIMEOUT, async () => {
    const pair = world();
    await pair.call("long").until(Kind.COMPLETE);
    pair.close();
});
