/**
 * Finds and loads the native addon, and says what to install when it cannot be loaded.
 *
 * The addon carries libsegue; the libraries below it (libcurl, OpenSSL, libwebsockets and
 * others) come from the system. Node's executable exports an OpenSSL, a zlib and a
 * nghttp2 of its own, which a plain load would bind them to: RTLD_DEEPBIND makes each
 * look among its own dependencies first.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import os from "node:os";
import path from "node:path";

/** By the beginning of the file name; the number behind `.so.` differs with the age of
 * the distribution, and with it the package's name. */
const PACKAGES: Readonly<Record<string, string>> = {
    "libwebsockets.so": "libwebsockets17",
    "libev.so": "libev4",
    "libcurl.so": "libcurl4",
    "libsqlite3.so": "libsqlite3-0",
    "libhiredis.so": "libhiredis0.14",
    "libhiredis_ssl.so": "libhiredis0.14",
    "libssl.so": "libssl3",
    "libcrypto.so": "libssl3",
};
/** Loaded by libwebsockets when a server begins to listen: the linker never names it. */
const ALWAYS = "libwebsockets-evlib-ev";
const MISSING = /(lib[\w+.-]+\.so[\w.]*)(?: => not found|: cannot open shared)/g;

/** The addon cannot be loaded; the message says why and what to install. */
export class AddonError extends Error {
    readonly code = "ERR_SEGUE_ADDON";
    override readonly name = "AddonError";
}

/** Where the addon may be, the first choice first: the file that `SEGUE_NODE_ADDON` names
 * and no other, or what the package brought, then what its installation has built. */
export function candidates(root = path.join(__dirname, "..")): string[] {
    const named = process.env["SEGUE_NODE_ADDON"];
    if (named) return [path.resolve(named)];
    const place = `${process.platform}-${process.arch}-glibc`;
    return [
        path.join(root, "prebuilds", place, "segue.node"),
        path.join(root, "build", "Release", "segue.node"),
    ];
}

/**
 * Loads the first candidate that can be loaded, and returns its exports.
 *
 * @throws AddonError when there is none.
 */
export function loadAddon(files = candidates()): unknown {
    const failures: string[] = [];
    const libraries: string[] = [];
    for (const file of files) {
        if (!existsSync(file)) continue;
        try {
            return open(file);
        } catch (error) {
            const message = error instanceof Error ? error.message : String(error);
            const missing = missingIn(message);
            failures.push(message);
            if (missing.length > 0) libraries.push(...missing, ...askLinker(file));
        }
    }
    throw new AddonError(
        libraries.length > 0 ? explainMissing(libraries) : explain(files, failures),
    );
}

function open(file: string): unknown {
    const { RTLD_NOW, RTLD_DEEPBIND } = os.constants.dlopen as Record<string, number>;
    if (RTLD_NOW === undefined || RTLD_DEEPBIND === undefined) {
        throw new Error(
            "the addon needs a dynamic linker that has RTLD_DEEPBIND (glibc)",
        );
    }
    const into: { exports: unknown } = { exports: {} };
    process.dlopen(into, file, RTLD_NOW | RTLD_DEEPBIND);
    return into.exports;
}

/** The message for somebody whose system lacks these libraries (file names). */
export function explainMissing(libraries: readonly string[]): string {
    const names = [...new Set(libraries)].sort();
    const packages = new Set<string>();
    const others: string[] = [];
    for (const name of names) {
        const known = PACKAGES[`${name.split(".so")[0]}.so`];
        if (known) packages.add(known);
        else others.push(`the package of ${name}`);
        if (name.startsWith("libwebsockets.")) packages.add(ALWAYS);
    }
    const install = [...packages].sort().join(" ");
    const other = others.length > 0 ? ` (and ${others.join(", ")})` : "";
    return (
        `segue-mcp needs system libraries that are not installed: ${names.join(", ")}.` +
        (install ? ` On Debian 12: apt-get install ${install}` : "") +
        other
    );
}

function explain(files: readonly string[], failures: readonly string[]): string {
    if (failures.length > 0) {
        return `the native addon of segue-mcp cannot be loaded: ${failures.join("; ")}`;
    }
    return (
        `the native addon of segue-mcp is not there for ${process.platform}-` +
        `${process.arch} (looked for ${files.join(", ")}). The package's install ` +
        "script builds it: npm rebuild segue-mcp, with scripts allowed, says what " +
        "that needs"
    );
}

function missingIn(text: string): string[] {
    return [...text.matchAll(MISSING)].flatMap((match) => match[1] ?? []);
}

/** All that the linker does not find; when it fails it names only the first. */
function askLinker(file: string): string[] {
    try {
        const env = { ...process.env, LC_ALL: "C" };
        return missingIn(execFileSync("ldd", [file], { encoding: "utf8", env }));
    } catch {
        return [];
    }
}
