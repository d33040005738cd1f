/**
 * Checks values against JSON Schema, by Ajv: 2020-12, or what `$schema` says (2019-09,
 * draft-07).
 *
 * Ajv is loaded when the first schema is checked: a program that has none pays nothing.
 * What cannot be checked only ever accepts more: `format` says nothing by itself, no
 * `$ref` is resolved beyond the schema, and a schema that Ajv cannot compile checks
 * nothing.
 *
 * @module
 */

import type { ErrorObject, Options, ValidateFunction } from "ajv";
import type { Issue, JsonSchema } from "./schema.js";

/** How a schema is compiled. */
export interface CompileOptions {
    /**
     * false: of a stranger. No `pattern` is run, which may keep it busy for ever, and a
     * schema that is large, or has `patternProperties`, is not checked.
     */
    patterns?: boolean | undefined;
}

/** What a check says. */
export type Checked = { value: unknown; issues?: undefined } | { issues: Issue[] };

/** A stranger's schema may be so long, as JSON text. */
const MAX_STRANGE = 256 * 1024;
/** All reasons are looked for in values that have no more parts; else the first one. */
const MAX_PARTS = 1000;

/** A function that checks values against a schema. */
export function compile(
    schema: JsonSchema | boolean,
    options: CompileOptions = {},
): (value: unknown) => Checked {
    const isOwn = options.patterns ?? true;
    let first: ValidateFunction | null | undefined;
    let every: ValidateFunction | null | undefined;
    return (value) => {
        if (first === undefined) first = validator(schema, isOwn, false);
        if (!first || run(first, value) === "") return { value };
        if (!isSmall(value)) return { issues: issuesOf(first, value) };
        if (every === undefined) every = validator(schema, isOwn, true);
        return { issues: issuesOf(every ?? first, value) };
    };
}

// ---- Ajv

type AjvClass = typeof import("ajv").Ajv;
type Dialect = "2020" | "2019" | "07";

function load(dialect: Dialect): AjvClass {
    if (dialect === "2020") return require("ajv/dist/2020").Ajv2020 as AjvClass;
    if (dialect === "2019") return require("ajv/dist/2019").Ajv2019 as AjvClass;
    return require("ajv").Ajv as AjvClass;
}

/** Accepts: for the patterns of strangers. */
const unmatched = Object.assign(() => ({ test: () => true }), { code: "" });

function dialectsOf(schema: JsonSchema | boolean): Dialect[] {
    const said = typeof schema === "object" ? schema.$schema : undefined;
    // Without a word it is 2020-12; but many write draft-07 and do not say so.
    if (typeof said !== "string") return ["2020", "07"];
    if (said.includes("draft/2020-12")) return ["2020"];
    if (said.includes("draft/2019-09")) return ["2019"];
    return said.includes("draft-07") || said.includes("draft-06") ? ["07"] : [];
}

/** null: that cannot be told. */
function validator(
    schema: JsonSchema | boolean,
    isOwn: boolean,
    allErrors: boolean,
): ValidateFunction | null {
    if (!isOwn) {
        const text = JSON.stringify(schema);
        if (text.length > MAX_STRANGE || text.includes('"patternProperties"'))
            return null;
    }
    const options: Options = {
        strict: false,
        validateSchema: false,
        validateFormats: false,
        ownProperties: true,
        multipleOfPrecision: 9,
        logger: false,
        allErrors,
        ...(isOwn ? {} : { code: { regExp: unmatched as never } }),
    };
    let why: unknown;
    for (const dialect of dialectsOf(schema)) {
        try {
            // One of its own, which is gone with the schema.
            return new (load(dialect))(options).compile(schema);
        } catch (error) {
            why ??= error;
        }
    }
    if (isOwn) warn(why);
    return null;
}

function warn(why: unknown): void {
    const reason = why instanceof Error ? why.message : "of an unknown $schema";
    process.emitWarning(`a JSON Schema is not checked: ${reason}`, "SegueWarning");
}

/** "" when the value fits. */
function run(validate: ValidateFunction, value: unknown): string {
    try {
        return validate(value) ? "" : "misfit";
    } catch (error) {
        if (error instanceof RangeError) return "deep"; // of the stack
        throw error;
    }
}

// ---- reasons

function issuesOf(validate: ValidateFunction, value: unknown): Issue[] {
    const found = run(validate, value);
    if (found === "deep") return [{ message: "is nested too deep" }];
    const issues = (validate.errors ?? []).map(issueOf);
    return issues.length ? issues : [{ message: "does not fit" }];
}

function issueOf(error: ErrorObject): Issue {
    const { instancePath, params, message = "does not fit", keyword } = error;
    const path = instancePath.split("/").slice(1).map(unescaped);
    if (keyword === "required" || keyword === "dependentRequired") {
        return {
            path: [...path, String(params.missingProperty)],
            message: "is required",
        };
    }
    if (keyword === "additionalProperties" || keyword === "unevaluatedProperties") {
        const name = String(params.additionalProperty ?? params.unevaluatedProperty);
        return { path: [...path, name], message: "is not allowed" };
    }
    if (keyword === "enum") {
        const told = (params.allowedValues as unknown[]).map((one) =>
            JSON.stringify(one),
        );
        return { path, message: `is none of ${told.join(", ")}` };
    }
    if (keyword === "const") {
        return { path, message: `has to be ${JSON.stringify(params.allowedValue)}` };
    }
    return { path, message };
}

function unescaped(step: string): string {
    return step.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Whether a value has no more parts than reasons may be looked for in. */
function isSmall(value: unknown): boolean {
    let count = 0;
    const stack = [value];
    while (stack.length) {
        const one = stack.pop();
        if (typeof one !== "object" || one === null) continue;
        const parts = Object.values(one);
        count += parts.length;
        if (count > MAX_PARTS) return false;
        for (const part of parts) stack.push(part);
    }
    return true;
}
