/**
 * Checks values against JSON Schema (2020-12, and what draft-07 spells otherwise).
 *
 * A schema is compiled once into functions; no code is generated. What a schema may use
 * that is not checked here only ever accepts more: `format` and the `content...` keywords
 * say nothing by themselves, `unevaluated...` and `$dynamicRef` are not followed, and no
 * `$ref` is resolved beyond the schema itself.
 *
 * @module
 */

import type { Issue, JsonSchema } from "./schema.js";

type Path = readonly PropertyKey[];
/** Whether a value fits; why not goes to `issues`, unless nobody asks. */
type Check = (value: unknown, path: Path, issues: Issue[] | undefined) => boolean;
type Maker = (given: unknown, schema: JsonSchema, scope: Scope) => Check;

/** How deep schemas may lead, also round and round by `$ref`. */
const MAX_DEPTH = 512;

/** What compiling one schema knows. */
interface Scope {
    readonly root: JsonSchema | boolean;
    readonly made: Map<object, Check>;
    readonly patterns: boolean;
    anchors: Map<string, unknown> | undefined;
    /** How deep the check that runs is. */
    depth: number;
}

/** How a schema is compiled. */
export interface CompileOptions {
    /** Check `pattern`: not of a stranger's schema, which may keep it busy for ever. */
    patterns?: boolean | undefined;
}

/** A function that checks values against a schema. */
export function compile(
    schema: JsonSchema | boolean,
    options: CompileOptions = {},
): (value: unknown) => { value: unknown; issues?: undefined } | { issues: Issue[] } {
    const patterns = options.patterns ?? true;
    const check = build(schema, {
        root: schema,
        made: new Map(),
        patterns,
        anchors: undefined,
        depth: 0,
    });
    return (value) => {
        if (check(value, [], undefined)) return { value };
        const issues: Issue[] = [];
        check(value, [], issues); // a second time for the reasons: the rare case
        return { issues };
    };
}

const yes: Check = () => true;

function say(issues: Issue[] | undefined, path: Path, message: string): false {
    issues?.push({ message, path });
    return false;
}

function build(schema: unknown, scope: Scope): Check {
    if (schema === true || schema === undefined) return yes;
    if (schema === false) return (_, path, issues) => say(issues, path, "is not allowed");
    if (typeof schema !== "object" || schema === null || Array.isArray(schema))
        return yes;
    const had = scope.made.get(schema);
    if (had) return had;
    // A schema that refers to itself finds this, which waits for what comes below.
    let whole: Check = yes;
    scope.made.set(schema, (value, path, issues) => {
        if (scope.depth >= MAX_DEPTH) return say(issues, path, "is nested too deep");
        scope.depth++;
        const fits = whole(value, path, issues);
        scope.depth--;
        return fits;
    });
    const parts: Check[] = [];
    for (const [keyword, make] of Object.entries(MAKERS)) {
        const given = (schema as JsonSchema)[keyword];
        if (given === undefined) continue;
        parts.push(make(given, schema as JsonSchema, scope));
    }
    whole = all(parts);
    return whole;
}

function all(parts: readonly Check[]): Check {
    if (parts.length === 1) return parts[0] as Check;
    return (value, path, issues) => {
        let fits = true;
        for (const part of parts) {
            if (part(value, path, issues)) continue;
            if (!issues) return false;
            fits = false;
        }
        return fits;
    };
}

// ---- references

function reference(given: unknown, scope: Scope): Check {
    const found = resolve(String(given), scope);
    return found === undefined ? yes : build(found, scope);
}

function resolve(target: string, scope: Scope): unknown {
    if (!target.startsWith("#")) return undefined;
    const fragment = decode(target.slice(1));
    if (fragment === "") return scope.root;
    if (!fragment.startsWith("/")) {
        scope.anchors ??= anchorsOf(scope.root, new Map());
        return scope.anchors.get(fragment);
    }
    let at: unknown = scope.root;
    for (const step of fragment.slice(1).split("/")) {
        const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
        if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) {
            return undefined;
        }
        at = (at as Record<string, unknown>)[name];
    }
    return at;
}

function decode(fragment: string): string {
    try {
        return decodeURIComponent(fragment);
    } catch {
        return fragment;
    }
}

