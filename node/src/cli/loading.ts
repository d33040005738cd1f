/**
 * Finds the server in a file of JavaScript or TypeScript: `file.mjs` or `file.mjs:name`.
 */

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import module from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { nearest } from "../names.js";
import type { Server } from "../server/server.js";
import { Exit, note, showError, UsageError } from "./codes.js";

const ENDINGS = [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"];

/** A file, and the name of the server among its exports. */
export interface Source {
    /** The absolute path of the file. */
    readonly file: string;
    readonly name: string | undefined;
}

/** The user's file threw an exception, which is the `cause`. */
export class LoadError extends Error {}

/**
 * Reads `file.mjs` or `file.mjs:name`.
 *
 * @throws UsageError: there is no such file, or it is not a file of JavaScript.
 */
export function parseSource(text: string): Source {
    const colon = text.lastIndexOf(":");
    const hasName = colon > 0 && ENDINGS.includes(path.extname(text.slice(0, colon)));
    const file = hasName ? text.slice(0, colon) : text;
    const name = hasName ? text.slice(colon + 1) : undefined;
    const found = fs.statSync(file, { throwIfNoEntry: false });
    if (!found) throw new UsageError(`${file}: there is no such file`);
    if (found.isDirectory()) {
        throw new UsageError(`${file} is a directory: name the file of the server`);
    }
    if (!ENDINGS.includes(path.extname(file))) {
        const endings = ENDINGS.join(", ");
        throw new UsageError(
            `${file} is no file of JavaScript: it ends in none of ${endings}`,
        );
    }
    if (name !== undefined && !/^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name)) {
        throw new UsageError(
            `${text}: ${JSON.stringify(name)} is not a name of JavaScript`,
        );
    }
    return { file: path.resolve(file), name };
}

/** Returns the directory of the package segue-mcp that a file imports, if any. */
export function packageOf(file: string): string | undefined {
    try {
        const require = module.createRequire(file);
        return path.dirname(require.resolve("segue-mcp/package.json"));
    } catch {
        return undefined;
    }
}

/**
 * Runs the file, and returns its server, which it exports.
 *
 * @param words - the arguments that the file sees in `process.argv`.
 * @throws LoadError: the file threw an exception.
 * @throws UsageError: the file exports no server, several, or not the one that is named.
 */
export async function load(source: Source, words: readonly string[]): Promise<Server> {
    const base = path.basename(source.file);
    process.argv = [process.execPath, source.file, ...words];
    let loaded: Record<string, unknown>;
    try {
        loaded = await import(pathToFileURL(source.file).href);
    } catch (error) {
        throw new LoadError(whyNot(base, error), { cause: located(source.file, error) });
    }
    const exported = exportsOf(loaded);
    if (source.name !== undefined) return named(exported, base, source.name);
    const found = new Map<Server, string>();
    for (const [name, value] of exported) {
        if (isServer(value) && !found.has(value)) found.set(value, name);
    }
    if (found.size > 1) {
        const names = [...found.values()].map((name) => `${base}:${name}`).join(" or ");
        throw new UsageError(`${base} has several servers: name one, ${names}`);
    }
    for (const server of found.keys()) return server;
    throw new UsageError(
        `${base} exports no Server of segue-mcp: export one, ` +
            'such as export const server = new Server({ name: "name" })',
    );
}

/**
 * Adds the place to an error of syntax in an ES module. Node shows the place only when
 * nobody catches the error, so another process shows it. No module runs there: all are
 * read before the first one runs.
 */
function located(file: string, error: unknown): unknown {
    if (!(error instanceof SyntaxError) || !/^\w+:/.test(error.stack ?? "")) return error;
    const program = `import ${JSON.stringify(pathToFileURL(file).href)};`;
    const words = ["--input-type=module", "--eval", program];
    const { stderr } = spawnSync(process.execPath, words, { encoding: "utf8" });
    const shown = /^file:[\s\S]*?^SyntaxError: .*/m.exec(stderr);
    if (shown) error.stack = shown[0];
    return error;
}

function whyNot(base: string, error: unknown): string {
    const code = (error as { code?: unknown } | undefined)?.code;
    if (code === "ERR_UNKNOWN_FILE_EXTENSION" && /ts$/.test(base)) {
        return (
            `${base} could not be loaded: Node ${process.version} runs no TypeScript; ` +
            "use Node 22.18 or newer, or NODE_OPTIONS=--import=tsx"
        );
    }
    return `${base} could not be loaded`;
}

/** Returns the exports by name. A CommonJS module has them also in its default export. */
function exportsOf(loaded: Record<string, unknown>): Map<string, unknown> {
    const all = new Map(Object.entries(loaded));
    const whole = loaded["default"];
    if (typeof whole === "object" && whole !== null && !isServer(whole)) {
        for (const [name, value] of Object.entries(whole)) {
            if (!all.has(name)) all.set(name, value);
        }
    }
    return all;
}

/** The file may import another copy of the package, so the class tells nothing. */
function isServer(value: unknown): value is Server {
    const one = value as Partial<Server> | null | undefined;
    return (
        typeof one === "object" &&
        typeof one?.listenHttp === "function" &&
        typeof one.serveStdio === "function"
    );
}

async function named(
    exported: Map<string, unknown>,
    base: string,
    name: string,
): Promise<Server> {
    if (!exported.has(name)) {
        const servers = [...exported].filter(([, value]) => isServer(value));
        const meant = nearest(
            name,
            servers.map(([one]) => one),
        );
        const hint = meant === undefined ? "" : `; did you mean ${base}:${meant}?`;
        throw new UsageError(`${base} has no ${JSON.stringify(name)}${hint}`);
    }
    let value = exported.get(name);
    if (typeof value === "function") {
        try {
            value = await value();
        } catch (error) {
            const why = `${base}: ${name}() could not make a server`;
            throw new LoadError(why, { cause: error });
        }
    }
    if (isServer(value)) return value;
    throw new UsageError(
        `${base}: ${name} is not a Server of segue-mcp, but ${typeof value}`,
    );
}

// ---- errors

/** Shows why a file could not be loaded. @returns the exit code. */
export function showFailure(error: unknown): number {
    if (error instanceof LoadError) note(ownStack(error.cause));
    showError(error);
    return Exit.USAGE;
}

/** Returns the stack of an exception without the frames of Node and of this command. */
export function ownStack(error: unknown): string {
    if (!(error instanceof Error)) return String(error);
    const here = path.dirname(__dirname);
    const lines = (error.stack ?? String(error)).split("\n");
    return lines
        .filter((line) => !/^ {4}at /.test(line) || !isOurs(line, here))
        .join("\n");
}

function isOurs(line: string, here: string): boolean {
    return line.includes("node:internal") || line.includes(here);
}
