/** The package as it is installed, and the error for a user whose system lacks a
 * library. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
    copyFileSync,
    mkdirSync,
    mkdtempSync,
    readFileSync,
    rmSync,
    writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import * as esm from "segue-mcp";
import { internal, PACKAGE } from "./tree.js";

const require = createRequire(import.meta.url);
const loader = internal<typeof import("segue-mcp/loader")>("loader");
const scratch = mkdtempSync(path.join(tmpdir(), "segue-packaging-"));
after(() => rmSync(scratch, { recursive: true }));

/** Returns the path of the addon that this process has loaded. */
function loaded(): string {
    const maps = readFileSync("/proc/self/maps", "utf8");
    const found = maps.split("\n").find((line) => line.endsWith("/segue.node"));
    assert.ok(found);
    return found.slice(found.indexOf("/"));
}

/** Copies the addon and changes the names of the libraries that it needs. */
function copyAddon(wants: Record<string, string>): string {
    let text = readFileSync(loaded(), "latin1");
    for (const [old, other] of Object.entries(wants)) {
        assert.equal(old.length, other.length);
        const parts = text.split(`\0${old}\0`);
        assert.equal(parts.length, 2, old);
        text = parts.join(`\0${other}\0`);
    }
    const file = path.join(scratch, "segue.node");
    writeFileSync(file, text, "latin1");
    return file;
}

/** Loads the package with that addon; returns what is printed, "" on success. */
function load(addon: string): string {
    const done = spawnSync(
        process.execPath,
        ["-e", "require(process.argv[1])", PACKAGE],
        {
            encoding: "utf8",
            env: { ...process.env, SEGUE_NODE_ADDON: addon },
        },
    );
    if (done.status === 0) return "";
    const line = done.stderr.split("\n").find((one) => /^\w*Error: /.test(one));
    return line ?? done.stderr;
}

test("all that is missing is named with its packages", () => {
    const addon = copyAddon({
        "libev.so.4": "libev.so.9",
        "libssl.so.3": "libssl.so.9",
    });
    assert.equal(
        load(addon),
        "AddonError: segue-mcp needs system libraries that are not installed: " +
            "libev.so.9, libssl.so.9. On Debian 12: apt-get install libev4 libssl3",
    );
});

test("a library that we do not know is named too", () => {
    const addon = copyAddon({ "libev.so.4": "libno.so.4" });
    assert.match(load(addon), /\(and the package of libno\.so\.4\)$/);
});

test("the copy can be loaded: else the tests above could see another failure", () => {
    assert.equal(load(copyAddon({})), "");
});

test("an addon that is not there, and a file that is none", () => {
    assert.match(load("/nowhere/segue.node"), /^AddonError: .*\/nowhere\/segue\.node/);
    const file = path.join(scratch, "text.node");
    writeFileSync(file, "text");
    assert.match(load(file), /^AddonError: .*cannot be loaded: .*text\.node/);
});

test("every library of ours has a package", () => {
    const direct = [
        "libwebsockets",
        "libev",
        "libsqlite3",
        "libhiredis",
        "libssl",
        "libcrypto",
    ];
    const listed = execFileSync("ldd", [loaded()], { encoding: "utf8" });
    const names = listed.split("\n").map((line) => line.trim().split(" ")[0] ?? "");
    const ours = names.filter((name) => direct.includes(name.split(".so")[0] ?? ""));
    assert.equal(ours.length, direct.length);
    const late = ["libcurl.so.4", "libpq.so.5"]; // loaded when they are first needed
    const told = loader.explainMissing([...ours, ...late]);
    assert.doesNotMatch(told, /the package of/);
    assert.match(told, /libwebsockets-evlib-ev/);
});

/** Runs the install script of a package with that addon or without one. There is no
 * CMake. */
function install(addon: string | undefined, sources: boolean): [number | null, string] {
    const root = mkdtempSync(path.join(scratch, "package-"));
    for (const file of ["scripts/install.js", "dist/loader.js"]) {
        mkdirSync(path.join(root, path.dirname(file)));
        copyFileSync(path.join(PACKAGE, file), path.join(root, file));
    }
    if (sources) mkdirSync(path.join(root, "native"));
    if (addon !== undefined) {
        const place = `prebuilds/${process.platform}-${process.arch}-glibc`;
        mkdirSync(path.join(root, place), { recursive: true });
        copyFileSync(addon, path.join(root, place, "segue.node"));
    }
    const done = spawnSync(process.execPath, [path.join(root, "scripts/install.js")], {
        encoding: "utf8",
        env: { PATH: scratch },
    });
    return [done.status, done.stderr];
}

test("the install script takes an addon that can be loaded", () => {
    assert.deepEqual(install(loaded(), true), [0, ""]);
});

test("the install script says what a build needs", () => {
    const [status, told] = install(copyAddon({ "libev.so.4": "libno.so.4" }), true);
    assert.equal(status, 1);
    assert.match(told, /libno\.so\.4.*\nsegue-mcp: so it is built here\n/);
    assert.match(
        told,
        /cmake and cc must be there: apt-get install build-essential cmake/,
    );
});

test("the install script without sources says what the addon lacks", () => {
    const [status, told] = install(copyAddon({ "libev.so.4": "libev.so.9" }), false);
    assert.equal(status, 1);
    assert.match(
        told,
        /not installed: libev\.so\.9\. On Debian 12: apt-get install libev4/,
    );
    assert.match(install(undefined, false)[1], /the package has no C sources to build/);
});

test("both ways of importing give the same things", () => {
    const cjs = require("segue-mcp") as typeof esm;
    assert.deepEqual(Object.keys(esm).sort(), Object.keys(cjs).sort());
    assert.equal(esm.Server, cjs.Server);
    assert.equal(esm.SegueError, cjs.SegueError);
});

test("the package needs few others at run time, and has what it promises", () => {
    const manifest = require("segue-mcp/package.json") as Record<string, object>;
    assert.deepEqual(Object.keys(manifest["dependencies"] ?? {}), ["ajv"]);
    assert.equal(manifest["devDependencies"], undefined);
    assert.equal(
        manifest["version"],
        internal<{ native: { version(): string } }>("native").native.version(),
    );
});
