/**
 * JSON that other programs can read.
 *
 * A JavaScript string may hold half of a surrogate pair: a name of a file or a text that
 * was cut in the middle of an emoji. `JSON.stringify` writes it as `\ud83d`, which no
 * UTF-8 has and the library refuses. Strings that go out as such become U+FFFD there
 * (`String.prototype.toWellFormed`); so do those inside of JSON.
 */

/** An escape: taken one by one, a backslash that is escaped itself begins none. Pairs are
 * written as they are, so what is escaped is half of one. */
const ESCAPE = /\\(?:u(d[89a-f][0-9a-f]{2})|.)/g;

/** What `JSON.stringify` has written, with U+FFFD for each half of a pair. */
export function wellFormed(json: string): string {
    if (!json.includes("\\ud")) return json;
    return json.replace(ESCAPE, (all, half?: string) => (half ? "\ufffd" : all));
}
