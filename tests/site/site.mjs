/** The pages of the site that the checks in a browser look at. */
import path from "node:path";
import { pathToFileURL } from "node:url";

export const DIRECTORY = path.resolve("build/docs");

/** The pages that a new reader sees, and one of each other kind. */
export const MAIN = [
    "index.html",
    "start/python.html",
    "start/proxy.html",
    "understand/cut.html",
    "understand/take-over.html",
    "understand/revisions.html",
    "how-to/index.html",
    "how-to/long-job.html",
    "guides/python.html",
    "reference/python/server.html",
    "reference/node/index/classes/Session.html",
    "reference/c/runtime.html",
    "reference/errors.html",
    "reference/limits.html",
    "benchmarks/index.html",
];

/** The address of a page as a file. */
export function address(page) {
    return pathToFileURL(path.join(DIRECTORY, page)).href;
}
