/** Paths of the source tree. Tests run compiled, from a directory of the build. */
import { createRequire } from "node:module";
import path from "node:path";

/** The top of the tree. */
export const TREE = process.env["SEGUE_TREE"] ?? process.cwd();

/** Returns the path of a program of a debug or release build, such as
 * `tests/tools/fixture_server`. */
export function built(program: string): string {
    return path.join(
        process.env["SEGUE_BUILD"] ?? path.join(TREE, "build", "release"),
        program,
    );
}

const require = createRequire(import.meta.url);

/** The directory of the package as it is installed. */
export const PACKAGE = path.dirname(require.resolve("segue-mcp/package.json"));

/**
 * Loads a module of the package that is not exported, such as "native" or
 * "server/values", by the package's own path, so that only one instance exists. Its type
 * is `typeof import("segue-mcp/native")`.
 */
export function internal<T>(name: string): T {
    return require(path.join(PACKAGE, "dist", `${name}.js`)) as T;
}
