/**
 * One request, from its start to its end.
 *
 *     start --> event* --> COMPLETE --> nothing
 *
 * The binding keeps the exchange alive from the start until COMPLETE. Events arrive after
 * the library's dispatch has returned. So callbacks of the user may start other requests.
 */

import { Result } from "../content.js";
import {
    ClosedError,
    DisconnectedError,
    EndedError,
    fromInfo,
    InvalidError,
    NotFoundError,
    NotResumableError,
    RemoteError,
    RequestCancelledError,
    type SegueError,
    TaskLostError,
    UnsupportedError,
} from "../errors.js";
import { type RawText, rawOf, readText } from "../late.js";
import {
    type ErrorInfo,
    type Handler,
    Kind,
    native,
    type Request,
    type Text,
} from "../native.js";
import type { Conversation, LogMessage } from "./conversation.js";
import { type Answering, ELICIT, nameOf, Refused } from "./questions.js";

/**
 * The outcome of a request: its status, its result and its error. For a failed request,
 * the result is the part that had arrived; null = nothing had arrived. `saysError`: the
 * result has `"isError": true`.
 */
export type Outcome = [
    status: number,
    result: RawText | null,
    error: ErrorInfo | null,
    saysError: boolean,
];

/** A progress report of a server. */
export interface Progress {
    /** The amount of work that is done. The number grows from report to report. */
    progress: number;
    /** The amount of the whole work, if the server knows it. */
    total?: number;
    /** What the tool says about it. */
    message?: string;
}

/**
 * The callbacks of a request. The binding does not report an event whose callback is
 * missing.
 */
export interface Callbacks {
    onProgress?: ((progress: Progress) => unknown) | undefined;
    onLog?: ((message: LogMessage) => unknown) | undefined;
    onStatus?: ((status: string, message: string | undefined) => unknown) | undefined;
    answers?: Answering | undefined;
}

const NONE: Callbacks = {};
const CANNOT_ANSWER = -32603;
/** What the server gets when a callback failed, if the revision has an error for it. */
const NO_ANSWER = "The client failed to answer";

/**
 * Returns whether the error means that the request has ended, or that a question of the
 * request is no longer open.
 */
export function isOver(error: unknown): boolean {
    return (
        error instanceof NotFoundError ||
        error instanceof EndedError ||
        error instanceof ClosedError
    );
}

/**
 * Makes the error of a request that failed. The property `partial` of the error is the
 * part of the result that had arrived before the failure. If the server or the task was
 * lost, it is an empty result when nothing had arrived.
 */
export function failure(outcome: Outcome, token?: string): SegueError {
    const [status, raw, info] = outcome;
    const error = fromInfo(info, status);
    // The properties `partial` and `token` are not printed with the error: the token is a
    // secret, and the partial result may be large. The partial result is parsed when it
    // is first read.
    let partial: Result | undefined;
    // A program that has lost the server or the task need not ask whether anything came.
    const isLost = error instanceof DisconnectedError || error instanceof TaskLostError;
    Object.defineProperties(error, {
        token: { value: token, writable: true, enumerable: false },
        partial: {
            enumerable: false,
            get: () => {
                partial ??= partialOf(raw) ?? (isLost ? new Result() : undefined);
                return partial;
            },
        },
    });
    return error;
}

function partialOf(raw: RawText | null): Result | undefined {
    try {
        return raw === null ? undefined : Result.fromJson(readText(raw));
    } catch {
        // The JSON text of the partial result was cut off in the middle.
        return undefined;
    }
}

/** One request that is running. */
export class Exchange {
    readonly session: Conversation;
    readonly callbacks: Callbacks;
    handle: Request | null = null;
    outcome: Outcome | null = null;
    taskId: string | undefined;
    private resolve: (() => void) | null = null;
    private answering: Map<string, AbortController> | null = null;
    // why this client did not answer a question of the request
    private refused: RemoteError | null = null;

    constructor(session: Conversation, callbacks: Callbacks = NONE) {
        this.session = session;
        this.callbacks = callbacks;
    }

    /**
     * Returns the events that the binding should report, as a bit mask. Without QUESTION
     * in the mask the library tells the server that the client cannot answer questions.
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

    // ---- called by the binding

    /** Returns the function that the binding calls with each event. */
    handler(): Handler {
        return (kind, a, b, c) => this.onEvent(kind, a, b, c);
    }

    onEvent(kind: number, a: unknown, b: unknown, c: unknown): void {
        switch (kind) {
            case Kind.COMPLETE:
                this.completed([
                    a as number,
                    rawOf(b as string | Text | null),
                    typeof c === "boolean" ? null : (c as ErrorInfo | null),
                    c === true,
                ]);
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
                this.session.run(
                    "onStatus",
                    this.callbacks.onStatus,
                    a as string,
                    (b as string) ?? undefined,
                );
                break;
        }
    }

