// Reads Markdown pages for the tests of their contents. It uses no types and no packages,
// because a test in a clean directory uses it, too.

/** Returns [{before, language, code}] of each code block; before: the last non-empty line
 * above the block. */
export function blocks(text) {
    const found = [];
    let before = "";
    let inside;
    for (const line of text.split("\n")) {
        if (inside && line === "```") {
            inside.code = inside.lines.map((one) => `${one}\n`).join("");
            found.push(inside);
            inside = undefined;
        } else if (inside) {
            inside.lines.push(line);
        } else if (line.startsWith("```")) {
            inside = { before, language: line.slice(3), lines: [], code: "" };
        } else if (line.trim()) {
            before = line;
        }
    }
    return found;
}

/** Returns the text below a heading of the second level. */
export function section(text, title) {
    const rest = text.split(`\n## ${title}\n`)[1] ?? "";
    return rest.split("\n## ")[0];
}
