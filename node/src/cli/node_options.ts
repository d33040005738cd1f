/**
 * The options of Node that load other modules first, such as `--import=tsx`. A host
 * starts a server in a directory of its own, so these options get absolute paths.
 */

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

/** Options whose value is a module, and whether the module may be a URL. */
const OF_MODULES: Readonly<Record<string, boolean | undefined>> = {
    "--import": true,
    "--loader": true,
    "--experimental-loader": true,
    "--require": false,
    "-r": false,
};
/** Options that let Node itself run TypeScript. */
const OF_TYPES = ["--experimental-strip-types", "--experimental-transform-types"];

/** Splits the text of NODE_OPTIONS as Node does: blanks separate, and quotes join. */
function wordsOf(text: string): string[] {
    const words: string[] = [];
    for (const [word] of text.matchAll(/(?:"(?:[^"\\]|\\.)*"|[^\s"])+/g))
        words.push(
            word.replace(/"((?:[^"\\]|\\.)*)"/g, (_, inside: string) => plain(inside)),
        );
    return words;
}

function plain(quoted: string): string {
    return quoted.replace(/\\(.)/g, "$1");
}

/** Returns the module with its whole path, or unchanged if nobody knows where it is. */
function absolute(module: string, isUrl: boolean): string {
    if (/^(file|data|node):/.test(module) || path.isAbsolute(module)) return module;
    let file = path.resolve(module);
    try {
        file = createRequire(path.resolve("from.js")).resolve(module);
    } catch {
        if (!fs.existsSync(file)) return module;
    }
    return isUrl ? pathToFileURL(file).href : file;
}

/** Returns the options with absolute paths, and tells which of them load modules. */
function* options(words: readonly string[]): Generator<[word: string, loads: boolean]> {
    for (let at = 0; at < words.length; at++) {
        const word = words[at] as string;
        const [name = "", value] = word.split(/=(.*)/s, 2);
        const isUrl = OF_MODULES[name];
        const module = value ?? words[at + 1];
        if (isUrl === undefined || module === undefined) {
            yield [word, OF_TYPES.includes(word)];
            continue;
        }
        if (value === undefined) at++;
        yield [name, true];
        yield [absolute(module, isUrl), true];
    }
}

/**
 * Returns the options of this process that load modules first. A command of Node with
 * these options loads the same files in every directory.
 */
export function loaders(): string[] {
    const words = [...wordsOf(process.env.NODE_OPTIONS ?? ""), ...process.execArgv];
    const found = [...options(words)];
    return found.flatMap(([word, loads]) => (loads ? [word] : []));
}

/** Returns the value of NODE_OPTIONS without the options that `loaders` returns. */
export function withoutLoaders(text: string): string {
    const found = [...options(wordsOf(text))];
    const kept = found.flatMap(([word, loads]) => (loads ? [] : [word]));
    return kept
        .map((word) => (/[\s"]/.test(word) ? JSON.stringify(word) : word))
        .join(" ");
}
