// Collects the files of the package for one platform: stage_platform.mjs DIRECTORY
// PLATFORM FILES. PLATFORM is, for instance, linux-x64-glibc. FILES is the directory with
// the addon, the proxy, the library that both share, and the notices of the libraries in
// it.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const [directory, platform, files] = process.argv.slice(2);
const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { version, license } = JSON.parse(
    readFileSync(path.join(root, "package.json"), "utf8"),
);
const [os, cpu, libc] = platform.split("-");

rmSync(directory, { recursive: true, force: true });
mkdirSync(directory, { recursive: true });
cpSync(files, directory, { recursive: true });
cpSync(path.join(path.dirname(root), "LICENSE"), path.join(directory, "LICENSE"));
writeFileSync(
    path.join(directory, "README.md"),
    `# segue-mcp-${platform}\n\nThe native files of the package segue-mcp for ` +
        `${platform}. Install segue-mcp.\n`,
);
const manifest = {
    name: `segue-mcp-${platform}`,
    version,
    description: `The native files of segue-mcp for ${platform}`,
    license,
    os: [os],
    cpu: [cpu],
    libc: [libc],
};
writeFileSync(
    path.join(directory, "package.json"),
    `${JSON.stringify(manifest, null, 2)}\n`,
);
