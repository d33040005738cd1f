/**
 * The process that serves for `segue-mcp dev`.
 *
 * Its standard input has one line of JSON, a {@link Plan}, and ends when the process has
 * to end. The process writes reports to descriptor 3, as lines of JSON; see
 * {@link Report}.
 */

import fs from "node:fs";
import readline from "node:readline";
import type { ListenOptions } from "../server/options.js";
import { collectImports } from "./imports.js";
import { load, type Source, showFailure } from "./loading.js";
import { addressOf, guarded } from "./run.js";

const REPORTS = 3;
const LOOK_MS = 500; // between two looks at the imported modules

/** What to serve. */
export interface Plan {
    readonly source: Source;
    readonly words: readonly string[];
    readonly http: string;
    readonly options: ListenOptions;
    /** The store of a server that names none. */
    readonly store: string;
    /** The key that all processes of one `segue-mcp dev` share, in hexadecimal. */
    readonly sealKey: string;
    /** The tokens of callers, for a server that has no principals. */
    readonly tokensFile: string | undefined;
}

/** What the process tells. */
export interface Report {
    /**
     * "ready": clients can connect. "failed": the file cannot be loaded. "files": more
     * modules were imported. "shut": no new connections are taken.
     */
    readonly event: "ready" | "failed" | "files" | "shut";
    readonly url?: string;
    readonly files: readonly string[];
}

function report(told: Report): void {
    try {
        fs.writeSync(REPORTS, `${JSON.stringify(told)}\n`);
    } catch {
        // The parent has ended. The end of standard input says so, too.
    }
}

async function main(): Promise<void> {
    const input = readline.createInterface({ input: process.stdin });
    const plan = await new Promise<Plan>((resolve) => {
        input.once("line", (line) => resolve(JSON.parse(line)));
        input.once("close", () => process.exit());
    });
    const imports = collectImports();
    try {
        const server = await load(plan.source, plan.words);
        input.removeAllListeners("close");
        input.once("close", () => process.kill(process.pid, "SIGTERM"));
        await guarded(() => serve(server, plan, imports));
    } catch (error) {
        const code = showFailure(error);
        report({ event: "failed", files: imports() });
        process.exit(code);
    }
}

async function serve(
    server: Awaited<ReturnType<typeof load>>,
    plan: Plan,
    imports: () => string[],
): Promise<void> {
    const { drainMs } = plan.options;
    server.nativeOptions.sealKey ??= Buffer.from(plan.sealKey, "hex");
    const hasPrincipals = server.principalHook !== null;
    server.closeOnSignals({ drainMs });
    const listener = await server.listenHttp({
        ...(server.hasStore ? {} : { store: plan.store }),
        ...(hasPrincipals ? {} : { tokensFile: plan.tokensFile }),
        ...plan.options,
        ...addressOf(plan.http),
        // The next process listens on the port before this one ends.
        reusePort: true,
    });
    let known = imports();
    report({ event: "ready", url: listener.url, files: known });
    // after the handler of closeOnSignals, which closes the listener
    process.once("SIGTERM", () => {
        setImmediate(() => report({ event: "shut", files: [] }));
    });
    setInterval(() => {
        const files = imports();
        if (files.length === known.length) return;
        known = files;
        report({ event: "files", files });
    }, LOOK_MS).unref();
}

void main();
