/**
 * JSON that other programs can read.
 *
 * A JavaScript string may hold half of a surrogate pair: a name of a file or a text that
 * was cut in the middle of an emoji. `JSON.stringify` writes it as `\ud83d`, which no
 * UTF-8 has and the library refuses. Strings that go out as such become U+FFFD there
 * (`String.prototype.toWellFormed`); so do those inside of JSON.
 */

/** Pairs are written as they are, so what is escaped is half of one. */
const HALF = /(?<=(?:^|[^\\])(?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

/** What `JSON.stringify` has written, with U+FFFD for each half of a pair. */
export function wellFormed(json: string): string {
    return json.includes("\\ud") ? json.replace(HALF, "\ufffd") : json;
}
