/**
 * One background runtime of the library for each environment (main thread or worker).
 *
 * The library does its input and output on a thread of its own, which knows nothing of
 * JavaScript. When it has something to tell it rings the doorbell; here, on the thread of
 * the environment, `native.runtimeDispatch` then returns a batch of events, whose
 * handlers run. The doorbell is a descriptor that the environment's loop waits for, and a
 * thread-safe function for what cannot use that. While messages come often over pipes,
 * dispatch reads them itself, which saves a change of threads for each (`lendInput`).
 * The loop is not held: after BUDGET_MS of one turn what is left waits for the next.
 *
 *     open ---- close, exit of the process, end of the worker ---> closed
 *
 * The doorbell keeps the process alive only while something is held (`hold`): requests
 * that wait for an answer, servers that listen. Ending means: threads are joined, the
 * last events (COMPLETE and CLOSED of all that was open) are delivered, everything is
 * freed. A worker that is terminated does so without JavaScript (the addon's clean-up
 * hook).
 *
 * @module
 */
import { Cork } from "./cork.js";
import { makeError, ReentrantError } from "./errors.js";
import {
    type Runtime as Handle,
    type Handler,
    Kind,
    LogLevel,
    native,
} from "./native.js";
import { readSegments } from "./segment.js";

native.setErrorFactory(makeError);

/** Whether the library may use the loop of the environment: elsewhere than in Node it may
 * be another one. */
const LENDS = !("bun" in process.versions);
/** Longest time of one turn of the loop for events, in milliseconds. */
const BUDGET_MS = 1.5;
/** Callbacks of the library in one batch. */
const BATCH = 256;
/** Values of one event in a batch. */
const STRIDE = 5;
/** Events between two looks at the clock. */
const CLOCK_EVERY = 16;

/** Levels of the library's log. */
export type Level = "debug" | "info" | "warning" | "error";

/** Gets the lines of the library's log. */
export type Logger = (level: Level, text: string) => void;

const LEVELS: readonly Level[] = ["debug", "info", "warning", "error"];

let logger: Logger = (level, text) => {
    if (level === "warning" || level === "error")
        process.emitWarning(text, { type: "SegueWarning" });
};
let logLevel: number = LogLevel.WARNING;

/**
 * Sets what gets the library's log: by default warnings and errors are warnings of the
 * process (`process.emitWarning`).
 *
 * @param level - the lowest that is told; of effect for a runtime that is made later
 */
export function setLogger(to: Logger, level: Level = "warning"): void {
    logger = to;
    logLevel = LEVELS.indexOf(level);
}

const logLine: Handler = (_kind, level: number, text: string) => {
    logger(LEVELS[Math.min(Math.max(level, 0), 3)] as Level, text);
};

let open: Runtime | null = null;

/** The runtime of this environment; {@link Runtime.current} gives it. */
export class Runtime {
    /** What the functions of `native` take. */
    readonly handle: Handle;
    #isClosed = false;
    #held = 0;
    readonly #cork: Cork;
    /** A batch whose handlers run, and the next event's place in it. */
    #batch: unknown[] | null = null;
    #next = 0;
    #isRunning = false;
    /** A turn of the loop is under way that began then; at its end more is due. */
    #inTurn = false;
    #began = 0;
    #isDue = false;
    readonly #beforeClose = new Set<() => void>();
    readonly #onClose = new Set<() => void>();
    readonly #exit = () => this.#end(false);

    /** Gives the runtime of this environment; makes it at the first use. */
    static current(): Runtime {
        open ??= new Runtime();
        return open;
    }

