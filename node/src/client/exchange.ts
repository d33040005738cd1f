/**
 * One request and its one end.
 *
 *     start --> event* --> COMPLETE --> nothing
 *
 * The binding holds the exchange from its start until COMPLETE. Events come after the
 * library's dispatch, so that user code which is called from here may start others.
 */

import { Result } from "../content.js";
import {
    ClosedError,
    EndedError,
    fromInfo,
    InvalidError,
    NotFoundError,
    NotResumableError,
    type SegueError,
    UnsupportedError,
} from "../errors.js";
import { type ErrorInfo, type Handler, Kind, native, type Request } from "../native.js";
import type { Conversation, LogMessage } from "./conversation.js";
import { type Answering, Refused } from "./questions.js";

/** The status, the result or what there is of it, the error. */
export type Outcome = [status: number, result: string | null, error: ErrorInfo | null];

/** What a server says about how far it is. */
export interface Progress {
    /** How much is done; grows. */
    progress: number;
    /** How much there is, where that is known. */
    total?: number;
    message?: string;
}

/** What a request tells beside its result. What is missing is not asked for. */
export interface Callbacks {
    onProgress?: ((progress: Progress) => unknown) | undefined;
    onLog?: ((message: LogMessage) => unknown) | undefined;
    onStatus?: ((status: string, message: string | undefined) => unknown) | undefined;
    answers?: Answering | undefined;
}

const NONE: Callbacks = {};
const CANNOT_ANSWER = -32603;

/** Whether an error says that a request, or its question, is over. */
export function isOver(error: unknown): boolean {
    return (
        error instanceof NotFoundError ||
        error instanceof EndedError ||
        error instanceof ClosedError
    );
}

/** The error for an end that is no success; `partial` is what had come by then. */
export function failure(outcome: Outcome, token?: string): SegueError {
    const [status, raw, info] = outcome;
    const error = fromInfo(info, status);
    // Neither is printed with the error: the one is a secret, the other may be large, and
    // is read when somebody looks at it.
    let partial: Result | undefined;
    Object.defineProperties(error, {
        token: { value: token, writable: true, enumerable: false },
        partial: {
            enumerable: false,
            get: () => {
                partial ??= partialOf(raw);
                return partial;
            },
        },
    });
    return error;
}

function partialOf(raw: string | null): Result | undefined {
    try {
        return raw === null ? undefined : Result.fromJson(raw);
    } catch {
        return undefined; // what was cut off in its middle is no result
    }
}

/** One request in flight. */
export class Exchange {
    readonly session: Conversation;
    readonly callbacks: Callbacks;
    handle: Request | null = null;
    outcome: Outcome | null = null;
    taskId: string | undefined;
    private resolve: (() => void) | null = null;
    private answering: Map<string, AbortController> | null = null;

    constructor(session: Conversation, callbacks: Callbacks = NONE) {
        this.session = session;
        this.callbacks = callbacks;
    }

    /**
     * What the binding shall tell. Nobody to answer is a fact that the server hears of.
     */
    events(): number {
        const calls = this.callbacks;
        let mask = 1 << Kind.COMPLETE;
        if (calls !== NONE) {
            if (calls.onProgress) mask |= 1 << Kind.PROGRESS;
            if (calls.onLog) mask |= 1 << Kind.LOG;
            if (calls.onStatus) mask |= 1 << Kind.STATUS;
        }
        if (calls.answers || this.session.answers.isThere) mask |= 1 << Kind.QUESTION;
        return mask;
    }

    // ---- from the binding

    /** What the binding calls. */
    handler(): Handler {
        return (kind, a, b, c) => this.onEvent(kind, a, b, c);
    }

    onEvent(kind: number, a: unknown, b: unknown, c: unknown): void {
        switch (kind) {
            case Kind.COMPLETE:
                this.completed([a, b, c] as Outcome);
                break;
            case Kind.PROGRESS:
                this.tellProgress(a as number, b as number, c as string | null);
                break;
            case Kind.LOG:
                this.session.tellLog(this.callbacks.onLog, a as string);
                break;
            case Kind.QUESTION:
                void this.answer(a as string, b as string, c as string | null);
                break;
            case Kind.TASK:
                this.taskId = a as string;
                this.canResume((b as string | null) ?? undefined);
                this.becameTask();
                break;
            case Kind.RESUMABLE:
                this.canResume((a as string | null) ?? undefined);
                break;
            case Kind.STATUS:
                this.tell(
                    this.callbacks.onStatus,
                    a as string,
                    (b as string) ?? undefined,
                );
                break;
        }
    }

