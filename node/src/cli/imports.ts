/** Finds out which files a program imports, for `segue-mcp dev`. */

import module, { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";

/** Runs on the thread of the loader, and tells the URL of each module that is loaded. */
const HOOKS = `
    let port;
    export function initialize(data) { port = data.port; }
    export function load(url, context, next) {
        port.postMessage(url);
        return next(url, context);
    }
`;

const { cache } = createRequire(__filename);

/**
 * Begins to collect the imports of ES modules.
 *
 * @returns a function that returns the files that were loaded so far, without those of
 * installed packages.
 */
export function collectImports(): () => string[] {
    const files = new Set<string>();
    const { port1, port2 } = new MessageChannel();
    // Node before 20.6 cannot tell the imports of ES modules: there only CommonJS modules
    // and the file itself are known.
    if (typeof module.register === "function") {
        module.register(`data:text/javascript,${encodeURIComponent(HOOKS)}`, {
            data: { port: port2 },
            transferList: [port2],
        });
    }
    port1.unref();
    const own = path.dirname(__dirname);
    return () => {
        for (;;) {
            const told = receiveMessageOnPort(port1);
            if (!told) break;
            const url = String(told.message);
            if (url.startsWith("file:")) files.add(fileURLToPath(url));
        }
        for (const file of Object.keys(cache)) files.add(file);
        return [...files].filter(
            (file) => !file.includes("/node_modules/") && !file.startsWith(own),
        );
    };
}
