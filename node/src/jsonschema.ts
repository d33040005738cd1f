/**
 * Checks values against a JSON Schema with Ajv. The schema's dialect is 2020-12, or the
 * dialect that `$schema` names (2019-09, draft-07).
 *
 * Ajv is loaded at the first check, by `prepare` or by `fault`, so a program without
 * JSON Schemas does not load it. `format` is not checked. A schema that Ajv cannot
 * compile accepts everything; `fault` says why, so that a server refuses such a schema.
 *
 * @module
 */

import type { Ajv, ErrorObject, Options, ValidateFunction } from "ajv";
import type { Issue, JsonSchema } from "./schema.js";

/** The options of `compile`. */
export interface CompileOptions {
    /**
     * Whether `pattern`s of the schema are run; default true. Use false for a schema from
     * the peer, which is not trusted: a pattern of such a schema may never finish. With
     * false, a schema that is large or has `patternProperties` is not checked at all.
     */
    patterns?: boolean | undefined;
}

/** The outcome of a check: the value, or the reasons why the value does not fit. */
export type Checked = { value: unknown; issues?: undefined } | { issues: Issue[] };

/** Maximum size of a schema that is not trusted, in characters of JSON text. */
const MAX_STRANGE = 256 * 1024;
/** A value with more parts than this gets only the first reason why it does not fit. */
const MAX_PARTS = 1000;

/** Checks values against one schema. */
export interface Checker {
    readonly check: (value: unknown) => Checked;
    /** Compiles the schema now. Without it, the first check does this. */
    readonly prepare: () => void;
    /**
     * Compiles the schema now, and returns why the schema is broken; undefined = it is
     * not. A schema of an unknown dialect is not broken: it accepts everything.
     */
    readonly fault: () => string | undefined;
}

/** Makes the checker of a schema. */
export function compile(
    schema: JsonSchema | boolean,
    options: CompileOptions = {},
): Checker {
    const isOwn = options.patterns ?? true;
    let first: ValidateFunction | null | undefined;
    let every: ValidateFunction | null | undefined;
    const prepared = (): ValidateFunction | null => {
        if (first === undefined) {
            try {
                first = validator(schema, isOwn, false);
                if (first === null && isOwn) warn("its $schema is unknown");
            } catch (error) {
                first = null;
                if (isOwn) warn((error as Error).message);
            }
        }
        return first;
    };
    const fault = (): string | undefined => {
        try {
            first ??= validator(schema, isOwn, false);
            if (first === null) warn("its $schema is unknown");
            return undefined;
        } catch (error) {
            return (error as Error).message;
        }
    };
    const check = (value: unknown): Checked => {
        const one = prepared();
        if (!one || run(one, value) === "") return { value };
        if (!isSmall(value)) return { issues: issuesOf(one, value) };
        every ??= validator(schema, isOwn, true);
        return { issues: issuesOf(every ?? one, value) };
    };
    return { check, prepare: () => void prepared(), fault };
}

// ---- Ajv

type AjvClass = typeof import("ajv").Ajv;
type Dialect = "2020" | "2019" | "07";

function load(dialect: Dialect): AjvClass {
    if (dialect === "2020") return require("ajv/dist/2020").Ajv2020 as AjvClass;
    if (dialect === "2019") return require("ajv/dist/2019").Ajv2019 as AjvClass;
    return require("ajv").Ajv as AjvClass;
}

/**
 * A regular expression that matches every text. This expression replaces each pattern in
 * a schema that is not trusted.
 */
const unmatched = Object.assign(() => ({ test: () => true }), { code: "" });

function dialectsOf(schema: JsonSchema | boolean): Dialect[] {
    const said = typeof schema === "object" ? schema.$schema : undefined;
    // A schema without `$schema` is tried as 2020-12 first. Many such schemas are in fact
    // draft-07, so draft-07 is tried second.
    if (typeof said !== "string") return ["2020", "07"];
    if (said.includes("draft/2020-12")) return ["2020"];
    if (said.includes("draft/2019-09")) return ["2019"];
    return said.includes("draft-07") || said.includes("draft-06") ? ["07"] : [];
}

/** An Ajv for each dialect, which checks schemas against the schema of schemas. */
const judges = new Map<Dialect, Ajv>();

/** @throws Error, with the first keyword that is wrong. */
function judge(schema: JsonSchema | boolean, dialect: Dialect): void {
    const judged = judges.get(dialect) ?? new (load(dialect))(COMMON);
    judges.set(dialect, judged);
    // Without `$schema`, the schema is checked by the schema of this dialect.
    const bare = typeof schema === "object" ? { ...schema, $schema: undefined } : schema;
    if (judged.validateSchema(bare as object) === true) return;
    const [error] = judged.errors ?? [];
    if (!error) throw new Error("is no JSON Schema");
    const { path = [], message } = issueOf(error);
    throw new Error([path.join("."), message].filter(Boolean).join(": "));
}

const COMMON: Options = {
    strict: false,
    validateSchema: false,
    validateFormats: false,
    ownProperties: true,
    multipleOfPrecision: 9,
    logger: false,
};

/**
 * Compiles a schema. Returns null when the dialect is unknown, or when a schema that is
 * not trusted is too large or has `patternProperties`.
 *
 * @throws Error when the schema is broken.
 */
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
        ...COMMON,
        allErrors,
        ...(isOwn ? {} : { code: { regExp: unmatched as never } }),
    };
    let why: unknown;
    for (const dialect of dialectsOf(schema)) {
        // Many patterns, such as "\\_", are only valid without the flag "u".
        for (const unicodeRegExp of isOwn ? [true, false] : [true]) {
            try {
                if (isOwn) judge(schema, dialect);
                // Each schema gets an Ajv instance of its own, which is freed together
                // with the schema.
                const ajv = new (load(dialect))({ ...options, unicodeRegExp });
                return ajv.compile(schema);
            } catch (error) {
                why ??= error;
            }
        }
    }
    if (why !== undefined) throw why;
    return null;
}

function warn(reason: string): void {
    process.emitWarning(`a JSON Schema is not checked: ${reason}`, "SegueWarning");
}

/** Checks a value. Returns "" when the value fits. */
function run(validate: ValidateFunction, value: unknown): string {
    try {
        return validate(value) ? "" : "misfit";
    } catch (error) {
        // a RangeError means that the value is nested so deep that the stack overflows
        if (error instanceof RangeError) return "deep";
        throw error;
    }
}

// ---- the reasons why a value does not fit

function issuesOf(validate: ValidateFunction, value: unknown): Issue[] {
    const found = run(validate, value);
    if (found === "deep") return [{ message: "is nested too deeply" }];
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
        return { path, message: `has to be one of ${told.join(", ")}` };
    }
    if (keyword === "const") {
        return { path, message: `has to be ${JSON.stringify(params.allowedValue)}` };
    }
    return { path, message };
}

function unescaped(step: string): string {
    return step.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Returns whether a value has at most MAX_PARTS parts. */
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
