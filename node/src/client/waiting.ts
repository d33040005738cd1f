/**
 * Waits that keep the process alive.
 *
 * An open session does not keep the process alive, but a pending wait does. So each wait
 * holds the runtime from its beginning to its end. Node's event loop counts a runtime
 * that is held as active.
 */

import type { Runtime } from "../runtime.js";

/** The callers that wait for a change of one object, such as a session. */
export class Waiters {
    private readonly runtime: Runtime;
    private resolvers: (() => void)[] = [];

    constructor(runtime: Runtime) {
        this.runtime = runtime;
    }

    /** The number of waiting callers. */
    get size(): number {
        return this.resolvers.length;
    }

    /**
     * Waits until `wake` is called or the signal is aborted.
     *
     * @throws the signal's reason, when the signal was aborted.
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

    /**
     * Waits until `wake` is called, without keeping the process alive. Internal work that
     * the user does not see waits in this way.
     */
    idle(): Promise<void> {
        return new Promise((resolve) => {
            this.resolvers.push(resolve);
        });
    }

    /** Wakes all waiting callers, because something has changed. */
    wake(): void {
        if (this.resolvers.length > 0) {
            const resolvers = this.resolvers;
            this.resolvers = [];
            for (const resolve of resolvers) resolve();
        }
    }
}
