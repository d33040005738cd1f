/**
 * Changes one member in a text of JSON and leaves all other bytes as they are.
 *
 * The Python package has the same rules in jsontext.py, so both make the same text
 * (tests/files/install.json).
 */

const MAX_DEPTH = 200;
const SCALAR = /[^\s,:{}[\]"/]+/y;
const STRING = /"(?:[^"\\\r\n]|\\.)*"/y;
const BLANK = /[ \t\r\n]*/y;
const COMMENT = /\/\/[^\r\n]*|\/\*[\s\S]*?\*\//y;
/** Blanks and one comment, on the line on which a value ends. */
const TAIL = /[ \t]*(\/\/[^\r\n]*|\/\*[^\r\n]*?\*\/)/y;
const COMMA = /[ \t\r\n]*,/y;
const INDENT = /[ \t]*/y;
const EMPTY = /^\ufeff?[ \t\r\n]*$/;

/** The text is not JSON, or a member is not an object; the message says where. */
export class TextError extends Error {}

/** A value: its place in the text, and its members if it is an object. */
interface Node {
    readonly start: number;
    readonly end: number;
    readonly members: Map<string, Node> | undefined;
}

/** Returns the end of what matches at a place, or the place if nothing matches. */
function after(pattern: RegExp, text: string, place: number): number {
    pattern.lastIndex = place;
    return pattern.test(text) ? pattern.lastIndex : place;
}

class Reader {
    at: number;

    constructor(
        readonly text: string,
        readonly hasComments: boolean,
    ) {
        this.at = text.startsWith("\ufeff") ? 1 : 0;
    }

    fail(why: string): TextError {
        const before = this.text.slice(0, this.at);
        const line = before.split("\n").length;
        const column = this.at - before.lastIndexOf("\n");
        return new TextError(`line ${line}, column ${column}: ${why}`);
    }

    blank(): void {
        for (;;) {
            this.at = after(BLANK, this.text, this.at);
            const next = this.text.slice(this.at, this.at + 2);
            if (next !== "//" && next !== "/*") return;
            if (!this.hasComments) {
                throw this.fail("comments are not allowed in this file");
            }
            const end = after(COMMENT, this.text, this.at);
            if (end === this.at) throw this.fail("the comment has no end");
            this.at = end;
        }
    }

    takes(character: string): boolean {
        if (this.text[this.at] !== character) return false;
        this.at++;
        return true;
    }

    whole(): Node {
        this.blank();
        const node = this.value(0);
        this.blank();
        if (this.at < this.text.length) {
            throw this.fail("there is more text after the end of the value");
        }
        return node;
    }

    value(depth: number): Node {
        if (depth > MAX_DEPTH) throw this.fail("the values are nested too deep");
        const start = this.at;
        let members: Map<string, Node> | undefined;
        if (this.takes("{")) {
            members = new Map();
            this.items("}", members, depth);
        } else if (this.takes("[")) {
            this.items("]", undefined, depth);
        } else {
            this.scalar();
        }
        return { start, end: this.at, members };
    }

    items(end: string, members: Map<string, Node> | undefined, depth: number): void {
        this.blank();
        if (this.takes(end)) return;
        for (;;) {
            if (members) this.member(members, depth);
            else this.value(depth + 1);
            this.blank();
            if (this.takes(end)) return;
            if (!this.takes(",")) throw this.fail(`"," or "${end}" is missing`);
            this.blank();
            if (this.hasComments && this.takes(end)) return;
        }
    }

    member(members: Map<string, Node>, depth: number): void {
        const start = this.at;
        this.at = after(STRING, this.text, start);
        if (this.at === start) throw this.fail("a name in double quotes is missing");
        const key = String(this.parsed(start));
        this.blank();
        if (!this.takes(":")) throw this.fail('":" is missing');
        this.blank();
        members.delete(key); // the last one counts, and is last in order
        members.set(key, this.value(depth + 1));
    }

    scalar(): void {
        const start = this.at;
        const pattern = this.text[start] === '"' ? STRING : SCALAR;
        this.at = after(pattern, this.text, start);
        if (this.at === start) throw this.fail("a value is missing");
        this.parsed(start);
    }

