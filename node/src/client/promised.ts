/**
 * Requests whose result is a promise. A program may send many short requests, so each
 * request must be cheap.
 *
 * For each request the binding makes a handle with a finalizer, and a reference to a
 * handler. The handle and the reference cost more than the rest of a short request. So a
 * lane keeps a handle and a handler, and serves one request after the other. To save
 * time, each request has only one promise, which settles when the end event arrives. Only
 * a failed request passes through an async function, which adds the waiting caller to the
 * error's stack.
 */

import type { RawText } from "../late.js";
import { type Handler, native, type Request } from "../native.js";
import type { Conversation } from "./conversation.js";
import { type Callbacks, Exchange, type Outcome } from "./exchange.js";

/** Maximum number of unused lanes that a session keeps. */
const MOST_LANES = 256;

/** A native handle and its handler. A lane serves one request at a time. */
export class Lane {
    handle: Request | null = null;
    exchange: Exchange | null = null;
    readonly handler: Handler = (kind, a, b, c) => this.exchange?.onEvent(kind, a, b, c);
}

/** A running request, and the promise of its result. */
export class Promised<T> extends Exchange {
    private lane: Lane | null = null;
    private onAbort: (() => void) | undefined;

    /** @param finish - makes the promise's value from the result's JSON text. */
    constructor(
        session: Conversation,
        callbacks: Callbacks | undefined,
        private readonly settle: (result: T | Promise<never>) => void,
        private readonly finish: (raw: RawText, saysError: boolean) => T,
        private readonly signal: AbortSignal | undefined,
    ) {
        super(session, callbacks);
    }

    /**
     * Called when the request was sent on the lane. Aborting the signal cancels the
     * request. The promise then settles after the end of the request, so no event comes
     * after the promise has settled.
     */
    begun(lane: Lane): void {
        this.lane = lane;
        this.handle = lane.handle;
        lane.exchange = this;
        this.session.runtime.hold();
        const { signal } = this;
        if (signal !== undefined) {
            this.onAbort = () => this.cancel();
            signal.addEventListener("abort", this.onAbort, { once: true });
            if (signal.aborted) this.cancel();
        }
    }

    protected override completed(outcome: Outcome): void {
        super.completed(outcome);
        this.session.runtime.release();
        const { signal } = this;
        if (signal !== undefined && this.onAbort !== undefined) {
            signal.removeEventListener("abort", this.onAbort);
        }
        try {
            if (outcome[0] === 0 && !signal?.aborted) {
                this.settle(this.result());
                this.free();
                return;
            }
        } catch {
            // The error is ignored here: fail() calls result() again and rejects with the
            // same error.
        }
        this.settle(this.fail());
    }

    private result(): T {
        const [, raw, , saysError] = this.outcome as Outcome;
        return this.finish(raw ?? "{}", saysError);
    }

    private async fail(): Promise<never> {
        await null;
        // V8 adds the waiting caller to an error's stack only after the caller's `await`
        // has registered itself, one microtask later. So the error is made after this
        // step.
        await null;
        try {
            this.signal?.throwIfAborted();
            if (this.outcome?.[0] === 0) return this.result() as never;
            throw this.failure();
        } finally {
            this.free();
        }
    }

    override free(): void {
        const { lane, handle } = this;
        if (lane === null || handle === null) return;
        this.handle = null;
        this.lane = null;
        lane.exchange = null;
        // after a success (status 0) the binding has already freed the request
        if (this.outcome?.[0] !== 0) native.requestFree(handle);
        this.session.giveBack(lane);
    }
}

/** The unused lanes of a session. */
export class Lanes {
    private readonly idle: Lane[] = [];

    take(): Lane {
        return this.idle.pop() ?? new Lane();
    }

    put(lane: Lane): void {
        if (lane.handle && this.idle.length < MOST_LANES) this.idle.push(lane);
    }
}
