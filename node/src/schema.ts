/**
 * Schemas describe arguments and results, and check their values.
 *
 * A schema may be a Standard Schema (zod 4, arktype, valibot and others; see
 * https://standardschema.dev) or a JSON Schema. A schema may also be a pair of a Standard
 * Schema and a JSON Schema, for libraries that cannot convert their schemas to JSON
 * Schema.
 *
 * @module
 */

import { compile } from "./jsonschema.js";
import { joinMembers } from "./members.js";

/** A JSON Schema (2020-12 unless `$schema` says otherwise). */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** One reason why a value does not fit. */
export interface Issue {
    /** What is wrong. */
    readonly message: string;
    /** Where it is wrong: the names and indices on the way there. */
    readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The outcome of a check: a value, or the reasons why the value does not fit. */
export type Verdict<T> =
    | { readonly value: T; readonly issues?: undefined }
    | { readonly issues: readonly Issue[] };

/**
 * A Standard Schema, version 1. `jsonSchema` is set if the schema's library can make a
 * JSON Schema.
 */
export interface StandardSchema<In = unknown, Out = In> {
    /** What libraries of schemas agree on. */
    readonly "~standard": {
        readonly version: 1;
        readonly vendor: string;
        // biome-ignore lint/suspicious/noExplicitAny: libraries have different options
        readonly validate: (value: unknown, options?: any) => any;
        readonly types?: { readonly input: In; readonly output: Out } | undefined;
        // biome-ignore lint/suspicious/noExplicitAny: libraries have different functions
        readonly jsonSchema?: any;
    };
}

/** A pair of a schema that checks values and the JSON Schema that clients see. */
export interface SchemaPair<S extends StandardSchema = StandardSchema> {
    /** The schema that checks values. */
    readonly schema: S;
    /** The same as JSON Schema, for clients. */
    readonly jsonSchema: JsonSchema;
}

/** One schema for each member of an object: `{ name: z.string() }`. */
export type SchemaShape = { readonly [member: string]: StandardSchema };

/** Stands in an error of the types for an object that is no schema. */
export interface NoSchema {
    readonly "each member has to be a Standard Schema": never;
}

/**
 * Refuses the option `K` of a tool or prompt if `S`, its type, is no schema. An object
 * with a Standard Schema as one member has to have one as each member, and a JSON Schema
 * has a keyword.
 */
export type Sound<K extends string, S> = [S] extends [never]
    ? unknown
    : S extends StandardSchema | SchemaPair | SchemaShape
      ? unknown
      : string extends keyof S
        ? unknown
        : true extends {
                [M in keyof S]: S[M] extends StandardSchema ? true : false;
            }[keyof S]
          ? { readonly [P in K]: NoSchema }
          : [keyof S & (typeof KEYWORD_NAMES)[number]] extends [never]
            ? { readonly [P in K]: NoSchema }
            : unknown;

/** Any form of schema. */
export type SchemaLike = StandardSchema | SchemaPair | SchemaShape | JsonSchema;

type StandardOutput<S> = S extends {
    readonly "~standard": { readonly types?: { readonly output: infer Out } | undefined };
}
    ? Out
    : unknown;
type StandardInput<S> = S extends {
    readonly "~standard": { readonly types?: { readonly input: infer In } | undefined };
}
    ? In
    : unknown;
type Optional<S, K extends keyof S = keyof S> = K extends K
    ? undefined extends StandardOutput<S[K]>
        ? K
        : never
    : never;
type ShapeOutput<S> = {
    -readonly [K in Exclude<keyof S, Optional<S>>]: StandardOutput<S[K]>;
} & {
    -readonly [K in Optional<S>]?: StandardOutput<S[K]>;
};

/** The type that a schema makes of a value, such as the type of a handler's arguments. */
export type SchemaOutput<S> = S extends StandardSchema
    ? StandardOutput<S>
    : S extends SchemaPair<infer T>
      ? StandardOutput<T>
      : S extends SchemaShape
        ? ShapeOutput<S>
        : Record<string, unknown>;

/** The type that a schema accepts. */
export type SchemaInput<S> = S extends StandardSchema
    ? StandardInput<S>
    : S extends SchemaPair<infer T>
      ? StandardInput<T>
      : S extends SchemaShape
        ? { [K in keyof S]: StandardInput<S[K]> }
        : unknown;

/** A schema, ready to check values. */
export interface Schema {
    /** The JSON Schema that clients see. */
    readonly json: JsonSchema;
    /** Checks a value and returns the value that the schema makes of it. */
    readonly check: (value: unknown) => Verdict<unknown> | Promise<Verdict<unknown>>;
    /** Does now what the first check would do once, which can take 100 ms. */
    readonly prepare?: () => void;
}

/** A value does not fit its schema. The message says which member does not fit, and
 * why. */
export class SchemaError extends TypeError {
    /** Name of the class. */
    override readonly name = "SchemaError";
    /** @param issues what is wrong with the value */
    constructor(readonly issues: readonly Issue[]) {
        super(reasonOf(issues));
    }
}

/** Returns one line that says why a value does not fit. */
export function reasonOf(issues: readonly Issue[]): string {
    const told = issues.slice(0, 8).map((issue) => {
        const path = (issue.path ?? []).map((step) =>
            String(typeof step === "object" ? step.key : step),
        );
        return path.length ? `${path.join(".")}: ${issue.message}` : issue.message;
    });
    if (issues.length > told.length) told.push(`and ${issues.length - told.length} more`);
    return told.join("; ").replace(/\s*\n\s*/g, " ") || "the value does not fit";
}

/**
 * Checks a value, and returns the value that the schema makes of it.
 *
 * @throws SchemaError when the value does not fit.
 */
export function checked(schema: Schema, value: unknown): unknown {
    const verdict = schema.check(value);
    return verdict instanceof Promise ? verdict.then(outcome) : outcome(verdict);
}

function outcome(verdict: Verdict<unknown>): unknown {
    if (verdict.issues) throw new SchemaError(verdict.issues);
    return verdict.value;
}

/**
 * Returns whether a value is a Standard Schema. A Standard Schema may be a function, as
 * in arktype.
 */
export function isStandard(value: unknown): value is StandardSchema {
    return (
        ((typeof value === "object" && value !== null) || typeof value === "function") &&
        "~standard" in value
    );
}

function isPair(value: SchemaLike): value is SchemaPair {
    return isStandard((value as SchemaPair).schema) && "jsonSchema" in value;
}

function isShape(value: SchemaLike): value is SchemaShape {
    const members = Object.values(value);
    return members.length > 0 && members.every(isStandard);
}

/**
 * Returns whether the package or the schema's library makes the JSON Schema that clients
 * see, so that nobody has written it by hand.
 */
export function isGenerated(value: SchemaLike): boolean {
    return isStandard(value) || (!isPair(value) && isShape(value));
}

/**
 * Makes a schema from any form of schema that a user may give.
 *
 * @param side - "input": members with a default may be missing. "output": the value is
 * complete.
 * @param what - the owner of the schema, for errors: "tool paint".
 * @throws TypeError when the value is not a schema, or its library cannot make a JSON
 * Schema.
 */
export function schemaOf(
    given: SchemaLike,
    side: "input" | "output",
    what: string,
): Schema {
    if (isStandard(given)) return standard(given, jsonOf(given, side, what), what);
    if (typeof given !== "object" || given === null || Array.isArray(given)) {
        throw new TypeError(`${what}: a schema has to be an object`);
    }
    if (isPair(given)) {
        const { schema, jsonSchema } = given;
        const where = `${what}, jsonSchema`;
        const isObject = typeof jsonSchema === "object" && jsonSchema !== null;
        if (!isObject || Array.isArray(jsonSchema) || isStandard(jsonSchema)) {
            throw new TypeError(`${where}: has to be a JSON Schema, an object`);
        }
        soundJson(jsonSchema, where);
        return standard(schema, jsonSchema, `${what}, schema`);
    }
    if (isShape(given)) return shape(given, side, what);
    return { json: given as JsonSchema, ...soundJson(given as JsonSchema, what) };
}

/** Returns what checks values. @throws TypeError when a JSON Schema is broken. */
function soundJson(given: JsonSchema, what: string): ReturnType<typeof compile> {
    assertJsonSchema(given, what);
    const checker = compile(given);
    const fault = checker.fault();
    if (fault !== undefined) {
        throw new TypeError(`${what}: the JSON Schema is broken: ${fault}`);
    }
    return checker;
}

/**
 * @throws TypeError when an object is neither a JSON Schema nor has a schema for each
 * member. Without this check, such an object would be a JSON Schema that accepts
 * everything.
 */
function assertJsonSchema(given: JsonSchema, what: string): void {
    const members = Object.entries(given);
    if (members.some(([, one]) => isStandard(one))) {
        const [name] = members.find(([, one]) => !isStandard(one)) as [string, unknown];
        throw new TypeError(
            `${what}, ${name}: is no schema; with a schema for each member, every ` +
                "member has to be a Standard Schema, such as z.string()",
        );
    }
    const { properties } = given;
    if (typeof properties === "object" && properties !== null) {
        const wrong = Object.entries(properties).find(([, one]) => isStandard(one));
        if (wrong) {
            throw new TypeError(
                `${what}, properties.${wrong[0]}: is a Standard Schema inside of a ` +
                    "JSON Schema; give the members without `type` and `properties`",
            );
        }
    }
    const isKnown = members.some(([name]) => KEYWORDS.has(name));
    if (members.length > 0 && !isKnown) {
        const [name] = members[0] as [string, unknown];
        throw new TypeError(
            `${what}, ${name}: is no Standard Schema, and no keyword of JSON Schema`,
        );
    }
}

/** The keywords of JSON Schema, from draft-06 to 2020-12. */
const KEYWORD_NAMES = [
    "$schema",
    "$id",
    "$ref",
    "$defs",
    "$anchor",
    "$comment",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
    "definitions",
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "unevaluatedItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
] as const;
const KEYWORDS: ReadonlySet<string> = new Set(KEYWORD_NAMES);

function standard(given: StandardSchema, json: JsonSchema, what: string): Schema {
    const { validate } = given["~standard"];
    if (typeof validate !== "function") {
        throw new TypeError(
            `${what}: is no Standard Schema: it has no validate function`,
        );
    }
    return { json, check: (value) => validate(value) as Verdict<unknown> };
}

const DIALECT = "https://json-schema.org/draft/2020-12/schema";

function jsonOf(
    given: StandardSchema,
    side: "input" | "output",
    what: string,
): JsonSchema {
    const props = given["~standard"];
    let made: JsonSchema | undefined;
    const tell = props.jsonSchema?.[side];
    try {
        if (typeof tell === "function") {
            made = tell({ target: "draft-2020-12" }) as JsonSchema;
        } else if (canConvert(given)) {
            made = given.toJSONSchema({ io: side });
        }
    } catch (error) {
        throw inconvertible(given, side, what, error);
    }
    if (!made) throw new TypeError(`${what}: ${advice(props.vendor)}`);
    if (made.$schema !== DIALECT && "$schema" in made) return { ...made };
    const { $schema: _, ...rest } = made;
    return rest;
}

interface Convertible {
    toJSONSchema(options: object): JsonSchema;
}

function canConvert(given: object): given is Convertible {
    return typeof (given as Partial<Convertible>).toJSONSchema === "function";
}

/**
 * Makes the error of a schema that has no JSON Schema. The error names the member, if
 * the schema tells its members, as zod does.
 */
function inconvertible(
    given: StandardSchema,
    side: "input" | "output",
    what: string,
    cause: unknown,
): unknown {
    if (cause instanceof TypeError && cause.message.startsWith(what)) return cause;
    const { shape = {} } = given as { shape?: Record<string, unknown> };
    for (const [name, one] of Object.entries(shape)) {
        if (!isStandard(one)) continue;
        try {
            jsonOf(one, side, `${what}, ${name}`);
        } catch (error) {
            return error;
        }
    }
    const why = cause instanceof Error ? cause.message : String(cause);
    const dates = /\bdate\b/i.test(why)
        ? `; JSON has no dates: ${DATES[side]}`
        : "; or pass { schema, jsonSchema }";
    return new TypeError(`${what}: ${why}${dates}`, { cause });
}

const DATES = {
    input: "use z.iso.datetime(), a codec of it, or pass { schema, jsonSchema }",
    output:
        "use z.iso.datetime(), or z.date().transform((date) => date.toISOString())" +
        ".pipe(z.iso.datetime()), or pass { schema, jsonSchema }",
} as const;

function advice(vendor: string): string {
    const begin = `the library "${vendor}" made no JSON Schema of the schema`;
    const how: Record<string, string> = {
        zod:
            "use zod 4.2 or newer, or pass " +
            "{ schema, jsonSchema: z.toJSONSchema(schema) }; with zod 3, pass " +
            '{ schema, jsonSchema: zodToJsonSchema(schema) } (from "zod-to-json-schema")',
        valibot: 'pass toStandardJsonSchema(schema) (from "@valibot/to-json-schema")',
    };
    return `${begin}; ${how[vendor] ?? "pass { schema, jsonSchema } instead"}`;
}

// ---- shapes: objects with one schema for each member

type Member = readonly [name: string, schema: Schema];

function shape(given: SchemaShape, side: "input" | "output", what: string): Schema {
    const members: Member[] = Object.entries(given).map(([name, one]) => [
        name,
        schemaOf(one, side, `${what}, ${name}`),
    ]);
    const required = members.filter((one) => isRequired(one[1])).map(([name]) => name);
    const joined = joinMembers(members.map(([name, one]) => [name, one.json]));
    return {
        json: { type: "object", ...joined, ...(required.length && { required }) },
        check: (value) => checkMembers(members, value),
    };
}

/**
 * Returns whether a member is required. A member is required when `undefined` does not
 * fit the member's schema.
 */
function isRequired(schema: Schema): boolean {
    const verdict = schema.check(undefined);
    if (verdict instanceof Promise) {
        verdict.catch(() => undefined);
        return !("default" in schema.json);
    }
    return verdict.issues !== undefined;
}

function checkMembers(
    members: readonly Member[],
    value: unknown,
): Verdict<unknown> | Promise<Verdict<unknown>> {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
        return { issues: [{ message: "expected an object" }] };
    }
    const given = value as Record<string, unknown>;
    const found = members.map(([name, schema]) =>
        schema.check(Object.hasOwn(given, name) ? given[name] : undefined),
    );
    return found.some((one) => one instanceof Promise)
        ? Promise.all(found).then((all) => joined(members, all))
        : joined(members, found as Verdict<unknown>[]);
}

function joined(members: readonly Member[], found: Verdict<unknown>[]): Verdict<unknown> {
    const issues: Issue[] = [];
    const made: Record<string, unknown> = {};
    for (const [at, verdict] of found.entries()) {
        const name = members[at]?.[0] as string;
        if (verdict.issues) {
            for (const { message, path } of verdict.issues) {
                issues.push({ message, path: [name, ...(path ?? [])] });
            }
        } else if (verdict.value !== undefined) {
            Object.defineProperty(made, name, {
                value: verdict.value,
                enumerable: true,
                writable: true,
                configurable: true,
            });
        }
    }
    return issues.length ? { issues } : { value: made };
}

/** Returns whether a JSON Schema describes objects. Only objects can be structured
 * results. */
export function isObjectSchema(schema: JsonSchema): boolean {
    return schema.type === "object";
}
