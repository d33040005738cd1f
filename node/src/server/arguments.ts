/**
 * The schema of the arguments of a tool or prompt, which also says whether unknown
 * arguments are an error.
 *
 * @module
 */

import { nearest, unknownNames } from "../names.js";
import {
    isGenerated,
    isStandard,
    type JsonSchema,
    type Schema,
    type SchemaLike,
    schemaOf,
    type Verdict,
} from "../schema.js";

const OBJECT: JsonSchema = { type: "object" };
const NO_MEMBERS: JsonSchema = { ...OBJECT, properties: {}, additionalProperties: false };

/**
 * The arguments of an item without `input`. This check needs no validator of JSON
 * Schemas, which would take as long to load as the rest of the package.
 */
const ANYTHING: Schema = {
    json: OBJECT,
    check: (value) =>
        isObject(value) ? { value } : { issues: [{ message: "must be object" }] },
};

/** Keywords with which a schema says itself which further members an object may have. */
const OPENING = [
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "propertyNames",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "dependentSchemas",
    "$ref",
] as const;

/** The kind of item that has the arguments. */
type Kind = "tool" | "prompt";

/**
 * Makes the schema of the arguments of a tool or prompt.
 *
 * @param forbidExtra - see `ToolOptions.forbidExtra`.
 * @param what - the owner of the schema, for errors: "tool paint, input".
 * @param kind - the kind of item, for errors of callers.
 */
export function argumentsOf(
    given: SchemaLike | undefined,
    forbidExtra: boolean | undefined,
    what: string,
    kind: Kind = "tool",
): Schema {
    if (!given) {
        return forbidExtra === false ? ANYTHING : withNames(ANYTHING, NO_MEMBERS, kind);
    }
    const schema = withType(schemaOf(given, "input", what));
    const { json } = schema;
    if (forbidExtra === false) return schema;
    const isClosed = json.additionalProperties === false && !json.patternProperties;
    if (isClosed) return withNames(schema, json, kind);
    if (isGenerated(given) && isPlain(json)) {
        if (!forbidExtra && isUndecided(given)) return withKept(schema, kind);
        return withNames(schema, { ...json, additionalProperties: false }, kind);
    }
    return forbidExtra ? withNames(schema, json, kind) : schema;
}

/**
 * Returns whether the JSON Schema of a schema does not say whether unknown members are
 * allowed: valibot makes the same JSON Schema of `v.object` and `v.looseObject`.
 */
function isUndecided(given: SchemaLike): boolean {
    return isStandard(given) && given["~standard"].vendor === "valibot";
}

/** Adds `type: object` to the schema of the arguments if the schema has no `type`. */
function withType(schema: Schema): Schema {
    if (schema.json.type === "object") return schema;
    return { ...schema, json: { type: "object", ...schema.json } };
}

/** Returns whether the properties of a schema are all members that it names. */
function isPlain(json: JsonSchema): boolean {
    return "properties" in json && !OPENING.some((keyword) => keyword in json);
}

/** Makes a schema that allows only the members that its properties name. */
function withNames(schema: Schema, json: JsonSchema, kind: Kind): Schema {
    const isClosed = json.additionalProperties === false;
    const known = isClosed ? Object.keys(json.properties ?? {}) : namesOf(json);
    const names = new Set(known);
    return {
        ...schema,
        json,
        check: (value) => {
            const unknown = membersOf(value).filter((name) => !names.has(name));
            if (!unknown.length) return schema.check(value);
            return { issues: [{ message: unknownNames(unknown, known, kind) }] };
        },
    };
}

/**
 * Makes a schema that allows the unknown members that the value it makes still has. A
 * schema that removes unknown members does not know them.
 */
function withKept(schema: Schema, kind: Kind): Schema {
    const known = Object.keys(schema.json.properties ?? {});
    const judge = (given: unknown, verdict: Verdict<unknown>): Verdict<unknown> => {
        const names = new Set(known);
        if (!verdict.issues) for (const name of membersOf(verdict.value)) names.add(name);
        let unknown = membersOf(given).filter((name) => !names.has(name));
        // A misspelt name may be the cause of the other problems.
        if (verdict.issues)
            unknown = unknown.filter((name) => nearest(name, known) !== undefined);
        if (!unknown.length) return verdict;
        const message = unknownNames(unknown, known, kind);
        return { issues: [{ message }, ...(verdict.issues ?? [])] };
    };
    return {
        ...schema,
        check: (value) => {
            const verdict = schema.check(value);
            if (!(verdict instanceof Promise)) return judge(value, verdict);
            return verdict.then((one) => judge(value, one));
        },
    };
}

const BRANCHES = ["allOf", "anyOf", "oneOf", "then", "else", "if"] as const;

/**
 * Returns the names of the members that a schema of objects declares: at the top, and in
 * its branches and references.
 */
function namesOf(json: JsonSchema): string[] {
    const names = new Set<string>();
    const seen = new Set<unknown>();
    const left: unknown[] = [json];
    for (let one = left.shift(); one !== undefined; one = left.shift()) {
        if (typeof one !== "object" || one === null || seen.has(one)) continue;
        seen.add(one);
        const part = one as JsonSchema;
        for (const name of membersOf(part.properties)) names.add(name);
        for (const keyword of BRANCHES) left.push(...[part[keyword] ?? []].flat());
        left.push(...Object.values(part.dependentSchemas ?? {}));
        if (typeof part.$ref === "string") left.push(partAt(json, part.$ref));
    }
    return [...names];
}

/** Returns the part of a schema to which a reference such as `#/$defs/Point` leads. */
function partAt(json: JsonSchema, place: string): unknown {
    if (!place.startsWith("#")) return null;
    let part: unknown = json;
    for (const step of place.split("/").slice(1)) {
        const name = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
        part = (part as JsonSchema | undefined)?.[name] ?? null;
    }
    return part;
}

function membersOf(value: unknown): string[] {
    return isObject(value) ? Object.keys(value) : [];
}

function isObject(value: unknown): value is object {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}