function anchorsOf(at: unknown, found: Map<string, unknown>): Map<string, unknown> {
    if (typeof at !== "object" || at === null) return found;
    const { $anchor } = at as { $anchor?: unknown };
    if (typeof $anchor === "string") found.set($anchor, at);
    for (const part of Object.values(at)) anchorsOf(part, found);
    return found;
}

// ---- what a value is

function typeOf(value: unknown): string {
    if (value === null) return "null";
    if (Array.isArray(value)) return "array";
    return typeof value;
}

function isObject(value: unknown): value is Record<string, unknown> {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

function same(a: unknown, b: unknown): boolean {
    if (a === b) return true;
    if (typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
    if (Array.isArray(a) !== Array.isArray(b)) return false;
    const keys = Object.keys(a);
    if (keys.length !== Object.keys(b).length) return false;
    return keys.every(
        (key) =>
            Object.hasOwn(b, key) &&
            same(
                (a as Record<string, unknown>)[key],
                (b as Record<string, unknown>)[key],
            ),
    );
}

function ofType(given: unknown): Check {
    const types = Array.isArray(given) ? given.map(String) : [String(given)];
    const told = types.join(" or ");
    return (value, path, issues) => {
        const type = typeOf(value);
        if (types.includes(type)) return true;
        if (type === "number" && types.includes("integer") && Number.isInteger(value)) {
            return true;
        }
        if (value === undefined) return say(issues, path, "is required");
        return say(issues, path, `expected ${told}, got ${type}`);
    };
}

function oneOf(values: readonly unknown[]): Check {
    const told = values.map((one) => JSON.stringify(one)).join(", ");
    const message = values.length === 1 ? `has to be ${told}` : `is none of ${told}`;
    return (value, path, issues) =>
        values.some((one) => same(one, value)) || say(issues, path, message);
}

// ---- makers of simple keywords

function ofNumber(test: (value: number, bound: number) => boolean, told: string): Maker {
    return (given) => {
        const bound = Number(given);
        return (value, path, issues) =>
            typeof value !== "number" ||
            test(value, bound) ||
            say(issues, path, `${told} ${bound}`);
    };
}

function ofLength(
    size: (value: unknown) => number | undefined,
    test: (size: number, bound: number) => boolean,
    told: (bound: number) => string,
): Maker {
    return (given) => {
        const bound = Number(given);
        return (value, path, issues) => {
            const found = size(value);
            return (
                found === undefined ||
                test(found, bound) ||
                say(issues, path, told(bound))
            );
        };
    };
}

const atLeast = (a: number, b: number): boolean => a >= b;
const atMost = (a: number, b: number): boolean => a <= b;
const points = (value: unknown): number | undefined =>
    typeof value === "string" ? [...value].length : undefined;
const items = (value: unknown): number | undefined =>
    Array.isArray(value) ? value.length : undefined;
const members = (value: unknown): number | undefined =>
    isObject(value) ? Object.keys(value).length : undefined;

function isMultiple(value: number, of: number): boolean {
    const times = value / of;
    return Math.abs(times - Math.round(times)) <= 1e-9 * Math.max(1, Math.abs(times));
}

function pattern(given: unknown, scope: Scope): RegExp | undefined {
    if (!scope.patterns) return undefined;
    for (const flags of ["u", ""]) {
        try {
            return new RegExp(String(given), flags);
        } catch {
            // Those of other dialects are not checked.
        }
    }
    return undefined;
}

function ofPattern(given: unknown, scope: Scope): Check {
    const expression = pattern(given, scope);
    if (!expression) return yes;
    return (value, path, issues) =>
        typeof value !== "string" ||
        expression.test(value) ||
        say(issues, path, `does not match ${expression.source}`);
}

// ---- arrays

function ofItems(schema: JsonSchema, scope: Scope): Check {
    const { items: given, prefixItems, additionalItems } = schema;
    const old = Array.isArray(given); // as in draft-07
    const first = (
        (old ? given : Array.isArray(prefixItems) ? prefixItems : []) as unknown[]
    ).map((one) => build(one, scope));
    const rest = build(old ? additionalItems : given, scope);
    return (value, path, issues) => {
        if (!Array.isArray(value)) return true;
        let fits = true;
        for (let at = 0; at < value.length; at++) {
            const check = first[at] ?? rest;
            if (check === yes || check(value[at], [...path, at], issues)) continue;
            if (!issues) return false;
            fits = false;
        }
        return fits;
    };
}

function ofContains(given: unknown, schema: JsonSchema, scope: Scope): Check {
    const check = build(given, scope);
    const least = Number(schema.minContains ?? 1);
    const most = Number(schema.maxContains ?? Number.POSITIVE_INFINITY);
    return (value, path, issues) => {
        if (!Array.isArray(value)) return true;
        const count = value.filter((one) => check(one, path, undefined)).length;
        if (count >= least && count <= most) return true;
        return say(issues, path, "does not contain what it has to");
    };
}

function areUnique(value: unknown, path: Path, issues: Issue[] | undefined): boolean {
    if (!Array.isArray(value)) return true;
    const seen = new Set<unknown>();
    for (const one of value) {
        const key = typeof one === "object" ? canonical(one) : one;
        if (seen.has(key)) return say(issues, path, "has the same item twice");
        seen.add(key);
    }
    return true;
}

/** A text that is the same for the same values. */
function canonical(value: unknown): string {
    return JSON.stringify(value, (_, one: unknown) =>
        isObject(one)
            ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
            : one,
    );
}

// ---- objects

function required(names: readonly string[]): Check {
    return (value, path, issues) => {
        if (!isObject(value)) return true;
        let fits = true;
        for (const name of names) {
            if (Object.hasOwn(value, name)) continue;
            fits = say(issues, [...path, name], "is required");
        }
        return fits;
    };
}

function ofMembers(schema: JsonSchema, scope: Scope): Check {
    const properties = isObject(schema.properties) ? schema.properties : {};
    const known = new Map(
        Object.entries(properties).map(([name, one]) => [name, build(one, scope)]),
    );
    const byPattern: [RegExp, Check][] = [];
    for (const [name, one] of Object.entries(schema.patternProperties ?? {})) {
        const expression = pattern(name, scope);
        if (!expression) return checkKnown(known); // nobody knows which are others
        byPattern.push([expression, build(one, scope)]);
    }
    const others = build(schema.additionalProperties, scope);
    if (!byPattern.length && others === yes) return checkKnown(known);
    return (value, path, issues) => {
        if (!isObject(value)) return true;
        let fits = true;
        for (const name of Object.keys(value)) {
            const checks = byPattern
                .filter(([one]) => one.test(name))
                .map((one) => one[1]);
            const own = known.get(name);
            if (own) checks.push(own);
            if (!checks.length) checks.push(others);
            for (const check of checks) {
                if (check(value[name], [...path, name], issues)) continue;
                if (!issues) return false;
                fits = false;
            }
        }
        return fits;
    };
}

function checkKnown(known: ReadonlyMap<string, Check>): Check {
    return (value, path, issues) => {
        if (!isObject(value)) return true;
        let fits = true;
        for (const [name, check] of known) {
            if (!Object.hasOwn(value, name)) continue;
            if (check(value[name], [...path, name], issues)) continue;
            if (!issues) return false;
            fits = false;
        }
        return fits;
    };
}

function ofNames(given: unknown, scope: Scope): Check {
    const check = build(given, scope);
    return (value, path, issues) =>
        !isObject(value) ||
        Object.keys(value).every((name) => check(name, [...path, name], issues));
}

function dependents(given: unknown, scope: Scope): Check {
    const checks = Object.entries(given ?? {}).map(([name, needs]): [string, Check] => [
        name,
        Array.isArray(needs) ? required(needs.map(String)) : build(needs, scope),
    ]);
    return (value, path, issues) =>
        !isObject(value) ||
        checks.every(
            ([name, check]) => !Object.hasOwn(value, name) || check(value, path, issues),
        );
}

// ---- several schemas at once

function many(given: unknown, scope: Scope): Check[] {
    return Array.isArray(given) ? given.map((one) => build(one, scope)) : [];
}

function anyOf(given: unknown, scope: Scope): Check {
    const checks = many(given, scope);
    return (value, path, issues) => {
        if (checks.some((check) => check(value, path, undefined))) return true;
        if (!issues) return false;
        // The reasons of the one that came farthest, which is what was meant.
        let best: Issue[] | undefined;
        for (const check of checks) {
            const why: Issue[] = [];
            check(value, path, why);
            if (!best || depth(why) > depth(best)) best = why;
        }
        const one = depth(best ?? []) > path.length ? best?.[0] : undefined;
        return one
            ? say(issues, one.path as Path, one.message)
            : say(issues, path, "fits none of what is allowed");
    };
}

function depth(issues: readonly Issue[]): number {
    return Math.max(0, ...issues.map((one) => one.path?.length ?? 0));
}

function exactlyOne(given: unknown, scope: Scope): Check {
    const checks = many(given, scope);
    const some = anyOf(given, scope);
    return (value, path, issues) => {
        const count = checks.filter((check) => check(value, path, undefined)).length;
        if (count === 1) return true;
        return count
            ? say(issues, path, "fits more than one of what is allowed")
            : some(value, path, issues);
    };
}

function not(given: unknown, scope: Scope): Check {
    const check = build(given, scope);
    return (value, path, issues) =>
        !check(value, path, undefined) || say(issues, path, "is what it may not be");
}

function condition(schema: JsonSchema, scope: Scope): Check {
    const asks = build(schema.if, scope);
    const then = build(schema.then, scope);
    const otherwise = build(schema.else, scope);
    return (value, path, issues) =>
        (asks(value, path, undefined) ? then : otherwise)(value, path, issues);
}

/** Each keyword, in the order in which reasons are told. */
const MAKERS: Record<string, Maker> = {
    $ref: (given, _, scope) => reference(given, scope),
    type: (given) => ofType(given),
    enum: (given) => (Array.isArray(given) ? oneOf(given) : yes),
    const: (given) => oneOf([given]),
    minimum: ofNumber(atLeast, "has to be at least"),
    maximum: ofNumber(atMost, "has to be at most"),
    exclusiveMinimum: ofNumber((a, b) => a > b, "has to be more than"),
    exclusiveMaximum: ofNumber((a, b) => a < b, "has to be less than"),
    multipleOf: ofNumber(isMultiple, "has to be a multiple of"),
    minLength: ofLength(points, atLeast, (n) => `needs at least ${n} characters`),
    maxLength: ofLength(points, atMost, (n) => `has more than ${n} characters`),
    pattern: (given, _, scope) => ofPattern(given, scope),
    minItems: ofLength(items, atLeast, (n) => `needs at least ${n} items`),
    maxItems: ofLength(items, atMost, (n) => `has more than ${n} items`),
    uniqueItems: (given) => (given === true ? areUnique : yes),
    prefixItems: (given, schema, scope) =>
        Array.isArray(given) && schema.items === undefined ? ofItems(schema, scope) : yes,
    items: (_, schema, scope) => ofItems(schema, scope),
    contains: ofContains,
    minProperties: ofLength(members, atLeast, (n) => `needs at least ${n} members`),
    maxProperties: ofLength(members, atMost, (n) => `has more than ${n} members`),
    required: (given) => (Array.isArray(given) ? required(given.map(String)) : yes),
    properties: (_, schema, scope) => ofMembers(schema, scope),
    patternProperties: (_, schema, scope) =>
        schema.properties === undefined ? ofMembers(schema, scope) : yes,
    additionalProperties: (_, schema, scope) =>
        schema.properties === undefined && schema.patternProperties === undefined
            ? ofMembers(schema, scope)
            : yes,
    propertyNames: (given, _, scope) => ofNames(given, scope),
    dependentRequired: (given, _, scope) => dependents(given, scope),
    dependentSchemas: (given, _, scope) => dependents(given, scope),
    dependencies: (given, _, scope) => dependents(given, scope),
    allOf: (given, _, scope) => all(many(given, scope)),
    anyOf: (given, _, scope) => anyOf(given, scope),
    oneOf: (given, _, scope) => exactlyOne(given, scope),
    not: (given, _, scope) => not(given, scope),
    if: (_, schema, scope) => condition(schema, scope),
};
