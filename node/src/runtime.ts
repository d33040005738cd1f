/**
 * Runs one background runtime of the library in each environment (main thread or worker).
 *
 * The library does its input and output on a thread of its own, which runs no JavaScript.
 * When the library has events, the library wakes the environment's thread. On the
 * environment's thread, `native.runtimeDispatch` returns a batch of events, and their
 * handlers run. The wake-up uses a descriptor that the event loop watches. Where a
 * descriptor cannot be used, the wake-up uses a thread-safe function. While many messages
 * arrive over pipes, `native.runtimeDispatch` reads the messages itself, which saves a
 * switch of threads for each message (`lendInput`). Events do not block the event loop:
 * one turn spends at most BUDGET_MS on events, and the remaining events wait for the next
 * turn.
 *
 *     open ---- close, exit of the process, end of the worker ---> closed
 *
 * The runtime keeps the process alive only while the runtime is held (`hold`). Requests
 * that wait for an answer hold the runtime, and so do servers that listen. At the end of
 * the runtime its threads are joined, the last events (COMPLETE and CLOSED of everything
 * open) are delivered, and everything is freed. For a terminated worker, the addon's
 * clean-up hook ends the runtime without running JavaScript.
 *
 * @module
 */
import { Cork } from "./cork.js";
import { makeError, ReentrantError, StateError } from "./errors.js";
import { report } from "./failures.js";
import {
    type Runtime as Handle,
    type Handler,
    Kind,
    LogLevel,
    native,
} from "./native.js";
import type { ObserverOptions } from "./native_options.js";
import { readSegments } from "./segment.js";
import { performance, setImmediate } from "./timers.js";

native.setErrorFactory(makeError);

/**
 * Whether the library may use libuv, the event loop of Node. Bun has another event loop.
 */
const LENDS = !("bun" in process.versions);
/** Longest time that one turn of the loop spends on events, in milliseconds. */
const BUDGET_MS = 1.5;
/** Maximum number of library callbacks in one batch. */
const BATCH = 256;
/** Number of array elements per event in a batch. */
const STRIDE = 5;
/** The number of events between two readings of the clock. */
const CLOCK_EVERY = 16;

/** The levels of the library's log and events. */
export type Level = "debug" | "info" | "warning" | "error";

/** Receives the lines of the library's log. */
export type Logger = (level: Level, text: string) => void;

export const LEVELS: readonly Level[] = ["debug", "info", "warning", "error"];

let logger: Logger = (level, text) => {
    if (level === "warning" || level === "error")
        process.emitWarning(text, { type: "SegueWarning" });
};
let logLevel: number = LogLevel.WARNING;

/**
 * Sets the function that receives the library's log. By default warnings and errors
 * become warnings of the process (`process.emitWarning`).
 *
 * @param level - the lowest level to report; applies to runtimes made later
 */
export function setLogger(to: Logger, level: Level = "warning"): void {
    logger = to;
    logLevel = LEVELS.indexOf(level);
}

/** Limits that all sessions and servers of an environment share. */
export interface Limits {
    /** Maximum size of one message that is received, in bytes; default 64 MiB. */
    maxMessageBytes?: number | undefined;
    /** Maximum nesting of JSON; default 512. */
    maxDepth?: number | undefined;
    /**
     * Maximum number of unsent bytes of one connection. When more bytes are unsent,
     * senders wait. Default 1 MiB.
     */
    maxQueueBytes?: number | undefined;
}

const MOST: Record<keyof Limits, number> = {
    maxMessageBytes: Number.MAX_SAFE_INTEGER,
    maxDepth: 2 ** 31 - 1,
    maxQueueBytes: Number.MAX_SAFE_INTEGER,
};

let limits: { [name in keyof Limits]?: number } = {};

/**
 * Sets the limits that all sessions and servers of this environment (main thread or
 * worker) share. Call this function before the first session or server. Each call
 * replaces all limits of an earlier call.
 *
 * @throws StateError when the library is in use already
 * @throws TypeError when a name is unknown
 * @throws RangeError when a limit is not an integer, is below 1 or is too large
 */
export function configure(options: Limits = {}): void {
    const next: typeof limits = {};
    for (const [name, value] of Object.entries(options) as [keyof Limits, unknown][]) {
        const most = Object.hasOwn(MOST, name) ? MOST[name] : undefined;
        if (most === undefined) throw new TypeError(`no limit has the name ${name}`);
        if (value === undefined) continue;
        if (!Number.isInteger(value) || (value as number) < 1 || (value as number) > most)
            throw new RangeError(
                `${name} must be an integer from 1 to ${most}, not ${String(value)}`,
            );
        next[name] = value as number;
    }
    if (open)
        throw new StateError(
            "the library is in use already, and its limits cannot change: call " +
                "configure before the first session or server",
        );
    limits = next;
}

const logLine: Handler = (_kind, level: number, text: string) => {
    const name = LEVELS[Math.min(Math.max(level, 0), 3)] as Level;
    try {
        logger(name, text);
    } catch (error) {
        report(undefined, error, undefined, "the logger of setLogger");
    }
};

