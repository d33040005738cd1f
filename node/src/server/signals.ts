/**
 * An end that loses nothing, when the process is told to end.
 *
 *     serve --(signal)--> drain --(done | time | another signal)--> end
 *
 * @module
 */

import type { Server } from "./server.js";

const NUMBERS: Partial<Record<NodeJS.Signals, number>> = {
    SIGHUP: 1,
    SIGINT: 2,
    SIGTERM: 15,
};

/** What {@link Server.closeOnSignals} takes. */
export interface SignalOptions {
    /** SIGINT and SIGTERM by default. */
    signals?: readonly NodeJS.Signals[] | undefined;
    /** Calls that run may end so long. */
    drainMs?: number | undefined;
    /**
     * Ends the process then (`process.exit`): by default, since the signal said so.
     * What a second signal always does.
     */
    exit?: boolean | undefined;
}

/** @returns what takes the signals no more. */
export function closeOnSignals(server: Server, options: SignalOptions): () => void {
    const { signals = ["SIGINT", "SIGTERM"], drainMs, exit = true } = options;
    let isAsked = false;
    const onSignal = (signal: NodeJS.Signals): void => {
        if (isAsked) process.exit(128 + (NUMBERS[signal] ?? 0));
        isAsked = true;
        void server.close({ drainMs }).then(() => {
            restore();
            if (exit) process.exit();
        });
    };
    const restore = (): void => {
        for (const signal of signals) process.off(signal, onSignal);
    };
    for (const signal of signals) process.on(signal, onSignal);
    return restore;
}
