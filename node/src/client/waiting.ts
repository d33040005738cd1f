/**
 * Promises that keep the process alive.
 *
 * An open session alone does not: only what somebody waits for does. So each wait holds
 * the runtime, whose doorbell then counts for Node's event loop, from its begin to its
 * end.
 */

import type { Runtime } from "../runtime.js";

/** Who waits for something to change. */
export class Waiters {
    private readonly runtime: Runtime;
    private resolvers: (() => void)[] = [];

    constructor(runtime: Runtime) {
        this.runtime = runtime;
    }

    /** How many wait. */
    get size(): number {
        return this.resolvers.length;
    }

    /**
     * Waits until something has changed, or the signal is aborted.
     *
     * @throws the signal's reason.
     */
    async change(signal?: AbortSignal): Promise<void> {
        signal?.throwIfAborted();
        let resolver: (() => void) | undefined;
        const changed = new Promise<void>((resolve) => {
            resolver = resolve;
            this.resolvers.push(resolve);
        });
        this.runtime.hold();
        const onAbort = (): void => {
            this.resolvers = this.resolvers.filter((one) => one !== resolver);
            resolver?.();
        };
        signal?.addEventListener("abort", onAbort, { once: true });
        try {
            await changed;
        } finally {
            this.runtime.release();
            signal?.removeEventListener("abort", onAbort);
        }
        signal?.throwIfAborted();
    }

    /** Waits without holding the runtime: for what goes on behind the user's back. */
    idle(): Promise<void> {
        return new Promise((resolve) => {
            this.resolvers.push(resolve);
        });
    }

    /** Something has changed. */
    wake(): void {
        if (this.resolvers.length > 0) {
            const resolvers = this.resolvers;
            this.resolvers = [];
            for (const resolve of resolvers) resolve();
        }
    }
}