    parsed(start: number): unknown {
        try {
            return JSON.parse(this.text.slice(start, this.at));
        } catch {
            this.at = start;
            throw this.fail("this is not a value of JSON");
        }
    }
}

function parse(text: string, hasComments: boolean): Node {
    const node = new Reader(text, hasComments).whole();
    if (!node.members) throw new TextError("the file is no JSON object");
    return node;
}

/**
 * Returns whether the value at a path is an object; undefined if there is none.
 *
 * @throws TextError: the text is not a JSON object.
 */
export function getMember(
    text: string,
    path: readonly string[],
    hasComments: boolean,
): boolean | undefined {
    if (EMPTY.test(text)) return undefined;
    let node: Node | undefined = parse(text, hasComments);
    for (const name of path) node = node?.members?.get(name);
    return node && node.members !== undefined;
}

/**
 * Returns the text with the member at a path set to a value. Objects on the way are made
 * if they are missing.
 *
 * @param text - the text of the file. An empty one is an empty object.
 * @param hasComments - the text may have comments, and commas at the end of a list.
 * @throws TextError: the text is not a JSON object, or a value on the way is not an
 * object.
 */
export function setMember(
    text: string,
    path: readonly string[],
    value: unknown,
    hasComments: boolean,
): string {
    const newline = text.includes("\r\n") ? "\r\n" : "\n";
    if (EMPTY.test(text)) text = `{}${newline}`;
    let node = parse(text, hasComments);
    const style = { unit: unitOf(text), newline };
    for (const [depth, name] of path.entries()) {
        if (!node.members) {
            throw new TextError(`${path.slice(0, depth).join(".")} is no JSON object`);
        }
        const found = node.members.get(name);
        if (!found) {
            for (const inner of path.slice(depth + 1).reverse())
                value = { [inner]: value };
            return insert(text, node, name, value, style);
        }
        node = found;
    }
    const made = render(value, style, indentOf(text, node.start) ?? "");
    return text.slice(0, node.start) + made + text.slice(node.end);
}

interface Style {
    readonly unit: string;
    readonly newline: string;
}

function insert(
    text: string,
    node: Node,
    name: string,
    value: unknown,
    style: Style,
): string {
    const { unit, newline } = style;
    const outer = indentOf(text, node.start) ?? "";
    const last = [...(node.members?.values() ?? [])].at(-1);
    let inner = outer + unit;
    let before: string;
    let rest: string;
    if (!last) {
        // The rest is blank, or comments.
        before = text.slice(0, node.end - 1).replace(/[ \t\r\n]+$/, "");
        rest = newline + outer + text.slice(node.end - 1);
    } else {
        inner = indentOf(text, last.start) || inner;
        // A comma at the end stays the last one.
        const hasComma = after(COMMA, text, last.end) > last.end;
        const stop = hasComma ? last.end : after(TAIL, text, last.end);
        before = `${text.slice(0, last.end)},${text.slice(last.end, stop)}`;
        rest = text.slice(stop);
        if (!hasComma && !rest.slice(0, node.end - 1 - stop).includes("\n")) {
            rest = newline + outer + rest.replace(/^[ \t]+/, "");
        }
    }
    const made = `${JSON.stringify(name)}: ${render(value, style, inner)}`;
    return `${before}${newline}${inner}${made}${rest}`;
}

function render(value: unknown, { unit, newline }: Style, indent: string): string {
    return JSON.stringify(value, null, unit).replaceAll("\n", newline + indent);
}

/** Returns one step of indentation: that of the first line that has one. */
function unitOf(text: string): string {
    return /\n([ \t]+)\S/.exec(text)?.[1] ?? "  ";
}

/** Returns the indentation of a line; undefined for the first line of the text. */
function indentOf(text: string, place: number): string | undefined {
    const begin = text.lastIndexOf("\n", place - 1) + 1;
    if (begin === 0) return undefined;
    return text.slice(begin, after(INDENT, text, begin));
}
