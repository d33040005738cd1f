/**
 * A request whose result arrives in segments, for one reader.
 *
 * The user's objects (`Stream`, `Task`) refer to the flow. The flow never refers to these
 * objects. So the garbage collector can collect an unused stream while the flow of the
 * stream runs to its end. The window of credit bounds the queue: a segment without credit
 * is not delivered, and the peer must pause.
 *
 * A resume token covers all segments that were delivered, even those that still wait in
 * the queue. So a flow remembers an older token, which does not cover the waiting
 * segments. To this token the flow appends the number of the last segment that the reader
 * took ("+17"). The resumed request continues after that segment. The older the token,
 * the more segments the server sends again.
 */

import { NotResumableError } from "../errors.js";
import { Kind, native, type Request } from "../native.js";
import type { Segment } from "../segment.js";
import type { Conversation } from "./conversation.js";
import { type Callbacks, Exchange, isOver, type Outcome } from "./exchange.js";
import { Waiters } from "./waiting.js";

/** An amount of credit that is never used up, because no result has so many segments. */
const ENOUGH = Number.MAX_SAFE_INTEGER;
/** The minimum distance, in segments, between two resume tokens that a flow remembers. */
const MARK_EVERY = 1024;

const IMMEDIATE = "io.modelcontextprotocol/model-immediate-response";

function immediateOf(handle: Request): string | undefined {
    try {
        const raw = native.requestMeta(handle, IMMEDIATE);
        const told: unknown = raw === null ? undefined : JSON.parse(raw);
        return typeof told === "string" ? told : undefined;
    } catch (error) {
        if (isOver(error)) return undefined;
        throw error;
    }
}

/**
 * A request that delivers segments to one reader. The comment at the head of this file
 * explains more.
 */
export class Flow extends Exchange {
    /**
     * The segments that were delivered. The reader has already taken the segments before
     * the index `head`.
     */
    queue: Segment[] = [];
    head = 0;
    /** The number of the last segment that the reader took. */
    last = 0;
    /** The number of segments that the reader took since the last grant of credit. */
    taken = 0;
    /**
     * The number of segments that the reader must take before the flow grants new credit:
     * half of the window.
     */
    readonly half: number;
    /**
     * true = the reader has detached or left. The end of the request is then no failure.
     */
    isLeft = false;
    /** Whether the request can be resumed, because it has a task id or a token. */
    isKept = false;
    /** Called when the request has become a task. */
    onBegin: (() => unknown) | undefined;
    /** Called when the request has ended. */
    onEnd: (() => unknown) | undefined;
    // true = no reader is left, so arriving segments are thrown away
    private isDropping = false;
    private readonly isOrdered: boolean;
    private readonly waiters: Waiters;
    // The resume tokens that the flow remembers, oldest first. Each token covers all
    // segments up to its number.
    private marks: { number: number; token: string }[] = [];
    private marked = 0;
    private isMarking = false;
    // the token that covers no segment; undefined = no such token is known
    private first: string | undefined;
    // the token that `detach` has stored; undefined = the reader has not detached
    private kept: string | undefined;
    private final: string | undefined; // the token at the end of the request
    private word: string | undefined;

    /**
     * @param window - the maximum number of segments that wait for the reader.
     * @param isOrdered - true = segments arrive in the order of their numbers.
     */
    constructor(
        session: Conversation,
        callbacks: Callbacks | undefined,
        window: number,
        isOrdered = true,
    ) {
        super(session, callbacks);
        this.half = (window + 1) >> 1 || 1;
        this.isOrdered = isOrdered;
        this.waiters = new Waiters(session.runtime);
    }

    override events(): number {
        const own = (1 << Kind.SEGMENTS) | (1 << Kind.TASK) | (1 << Kind.RESUMABLE);
        return super.events() | own;
    }

    /** Whether the queue has no segment to take. */
    get isEmpty(): boolean {
        return this.head === this.queue.length;
    }

    /** Whether something has arrived: a task id or token, a segment, or the end. */
    get hasBegun(): boolean {
        return this.isKept || !this.isEmpty || this.outcome !== null;
    }

    /** Whether the request has ended and the reader took all its segments. */
    get isDone(): boolean {
        return this.outcome !== null && this.isEmpty;
    }

    // ---- called by the binding

    override onEvent(kind: number, a: unknown, b: unknown, c: unknown): void {
        if (kind !== Kind.SEGMENTS) {
            super.onEvent(kind, a, b, c);
        } else if (!this.isDropping) {
            this.arrived(a as Segment[]);
        }
    }

    private arrived(segments: Segment[]): void {
        if (this.isEmpty) {
            this.queue = segments;
            this.head = 0;
        } else {
            for (const segment of segments) this.queue.push(segment);
        }
        this.markSoon();
        this.waiters.wake();
    }

    protected override canResume(token: string | undefined): void {
        this.isKept = true;
        if (token !== undefined && !this.isDropping) this.remember(this.newest(), token);
        this.waiters.wake();
    }

    protected override becameTask(): void {
        this.session.run("onTask", this.onBegin);
    }

    protected override completed(outcome: Outcome): void {
        this.final = super.token();
        this.immediate();
        // Frees the native memory of the request. The garbage collector does not count
        // this memory.
        this.free();
        super.completed(outcome);
        this.session.run("onEnd", this.onEnd);
    }

    /**
     * Returns the server's interim answer for the model, which the model can use while
     * the task runs.
     */
    immediate(): string | undefined {
        if (this.handle !== null && this.taskId !== undefined) {
            this.word ??= immediateOf(this.handle);
        }
        return this.word;
    }

