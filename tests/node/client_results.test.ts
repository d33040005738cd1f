/** Results are decoded only when they are read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { RemoteError, Result } from "segue-mcp";
import { worldTest } from "./client_worlds.js";
import { internal } from "./tree.js";

const { Result: Inner } = internal<typeof import("segue-mcp/content")>("content");

/** Counts the calls of JSON.parse during `run`. */
function parses(run: () => void): number {
    const { parse } = JSON;
    let count = 0;
    JSON.parse = (text: string): unknown => {
        count += 1;
        return parse(text);
    };
    try {
        run();
    } finally {
        JSON.parse = parse;
    }
    return count;
}

const BLOCK = '{"type":"text","text":"one"}';

const SAME = [
    `{"content":[${BLOCK}]}`,
    `{"resultType":"complete","content":[${BLOCK}],"_meta":{"a":{"content":1}}}`,
    `{"content":[${BLOCK}],"isError":true}`,
    `{"content":[${BLOCK}],"isError":false}`,
    `{"content":[${BLOCK}],"is\\u0045rror":true}`,
    `{"content":[${BLOCK}],"content":[]}`,
    `{"content":[${BLOCK}],"conten\\u0074":[]}`,
    `{"content":[${BLOCK},{"type":"text","text":"two"}]}`,
    '{"content":[{"type":"text","text":"a \\"}] b"}]}',
    '{"content":[{"type":"text","text":"\\u00e9\\u0041é"}]}',
    '{"content":[{"type":"text","text":"","text":"last"}]}',
    '{"content":[{"type":"text","text":""}],"structuredContent":{"isError":true}}',
    '{"content":[{"type":"text","text":"one","annotations":{}}]}',
    '{"content":"none","structuredContent":[1]}',
    "{}",
];

test("what is read of a result is what its JSON says", () => {
    for (const raw of SAME) {
        const wanted = Inner.fromJson(raw);
        for (const name of [
            "isError",
            "text",
            "content",
            "structured",
            "meta",
        ] as const) {
            assert.deepEqual(
                Inner.fromObject(raw, wanted.isError)[name],
                wanted[name],
                `${name}: ${raw}`,
            );
        }
        const late = Inner.fromObject(raw, wanted.isError);
        assert.deepEqual(late.toJSON(), wanted.toJSON());
        assert.equal(late.text, wanted.text);
        assert.equal(late.raw, raw);
        assert.equal(late.content, late.content);
    }
});

test("a plain text is read without decoding the rest", () => {
    const raw = `{"resultType":"complete","content":[${BLOCK}],"_meta":{"a":1}}`;
    const result = Inner.fromObject(raw, false);
    const text = () => assert.equal(`${result.text} ${result.isError}`, "one false");
    assert.equal(parses(text), 0);
    assert.equal(
        parses(() => assert.deepEqual(result.meta, { a: 1 })),
        1,
    );
    result.content.push({ type: "text", text: "!" });
    assert.equal(result.text, "one!");
});

test("a result as Node prints it", () => {
    const printed = inspect(Inner.fromObject(SAME[0] as string, false));
    assert.match(printed, /^Result \{/);
    assert.match(printed, /text: 'one'/);
    assert.match(inspect(new Result("two")), /text: 'two'/);
});

test("content that is no block is refused", () => {
    const options = { structured: { a: 1 } } as unknown as string;
    assert.throws(() => new Result(options), /second argument/);
    assert.throws(() => new Result([null as unknown as string]), TypeError);
});

test("the JSON of something else is refused", () => {
    assert.throws(() => Result.fromJson("[]"), TypeError);
    assert.throws(() => Result.fromJson("{"), SyntaxError);
});

worldTest("whoever waits for a call is on the stack of its error", async (world) => {
    await world.session({}, async (session) => {
        async function callerOfTheTool(): Promise<void> {
            await session.call("no such tool");
        }
        await assert.rejects(callerOfTheTool(), (error) => {
            assert.ok(error instanceof RemoteError);
            assert.match(error.stack ?? "", /callerOfTheTool/);
            return true;
        });
    });
});

worldTest("calls that follow each other share a handle", async (world) => {
    await world.session({}, async (session) => {
        const { native } = internal<typeof import("segue-mcp/native")>("native");
        const { requestStart } = native;
        let started = 0;
        native.requestStart = (...all) => {
            started += 1;
            return requestStart(...all);
        };
        try {
            for (let i = 0; i < 5; i++) await session.call("greet");
            for (let i = 0; i < 3; i++) await assert.rejects(session.call("fail"));
            const many = Array.from({ length: 4 }, () => session.call("greet"));
            await Promise.all(many);
        } finally {
            native.requestStart = requestStart;
        }
        assert.equal(started, 4);
    });
});
