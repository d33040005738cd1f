/**
 * What waits for room: a client, or a store, is slower than the handler.
 *
 * Order is kept: what comes later waits behind what waits already. A handler that does
 * not await is told so in the end.
 *
 * @module
 */

import { LimitError, RequestCancelledError } from "../errors.js";

/** What waits for nothing. */
export const DONE: Promise<void> = Promise.resolve();
/** What a handler that does not await may have waiting. */
const MAX_WAITING = 4096;

interface Waiting {
    /** False while there is no room. */
    readonly attempt: () => boolean;
    readonly resolve: () => void;
    readonly reject: (error: unknown) => void;
}

/** The queue of one call. */
export class Room {
    readonly #queue: Waiting[] = [];
    #isEnded = false;

    /** Does at once what can be done at once, and else when there is room. */
    take(attempt: () => boolean): Promise<void> {
        try {
            if (!this.#queue.length && attempt()) return DONE;
            if (this.#isEnded) throw new RequestCancelledError();
            if (this.#queue.length >= MAX_WAITING) {
                throw new LimitError("too much waits for room: await what send returns");
            }
        } catch (error) {
            return Promise.reject(error);
        }
        return new Promise((resolve, reject) => {
            this.#queue.push({ attempt, resolve, reject });
        });
    }

    get isWaiting(): boolean {
        return this.#queue.length > 0;
    }

    /** There is room again. */
    flush(): void {
        let done = 0;
        for (const next of this.#queue) {
            try {
                if (!next.attempt()) break;
                next.resolve();
            } catch (error) {
                next.reject(error);
            }
            done++;
        }
        this.#queue.splice(0, done);
    }

    /** The call shall end: nothing waits any more. */
    end(): void {
        this.#isEnded = true;
        this.flush();
        for (const { reject } of this.#queue.splice(0))
            reject(new RequestCancelledError());
    }
}