    protected override wake(): void {
        this.waiters.wake();
    }

    // ---- called by the reader

    /** Waits until a new event of the request has arrived. Aborting the signal ends only
     * the wait, not the request. */
    change(signal?: AbortSignal): Promise<void> {
        return this.waiters.change(signal);
    }

    /**
     * Takes the next segment from the queue, which must not be empty. Grants new credit
     * when the reader has taken half of the window.
     */
    take(): Segment {
        const segment = this.queue[this.head] as Segment;
        this.head += 1;
        if (this.isEmpty) {
            this.queue = [];
            this.head = 0;
        }
        this.last = segment.number;
        this.taken += 1;
        if (this.taken >= this.half) this.refill();
        return segment;
    }

    /** Takes all segments from the queue, which must not be empty. */
    takeAll(): Segment[] {
        const batch = this.head === 0 ? this.queue : this.queue.slice(this.head);
        this.queue = [];
        this.head = 0;
        this.last = (batch[batch.length - 1] as Segment).number;
        this.taken += batch.length;
        this.refill();
        return batch;
    }

    /** Grants credit for as many segments as the reader took. */
    private refill(): void {
        this.grant(this.taken);
        this.taken = 0;
    }

    private grant(count: number): void {
        if (this.handle !== null && this.outcome === null) {
            try {
                native.requestGrant(this.handle, count);
            } catch (error) {
                if (!isOver(error)) throw error;
            }
        }
    }

    /**
     * Throws away the waiting segments and all later segments. The flow grants unlimited
     * credit, so that the result can arrive.
     */
    drop(): void {
        if (!this.isDropping) {
            this.isDropping = true;
            this.queue = [];
            this.head = 0;
            this.grant(ENOUGH);
        }
    }

    /** Waits for the end of the request. Aborting the signal ends only the wait, not the
     * request. */
    override async wait(signal?: AbortSignal): Promise<Outcome> {
        while (this.outcome === null) await this.change(signal);
        return this.outcome;
    }

    // ---- leaving

    /**
     * Cancels the request, or detaches from its task, and waits for the end of the
     * request.
     */
    async leave(detach: boolean): Promise<void> {
        if (this.outcome === null && this.handle !== null) {
            this.letGo(detach);
            await this.wait();
        }
    }

    /**
     * Cancels the request, or detaches from its task, without waiting for the end of the
     * request.
     */
    letGo(detach: boolean): void {
        if (this.outcome !== null || this.handle === null) return;
        if (detach) {
            try {
                this.detach();
                return;
            } catch (error) {
                // NotResumableError means that the request is not a task. So the request
                // cannot continue without a reader and is cancelled.
                if (!(error instanceof NotResumableError)) throw error;
            }
        }
        this.isLeft = true;
        this.cancel();
        this.drop();
    }

    /**
     * Detaches from the task, which continues on the server.
     *
     * @throws NotResumableError: the request is not a task.
     */
    detach(): void {
        const token = this.token();
        if (this.handle !== null) {
            try {
                native.requestDetach(this.handle);
            } catch (error) {
                if (!isOver(error)) throw error;
            }
        }
        // The token covers none of the segments that are thrown away from now on. So the
        // server sends these segments again when the task is resumed.
        this.kept = token;
        this.isLeft = true;
        this.drop();
    }

    // ---- tokens

    /** The number of the last segment that arrived. */
    private newest(): number {
        return this.queue[this.queue.length - 1]?.number ?? this.last;
    }

    /** Remembers the current token, which covers all segments up to `number`. */
    mark(number: number): void {
        const token = super.token();
        if (token !== undefined) this.remember(number, token);
    }

    /**
     * Remembers the current token soon, between two batches of events. At that moment,
     * each segment that the token covers is in the queue or was read. During a batch, the
     * token also covers segments that are not in the queue yet.
     */
    private markSoon(): void {
        if (this.isMarking || this.newest() - this.marked < MARK_EVERY) return;
        this.isMarking = true;
        queueMicrotask(() => {
            this.isMarking = false;
            if (!this.isDropping && !this.session.runtime.isDelivering) {
                this.mark(this.newest());
            }
        });
    }

    private remember(number: number, token: string): void {
        const { marks } = this;
        while (marks.length > 1 && (marks[1]?.number ?? 0) <= this.last) {
            // The reader has also passed the next remembered token, so this older token
            // is not needed.
            marks.shift();
        }
        marks.push({ number, token });
        this.marked = number;
        if (this.first === undefined && this.last === 0 && this.isEmpty) {
            this.first = token;
        }
    }

    override token(): string | undefined {
        if (this.kept !== undefined) return this.kept;
        if (this.isEmpty && !this.session.runtime.isDelivering) {
            const token = this.handle === null ? this.final : super.token();
            // After a success the library has no token. The code after this block then
            // returns a token that the flow remembered earlier. A request that is resumed
            // with the remembered token receives the result again.
            if (token !== undefined || this.outcome === null || this.outcome[0] !== 0) {
                return token;
            }
        }
        // The segments have no order, so the flow does not know which segments are
        // unread. The token that covers no segment is always correct.
        if (!this.isOrdered) return this.first;
        let best: { number: number; token: string } | undefined;
        for (const mark of this.marks) {
            if (mark.number > this.last) break;
            best = mark;
        }
        if (best === undefined) return undefined;
        return best.number === this.last ? best.token : `${best.token}+${this.last}`;
    }
}
