/**
 * Unknown names of arguments, and the names that were probably meant.
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

/** Returns the number of characters to insert, remove or replace to make b of a. */
function distance(a: string, b: string): number {
    const row = Array.from({ length: b.length + 1 }, (_, at) => at);
    for (let i = 1; i <= a.length; i++) {
        let diagonal = i - 1;
        row[0] = i;
        for (let j = 1; j <= b.length; j++) {
            const above = row[j] as number;
            const replaced = diagonal + (a[i - 1] === b[j - 1] ? 0 : 1);
            row[j] = Math.min(above + 1, (row[j - 1] as number) + 1, replaced);
            diagonal = above;
        }
    }
    return row[b.length] as number;
}
