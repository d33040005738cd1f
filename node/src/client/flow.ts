/**
 * A request whose result comes in segments, for one reader.
 *
 * What users hold (`Stream`, `Task`) holds the flow, never the other way round: so a
 * stream that nobody holds any more is found by the garbage collector, while its flow
 * goes on to its end. The queue of segments is bounded by the window of credit, since
 * what is not granted is not delivered, and the peer is held up.
 *
 * A resume token covers the segments that were delivered, not those that were taken out
 * of the queue. So a flow remembers a token from before what waits there, and adds to it
 * how far the reader has come ("+17"): behind that the resumed request goes on. The older
 * the token, the more comes over the wire once more.
 */

import { NotResumableError } from "../errors.js";
import { Kind, native, type Request } from "../native.js";
import type { Segment } from "../segment.js";
import type { Conversation } from "./conversation.js";
import { type Callbacks, Exchange, isOver, type Outcome } from "./exchange.js";
import { Waiters } from "./waiting.js";

/** All that are left: no result is that long. */
const ENOUGH = Number.MAX_SAFE_INTEGER;
/** So many segments, at least, lie between two tokens that are remembered. */
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

/** See above. */
export class Flow extends Exchange {
    /** What was delivered; before `head` it was taken. */
    queue: Segment[] = [];
    head = 0;
    /** The number of the last segment that the reader took. */
    last = 0;
    /** Taken since the last grant. */
    taken = 0;
    /** So many are taken before others are let in. */
    readonly half: number;
    /** Detached, or left: its end is no failure. */
    isLeft = false;
    /** Told that it has become a task. */
    onBegin: (() => unknown) | undefined;
    /** Told of the end. */
    onEnd: (() => unknown) | undefined;
    private isDropping = false; // nobody will read
    private isKept = false; // the server gave what resumes it: a task's id, a token
    private readonly isOrdered: boolean;
    private readonly waiters: Waiters;
    private marks: { number: number; token: string }[] = []; // which is behind it
    private marked = 0;
    private isMarking = false;
    private first: string | undefined; // the token from before all segments
    private kept: string | undefined; // the token at the time of detach
    private final: string | undefined; // that of the end
    private word: string | undefined;

    /**
     * @param window - so many segments may wait for the reader.
     * @param isOrdered - their numbers grow.
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

    /** Whether no segment is there to be taken. */
    get isEmpty(): boolean {
        return this.head === this.queue.length;
    }

    /** Whether something of it is there: what resumes it, a segment or the end. */
    get hasBegun(): boolean {
        return this.isKept || !this.isEmpty || this.outcome !== null;
    }

    /** Whether it has ended, and all its segments were taken. */
    get isDone(): boolean {
        return this.outcome !== null && this.isEmpty;
    }

    // ---- from the binding

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
        this.tell(this.onBegin);
    }

    protected override completed(outcome: Outcome): void {
        this.final = super.token();
        this.immediate();
        this.free(); // what it holds is not of JavaScript's memory
        super.completed(outcome);
        this.tell(this.onEnd);
    }

    /** What the server gives the model to go on with while the task runs. */
    immediate(): string | undefined {
        if (this.handle !== null && this.taskId !== undefined) {
            this.word ??= immediateOf(this.handle);
        }
        return this.word;
    }

    protected override wake(): void {
        this.waiters.wake();
    }

    // ---- for the reader

    /** Waits until something has come; the signal gives up the waiting alone. */
    change(signal?: AbortSignal): Promise<void> {
        return this.waiters.change(signal);
    }

    /** The next segment, which is there; so there is room for others. */
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

    /** All that are there, at least one. */
    takeAll(): Segment[] {
        const batch = this.head === 0 ? this.queue : this.queue.slice(this.head);
        this.queue = [];
        this.head = 0;
        this.last = (batch[batch.length - 1] as Segment).number;
        this.taken += batch.length;
        this.refill();
        return batch;
    }

    /** Lets as many come as were taken. */
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

    /** Nobody will read: what comes is not kept, so that the result can come. */
    drop(): void {
        if (!this.isDropping) {
            this.isDropping = true;
            this.queue = [];
            this.head = 0;
            this.grant(ENOUGH);
        }
    }

    /** Waits for the end. The signal gives up the waiting alone. */
    override async wait(signal?: AbortSignal): Promise<Outcome> {
        while (this.outcome === null) await this.change(signal);
        return this.outcome;
    }

    // ---- leaving

    /** Ends it, and waits for that. */
    async leave(detach: boolean): Promise<void> {
        if (this.outcome === null && this.handle !== null) {
            this.letGo(detach);
            await this.wait();
        }
    }

    /** Ends it without waiting: a task that is detached goes on. */
    letGo(detach: boolean): void {
        if (this.outcome !== null || this.handle === null) return;
        if (detach) {
            try {
                this.detach();
                return;
            } catch (error) {
                // no task: nothing can go on
                if (!(error instanceof NotResumableError)) throw error;
            }
        }
        this.isLeft = true;
        this.cancel();
        this.drop();
    }

    /**
     * Lets go of the task.
     *
     * @throws NotResumableError: it is none.
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
        this.kept = token; // what is thrown away now shall come again
        this.isLeft = true;
        this.drop();
    }

    // ---- tokens

    /** The number of the last segment that came. */
    private newest(): number {
        return this.queue[this.queue.length - 1]?.number ?? this.last;
    }

    /** Remembers the token, which covers all up to that segment. */
    mark(number: number): void {
        const token = super.token();
        if (token !== undefined) this.remember(number, token);
    }

    /**
     * Between two batches the token covers what was delivered, and all of that is in the
     * queue. While a batch is handled it covers what is still to come of it, too.
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
            marks.shift(); // there is a newer one that will do
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
            // that of one that has ended well brings the result again
            if (token !== undefined || this.outcome === null || this.outcome[0] !== 0) {
                return token;
            }
        }
        if (!this.isOrdered) return this.first; // nobody knows what was not read
        let best: { number: number; token: string } | undefined;
        for (const mark of this.marks) {
            if (mark.number > this.last) break;
            best = mark;
        }
        if (best === undefined) return undefined;
        return best.number === this.last ? best.token : `${best.token}+${this.last}`;
    }
}
