/**
 * Unknown names of arguments and options, and the names that were probably meant.
 *
 * The Python package has the same rule in names.py, so both give the same texts.
 *
 * @module
 */

/** Maximum number of unknown names in one message. */
const MAX_NAMES = 8;
/** Maximum number of characters of each name. */
const MAX_LENGTH = 60;

/**
 * Returns the text that says which arguments a tool or prompt does not have.
 *
 * @param names - the unknown names, at least one.
 * @param known - the names of the arguments that the item has.
 */
export function unknownNames(
    names: readonly string[],
    known: readonly string[],
    what: "tool" | "prompt" = "tool",
): string {
    const shown = names.slice(0, MAX_NAMES);
    const parts = shown.map((name) => unknown(name, known));
    if (names.length > shown.length)
        parts.push(`and ${names.length - shown.length} more`);
    if (!known.length) parts.push(`the ${what} takes no arguments`);
    else if (!shown.some((name) => nearest(name, known) !== undefined))
        parts.push(`the arguments are ${known.map(quoted).join(", ")}`);
    return parts.join("; ");
}

function unknown(name: string, known: readonly string[]): string {
    const text = `unknown argument ${quoted(name)}`;
    const meant = nearest(name, known);
    return meant === undefined ? text : `${text}, did you mean ${quoted(meant)}?`;
}

function shortened(name: string): string {
    return [...name.slice(0, 2 * MAX_LENGTH)].slice(0, MAX_LENGTH).join("");
}

function quoted(name: string): string {
    return JSON.stringify(shortened(name));
}

/**
 * Refuses an option that does not exist. Without this check it would be ignored silently.
 *
 * @param what - what has the options, such as "connect()".
 * @throws TypeError: an option is unknown. The message names the option that was probably
 * meant, or ends with `advice` of the unknown name.
 */
export function checkOptionNames(
    what: string,
    given: object,
    known: readonly string[],
    advice: (name: string) => string = () => "",
): void {
    if (typeof given !== "object" || given === null)
        throw new TypeError(
            `the options of ${what} have to be an object, not ${String(given)}`,
        );
    for (const name in given) {
        if (known.includes(name)) continue;
        const meant = advice(name) ? undefined : nearest(name, known);
        const end = meant ? `, did you mean ${quoted(meant)}?` : advice(name);
        throw new TypeError(`${what} has no option ${quoted(name)}${end}`);
    }
}

/** The types of options, by their names: those of `typeof`, or undefined = any. */
export type OptionTypes<T> = {
    readonly [Name in keyof T]-?:
        | "string"
        | "number"
        | "boolean"
        | "function"
        | undefined;
};

/**
 * Refuses an option that does not exist, or has a value of another type. undefined is no
 * value.
 *
 * @throws TypeError, as `checkOptionNames`, or naming the option.
 */
export function checkOptionTypes<T extends object>(
    what: string,
    given: T,
    types: OptionTypes<T>,
    advice?: (name: string) => string,
): void {
    checkOptionNames(what, given, Object.keys(types), advice);
    for (const [name, value] of Object.entries(given)) {
        const type = types[name as keyof T];
        if (value === undefined || type === undefined || typeof value === type) continue;
        throw new TypeError(
            `the option ${name} of ${what} has to be a ${type}, not ${shown(value)}`,
        );
    }
}

function shown(value: unknown): string {
    return typeof value === "string" ? quoted(value) : shortened(String(value));
}

/**
 * Returns the known name that is most similar to a name, or undefined if no name is
 * similar. Case, underscores and hyphens do not count, and at most a third of the
 * characters may differ.
 */
export function nearest(name: string, known: readonly string[]): string | undefined {
    const text = plain(name);
    let best: string | undefined;
    let least = text.length + 1;
    for (const one of known) {
        const other = plain(one);
        const far = distance(text, other);
        if (far < least && far * 3 <= Math.max(text.length, other.length)) {
            best = one;
            least = far;
        }
    }
    return best;
}

function plain(name: string): string {
    return shortened(name).toLowerCase().replaceAll("_", "").replaceAll("-", "");
}

/**
 * Returns the number of characters to insert, remove or replace, and of neighbours to
 * swap, to make b of a.
 */
function distance(a: string, b: string): number {
    let before: number[] = [];
    let row = Array.from({ length: b.length + 1 }, (_, place) => place);
    for (let i = 1; i <= a.length; i++) {
        const last = row;
        row = [i];
        for (let j = 1; j <= b.length; j++) {
            const replaced = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
            let least = Math.min(at(last, j) + 1, at(row, j - 1) + 1, replaced);
            if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
                least = Math.min(least, at(before, j - 2) + 1);
            }
            row.push(least);
        }
        before = last;
    }
    return at(row, b.length);
}

function at(row: readonly number[], place: number): number {
    return row[place] as number;
}
