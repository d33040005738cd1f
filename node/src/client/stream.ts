/** Results that are read in segments while the tool runs. */

import type { Result } from "../content.js";
import { asyncDispose } from "../dispose.js";
import { NotResumableError, StateError } from "../errors.js";
import type { RawText } from "../late.js";
import type { Segment } from "../segment.js";
import type { Flow } from "./flow.js";

/**
 * What happens to a call when its reader leaves before the end: see
 * `StreamOptions.onLeave`.
 */
export type Leave = "cancel" | "detach";

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/**
 * Cancels a flow, or detaches from its task, when the garbage collector has collected the
 * reader of the flow.
 */
const forgotten = new FinalizationRegistry<{ flow: Flow; onLeave: Leave }>(
    ({ flow, onLeave }) => flow.letGo(onLeave === "detach"),
);

/** The functions by which a reader begins its request and makes its result. */
export interface Source {
    /** Sends the request. */
    begin(): Flow;
    /** Makes the result from the JSON text. Throws when the result is an error. */
    finish(raw: RawText, saysError: boolean): Result;
    onLeave: Leave;
    signal?: AbortSignal | undefined;
}

/**
 * The base class of streams and tasks. A reader has one flow (a request that delivers
 * segments, see flow.ts). The flow begins at the first use of the reader, and the reader
 * reads its segments.
 */
export abstract class Reader {
    /** @internal */
    protected readonly source: Source;
    /** @internal */
    protected flow: Flow | undefined;
    /** @internal */
    protected isRead = false;
    /** true = the reader left before the request began, so the request is never sent. */
    protected isUnused = false;
    private made: Result | undefined;
    private aborted: { reason: unknown } | undefined;
    private stopListening: (() => void) | undefined;

    /** @internal */
    constructor(source: Source) {
        if (source.onLeave !== "cancel" && source.onLeave !== "detach") {
            throw new TypeError(
                `onLeave has to be "cancel" or "detach", not ${String(source.onLeave)}`,
            );
        }
        this.source = source;
    }

    /** @internal */
    protected begun(): Flow {
        if (this.flow !== undefined) return this.flow;
        const { signal, onLeave } = this.source;
        signal?.throwIfAborted();
        const flow = this.source.begin();
        this.flow = flow;
        forgotten.register(this, { flow, onLeave });
        if (signal !== undefined) this.listen(flow, signal);
        return flow;
    }

    /** Cancels the flow when the signal is aborted. The listener must not keep the reader
     * alive, because the signal may outlive the reader. */
    private listen(flow: Flow, signal: AbortSignal): void {
        const reader = new WeakRef(this);
        const onAbort = (): void => {
            if (flow.outcome !== null) return;
            const held = reader.deref();
            if (held !== undefined) held.aborted = { reason: signal.reason };
            flow.cancel();
            flow.drop();
        };
        const stop = (): void => signal.removeEventListener("abort", onAbort);
        signal.addEventListener("abort", onAbort, { once: true });
        this.stopListening = stop;
        const { onEnd } = flow;
        flow.onEnd = () => {
            stop();
            return onEnd?.();
        };
    }

    // ---- state

    /**
     * The token for `session.resume`, in this process or another, at any later time. The
     * resumed request continues after the last segment that was read. The value is
     * `undefined` while the request cannot be resumed. The token is a secret: a program
     * that has the token can read the task.
     */
    get token(): string | undefined {
        return this.flow?.token();
    }

    /** The id of the task, if the call has become a task. */
    get taskId(): string | undefined {
        return this.flow?.taskId;
    }

    /**
     * The server's interim answer for the model, which the model can use while the task
     * runs (2025-11-25 basic/utilities/tasks). The value is undefined until `onTask` has
     * run or `start` has returned.
     */
    get immediate(): string | undefined {
        return this.flow?.immediate();
    }

    /** Whether the call has ended and all its segments were read. */
    get done(): boolean {
        return this.flow?.isDone ?? false;
    }

    /**
     * Begins the request and waits until the call has become a task, got a resumption id
     * (SEP-975), got a segment, or ended. If `token` is set afterwards, store the token.
     * With the token a program can fetch the result from the server later.
     *
     * @throws the signal's reason.
     */
    async started(): Promise<this> {
        const flow = this.begun();
        while (!flow.hasBegun) await flow.change();
        this.throwIfAborted();
        return this;
    }

    // ---- reading

    /** Returns the next segment. Several calls may wait at the same time. */
    next(): Promise<IteratorResult<Segment, undefined>> {
        const flow = this.flow;
        if (flow === undefined || flow.isEmpty) return this.nextLater();
        return Promise.resolve({ done: false, value: flow.take() });
    }

