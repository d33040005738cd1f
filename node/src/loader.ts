/**
 * Finds and loads the native addon, and says what to install when it cannot be loaded.
 *
 * An addon that was built on this system contains libsegue. The libraries that libsegue
 * needs (libcurl, OpenSSL, libwebsockets and others) come from the system. Node's
 * executable exports its own OpenSSL, zlib and nghttp2, and a plain load would bind the
 * system's libraries to the copies inside Node. RTLD_DEEPBIND makes each library prefer
 * its own dependencies. The addon of a platform package contains its libraries and hides
 * them, so it also works where RTLD_DEEPBIND is not known (musl).
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import os from "node:os";
import path from "node:path";

/**
 * The Debian package of each system library, by the beginning of the library's file name.
 * The number after `.so.` in the file name and the name of the package depend on the
 * version of the distribution.
 */
const PACKAGES: Readonly<Record<string, string>> = {
    "libwebsockets.so": "libwebsockets17",
    "libev.so": "libev4",
    "libcurl.so": "libcurl4",
    "libsqlite3.so": "libsqlite3-0",
    "libhiredis.so": "libhiredis0.14",
    "libhiredis_ssl.so": "libhiredis0.14",
    "libpq.so": "libpq5",
    "libssl.so": "libssl3",
    "libcrypto.so": "libssl3",
};
/**
 * The package of a library that libwebsockets loads when a server begins to listen. The
 * linker does not report this library when it is missing.
 */
const ALWAYS = "libwebsockets-evlib-ev";
const MISSING = /(lib[\w+.-]+\.so[\w.]*)(?: => not found|: cannot open shared)/g;

/** The addon cannot be loaded. The message says why, and which packages to install. */
export class AddonError extends Error {
    readonly code = "ERR_SEGUE_ADDON";
    override readonly name = "AddonError";
}

/**
 * Returns the files that may be the addon, the first choice first. If `SEGUE_NODE_ADDON`
 * names a file, this file is the only choice. Otherwise the first choice is the file of
 * the package for this platform, which npm installs beside this package. The next choices
 * are the prebuilt file of this package, and the file that its installation has built.
 */
export function candidates(root = path.join(__dirname, "..")): string[] {
    const named = process.env["SEGUE_NODE_ADDON"];
    if (named) return [path.resolve(named)];
    const machine = `${process.platform}-${process.arch}`;
    const place = `${machine}-glibc`;
    return [
        ...platformFiles(root, machine),
        path.join(root, "prebuilds", place, "segue.node"),
        path.join(root, "build", "Release", "segue.node"),
    ];
}

/**
 * Returns the addons of platform packages. npm installs the one for this C library. Where
 * both are, the one for this C library is first: only glibc knows RTLD_DEEPBIND.
 */
function platformFiles(root: string, machine: string): string[] {
    const libcs = ["musl", "glibc"];
    if ("RTLD_DEEPBIND" in os.constants.dlopen) libcs.reverse();
    const names = libcs.map((libc) => `segue-mcp-${machine}-${libc}`);
    const places = [path.join(root, ".."), path.join(root, "node_modules")];
    return places.flatMap((place) =>
        names.map((name) => path.join(place, name, "segue.node")),
    );
}

/**
 * Loads the first candidate that can be loaded, and returns its exports.
 *
 * @throws AddonError when no candidate can be loaded.
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
    const isContained = path.basename(path.dirname(file)).startsWith("segue-mcp-");
    if (RTLD_NOW === undefined || (RTLD_DEEPBIND === undefined && !isContained)) {
        throw new Error(
            "the addon needs a dynamic linker that has RTLD_DEEPBIND (glibc)",
        );
    }
    const into: { exports: unknown } = { exports: {} };
    process.dlopen(into, file, RTLD_NOW | (RTLD_DEEPBIND ?? 0));
    return into.exports;
}

/** Makes the message for a system on which these libraries (file names) are missing. */
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
        `segue-mcp has no native addon for ${process.platform}-` +
        `${process.arch} (looked for ${files.join(", ")}). The package's install ` +
        "script builds the addon. Run npm rebuild segue-mcp, with scripts allowed, to " +
        "see what the build needs"
    );
}

function missingIn(text: string): string[] {
    return [...text.matchAll(MISSING)].flatMap((match) => match[1] ?? []);
}

/**
 * Lists all libraries that the addon needs and the linker does not find. The error of a
 * failed load names only the first missing library.
 */
function askLinker(file: string): string[] {
    try {
        const env = { ...process.env, LC_ALL: "C" };
        return missingIn(execFileSync("ldd", [file], { encoding: "utf8", env }));
    } catch {
        return [];
    }
}
