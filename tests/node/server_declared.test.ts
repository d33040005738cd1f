/** Items are checked where they are declared. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidError, Server } from "segue-mcp";

const TEMPLATES = ["a://{", "a://{p}/{p}", "a://{a}{b}", "nouri", "a b://x"];

for (const uri of TEMPLATES) {
    test(`a resource ${JSON.stringify(uri)} is refused at once`, () => {
        const server = new Server({ name: "declared" });
        assert.throws(
            () => server.resource(uri, () => "x"),
            (error) => {
                assert.ok(error instanceof InvalidError);
                assert.ok(error.message.includes(uri), error.message);
                return true;
            },
        );
        server.resource("a://{p}/{q}", () => "x");
    });
}

test("an empty name or URI is refused", () => {
    const server = new Server({ name: "declared" });
    assert.throws(() => server.resource("", () => "x"), TypeError);
    assert.throws(() => server.tool("", () => "x"), TypeError);
    assert.throws(() => server.prompt("", () => "x"), TypeError);
});

test("a tool whose name the specification advises against is warned of", async () => {
    const warnings: Error[] = [];
    const listen = (warning: Error): void => void warnings.push(warning);
    process.on("warning", listen);
    const server = new Server({ name: "declared" });
    server.tool("a b", () => "x");
    server.tool("a_b", () => "x");
    await new Promise(setImmediate);
    process.off("warning", listen);
    assert.equal(warnings.length, 1);
    assert.equal(warnings[0]?.name, "SegueWarning");
    assert.match(warnings[0]?.message ?? "", /^the tool "a b": /);
});
