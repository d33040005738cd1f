// npm runs this script when npm has installed the package. If the addon of the package
// can be loaded, the script does nothing more. Otherwise the script builds an addon, and
// the program segue-proxy with its guard, from the C sources in native/ with the system's
// libraries.
// npm_config_build_from_source=true always builds them.
"use strict";
const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const root = path.dirname(__dirname);
const native = path.join(root, "native");
const work = path.join(root, "build", "cmake");
const release = path.join(root, "build", "Release");
const wanted = path.join(release, "segue.node");
const PACKAGES =
    "apt-get install build-essential cmake ninja-build pkg-config libev-dev " +
    "libwebsockets-dev libwebsockets-evlib-ev libsqlite3-dev libcurl4-openssl-dev " +
    "libhiredis-dev libpq-dev libssl-dev";

function fail(message) {
    console.error(`segue-mcp: ${message}`);
    process.exit(1);
}

/** Returns why the addon cannot be loaded; null when the addon can be loaded. A separate
 * process loads the addon, because a process cannot unload an addon. */
function whyNot(files) {
    const program = "require(process.argv[1]).loadAddon(process.argv.slice(2))";
    const loader = path.join(root, "dist", "loader.js");
    const done = spawnSync(process.execPath, ["-e", program, loader, ...files], {
        encoding: "utf8",
        env: { ...process.env, SEGUE_NODE_ADDON: "" },
    });
    if (done.status === 0) return null;
    return /AddonError: (.*)/.exec(done.stderr)?.[1] ?? done.stderr.trim();
}

function has(program) {
    return spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;
}

function run(program, args) {
    const done = spawnSync(program, args, { encoding: "utf8", maxBuffer: 1 << 26 });
    if (done.status === 0) return;
    const lines = `${done.stdout ?? ""}${done.stderr ?? ""}`.trim().split("\n");
    console.error(lines.slice(-40).join("\n"));
    fail(`${program} failed. The build needs, on Debian 12: ${PACKAGES}`);
}

function build() {
    const missing = ["cmake", "cc"].filter((program) => !has(program));
    if (missing.length > 0) {
        fail(`to build the addon, ${missing.join(" and ")} must be there: ${PACKAGES}`);
    }
    const jobs = process.env.CMAKE_BUILD_PARALLEL_LEVEL ?? String(os.cpus().length);
    fs.rmSync(work, { recursive: true, force: true });
    run("cmake", [
        ...["-S", native, "-B", work, "-DCMAKE_BUILD_TYPE=Release", "-DSEGUE_NODE=ON"],
        ...["-DSEGUE_TESTS=OFF", "-DSEGUE_INSTALL=OFF", "-DSEGUE_PROXY=ON"],
        `-DSEGUE_NODE_HEADERS=${path.join(native, "headers")}`,
        ...(has("ninja") ? ["-G", "Ninja"] : []),
    ]);
    const targets = ["segue_node", "segue_proxy"];
    run("cmake", ["--build", work, "--target", ...targets, "--parallel", jobs]);
    fs.mkdirSync(release, { recursive: true });
    fs.copyFileSync(path.join(work, "bindings", "node", "segue.node"), wanted);
    for (const program of ["segue-proxy", "segue-proxy-guard"])
        fs.copyFileSync(path.join(work, "proxy", program), path.join(release, program));
    fs.rmSync(work, { recursive: true, force: true });
}

function main() {
    const place = `${process.platform}-${process.arch}-glibc`;
    const brought = path.join(root, "prebuilds", place, "segue.node");
    const anew = process.env.npm_config_build_from_source === "true";
    const reason = anew || !fs.existsSync(brought) ? "" : whyNot([brought]);
    if (reason === null) return;
    if (process.platform !== "linux") fail("only Linux with glibc is supported");
    if (!fs.existsSync(native)) fail(reason || "the package has no C sources to build");
    if (reason) console.error(`segue-mcp: ${reason}\nsegue-mcp: so it is built here`);
    build();
    const still = whyNot([wanted]);
    if (still !== null) fail(still);
}

main();