    /** For tests: track counts what is allocated (`native.allocated`). */
    constructor(track = false) {
        this.handle = native.runtimeNew(
            { logLevel, lendInput: LENDS },
            () => this.#wake(),
            logLine,
            track,
        );
        this.#cork = new Cork(this.handle);
        native.runtimeStart(this.handle);
        // What ends the process by process.exit() runs no clean-up hook of the main
        // thread.
        process.on("exit", this.#exit);
    }

    /** Whether it has ended. */
    get isClosed(): boolean {
        return this.#isClosed;
    }

    /** Whether a batch of events is being handled: the library counts all of it as
     * delivered, also what no handler has seen yet. */
    get isDelivering(): boolean {
        return this.#batch !== null;
    }

    /** Something is about to be sent. */
    cork(): void {
        if (!this.#isClosed) this.#cork.note();
    }

    /** Keeps the process alive until {@link release} was called as often. */
    hold(): void {
        if (this.#held++ === 0 && !this.#isClosed) native.runtimeHold(this.handle, true);
    }

    /** Takes back one {@link hold}. */
    release(): void {
        if (--this.#held === 0 && !this.#isClosed) native.runtimeHold(this.handle, false);
    }

    /** Has something called once when the runtime is about to end. */
    beforeClose(callback: () => void): () => void {
        this.#beforeClose.add(callback);
        return () => this.#beforeClose.delete(callback);
    }

    /** Has something called once when the runtime has ended, after its last events. */
    onClose(callback: () => void): () => void {
        this.#onClose.add(callback);
        return () => this.#onClose.delete(callback);
    }

    /** Has an exception be one that nobody caught ('uncaughtException'), as is what any
     * callback throws. What runs goes on first. */
    report(error: unknown): void {
        queueMicrotask(() => {
            throw error;
        });
    }

    /**
     * Ends the runtime: threads are joined, what was open gets its last event.
     * Idempotent. Blocks; sessions and servers that shall end in good order are to be
     * closed before.
     */
    close(): void {
        this.#end(true);
    }

    #end(tell: boolean): void {
        if (this.#isClosed) return;
        this.#call(this.#beforeClose);
        this.#cork.end();
        this.#isClosed = true;
        if (open === this) open = null;
        process.off("exit", this.#exit);
        let last: unknown[] = [];
        try {
            last = native.runtimeFree(this.handle);
        } catch (error) {
            // process.exit() in a hook: the addon stops the threads as far as it may.
            if (!(error instanceof ReentrantError)) this.report(error);
        }
        if (tell) {
            this.#runBatch(Number.POSITIVE_INFINITY);
            this.#batch = last;
            this.#next = 0;
            this.#runBatch(Number.POSITIVE_INFINITY);
        }
        this.#call(this.#onClose);
    }

    #call(callbacks: Set<() => void>): void {
        for (const callback of callbacks) {
            try {
                callback();
            } catch (error) {
                this.report(error);
            }
        }
        callbacks.clear();
    }

    // ---- events ----

    /** The doorbell has rung. It may do so many times in one turn of the loop: the first
     * time a mark is set at the turn's end. */
    #wake(): void {
        if (this.#isClosed || this.#isDue) return;
        if (!this.#inTurn) {
            this.#inTurn = true;
            this.#began = performance.now();
            setImmediate(this.#endTurn);
        } else if (performance.now() - this.#began >= BUDGET_MS) {
            this.#isDue = true;
            return;
        }
        this.#drain();
    }

    readonly #endTurn = (): void => {
        this.#inTurn = false;
        if (!this.#isDue || this.#isClosed) return;
        this.#isDue = false;
        this.#wake();
    };

    /** Runs what is due, as far as this turn of the loop allows: what is left of a batch,
     * then the next one. What that leaves in the library rings anew. */
    #drain(): void {
        if (this.#isRunning) return;
        const until = this.#began + BUDGET_MS;
        for (let wasLeft = true; wasLeft && !this.#isClosed; ) {
            wasLeft = this.#batch !== null;
            if (!wasLeft) {
                this.#batch = this.#take();
                this.#next = 0;
            }
            this.#runBatch(until);
            if (this.#batch !== null) {
                this.#isDue = true;
                return;
            }
        }
    }

    #take(): unknown[] | null {
        try {
            return native.runtimeDispatch(this.handle, 0, BATCH);
        } catch {
            return null; // it was stopped and has said all
        }
    }

    #runBatch(until: number): void {
        const batch = this.#batch;
        if (batch === null) return;
        this.#isRunning = true;
        const size = batch.length;
        let at = this.#next;
        for (let count = 1; at < size; count++) {
            const handler = batch[at] as Handler | null;
            const kind = batch[at + 1] as number;
            let a = batch[at + 2];
            this.#next = at += STRIDE;
            try {
                if (kind === Kind.SEGMENTS) a = readSegments(a as unknown[]);
                if (handler) handler(kind, a, batch[at - 2], batch[at - 1]);
                else if (kind === Kind.EXCEPTION) this.report(a);
            } catch (error) {
                this.report(error);
            }
            if (this.#batch !== batch) return; // it has closed: the rest was run then
            if (count % CLOCK_EVERY === 0 && performance.now() >= until) break;
        }
        this.#isRunning = false;
        if (at >= size) this.#batch = null;
    }
}
