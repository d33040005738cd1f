/**
 * Gathers what one turn of the event loop sends, so that calls that are made at once cost
 * a few writes, whatever their number.
 *
 * The first message leaves at once. What follows it is held back until the promises that
 * are due now have run, and leaves in portions meanwhile, so that the peer works while
 * the rest is made. Where a turn takes its time between two messages nothing is held
 * back: a handler that computes shows what it has.
 */

import { native, type Runtime } from "./native.js";

/** Looks, each a microtask, at whether more is sent: a turn has sent all it has after so
 * many in a row that found nothing, or so many altogether. */
const IDLE_LOOKS = 3;
const MOST_LOOKS = 256;
/** Each further portion is twice as large. */
const FIRST_PORTION = 4;
/** So long after the last message, a turn is one that takes its time. */
const SLOW_MS = 1;

export class Cork {
    #watches = false;
    #isCorked = false;
    #isSlow = false;
    /** More was sent since the last look. */
    #hasSent = false;
    #looks = 0;
    #idleLooks = 0;
    #last = 0;
    /** So much was sent of a portion. */
    #sent = 0;
    #portion = FIRST_PORTION;

    constructor(private readonly runtime: Runtime) {}

    /** Something is about to be sent. */
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

    /** Nothing is held back any more. */
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

    /** Behind all that is due now. */
    readonly #look = (): void => {
        if (!this.#watches) return;
        this.#idleLooks = this.#hasSent ? 0 : this.#idleLooks + 1;
        this.#hasSent = false;
        if (this.#idleLooks < IDLE_LOOKS && ++this.#looks < MOST_LOOKS)
            queueMicrotask(this.#look);
        else this.end();
    };
}