    /** Handles the end of the request. No event of the request follows. */
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
        this.session.run("onProgress", this.callbacks.onProgress, told);
    }

    protected wake(): void {
        const resolve = this.resolve;
        if (resolve !== null) {
            this.resolve = null;
            resolve();
        }
    }

    /**
     * Called when the request can be resumed with a new token. The token covers all
     * segments that were delivered until now.
     */
    protected canResume(_token: string | undefined): void {}

    /** Called when the server has made a task of the request. */
    protected becameTask(): void {}

    // ---- questions

    private async answer(
        key: string,
        method: string,
        params: string | null,
    ): Promise<void> {
        this.answering ??= new Map();
        this.answering
            .get(key)
            ?.abort(new DOMException("the server asked again", "AbortError"));
        const asked = new AbortController();
        this.answering.set(key, asked);
        const answers = this.callbacks.answers ?? this.session.answers;
        try {
            const reply = await answers.answer(key, method, params, asked.signal);
            if (!asked.signal.aborted) this.say(key, method, reply);
        } catch (error) {
            this.notAnswered(key, method, error, asked.signal);
        } finally {
            if (this.answering.get(key) === asked) this.answering.delete(key);
        }
    }

    private say(key: string, method: string, reply: string): void {
        if (this.handle === null) return;
        try {
            native.requestAnswer(this.handle, key, reply);
        } catch (error) {
            if (!(error instanceof InvalidError)) throw error;
            throw new InvalidError(
                `the answer to ${method} does not fit the requested form: ${reply}`,
            );
        }
    }

    private notAnswered(
        key: string,
        method: string,
        error: unknown,
        signal: AbortSignal,
    ): void {
        // the question was withdrawn, or its request has ended
        if (signal.aborted || isOver(error)) return;
        if (error instanceof Refused) {
            const text = `the client did not answer ${method}: ${error.message}`;
            this.refused = new RemoteError(text, { rpcCode: error.code });
            this.refuse(key, error.code, error.message);
            return;
        }
        const what = `the callback that answers ${method} failed: ${String(error)}`;
        this.refused = new RemoteError(what, { rpcCode: CANNOT_ANSWER, cause: error });
        if (method === ELICIT) this.cancelQuestion(key);
        else this.refuse(key, CANNOT_ANSWER, NO_ANSWER);
        this.session.failed(nameOf(method), error);
    }

    private cancelQuestion(key: string): void {
        if (this.handle === null) return;
        try {
            native.requestAnswer(this.handle, key, '{"action":"cancel"}');
        } catch (error) {
            if (!isOver(error)) throw error;
        }
    }

    private refuse(key: string, code: number, message: string): void {
        if (this.handle === null) return;
        try {
            native.requestAnswerError(this.handle, key, code, message);
        } catch (error) {
            if (error instanceof UnsupportedError) {
                // UnsupportedError means that this protocol revision cannot carry an
                // error as an answer. The request would wait for ever without an answer,
                // so the client cancels the request.
                this.cancel();
            } else if (!isOver(error)) {
                throw error;
            }
        }
    }

    // ---- called by a caller that waits for the end

    /**
     * Waits for the end of the request. Aborting the signal cancels the request. `wait`
     * then still waits for the end of the request, so that no event comes after `wait`.
     *
     * @throws the signal's reason, when the signal was aborted.
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

    /** Waits for the end of the request without keeping the process alive. Only one
     * caller may wait. */
    idle(): Promise<void> {
        if (this.outcome !== null) return Promise.resolve();
        return new Promise((resolve) => {
            this.resolve = resolve;
        });
    }

    /** Cancels the request. The end of the request comes later as an event. */
    cancel(): void {
        if (this.handle !== null && this.outcome === null) {
            try {
                native.requestCancel(this.handle);
            } catch (error) {
                if (!isOver(error)) throw error;
            }
        }
    }

    /**
     * Returns the error of a request that failed. The error is the same in all revisions
     * if the request failed because this client did not answer its question.
     */
    failure(): SegueError {
        const error = failure(this.outcome as Outcome, this.token());
        const { refused } = this;
        if (refused === null) return error;
        const isCause =
            Object.getPrototypeOf(error) === RemoteError.prototype
                ? refused.cause !== undefined && error.message === NO_ANSWER
                : error instanceof RequestCancelledError;
        if (isCause) refused.partial = error.partial;
        return isCause ? refused : error;
    }

    /** Returns the token that resumes the request after all segments that were
     * delivered. */
    token(): string | undefined {
        if (this.handle === null) return undefined;
        try {
            return native.requestToken(this.handle);
        } catch (error) {
            if (error instanceof NotResumableError || isOver(error)) return undefined;
            throw error;
        }
    }

    /**
     * Frees the library's handle of the request now, without waiting for the garbage
     * collector.
     */
    free(): void {
        if (this.handle !== null) {
            native.requestFree(this.handle);
            this.handle = null;
        }
    }
}