    private async nextLater(): Promise<IteratorResult<Segment, undefined>> {
        if (this.isUnused) return DONE;
        const flow = this.begun();
        this.isRead = true;
        while (flow.isEmpty) {
            if (flow.outcome !== null) {
                this.end(flow);
                return DONE;
            }
            await flow.change();
        }
        return { done: false, value: flow.take() };
    }

    /** Returns the next segment if a segment has arrived. Never waits. */
    take(): Segment | undefined {
        const flow = this.flow;
        return flow === undefined || flow.isEmpty ? undefined : flow.take();
    }

    /**
     * Yields arrays of segments. Each array has all segments that have arrived, at least
     * one. Use this method when more than about 100,000 segments arrive per second.
     * Leaving the loop does not end the request.
     */
    async *batches(): AsyncGenerator<Segment[], void, undefined> {
        const flow = this.begun();
        this.isRead = true;
        for (;;) {
            if (!flow.isEmpty) {
                yield flow.takeAll();
            } else if (flow.outcome !== null) {
                this.end(flow);
                return;
            } else {
                await flow.change();
            }
        }
    }

    /** Throws the error of the request if the request ended without success. */
    protected end(flow: Flow): void {
        this.throwIfAborted();
        if (flow.outcome === null) return;
        if (flow.outcome[0] === 0) this.resultOf(flow);
        else if (!flow.isLeft) throw flow.failure();
    }

    /**
     * Returns the result of a flow that has ended. Throws if the flow ended without
     * success.
     */
    protected resultOf(flow: Flow): Result {
        this.throwIfAborted();
        if (flow.outcome === null) throw new StateError("the stream has not ended yet");
        if (flow.outcome[0] !== 0) throw flow.failure();
        const [, raw, , saysError] = flow.outcome;
        this.made ??= this.source.finish(raw ?? "{}", saysError);
        return this.made;
    }

    private throwIfAborted(): void {
        if (this.aborted !== undefined && this.flow?.outcome !== null) {
            throw this.aborted.reason;
        }
    }

    // ---- leaving

    /**
     * Detaches from the task without cancelling the task. Reading ends, and the task
     * continues on the server.
     *
     * @returns the token for `session.resume`.
     * @throws NotResumableError: the call is not a task (yet), or has not begun.
     */
    detach(): string {
        const token = this.token;
        const flow = this.flow;
        if (token === undefined || flow === undefined) throw new NotResumableError();
        if (flow.outcome === null) flow.detach();
        this.stopListening?.();
        return token;
    }

    /**
     * Cancels the call or its task, and waits for the end of the call. A call that has
     * already ended is no error.
     */
    async cancel(): Promise<void> {
        await this.flow?.leave(false);
    }

    /**
     * Leaves the call: cancels the call, or detaches from its task if `onLeave` is
     * `"detach"`. `await using` calls this method at its end.
     */
    async close(): Promise<void> {
        await this.flow?.leave(this.source.onLeave === "detach");
    }

    /** Does the same as {@link close}. */
    async [asyncDispose](): Promise<void> {
        await this.close();
    }
}

/**
 * A call of a tool whose segments are read as they arrive:
 *
 * ```ts
 * const story = session.stream("story", { n: 3 });
 * for await (const segment of story) process.stdout.write(segment.text ?? "");
 * console.log(story.result.structured);
 * ```
 *
 * The call begins at the first use of the stream, as an async generator does. A slow
 * reader slows the server down: at most `window` segments are on the way. A segment with
 * `replaces` discards all earlier segments.
 *
 * Leaving the loop early ends the call: `break`, `return` and exceptions in the loop
 * cancel the call. With `onLeave: "detach"` a task continues on the server. A program
 * that wants to pause its reading uses `next()` instead of the loop.
 */
export class Stream extends Reader implements AsyncIterableIterator<Segment> {
    /** The object is its own iterator. */
    [Symbol.asyncIterator](): this {
        return this;
    }

    /**
     * Leaves the call, as `break` does: cancels the call, or detaches from its task if
     * `onLeave` is `"detach"`.
     */
    override async close(): Promise<void> {
        this.isUnused = this.flow === undefined;
        await super.close();
    }

    /** Leaves the call. `for await` calls this method at `break`. */
    async return(): Promise<IteratorResult<Segment, undefined>> {
        await this.close();
        return DONE;
    }

    /**
     * The whole result of the call. The result is available when all segments were read.
     *
     * @throws StateError: the segments were not read to the end.
     * @throws SegueError: the call failed.
     */
    get result(): Result {
        const flow = this.flow;
        if (flow === undefined || !flow.isDone) {
            throw new StateError(
                "the stream has not been read to its end: read it, or use collect()",
            );
        }
        return this.resultOf(flow);
    }

    /**
     * Waits for the result without reading the segments.
     *
     * @throws SegueError: the call failed.
     */
    async collect(): Promise<Result> {
        const flow = this.begun();
        flow.drop();
        await flow.wait();
        return this.resultOf(flow);
    }
}
