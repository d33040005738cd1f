/**
 * Closes a server in good order when a signal asks the process to end.
 *
 *     serve --(signal)--> drain --(done | time | another signal)--> end
 *
 * `drain`: the server refuses new calls, and running calls may end within `drainMs`.
 *
 * @module
 */

import type { Server } from "./server.js";

const NUMBERS: Partial<Record<NodeJS.Signals, number>> = {
    SIGHUP: 1,
    SIGINT: 2,
    SIGTERM: 15,
};

/** The options of {@link Server.closeOnSignals}. */
export interface SignalOptions {
    /** The signals; SIGINT and SIGTERM by default. */
    signals?: readonly NodeJS.Signals[] | undefined;
    /**
     * How long running calls may continue, in milliseconds. Default: `drainMs` of the
     * listener or of `serveStdio`, which is 10000 by default.
     */
    drainMs?: number | undefined;
    /**
     * Called when the server has closed, before the process ends. Closes what the
     * handlers share, such as a database.
     */
    onClosed?: (() => void | PromiseLike<void>) | undefined;
    /**
     * true = end the process (`process.exit`) when the server has closed; the default. A
     * second signal always ends the process.
     */
    exit?: boolean | undefined;
}

/**
 * Closes the server at the first signal. @returns a function that stops listening for the
 * signals.
 */
export function closeOnSignals(server: Server, options: SignalOptions): () => void {
    const { signals = ["SIGINT", "SIGTERM"], drainMs, onClosed, exit = true } = options;
    let isAsked = false;
    const onSignal = (signal: NodeJS.Signals): void => {
        if (isAsked) process.exit(128 + (NUMBERS[signal] ?? 0));
        isAsked = true;
        void server
            .close({ drainMs })
            .then(onClosed)
            .finally(restore)
            .then(() => {
                if (exit) process.exit();
            });
    };
    const restore = (): void => {
        for (const signal of signals) process.off(signal, onSignal);
    };
    for (const signal of signals) process.on(signal, onSignal);
    return restore;
}
