/** Reads tests/vectors, fills names in, compares messages (tests/vectors/README.md). */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { TREE } from "./tree.js";

export const DIRECTORY = path.join(TREE, "tests", "vectors");
const FORMAT = 1;
const MORE = "$more";
const STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const FILE = ["format", "about", "let", "begin", "after", "vectors"];
const VECTOR = "name rule role revision about capabilities steps fails needs steps".split(
    " ",
);

/** A message is not what the vector expects. */
export class Wrong extends Error {}

/** A number in its original text: equal as an integer or as text. */
export class Num {
    readonly text: string;
    constructor(text: string) {
        this.text = text;
    }

    same(other: unknown): boolean {
        if (!(other instanceof Num)) return false;
        if (other.text === this.text) return true;
        const a = Number(this.text);
        return Number.isSafeInteger(a) && a === Number(other.text);
    }
}

/** JSON values; numbers keep their text. */
export type Value = string | boolean | null | Num | Value[] | { [member: string]: Value };
type Members = { [member: string]: Value };

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
/** Marks a number on its way through JSON.parse; no text of a vector begins with it. */
const MARK = "\\u0000";

/** Reads JSON and keeps the text of its numbers. */
export function loads(text: string): Value {
    const marked = text.replace(TOKEN, (token) =>
        token.startsWith('"') ? token : `"${MARK}${token}"`,
    );
    return JSON.parse(marked, (_, value: unknown) =>
        typeof value === "string" && value.startsWith("\0")
            ? new Num(value.slice(1))
            : value,
    ) as Value;
}

/** Writes the JSON again. */
export function dumps(value: Value | undefined): string {
    if (value === undefined) return "nothing";
    if (value instanceof Num) return value.text;
    if (Array.isArray(value)) return `[${value.map(dumps).join(",")}]`;
    if (typeof value !== "object" || value === null) return JSON.stringify(value);
    const members = Object.entries(value);
    return `{${members.map(([k, v]) => `${JSON.stringify(k)}:${dumps(v)}`).join(",")}}`;
}

/** One step: one member, whose name is its verb. */
export type Step = Members;

/** One vector, with the common members of its file. */
export interface Vector {
    name: string;
    role: "server" | "client";
    revision: string;
    steps: Step[];
    begin: Step[];
    after: Step[];
    let: Members;
    capabilities: Value | undefined;
    fails: string | undefined;
    needs: string[];
}

function unknown(told: Members, known: readonly string[]): string[] {
    return Object.keys(told).filter((name) => !known.includes(name));
}

/** Reads all vectors of a directory, in order. */
export function readAll(directory = DIRECTORY): Vector[] {
    const found: Vector[] = [];
    for (const name of readdirSync(directory).sort()) {
        if (!name.endsWith(".json")) continue;
        const told = loads(readFileSync(path.join(directory, name), "utf8")) as Members;
        assert.equal((told.format as Num).text, String(FORMAT), name);
        assert.deepEqual(unknown(told, FILE), [], name);
        const {
            begin = {},
            after = {},
            let: names = {},
        } = told as Record<string, Members>;
        for (const one of told.vectors as Members[]) {
            assert.deepEqual(unknown(one, VECTOR), [], name);
            const prelude = `${one.role} ${one.revision}`;
            found.push({
                name: `${one.rule} ${one.name} [${name}]`,
                role: one.role as Vector["role"],
                revision: String(one.revision),
                steps: one.steps as Step[],
                begin: (begin[prelude] ?? []) as Step[],
                after: (after[prelude] ?? []) as Step[],
                let: names as Members,
                capabilities: one.capabilities,
                fails: one.fails as string | undefined,
                needs: (one.needs ?? []) as string[],
            });
        }
    }
    assert.ok(found.length, directory);
    return found;
}

function isName(text: unknown): text is string {
    return typeof text === "string" && /^\$[^$]/.test(text);
}

function plain(text: string): string {
    return text.length > 1 && text.startsWith("$") ? text.slice(1) : text;
}

function isMembers(value: Value | undefined): value is Members {
    return (
        typeof value === "object" &&
        value !== null &&
        !Array.isArray(value) &&
        !(value instanceof Num)
    );
}

