/**
 * The queue of sends that wait for room because the client or the store is slower than
 * the handler. There is room when the library accepts another send.
 *
 * The queue keeps the order: a new send waits behind the waiting sends. A handler that
 * sends without awaiting gets an error when the queue is full.
 *
 * @module
 */

import { LimitError, RequestCancelledError } from "../errors.js";

/**
 * The promise that a send returns when the send need not wait: it is already resolved.
 */
export const DONE: Promise<void> = Promise.resolve();
/**
 * Maximum number of sends of one call that wait. Only a handler that does not await its
 * sends reaches this number.
 */
const MAX_WAITING = 4096;

interface Waiting {
    /** Tries to send. Returns false while there is no room. */
    readonly attempt: () => boolean;
    readonly resolve: () => void;
    readonly reject: (error: unknown) => void;
}

/** The queue of the waiting sends of one call. */
export class Room {
    readonly #queue: Waiting[] = [];
    #isEnded = false;

    /**
     * Calls `attempt`, which tries to send. If there is no room, calls `attempt` again
     * when there is room. The promise resolves when the value was sent.
     */
    take(attempt: () => boolean): Promise<void> {
        try {
            if (!this.#queue.length && attempt()) return DONE;
            if (this.#isEnded) throw new RequestCancelledError();
            if (this.#queue.length >= MAX_WAITING) {
                throw new LimitError(
                    "too many segments wait to be sent: await what send() returns",
                );
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

    /**
     * Repeats the waiting attempts in their order until an attempt finds no room. Called
     * when there is room again.
     */
    flush(): void {
        const queue = this.#queue;
        for (let next = queue[0]; next; next = queue[0]) {
            try {
                if (!next.attempt()) return;
                next.resolve();
            } catch (error) {
                next.reject(error);
            }
            // An attempt that finds out that the call has ended empties the queue.
            if (queue[0] === next) queue.shift();
        }
    }

    /**
     * Ends the queue when the call ends. Tries to send the waiting values once more, and
     * rejects the sends that find no room.
     */
    end(): void {
        this.#isEnded = true;
        this.flush();
        for (const { reject } of this.#queue.splice(0))
            reject(new RequestCancelledError());
    }
}