let open: Runtime | null = null;
/** The handler of events, with its options; undefined = nobody observes. */
let observer: { handler: Handler; options: ObserverOptions } | undefined;

/**
 * Gives the events of the runtime of this environment, also of a later one, to a handler.
 */
export function observeRuntime(
    handler: Handler | undefined,
    options: ObserverOptions = {},
): void {
    observer = handler && { handler, options };
    if (open && !open.isClosed)
        native.runtimeObserve(open.handle, handler ?? null, options);
}

/**
 * The runtime of this environment. {@link Runtime.current} returns the runtime.
 */
export class Runtime {
    /** The handle for the functions of `native`. */
    readonly handle: Handle;
    #isClosed = false;
    #held = 0;
    readonly #cork: Cork;
    /**
     * `#batch` is the batch whose handlers run now; null = no batch. `#next` is the index
     * in the batch at which the next event begins.
     */
    #batch: unknown[] | null = null;
    #next = 0;
    #isRunning = false;
    /**
     * `#inTurn`: a turn of the event loop is under way. `#began`: the time at which the
     * turn began, in milliseconds. `#isDue`: events are left for the next turn.
     */
    #inTurn = false;
    #began = 0;
    #isDue = false;
    readonly #beforeClose = new Set<() => void>();
    readonly #onClose = new Set<() => void>();
    readonly #exit = () => this.#end(false);

    /** Returns the runtime of this environment, which is made at the first use. */
    static current(): Runtime {
        open ??= new Runtime();
        return open;
    }

    /**
     * @param track - true = the runtime counts the memory that it allocates
     * (`native.allocated`); for tests.
     */
    constructor(track = false) {
        this.handle = native.runtimeNew(
            { ...limits, logLevel, lendInput: LENDS, camelCase: true },
            () => this.#wake(),
            logLine,
            track,
        );
        this.#cork = new Cork(this.handle);
        native.runtimeStart(this.handle);
        if (observer)
            native.runtimeObserve(this.handle, observer.handler, observer.options);
        // process.exit() does not run the addon's clean-up hook of the main thread. So
        // the runtime also ends at the event 'exit'.
        process.on("exit", this.#exit);
    }

    /** Whether the runtime has ended. */
    get isClosed(): boolean {
        return this.#isClosed;
    }

    /** Whether the handlers of a batch run now. During this time the library counts all
     * events of the batch as delivered, even those whose handlers have not run yet. */
    get isDelivering(): boolean {
        return this.#batch !== null;
    }

    /**
     * Reports to the cork that a message will be sent. Must be called before each
     * message. The cork may hold the message back; see cork.ts.
     */
    cork(): void {
        if (!this.#isClosed) this.#cork.note();
    }

    /**
     * Keeps the process alive until {@link release} was called once for each call of
     * `hold`.
     */
    hold(): void {
        if (this.#held++ === 0 && !this.#isClosed) native.runtimeHold(this.handle, true);
    }

    /** Ends the effect of one call of {@link hold}. */
    release(): void {
        if (--this.#held === 0 && !this.#isClosed) native.runtimeHold(this.handle, false);
    }

    /**
     * Registers a callback that runs once, before the runtime ends. Returns a function
     * that removes the callback.
     */
    beforeClose(callback: () => void): () => void {
        this.#beforeClose.add(callback);
        return () => this.#beforeClose.delete(callback);
    }

    /**
     * Registers a callback that runs once, when the runtime has ended and delivered its
     * last events. Returns a function that removes the callback.
     */
    onClose(callback: () => void): () => void {
        this.#onClose.add(callback);
        return () => this.#onClose.delete(callback);
    }

    /**
     * Reports an exception as 'uncaughtException', like an exception of any callback. The
     * code that runs now finishes first.
     */
    report(error: unknown): void {
        queueMicrotask(() => {
            throw error;
        });
    }

    /**
     * Ends the runtime: threads are joined, and everything open gets its last event. A
     * second call does nothing. The call blocks until the threads have ended, so close
     * sessions and servers before this call.
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
            // ReentrantError means that a hook called process.exit(). The addon has
            // stopped the threads as far as possible, so the error is ignored.
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

    /**
     * Begins to handle events. The addon calls this method when the library has events,
     * perhaps many times in one turn of the event loop. The first call in a turn also
     * schedules the end of the turn.
     */
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

    /**
     * Runs the handlers of events as long as this turn of the event loop allows. The rest
     * of an earlier batch comes first, then the next batches. When the library still has
     * events, the addon calls #wake again.
     */
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
            return null; // the runtime was stopped, and no events are left
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
                else if (kind === Kind.EXCEPTION)
                    report(undefined, a, undefined, `the callback ${batch[at - 2]}`);
            } catch (error) {
                this.report(error);
            }
            // a handler has closed the runtime, and the end of the runtime has run the
            // rest of the batch
            if (this.#batch !== batch) return;
            if (count % CLOCK_EVERY === 0 && performance.now() >= until) break;
        }
        this.#isRunning = false;
        if (at >= size) this.#batch = null;
    }
}