const KINDS: Record<string, (value: Value | undefined) => boolean> = {
    $any: (value) => value !== undefined,
    $string: (value) => typeof value === "string" && value !== "",
    $integer: (value) => value instanceof Num && /^-*\d+$/.test(value.text),
    $object: isMembers,
    $array: Array.isArray,
    $stamp: (value) => typeof value === "string" && STAMP.test(value),
};

function differs(at: string, pattern: Value, found: Value | undefined): Wrong {
    const where = at || "the message";
    return new Wrong(`${where}: expected ${dumps(pattern)}, found ${dumps(found)}`);
}

/** The values of the names in one vector. */
export class Names {
    readonly #bound = new Map<string, Value>();

    constructor(given: Members) {
        for (const [name, value] of Object.entries(given)) {
            this.#bound.set(`$${name}`, value);
        }
    }

    // ---- filling in

    /** Returns the value with all names filled in. */
    fill(value: Value): Value {
        if (isName(value)) {
            const bound = this.#bound.get(value);
            if (bound === undefined) throw new Wrong(`${value} is not bound`);
            return this.fill(bound);
        }
        if (typeof value === "string") return plain(value);
        if (Array.isArray(value)) return value.map((one) => this.fill(one));
        if (!isMembers(value)) return value;
        return Object.fromEntries(
            Object.entries(value).map(([k, v]) => [this.#key(k), this.fill(v)]),
        );
    }

    #key(key: string): string {
        const told = this.fill(key);
        if (typeof told !== "string") throw new Wrong(`${key} is no string`);
        return told;
    }

    // ---- comparing

    /** Compares a message with a pattern, and binds new names. @throws Wrong */
    match(pattern: Value, found: Value | undefined, at = ""): void {
        if (isName(pattern)) this.#matchName(pattern, found, at);
        else if (Array.isArray(pattern)) this.#matchArray(pattern, found, at);
        else if (isMembers(pattern)) this.#matchObject(pattern, found, at);
        else if (pattern instanceof Num) {
            if (!pattern.same(found)) throw differs(at, pattern, found);
        } else if (typeof pattern === "string") {
            if (found !== plain(pattern)) throw differs(at, pattern, found);
        } else if (found !== pattern) throw differs(at, pattern, found);
    }

    #matchName(name: string, found: Value | undefined, at: string): void {
        const fits = KINDS[name];
        const bound = this.#bound.get(name);
        if (fits) {
            if (!fits(found)) throw differs(at, name, found);
        } else if (bound !== undefined) this.match(bound, found, at);
        else if (found === undefined) throw differs(at, name, found);
        else this.#bound.set(name, escaped(found));
    }

    #matchObject(pattern: Members, found: Value | undefined, at: string): void {
        if (!isMembers(found)) throw differs(at, pattern, found);
        let count = 0;
        for (const [key, value] of Object.entries(pattern)) {
            if (key === MORE) continue;
            const name = isName(key) ? this.#taken(pattern, found, key) : plain(key);
            this.match(value, found[name], at ? `${at}.${name}` : name);
            count++;
        }
        if (!(MORE in pattern) && Object.keys(found).length !== count) {
            throw differs(at, pattern, found);
        }
    }

    /** Returns the member that a key stands for which is a name. */
    #taken(pattern: Members, found: Members, name: string): string {
        const others = Object.keys(pattern)
            .filter((key) => key !== name && key !== MORE)
            .map((key) => (isName(key) ? this.#bound.get(key) : plain(key)));
        for (const key of Object.keys(found)) {
            if ((this.#bound.get(name) ?? key) === key && !others.includes(key)) {
                this.#bound.set(name, escaped(key));
                return key;
            }
        }
        throw new Wrong(`no member is ${name}`);
    }

    #matchArray(pattern: Value[], found: Value | undefined, at: string): void {
        if (!Array.isArray(found)) throw differs(at, pattern, found);
        for (const [i, expected] of pattern.entries()) {
            if (expected === MORE) return;
            this.match(expected, found[i], `${at}.${i}`);
        }
        if (found.length > pattern.length) throw differs(at, pattern, found);
    }
}

/** Escapes a text that was received: it is no name. */
function escaped(value: Value): Value {
    if (typeof value === "string") return value.startsWith("$") ? `$${value}` : value;
    if (Array.isArray(value)) return value.map(escaped);
    if (!isMembers(value)) return value;
    return Object.fromEntries(
        Object.entries(value).map(([k, v]) => [escaped(k) as string, escaped(v)]),
    );
}
