/**
 * Requests whose result is a promise: the many short ones.
 *
 * What the binding makes for a request, a handle with a finalizer and a reference to its
 * handler, costs more than the rest of a short one. So both are kept, as a lane, and
 * serve one request after the other. For the same reason there is one promise, which is
 * settled where the end comes; only what fails goes through an async function, so that
 * whoever waits is on the stack of the error.
 */

import { type Handler, native, type Request } from "../native.js";
import type { Conversation } from "./conversation.js";
import { type Callbacks, Exchange, type Outcome } from "./exchange.js";

/** So many lanes wait for the next request, at most. */
const MOST_LANES = 256;

/** A handle and its handler, for one request at a time. */
export class Lane {
    handle: Request | null = null;
    exchange: Exchange | null = null;
    readonly handler: Handler = (kind, a, b, c) => this.exchange?.onEvent(kind, a, b, c);
}

/** A request in flight, and the promise of its result. */
export class Promised<T> extends Exchange {
    private lane: Lane | null = null;
    private onAbort: (() => void) | undefined;

    /** @param finish - makes what the promise gives, of the result's JSON. */
    constructor(
        session: Conversation,
        callbacks: Callbacks | undefined,
        private readonly settle: (result: T | Promise<never>) => void,
        private readonly finish: (raw: string) => T,
        private readonly signal: AbortSignal | undefined,
    ) {
        super(session, callbacks);
    }

    /**
     * It is under way, by that lane. When the signal is aborted the request is cancelled,
     * and its end waited for, so that nothing of it happens afterwards.
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
        } catch {} // once more, by fail()
        this.settle(this.fail());
    }

    private result(): T {
        return this.finish(this.outcome?.[1] ?? "{}");
    }

    private async fail(): Promise<never> {
        await null;
        await null; // now this is what is waited for
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
        if (this.outcome?.[0] !== 0) native.requestFree(handle); // else it is freed
        this.session.giveBack(lane);
    }
}

/** The lanes of a session that no request has. */
export class Lanes {
    private readonly idle: Lane[] = [];

    take(): Lane {
        return this.idle.pop() ?? new Lane();
    }

    put(lane: Lane): void {
        if (lane.handle && this.idle.length < MOST_LANES) this.idle.push(lane);
    }
}
