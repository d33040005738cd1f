/** Schemas of a server: which values are schemas, what clients see of them, and which
 * values fit. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { type JsonSchema, Server } from "segue-mcp";
import type * as Json from "segue-mcp/jsonschema";
import type * as Schemas from "segue-mcp/schema";
import * as v from "valibot";
import { z } from "zod";
import { z as z3 } from "zod3";
import { internal } from "./tree.js";

const { schemaOf, reasonOf, SchemaError, checked } = internal<typeof Schemas>("schema");
const { compile } = internal<typeof Json>("jsonschema");

type Given = Parameters<typeof schemaOf>[0];

function why(schema: Parameters<typeof compile>[0], value: unknown): string {
    const verdict = compile(schema).check(value);
    return verdict.issues ? reasonOf(verdict.issues) : "";
}

test("Standard Schemas of three libraries are told and check", async () => {
    const given: Given[] = [
        z.object({ name: z.string(), size: z.number().optional() }),
        type({ name: "string", "size?": "number" }),
        toStandardJsonSchema(
            v.object({ name: v.string(), size: v.optional(v.number()) }),
        ),
        { name: z.string(), size: z.number().optional() },
    ];
    for (const one of given) {
        const schema = schemaOf(one, "input", "it");
        assert.equal(schema.json.type, "object");
        assert.deepEqual(schema.json.required, ["name"]);
        assert.ok(!("$schema" in schema.json));
        assert.deepEqual(await checked(schema, { name: "x" }), { name: "x" });
        const verdict = await schema.check({ name: 3 });
        assert.match(reasonOf(verdict.issues ?? []), /name/);
    }
});

test("what a schema makes of a value counts; defaults need not come in", async () => {
    const one = z.object({ n: z.coerce.number().default(3), s: z.string().trim() });
    const schema = schemaOf(one, "input", "it");
    assert.deepEqual(schema.json.required, ["s"]);
    assert.deepEqual(await checked(schema, { s: " a " }), { n: 3, s: "a" });
    const out = schemaOf(one, "output", "it");
    assert.deepEqual([...(out.json.required as string[])].sort(), ["n", "s"]);
    const later = z.object({ s: z.string().refine(async (s) => s === "a", "not a") });
    const slow = schemaOf(later, "input", "it");
    assert.deepEqual(await checked(slow, { s: "a" }), { s: "a" });
    await assert.rejects(
        async () => checked(slow, { s: "b" }),
        (error) => error instanceof SchemaError && error.message === "s: not a",
    );
});

test("a library that tells no JSON Schema is named, and what helps", async () => {
    const old = z3.object({ a: z3.string() });
    assert.throws(() => schemaOf(old, "input", "tool t"), /tool t: .*"zod".*zod 4/);
    const bare = v.object({ a: v.string() });
    assert.throws(() => schemaOf(bare, "input", "tool t"), /toStandardJsonSchema/);
    const jsonSchema = { type: "object", properties: { a: { type: "string" } } };
    const pair = schemaOf({ schema: old, jsonSchema }, "input", "tool t");
    assert.equal(pair.json, jsonSchema);
    assert.deepEqual(await checked(pair, { a: "x", b: 1 }), { a: "x" });
    for (const none of [null, 3, "x", [z.string()]]) {
        assert.throws(() => schemaOf(none as unknown as Given, "input", "it"), TypeError);
    }
});

test("what is no schema is refused, with its place", () => {
    const old = { _def: { typeName: "ZodString" }, parse: String }; // zod 3.22
    const refused: [given: unknown, why: RegExp][] = [
        [{ a: z.number(), opts: { deep: z.boolean() } }, /^tool t, input, opts: is no/],
        [{ a: z.number(), b: undefined }, /input, b: is no schema/],
        [{ a: z.number(), b: { type: "string" } }, /input, b: is no schema/],
        [{ a: z.number(), b: old }, /input, b: is no schema/],
        [{ a: { type: "number" } }, /input, a: is no Standard Schema, and no keyword/],
        [{ d: 5 }, /input, d: is no Standard Schema/],
        [{ name: old }, /input, name: is no Standard Schema/],
        [{ title: old }, /the JSON Schema is broken: title: must be string/],
        [
            { type: "object", properties: { a: z.number() } },
            /input, properties\.a: is a Standard Schema inside/,
        ],
    ];
    const options = (given: unknown): { input: JsonSchema } => ({
        input: given as JsonSchema,
    });
    for (const [given, expected] of refused) {
        const server = new Server({ name: "refuses" });
        const tool = (): unknown => server.tool("t", options(given), () => "");
        assert.throws(tool, (error) => {
            assert.ok(error instanceof TypeError);
            assert.match(error.message, expected);
            return true;
        });
    }
    const server = new Server({ name: "refuses" });
    const given = { a: z.string(), b: {} } as unknown as JsonSchema;
    assert.throws(
        () => server.tool("t", { output: given }, () => ({})),
        /^TypeError: tool t, output, b: is no schema/,
    );
    assert.throws(
        () => server.prompt("p", options(given), () => ""),
        /^TypeError: prompt p.*, b: is no schema/,
    );
});

test("a broken JSON Schema is refused, with its reason", () => {
    const server = new Server({ name: "refuses" });
    const broken: [given: JsonSchema, why: RegExp][] = [
        [
            { type: "object", properties: { a: { type: "strng" } }, required: ["a"] },
            /properties\.a\.type: has to be one of "array"/,
        ],
        [{ type: "object", properties: { a: { pattern: "(" } } }, /regular expression/],
        [{ type: "object", properties: { a: { $ref: "#/$defs/no" } } }, /\$defs\/no/],
        [{ $ref: "https://elsewhere.example/s" }, /elsewhere/],
        [{ type: "object", required: "a" }, /required: must be array/],
    ];
    for (const [input, expected] of broken) {
        const told = new RegExp(
            `tool t, input: the JSON Schema is broken: .*${expected.source}`,
        );
        assert.throws(() => server.tool("t", { input }, () => ""), told);
    }
    const loose = { type: "object", properties: { a: { pattern: "^[\\w\\_]$" } } };
    server.tool("loose", { input: loose }, () => "");
    assert.match(why(loose, { a: "-" }), /^a: must match pattern/);
});

test("a JSON Schema is told as it is, and checked", () => {
    const json = {
        type: "object",
        required: ["a"],
        properties: { a: { type: "integer" } },
    };
    const schema = schemaOf(json, "input", "it");
    assert.equal(schema.json, json);
    assert.equal(why(json, { a: 1 }), "");
    assert.equal(why(json, {}), "a: is required");
    assert.equal(why(json, { a: 1.5 }), "a: must be integer");
    assert.equal(why(json, []), "must be object");
});

// For each keyword: a schema, values that fit, values that do not.
const KEYWORDS: [schema: JsonSchema | boolean, fits: unknown[], not: unknown[]][] = [
    [true, [1, null, {}], []],
    [false, [], [1, null]],
    [{ type: ["string", "null"] }, ["", null], [1, [], {}]],
    [{ type: "integer" }, [1, 1.0, -3], [1.5, "1"]],
    [{ type: "array" }, [[]], [{}, null]],
    [
        { enum: [1, "a", { x: [1] }] },
        [1, "a", { x: [1] }],
        [2, { x: [2] }, { x: [1], y: 1 }],
    ],
    [{ const: [1, { a: null }] }, [[1, { a: null }]], [[1], [1, { a: 0 }]]],
    [{ minimum: 1, maximum: 3 }, [1, 3, "x"], [0, 4]],
    [{ exclusiveMinimum: 1, exclusiveMaximum: 3 }, [2], [1, 3]],
    [{ multipleOf: 0.01 }, [4.35, 19.99, 0], [0.005]],
    [{ minLength: 2, maxLength: 3 }, ["ab", "😀😀", 1], ["a", "abcd", "😀"]],
    [{ pattern: "^\\p{L}+$" }, ["é", 1], ["1", ""]],
    [{ items: { type: "number" } }, [[], [1, 2], "x"], [["a"], [1, "a"]]],
    [
        { prefixItems: [{ type: "number" }, true], items: false },
        [[], [1], [1, "x"]],
        [["x"], [1, 2, 3]],
    ],
    [{ prefixItems: [{ type: "number" }] }, [[1, "x"]], [["x"]]],
    [
        { items: [{ type: "number" }], additionalItems: { type: "string" } },
        [[1, "x"]],
        [["x"], [1, 2]],
    ],
    [{ minItems: 1, maxItems: 2 }, [[1], [1, 2]], [[], [1, 2, 3]]],
    [
        { uniqueItems: true },
        [
            [1, "1", true],
            [{ a: 1 }, { a: 2 }],
        ],
        [
            [1, 1],
            [
                { a: 1, b: 2 },
                { b: 2, a: 1 },
            ],
        ],
    ],
    [{ contains: { const: 1 } }, [[0, 1]], [[], [0]]],
    [
        { contains: { const: 1 }, minContains: 2, maxContains: 2 },
        [[1, 1]],
        [[1], [1, 1, 1]],
    ],
    [{ contains: { const: 1 }, minContains: 0 }, [[]], []],
    [{ required: ["a"] }, [{ a: null }, 1], [{}, { b: 1 }]],
    [{ required: ["toString"] }, [{ toString: 1 }], [{}]],
    [{ minProperties: 1, maxProperties: 1 }, [{ a: 1 }], [{}, { a: 1, b: 2 }]],
    [{ properties: { a: { type: "number" } } }, [{}, { a: 1 }, { b: "x" }], [{ a: "x" }]],
    [
        { properties: { a: true }, additionalProperties: false },
        [{}, { a: 1 }],
        [{ a: 1, b: 2 }],
    ],
    [{ additionalProperties: { type: "number" } }, [{ a: 1 }], [{ a: "x" }]],
    [
        { patternProperties: { "^n": { type: "number" } }, additionalProperties: false },
        [{ n1: 1 }],
        [{ n1: "x" }, { m: 1 }],
    ],
    [{ propertyNames: { maxLength: 1 } }, [{ a: 1 }], [{ ab: 1 }]],
    [{ dependentRequired: { a: ["b"] } }, [{}, { a: 1, b: 2 }], [{ a: 1 }]],
    [{ dependentSchemas: { a: { required: ["b"] } } }, [{ b: 1 }], [{ a: 1 }]],
    [{ dependencies: { a: ["b"], c: { required: ["d"] } } }, [{}], [{ a: 1 }, { c: 1 }]],
    [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], [0, 3]],
    [{ anyOf: [{ type: "string" }, { minimum: 5 }] }, ["x", 6], [1]],
    [{ oneOf: [{ minimum: 1 }, { maximum: 3 }] }, [0, 4], [2]],
    [{ oneOf: [{ type: "string" }, { type: "null" }] }, ["x", null], [2]],
    [{ not: { type: "string" } }, [1], ["x"]],
    [
        // biome-ignore lint/suspicious/noThenProperty: a keyword
        { if: { required: ["a"] }, then: { required: ["b"] }, else: { required: ["c"] } },
        [{ a: 1, b: 1 }, { c: 1 }],
        [{ a: 1 }, {}],
    ],
    [{ $ref: "#/$defs/n", $defs: { n: { type: "number" } } }, [1], ["x"]],
    [{ $ref: "#n", $defs: { x: { $anchor: "n", type: "number" } } }, [1], ["x"]],
    [{ $ref: "#/$defs/a~1b", $defs: { "a/b": { type: "number" } } }, [1], ["x"]],
    [{ unevaluatedProperties: false, properties: { a: true } }, [{ a: 1 }], [{ b: 1 }]],
    [
        { properties: { next: { $ref: "#" }, n: { type: "number" } }, required: ["n"] },
        [{ n: 1, next: { n: 2 } }],
        [{ n: 1, next: {} }],
    ],
    [{ format: "email" }, ["no email"], []],
];

for (const [schema, fits, not] of KEYWORDS) {
    test(`JSON Schema ${JSON.stringify(schema)}`, () => {
        for (const value of fits) {
            assert.equal(why(schema, value), "", JSON.stringify(value));
        }
        for (const value of not) {
            assert.notEqual(why(schema, value), "", JSON.stringify(value));
        }
    });
}

test("schemas that lead round and round, and values that are deep, end", () => {
    assert.match(why({ $ref: "#" }, 1), /nested too deeply/);
    let deep: unknown = {};
    for (let at = 0; at < 100_000; at++) deep = { next: deep };
    assert.match(why({ properties: { next: { $ref: "#" } } }, deep), /nested too deeply/);
});

test("reasons are one line each, in their order, and not without end", () => {
    const schema = {
        type: "object",
        properties: { a: { enum: [1, 2] }, b: { type: "string", minLength: 2 } },
        required: ["c"],
    };
    assert.equal(
        why(schema, { a: 3, b: "x" }),
        "c: is required; a: has to be one of 1, 2; " +
            "b: must NOT have fewer than 2 characters",
    );
    const many = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`p${i}`, "x"]));
    const told = why({ additionalProperties: { type: "number" } }, many);
    assert.equal(told.split("; ").length, 9);
    assert.match(told, /and 12 more$/);
    const large = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [i, "x"]));
    assert.equal(
        why({ additionalProperties: { type: "number" } }, large),
        "0: must be number",
    );
});

test("patterns of a stranger's schema are not run", () => {
    const schema = { type: "string", pattern: "^(a+)+$" };
    const check = compile(schema, { patterns: false }).check;
    assert.ok(!check(`${"a".repeat(60)}!`).issues);
    assert.ok(check(1).issues);
    const names = { patternProperties: { "^(a+)+$": false }, type: "object" };
    assert.ok(!compile(names, { patterns: false }).check(1).issues);
    const large = { type: "null", enum: ["x".repeat(300_000)] };
    assert.ok(!compile(large, { patterns: false }).check(1).issues);
});

test("what cannot be compiled checks nothing; of our own it is said", async () => {
    const warnings: string[] = [];
    const listen = (warning: Error): void => void warnings.push(warning.message);
    process.on("warning", listen);
    const elsewhere = { $ref: "https://elsewhere.example/s" };
    assert.equal(why(elsewhere, 1), "");
    assert.equal(why({ $schema: "https://example.org/own", type: "null" }, 1), "");
    assert.ok(!compile({ pattern: "(" }, { patterns: false }).check("x").issues);
    await new Promise(setImmediate);
    process.off("warning", listen);
    assert.equal(warnings.length, 2);
    assert.match(warnings[0] ?? "", /not checked: .*elsewhere/);
});

test("dialects: what $schema says", () => {
    const items = { items: [{ type: "number" }], additionalItems: false };
    for (const dialect of [{}, { $schema: "http://json-schema.org/draft-07/schema#" }]) {
        assert.equal(why({ ...dialect, ...items }, [1]), "");
        assert.notEqual(why({ ...dialect, ...items }, [1, 2]), "");
    }
    const $schema = "https://json-schema.org/draft/2019-09/schema";
    assert.equal(
        why({ $schema, dependentRequired: { a: ["b"] } }, { a: 1 }),
        "b: is required",
    );
    const $id = "https://example.org/same";
    assert.equal(why({ $id, type: "null" }, null), "");
    assert.equal(why({ $id, type: "number" }, 1), "");
});

test("the members of an object may be recursive or named, alone or together", () => {
    interface Tree {
        value: number;
        parts: Tree[];
    }
    const tree: z.ZodType<Tree> = z.object({
        value: z.number(),
        get parts() {
            return z.array(tree);
        },
    });
    const words: z.ZodType<unknown> = z.lazy(() => z.union([z.string(), z.array(words)]));
    const point = z.object({ x: z.number() }).meta({ id: "Point" });
    const other = z.object({ x: z.string() }).meta({ id: "Point" });
    const oneTree = { value: 1, parts: [{ value: 2, parts: [] }] };
    const cases: [Record<string, z.ZodType>, object, object][] = [
        [
            { root: tree },
            { root: oneTree },
            { root: { value: 1, parts: [{ value: "2", parts: [] }] } },
        ],
        [{ "a/b ~c": tree }, { "a/b ~c": oneTree }, { "a/b ~c": { parts: [] } }],
        [{ words }, { words: ["a", ["b"]] }, { words: ["a", [1]] }],
        [
            { root: z.object({ tree }), words },
            { root: { tree: oneTree }, words: "a" },
            { root: { tree: { value: 1, parts: [1] } }, words: "a" },
        ],
        [
            { from: point, to: z.object({ at: point }) },
            { from: { x: 1 }, to: { at: { x: 2 } } },
            { from: { x: 1 }, to: { at: { x: "2" } } },
        ],
        [
            { a: z.object({ at: point }), b: z.object({ at: other }), c: point },
            { a: { at: { x: 1 } }, b: { at: { x: "1" } }, c: { x: 1 } },
            { a: { at: { x: 1 } }, b: { at: { x: 1 } }, c: { x: 1 } },
        ],
        [
            { Point: tree, b: point, c: tree },
            { Point: oneTree, b: { x: 1 }, c: oneTree },
            { Point: oneTree, b: { x: 1 }, c: {} },
        ],
    ];
    for (const [members, fit, misfit] of cases) {
        for (const side of ["input", "output"] as const) {
            const { json } = schemaOf(members, side, "it");
            const told = JSON.stringify(json);
            assert.equal(why(json, fit), "", told);
            assert.notEqual(why(json, misfit), "", told);
            for (const member of Object.values(json.properties as JsonSchema))
                assert.ok(!("$defs" in (member as object)), told);
        }
    }
    const shared = schemaOf({ a: point, b: point }, "input", "it").json;
    assert.deepEqual(Object.keys(shared.$defs as object), ["Point"]);
});

test("the schema of a member is moved, and its data is not", () => {
    const data = { $ref: "#" };
    const jsonSchema = {
        $defs: { n: { $anchor: "n", type: "number" }, "a/b": { $ref: "#n" } },
        definitions: { n: { type: "string" } },
        anyOf: [{ $ref: "#/$defs/a~1b" }, { $ref: "#/definitions/n" }, { const: data }],
        default: data,
    };
    const member = z.any() as unknown as { "~standard": Record<string, unknown> };
    const standard = { ...member["~standard"], jsonSchema: { input: () => jsonSchema } };
    const { json } = schemaOf({ m: { "~standard": standard } as never }, "input", "it");
    assert.deepEqual((json.properties as JsonSchema).m, {
        anyOf: [{ $ref: "#/$defs/m.a~1b" }, { $ref: "#/$defs/m.n.2" }, { const: data }],
        default: data,
    });
    for (const fit of [1, "text", data]) assert.equal(why(json, { m: fit }), "");
    assert.notEqual(why(json, { m: true }), "");
});

test("a pair of which one part is none is refused", () => {
    const schema = z.object({ a: z.number() });
    const wrong: [unknown, RegExp][] = [
        [5, /^it, jsonSchema: has to be a JSON Schema, an object$/],
        [undefined, /^it, jsonSchema: has to be/],
        [null, /^it, jsonSchema: has to be/],
        [[], /^it, jsonSchema: has to be/],
        [schema, /^it, jsonSchema: has to be/],
        [{ foo: 1 }, /^it, jsonSchema, foo: is no Standard Schema, and no keyword/],
        [{ type: "strng" }, /^it, jsonSchema: the JSON Schema is broken: /],
        [{ properties: { a: { $ref: "#/$defs/x" } } }, /^it, jsonSchema: the .* broken/],
    ];
    for (const [jsonSchema, message] of wrong)
        for (const side of ["input", "output"] as const)
            assert.throws(() => schemaOf({ schema, jsonSchema } as never, side, "it"), {
                name: "TypeError",
                message,
            });
    const empty = { "~standard": { version: 1, vendor: "x" } };
    const pair = { schema: empty, jsonSchema: { type: "object" } };
    assert.throws(
        () => schemaOf(pair as never, "input", "it"),
        /^TypeError: it, schema: is no Standard Schema: it has no validate function$/,
    );
});