    /** The end; nothing comes behind it. */
    protected completed(outcome: Outcome): void {
        this.outcome = outcome;
        if (this.answering !== null) {
            for (const asked of this.answering.values()) {
                asked.abort(new DOMException("the request has ended", "AbortError"));
            }
        }
        this.wake();
    }

    private tellProgress(progress: number, total: number, message: string | null): void {
        const told: Progress = { progress };
        if (total !== 0) told.total = total;
        if (message !== null) told.message = message;
        this.tell(this.callbacks.onProgress, told);
    }

    protected wake(): void {
        const resolve = this.resolve;
        if (resolve !== null) {
            this.resolve = null;
            resolve();
        }
    }

    /** It can be resumed by a new token, which covers what was delivered before. */
    protected canResume(_token: string | undefined): void {}

    /** The task has an id. */
    protected becameTask(): void {}

    /** Runs a callback of the user; its failure is not the library's. */
    protected tell<A extends unknown[]>(
        callback: ((...args: A) => unknown) | undefined,
        ...args: A
    ): void {
        if (callback !== undefined) this.session.run(callback, ...args);
    }

    // ---- questions

    private async answer(
        key: string,
        method: string,
        params: string | null,
    ): Promise<void> {
        this.answering ??= new Map();
        this.answering.get(key)?.abort(new DOMException("asked anew", "AbortError"));
        const asked = new AbortController();
        this.answering.set(key, asked);
        const answers = this.callbacks.answers ?? this.session.answers;
        try {
            const reply = await answers.answer(key, method, params, asked.signal);
            if (!asked.signal.aborted && this.handle !== null) {
                native.requestAnswer(this.handle, key, reply);
            }
        } catch (error) {
            if (error instanceof InvalidError) {
                error.message = `the answer does not fit what ${method} asks for`;
            }
            this.notAnswered(key, error, asked.signal);
        } finally {
            if (this.answering.get(key) === asked) this.answering.delete(key);
        }
    }

    private notAnswered(key: string, error: unknown, signal: AbortSignal): void {
        if (signal.aborted || isOver(error)) return; // withdrawn meanwhile
        if (error instanceof Refused) {
            this.refuse(key, error.code, error.message);
            return;
        }
        this.refuse(key, CANNOT_ANSWER, "the client could not answer");
        this.session.failed(error);
    }

    private refuse(key: string, code: number, message: string): void {
        if (this.handle === null) return;
        try {
            native.requestAnswerError(this.handle, key, code, message);
        } catch (error) {
            if (error instanceof UnsupportedError) {
                // This revision has no such answer: without one the request cannot end
                // well.
                this.cancel();
            } else if (!isOver(error)) {
                throw error;
            }
        }
    }

    // ---- for whoever waits

    /**
     * Waits for the end. When the signal is aborted the request is cancelled, and its end
     * waited for, so that nothing of it happens afterwards.
     *
     * @throws the signal's reason.
     */
    async wait(signal?: AbortSignal): Promise<Outcome> {
        if (this.outcome === null) {
            const onAbort = (): void => this.cancel();
            signal?.addEventListener("abort", onAbort, { once: true });
            if (signal?.aborted) this.cancel();
            const { runtime } = this.session;
            runtime.hold();
            await new Promise<void>((resolve) => {
                this.resolve = resolve;
            });
            runtime.release();
            signal?.removeEventListener("abort", onAbort);
            signal?.throwIfAborted();
        }
        return this.outcome as unknown as Outcome;
    }

    /** The end; waiting for it keeps no process alive. One may wait. */
    idle(): Promise<void> {
        if (this.outcome !== null) return Promise.resolve();
        return new Promise((resolve) => {
            this.resolve = resolve;
        });
    }

    /** Asks for the end. */
    cancel(): void {
        if (this.handle !== null && this.outcome === null) {
            try {
                native.requestCancel(this.handle);
            } catch (error) {
                if (!isOver(error)) throw error;
            }
        }
    }

    /** The error for the end. */
    failure(): SegueError {
        return failure(this.outcome as Outcome, this.token());
    }

    /** What resumes it behind all segments that were delivered. */
    token(): string | undefined {
        if (this.handle === null) return undefined;
        try {
            return native.requestToken(this.handle);
        } catch (error) {
            if (error instanceof NotResumableError || isOver(error)) return undefined;
            throw error;
        }
    }

    /** Gives the handle back; the garbage collector would do it later. */
    free(): void {
        if (this.handle !== null) {
            native.requestFree(this.handle);
            this.handle = null;
        }
    }
}
