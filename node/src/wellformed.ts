/**
 * Makes JSON that other programs can read.
 *
 * A JavaScript string may contain half of a surrogate pair, such as in a text that was
 * cut in the middle of an emoji. `JSON.stringify` writes such a half as `\ud83d`, which
 * UTF-8 cannot represent and the library refuses. So each half is replaced by U+FFFD, as
 * `String.prototype.toWellFormed` does for plain strings.
 */

/**
 * Matches one escape of a JSON string. Each match covers a whole escape, so an escaped
 * backslash does not begin another escape. `JSON.stringify` writes whole surrogate pairs
 * unescaped, so an escaped surrogate is half of a pair.
 */
const ESCAPE = /\\(?:u(d[89a-f][0-9a-f]{2})|.)/g;

/**
 * Replaces each half of a surrogate pair by U+FFFD. The text must be the output of
 * `JSON.stringify`.
 */
export function wellFormed(json: string): string {
    if (!json.includes("\\ud")) return json;
    return json.replace(ESCAPE, (all, half?: string) => (half ? "\ufffd" : all));
}
