// Collects the files that `npm pack` packs: stage.mjs DIRECTORY [PLATFORM...]. The files
// are JavaScript and types, the command, the C sources that a build of the addon and of
// the proxy needs, and the headers of Node-API. The caller may add an addon and a proxy
// in prebuilds/. With PLATFORMs (linux-x64-glibc), the package has neither sources nor an
// install script: its addon and its proxy are in the optional packages
// segue-mcp-PLATFORM (stage_platform.mjs), of which npm installs the one that fits.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.dirname(here);
const tree = path.dirname(root);
const directory = path.resolve(process.argv[2]);
const platforms = process.argv.slice(3);
const require = createRequire(path.join(root, "package.json"));

function copy(from, to, filter = () => true) {
    cpSync(from, path.join(directory, to), { recursive: true, filter });
}

/** Returns whether a file of core is packed: sources, the tables that sources include,
 * the page of the task board, and the CMake files. */
function isSource(file) {
    const inside = path.relative(path.join(tree, "core"), file);
    if (/^(examples|debian)\b/.test(inside)) return false;
    return (
        !path.extname(inside) ||
        inside.endsWith("CMakeLists.txt") ||
        inside.startsWith("board/page/") ||
        /\.(c|h|def|cmake|in)$/.test(inside)
    );
}

function stageManifest() {
    const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
    const cmake = readFileSync(path.join(tree, "CMakeLists.txt"), "utf8");
    const version = /project\(Segue VERSION ([0-9.]+)/.exec(cmake)?.[1];
    if (manifest.version !== version) {
        throw new Error(`package.json has ${manifest.version}, the library ${version}`);
    }
    manifest.devDependencies = undefined;
    if (platforms.length > 0) {
        manifest.scripts = undefined;
        manifest.libc = undefined;
        manifest.files = ["bin", "dist", "README.md", "LICENSE"];
        manifest.optionalDependencies = Object.fromEntries(
            platforms.map((platform) => [`segue-mcp-${platform}`, version]),
        );
    }
    const text = `${JSON.stringify(manifest, null, 2)}\n`;
    writeFileSync(path.join(directory, "package.json"), text);
}

function stageSources() {
    copy(path.join(here, "install.js"), "scripts/install.js");
    copy(path.join(tree, "CMakeLists.txt"), "native/CMakeLists.txt");
    copy(path.join(tree, "core"), "native/core", isSource);
    copy(path.join(tree, "bindings", "node"), "native/bindings/node");
    copy(path.join(tree, "bindings", "common"), "native/bindings/common");
    const headers = path.dirname(require.resolve("node-api-headers/package.json"));
    copy(path.join(headers, "include"), "native/headers", (file) => !/\.def$/.test(file));
    copy(path.join(headers, "LICENSE"), "native/headers/LICENSE");
}

rmSync(directory, { recursive: true, force: true });
mkdirSync(directory, { recursive: true });
stageManifest();
execFileSync(process.execPath, [path.join(here, "build.mjs"), directory], {
    stdio: "inherit",
});
copy(path.join(root, "README.md"), "README.md");
copy(path.join(tree, "LICENSE"), "LICENSE");
copy(path.join(root, "bin"), "bin");
if (platforms.length === 0) stageSources();
