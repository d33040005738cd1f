/**
 * Gathers the messages that one turn of the event loop sends, so that many calls in one
 * turn cost only a few writes.
 *
 * The first message is sent at once. Later messages of the same turn are held back until
 * the pending microtasks have run. In a long turn, the held messages are sent in
 * portions, so that the peer can already work. A turn that spends more than SLOW_MS
 * between two messages is slow. The messages of a slow turn are not held back, so the
 * peer sees the output of a handler that computes at once.
 */

import { native, type Runtime } from "./native.js";
import { performance } from "./timers.js";

/**
 * The cork checks in one microtask after another whether a new message was sent. Each
 * check is a look. The turn of the event loop counts as over after IDLE_LOOKS looks in a
 * row without a new message, or after MOST_LOOKS looks in all.
 */
const IDLE_LOOKS = 3;
const MOST_LOOKS = 256;
/**
 * Held messages are sent in portions. The first portion has this number of messages, and
 * each further portion is twice as large.
 */
const FIRST_PORTION = 4;
/**
 * A turn is slow when more than this time in milliseconds passes between two of its
 * messages. Nothing is held back in a slow turn.
 */
const SLOW_MS = 1;

export class Cork {
    #watches = false;
    #isCorked = false;
    #isSlow = false;
    /** Whether a message was sent since the last look. */
    #hasSent = false;
    #looks = 0;
    #idleLooks = 0;
    #last = 0;
    /** The number of messages that were sent in the current portion. */
    #sent = 0;
    #portion = FIRST_PORTION;

    constructor(private readonly runtime: Runtime) {}

    /** Called before each message is sent. */
    note(): void {
        const now = performance.now();
        const waited = now - this.#last;
        this.#hasSent = true;
        this.#last = now;
        if (!this.#watches) {
            this.#watches = true;
            this.#isSlow = false;
            this.#looks = 0;
            this.#idleLooks = 0;
            queueMicrotask(this.#look);
            return;
        }
        if (waited > SLOW_MS) {
            this.#isSlow = true;
            this.#release();
        }
        if (!this.#isSlow) this.#hold();
    }

    /** Sends all messages that are held back and ends the microtasks of the cork. */
    end(): void {
        this.#watches = false;
        this.#release();
    }

    #hold(): void {
        if (!this.#isCorked) {
            native.runtimeCork(this.runtime);
            this.#isCorked = true;
            this.#sent = 0;
            this.#portion = FIRST_PORTION;
        } else if (++this.#sent >= this.#portion) {
            this.#sent = 0;
            this.#portion *= 2;
            native.runtimeUncork(this.runtime);
            native.runtimeCork(this.runtime);
        }
    }

    #release(): void {
        if (!this.#isCorked) return;
        this.#isCorked = false;
        native.runtimeUncork(this.runtime);
    }

    /**
     * Checks whether a new message was sent. Runs as a microtask, after the microtasks
     * that were queued before.
     */
    readonly #look = (): void => {
        if (!this.#watches) return;
        this.#idleLooks = this.#hasSent ? 0 : this.#idleLooks + 1;
        this.#hasSent = false;
        if (this.#idleLooks < IDLE_LOOKS && ++this.#looks < MOST_LOOKS)
            queueMicrotask(this.#look);
        else this.end();
    };
}
