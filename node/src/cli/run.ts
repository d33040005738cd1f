/** `segue-mcp run`: serves the server of a file, over stdio or HTTP. */

import { SegueError } from "../errors.js";
import { logEvents } from "../events.js";
import type { ListenOptions } from "../server/options.js";
import { guardOutput } from "../server/stdio.js";
import { Exit, note, showError, UsageError } from "./codes.js";
import { LoadError, load, ownStack, type Source, showFailure } from "./loading.js";

/** How to serve: what the options of the command line say. */
export interface Wish {
    /** The address, or undefined for standard input and output. */
    readonly http: string | undefined;
    /** Whether events are logged to standard error, as lines of JSON. */
    readonly logs: boolean;
    readonly options: ListenOptions;
}

/**
 * Converts an address to the options of a listener: "host:port", ":port", a port,
 * "unix:/path" or "systemd:name".
 *
 * @throws UsageError: the address has none of these forms.
 */
export function addressOf(http: string): Pick<ListenOptions, "host" | "port"> {
    if (/^(unix:|systemd)/.test(http)) return { host: http };
    const found = /^(?:(.*):)?(\d{1,5})$/.exec(http);
    const port = Number(found?.[2]);
    if (!found || port > 65_535) {
        throw new UsageError(
            `the address to listen on is invalid: '${http}'; it has to be host:port, ` +
                "where port 0 means any free port",
        );
    }
    const host = found[1]?.replace(/^\[|\]$/g, "");
    if (host === undefined || host === "") return { port };
    return { host: host === "*" ? "0.0.0.0" : host, port };
}

/** Loads the server of a file and serves it until its end. */
export async function run(source: Source, words: string[], wish: Wish): Promise<void> {
    await guarded(async () => {
        const address = wish.http === undefined ? undefined : addressOf(wish.http);
        const restore = address ? () => undefined : guardOutput();
        const server = await load(source, words).finally(restore);
        if (wish.logs) logEvents();
        const { drainMs } = wish.options;
        server.closeOnSignals({ drainMs });
        if (!address) {
            await server.serveStdio(wish.options);
            await server.close({ drainMs: 0 });
            process.exit();
        }
        const listener = await server.listenHttp({ ...wish.options, ...address });
        note(`The server ${server.name} listens on ${listener.url}`);
    });
}

/**
 * Calls a function that serves. If it fails, the process ends with the exit code of the
 * exception. An exception of the user's code is shown with the user's stack.
 */
export async function guarded(work: () => Promise<void>): Promise<void> {
    try {
        await work();
    } catch (error) {
        process.exit(failed(error));
    }
}

function failed(error: unknown): number {
    if (error instanceof LoadError || error instanceof UsageError)
        return showFailure(error);
    // The user's copy of the package has classes of its own, with the same names.
    if (error instanceof SegueError || isOfOurKind(error)) {
        showError(error);
        return Exit.CONNECTION;
    }
    if (error instanceof TypeError || error instanceof RangeError) {
        showError(error);
        return Exit.USAGE;
    }
    note(ownStack(error));
    return Exit.INTERNAL;
}

function isOfOurKind(error: unknown): boolean {
    return error instanceof Error && "status" in error && "retryable" in error;
}
