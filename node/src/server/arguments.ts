/**
 * The schema of a tool's arguments, which also says whether unknown arguments are an
 * error.
 *
 * @module
 */

import {
    isGenerated,
    type JsonSchema,
    type Schema,
    type SchemaLike,
    schemaOf,
} from "../schema.js";
import { unknownNames } from "./names.js";

const ANYTHING: JsonSchema = { type: "object" };

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

/**
 * Makes the schema of a tool's arguments.
 *
 * @param forbidExtra - see `ToolOptions.forbidExtra`.
 * @param what - the owner of the schema, for errors: "tool paint, input".
 */
export function argumentsOf(
    given: SchemaLike | undefined,
    forbidExtra: boolean | undefined,
    what: string,
): Schema {
    const schema = withType(schemaOf(given ?? ANYTHING, "input", what));
    const { json } = schema;
    if (given === undefined || forbidExtra === false) return schema;
    const isClosed = json.additionalProperties === false && !json.patternProperties;
    if (isClosed) return withNames(schema, json);
    if (isGenerated(given) && isPlain(json))
        return withNames(schema, { ...json, additionalProperties: false });
    return forbidExtra ? withNames(schema, json) : schema;
}

/** Adds `type: object` to the schema of the arguments if the schema has no `type`. */
function withType(schema: Schema): Schema {
    if (schema.json.type === "object") return schema;
    return { json: { type: "object", ...schema.json }, check: schema.check };
}

/** Returns whether the properties of a schema are all members that it names. */
function isPlain(json: JsonSchema): boolean {
    return "properties" in json && !OPENING.some((keyword) => keyword in json);
}

/** Makes a schema that allows only the members that its properties name. */
function withNames(schema: Schema, json: JsonSchema): Schema {
    const known = Object.keys(json.properties ?? {});
    const names = new Set(known);
    return {
        json,
        check: (value) => {
            const unknown = membersOf(value).filter((name) => !names.has(name));
            if (!unknown.length) return schema.check(value);
            return { issues: [{ message: unknownNames(unknown, known) }] };
        },
    };
}

function membersOf(value: unknown): string[] {
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? Object.keys(value) : [];
}
