/** A result that is read while it is made. */

import type { Result } from "../content.js";
import { asyncDispose } from "../dispose.js";
import { NotResumableError, StateError } from "../errors.js";
import type { Segment } from "../segment.js";
import type { Flow } from "./flow.js";

/** What becomes of a call whose reader leaves: see `StreamOptions.onLeave`. */
export type Leave = "cancel" | "detach";

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** What to do with the flow of a reader that nobody holds any more. */
const forgotten = new FinalizationRegistry<{ flow: Flow; onLeave: Leave }>(
    ({ flow, onLeave }) => flow.letGo(onLeave === "detach"),
);

/** What a reader reads, and how it begins and ends. */
export interface Source {
    /** Sends the request. */
    begin(): Flow;
    /** Makes the result of its JSON; throws when it is an error. */
    finish(raw: string): Result;
    onLeave: Leave;
    signal?: AbortSignal | undefined;
}

/** What streams and tasks have in common: one flow, which begins when it is needed, and a
 * reader of its segments. */
export abstract class Reader {
    /** @internal */
    protected readonly source: Source;
    /** @internal */
    protected flow: Flow | undefined;
    /** @internal */
    protected isRead = false;
    /** It was left before it began: it never will. */
    protected isUnused = false;
    private made: Result | undefined;
    private aborted: { reason: unknown } | undefined;
    private stopListening: (() => void) | undefined;

    /** @internal */
    constructor(source: Source) {
        if (source.onLeave !== "cancel" && source.onLeave !== "detach") {
            throw new TypeError(
                `onLeave is "cancel" or "detach", not ${String(source.onLeave)}`,
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

    /** Cancels when the signal is aborted. The signal may live longer than all of
     * this. */
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

    // ---- what is known of it

    /**
     * What `session.resume` takes, here or in another process, another day: it goes on
     * behind the last segment that was read. `undefined` while there is nothing to resume
     * with. It is a secret: it opens the task.
     */
    get token(): string | undefined {
        return this.flow?.token();
    }

    /** The id of the task that it became. */
    get taskId(): string | undefined {
        return this.flow?.taskId;
    }

    /**
     * What the server gives the model to go on with while the task runs (2025-11-25
     * basic/utilities/tasks). To be read from `onTask`, or `start`, on.
     */
    get immediate(): string | undefined {
        return this.flow?.immediate();
    }

    /** Whether it has ended, and all its segments were read. */
    get done(): boolean {
        return this.flow?.isDone ?? false;
    }

    /**
     * Begins, and waits until something of it is there: a task, what resumes the call
     * (SEP-975), a segment or the end. When `token` is there now, store it: the server
     * keeps the work for whoever comes with it.
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

    /** The next segment. May be called again before the promise of before has settled. */
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

    /** The next segment if it is there; never waits. */
    take(): Segment | undefined {
        const flow = this.flow;
        return flow === undefined || flow.isEmpty ? undefined : flow.take();
    }

    /**
     * The segments in arrays, as many as are there, at least one: for those who have to
     * read more than some 100,000 a second. Who leaves this loop can read on.
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

    /** Throws if the end was none of success. */
    protected end(flow: Flow): void {
        this.throwIfAborted();
        if (flow.outcome === null) return;
        if (flow.outcome[0] === 0) this.resultOf(flow);
        else if (!flow.isLeft) throw flow.failure();
    }

    /** The result of a flow that has ended; throws if it is none. */
    protected resultOf(flow: Flow): Result {
        this.throwIfAborted();
        if (flow.outcome === null) throw new StateError("it has not ended");
        if (flow.outcome[0] !== 0) throw flow.failure();
        this.made ??= this.source.finish(flow.outcome[1] ?? "{}");
        return this.made;
    }

    private throwIfAborted(): void {
        if (this.aborted !== undefined && this.flow?.outcome !== null) {
            throw this.aborted.reason;
        }
    }

    // ---- leaving

    /**
     * Lets go of the task without cancelling it: reading ends, the server goes on.
     *
     * @returns the token that `session.resume` takes.
     * @throws NotResumableError: it is no task (yet), or it has not begun.
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
     * Asks the server to end it, and waits for that: a task is cancelled, a plain call
     * withdrawn. No error when it has ended meanwhile.
     */
    async cancel(): Promise<void> {
        await this.flow?.leave(false);
    }

    /** Leaves it, as `await using` does. */
    async close(): Promise<void> {
        await this.flow?.leave(this.source.onLeave === "detach");
    }

    /** The same as {@link close}. */
    async [asyncDispose](): Promise<void> {
        await this.close();
    }
}

/**
 * One call of a tool whose segments are read as they come:
 *
 * ```ts
 * const story = session.stream("story", { n: 3 });
 * for await (const segment of story) process.stdout.write(segment.text ?? "");
 * console.log(story.result.structured);
 * ```
 *
 * It begins with its first use, as an async generator does. Reading holds up the server
 * when it is slow: so many segments as the window are on the way at most. A segment that
 * `replaces` makes void what was read before it.
 *
 * Who leaves early ends it: `break`, `return` and exceptions in the loop cancel the call,
 * or, with `onLeave: "detach"`, let go of the task, which goes on. Who wants to go on
 * reading calls `next()` himself.
 */
export class Stream extends Reader implements AsyncIterableIterator<Segment> {
    [Symbol.asyncIterator](): this {
        return this;
    }

    /** Leaves it, as `break` and `await using` do: see `onLeave`. */
    override async close(): Promise<void> {
        this.isUnused = this.flow === undefined;
        await super.close();
    }

    /** Leaves it: `for await` calls this at `break`. */
    async return(): Promise<IteratorResult<Segment, undefined>> {
        await this.close();
        return DONE;
    }

    /**
     * The whole result, once reading has ended.
     *
     * @throws StateError: reading has not ended.
     * @throws SegueError: how it ended otherwise.
     */
    get result(): Result {
        const flow = this.flow;
        if (flow === undefined || !flow.isDone) {
            throw new StateError("the stream has not been read to its end");
        }
        return this.resultOf(flow);
    }

    /**
     * Reads to the end without looking at the segments.
     *
     * @throws SegueError: how it ended otherwise.
     */
    async collect(): Promise<Result> {
        const flow = this.begun();
        flow.drop();
        await flow.wait();
        return this.resultOf(flow);
    }
}
