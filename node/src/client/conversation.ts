/**
 * The base class of a session: its state, its requests and the events it receives.
 *
 *     connecting --> open <--> lost --> closed
 *
 * session.ts adds the methods for users.
 */

import { asyncDispose } from "../dispose.js";
import { ClosedError, fromInfo, type SegueError } from "../errors.js";
import { report } from "../failures.js";
import { type RawText, readText } from "../late.js";
import {
    type ErrorInfo,
    Kind,
    type Session as NativeSession,
    native,
    type RequestOptions as Wanted,
} from "../native.js";
import type { JsonObject } from "../questions.js";
import type { Runtime } from "../runtime.js";
import { wellFormed } from "../wellformed.js";
import type { Changes } from "./changes.js";
import type { Callbacks, Exchange, Progress } from "./exchange.js";
import { parseObject } from "./items.js";
import { isObject, type Peer, readPeer } from "./peer.js";
import { type Lane, Lanes, Promised } from "./promised.js";
import type { Answering } from "./questions.js";
import { Waiters } from "./waiting.js";

/** The levels of log messages, from the least to the most severe. */
export const LEVELS = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
] as const;
/** The level of a log message (specification: server/utilities/logging). */
export type LogLevel = (typeof LEVELS)[number];

/** Throws TypeError when the value is not the name of a log level. */
export function checkLevel(level: LogLevel): void {
    if (LEVELS.includes(level)) return;
    const known = LEVELS.join(", ");
    throw new TypeError(
        `unknown log level: ${JSON.stringify(level)}; the log levels are ${known}`,
    );
}

/** A log message of a server. */
export interface LogMessage {
    /** How severe it is. */
    level: LogLevel;
    /** Any JSON value. */
    data: unknown;
    /** Name of the logger of the server. */
    logger?: string;
}

/** The options that all requests have. */
export interface RequestOptions {
    /** Aborting the signal cancels the request, and the promise rejects with the signal's
     * `reason`. */
    signal?: AbortSignal | undefined;
    /**
     * Time limit for the whole request, in milliseconds; 0 = no limit. Default: the limit
     * of the session.
     */
    timeoutMs?: number | undefined;
    /**
     * Called with each progress report of the server. A call that has become a
     * task of 2026-07-28 sends no progress and no log messages; see `onStatus`.
     */
    onProgress?: ((progress: Progress) => unknown) | undefined;
    /**
     * Called with each log message for this request, instead of the session's `onLog`.
     */
    onLog?: ((message: LogMessage) => unknown) | undefined;
}

/** The options of a request that is sent by its method name. */
export interface RawRequestOptions extends RequestOptions {
    /** true = ask the server even if a cached result is still fresh. */
    noCache?: boolean | undefined;
}

/**
 * The argument of `onReconnect`: the server was lost or not reached, and the client will
 * try again.
 */
export interface Reconnect {
    /**
     * The number of this attempt. The first attempt after a loss or a success has the
     * number 1.
     */
    attempt: number;
    /** The pause before this attempt, in milliseconds. */
    delayMs: number;
    /**
     * Why the last attempt failed. Over HTTP, `reason` also names the request that is
     * tried again.
     */
    reason: string;
}

/** The callback that failed, as {@link ConnectOptions.onError} gets it. */
export interface CallbackFailure {
    /**
     * The name of the callback: "onProgress", "onLog", "onElicit", "roots", "auth",
     * "storage.load", ...
     */
    readonly callback: string;
}

/** The options of a session that concern its requests. */
export interface Manners {
    answers: Answering;
    onLog: ((message: LogMessage) => unknown) | undefined;
    logLevel: LogLevel | undefined;
    onNotification: ((method: string, params: JsonObject) => unknown) | undefined;
    onReconnect: ((reconnect: Reconnect) => unknown) | undefined;
    onError: ((error: unknown, failure: CallbackFailure) => unknown) | undefined;
    timeoutMs: number | undefined;
    throwOnError: boolean;
}

/** The transport of a session, with the functions that the session calls. */
export interface Line {
    /** Frees the resources of the transport. Called when the session has ended. */
    close(): void;
    /** Waits until the transport has closed. */
    closed(): Promise<void>;
}

const MOST = Number.MAX_SAFE_INTEGER;

/**
 * Converts a time limit in milliseconds to the form of the library, where the minimum is
 * 1. Returns undefined for undefined and for 0, which both mean no limit.
 */
export function milliseconds(time: number | undefined): number | undefined {
    if (time === undefined || time === 0) return undefined;
    if (!(time > 0))
        throw new RangeError(
            `a time limit has to be 0 or more milliseconds, not ${time}`,
        );
    return Math.max(1, Math.min(Math.round(time), MOST));
}

/**
 * The base class of sessions, without most methods for users; session.ts adds these
 * methods.
 */
export class Conversation {
    /** @internal */
    readonly runtime: Runtime;
    /** @internal */
    handle!: NativeSession;
    /** @internal */
    readonly answers: Answering;
    /** @internal */
    readonly changes = new Set<Changes>();
    /** How many times the session has connected. */
    connections = 0;
    /** Whether the session has ended. */
    isClosed = false;
    /**
     * @internal The reason why the last attempt to reach the server failed; "" = no
     * attempt failed.
     */
    lostBy = "";
    /** @internal */
    protected logLevel: LogLevel | undefined;
    /** @internal */
    protected readonly manners: Manners;
    private readonly line: Line;
    private readonly waiters: Waiters;
    private readonly lanes = new Lanes();
    private known: Peer | undefined;
    private error: SegueError | undefined;

    /** @internal */
    constructor(runtime: Runtime, line: Line, manners: Manners) {
        milliseconds(manners.timeoutMs);
        this.runtime = runtime;
        this.line = line;
        this.manners = manners;
        this.answers = manners.answers;
        this.logLevel = manners.logLevel;
        this.waiters = new Waiters(runtime);
    }

    /** The server's description of itself at the last connection. */
    get peer(): Peer {
        if (this.known === undefined)
            throw new ClosedError("the session is not connected yet");
        return this.known;
    }

    /** @internal The least severe level of log messages for which requests ask. */
    get levelOfLog(): LogLevel | undefined {
        return this.logLevel;
    }

    // ---- called by the binding

    /** @internal */
    onEvent(kind: number, a: unknown, b: unknown, c: unknown): void {
        if (kind === Kind.OPEN) {
            this.known = readPeer(native.sessionPeer(this.handle));
            this.connections += 1;
            this.waiters.wake();
        } else if (kind === Kind.NOTIFICATION) {
            this.notified(a as string, b as string | null);
        } else if (kind === Kind.RECONNECT) {
            const told = {
                attempt: a as number,
                delayMs: b as number,
                reason: c as string,
            };
            this.lostBy = told.reason;
            this.run("onReconnect", this.manners.onReconnect, told);
        } else if (kind === Kind.CLOSED) {
            this.ended(a as ErrorInfo | null);
        }
    }

    private ended(info: ErrorInfo | null): void {
        this.isClosed = true;
        native.sessionFree(this.handle);
        if (info !== null) this.error = fromInfo(info);
        for (const changes of [...this.changes]) changes.closed(this.error);
        this.line.close();
        this.waiters.wake();
    }

    private notified(method: string, raw: string | null): void {
        const params = parsed(raw);
        if (method === "notifications/message") this.tellLog(undefined, raw || "{}");
        for (const changes of [...this.changes]) changes.notified(method, params);
        this.run("onNotification", this.manners.onNotification, method, params);
    }

    /**
     * Delivers a log message. `callback` is the callback of the request that the message
     * belongs to.
     *
     * @internal
     */
    tellLog(callback: ((message: LogMessage) => unknown) | undefined, raw: string): void {
        const listener = callback ?? this.manners.onLog;
        if (listener === undefined) return;
        const told = parsed(raw);
        const level = LEVELS.find((one) => one === told.level) ?? "info";
        const message: LogMessage = { level, data: told.data };
        if (typeof told.logger === "string") message.logger = told.logger;
        this.run("onLog", listener, message);
    }

    // ---- callbacks of the user

    /**
     * Runs a callback of the user, if there is one. If the callback returns a promise,
     * `run` does not wait for the promise. The failure of the callback is reported.
     *
     * @param name - the name of the callback, for the report.
     * @internal
     */
    run<A extends unknown[]>(
        name: string,
        callback: ((...args: A) => unknown) | undefined,
        ...args: A
    ): void {
        if (callback === undefined) return;
        const failed = (error: unknown): void => this.failed(name, error);
        try {
            const given = callback(...args) as { then?: unknown } | undefined;
            if (typeof given?.then === "function") Promise.resolve(given).catch(failed);
        } catch (error) {
            failed(error);
        }
    }

    /**
     * Makes a function whose answer the library needs at once: the callback of the user,
     * whose failure is reported. The answer is then `otherwise`.
     *
     * @internal
     */
    hook<A extends unknown[], R, O>(
        name: string,
        callback: (...args: A) => R,
        otherwise: O,
    ): (...args: A) => R | O {
        return (...args) => {
            try {
                return callback(...args);
            } catch (error) {
                this.failed(name, error);
                return otherwise;
            }
        };
    }

    /**
     * Reports the failure of a callback to `onError`, because no caller waits for the
     * callback.
     *
     * @internal
     */
    failed(callback: string, error: unknown): void {
        const { onError } = this.manners;
        report(onError, error, { callback }, `the callback ${callback}`);
    }

    // ---- the session's life

    /**
     * Waits for the first connection.
     *
     * @internal
     */
    async opened(signal?: AbortSignal): Promise<void> {
        while (this.connections === 0) {
            if (this.isClosed) throw this.error ?? new ClosedError();
            await this.waiters.change(signal);
        }
    }

    /**
     * Waits until the session has connected more than `connections` times, or has ended.
     * The wait does not keep the process alive.
     *
     * @internal
     */
    async reconnected(connections: number): Promise<void> {
        while (this.connections <= connections && !this.isClosed) {
            await this.waiters.idle();
        }
    }

    /**
     * Ends the session and waits until it has ended. Running calls end with
     * `ClosedError`, and a child process is shut down. Tasks on the server continue. A
     * second call only waits.
     */
    async close(): Promise<void> {
        if (!this.isClosed) native.sessionClose(this.handle);
        while (!this.isClosed) await this.waiters.change();
        await this.line.closed();
    }

    /**
     * Waits until this side or the server has ended the session.
     *
     * @throws the error that ended the session, if this side did not close the session.
     */
    async waitClosed(options: { signal?: AbortSignal } = {}): Promise<void> {
        while (!this.isClosed) await this.waiters.change(options.signal);
        if (this.error !== undefined) throw this.error;
    }

    /** Does the same as {@link close}: `await using session = await connect(...)`. */
    async [asyncDispose](): Promise<void> {
        await this.close();
    }

    // ---- requests

    /**
     * Sends a request. The exchange receives the events of the request.
     *
     * @internal
     */
    send(
        exchange: Exchange,
        method: string,
        params: string | null,
        options: Wanted | null,
    ): void {
        this.runtime.cork();
        exchange.handle = native.requestStart(
            this.handle,
            method,
            params,
            options,
            exchange.handler(),
            exchange.events(),
        );
    }

    /**
     * Sends a request and returns a promise of the value that `finish` makes from the
     * result.
     *
     * @internal
     */
    protected promise<T>(
        method: string,
        params: string | null,
        options: Wanted | null,
        callbacks: Callbacks | undefined,
        signal: AbortSignal | undefined,
        finish: (raw: RawText, saysError: boolean) => T,
    ): Promise<T> {
        return new Promise((resolve) => {
            signal?.throwIfAborted();
            const asked = new Promised<T>(this, callbacks, resolve, finish, signal);
            // If `sendBy` throws, the lane (a native handle with its handler) is dropped.
            // Only a request that was sent returns its lane to this.lanes (promised.ts).
            const lane = this.lanes.take();
            this.sendBy(lane, method, params, options, asked.events());
            asked.begun(lane);
        });
    }

    private sendBy(
        lane: Lane,
        method: string,
        params: string | null,
        options: Wanted | null,
        events: number,
    ): void {
        const { handle } = this;
        this.runtime.cork();
        if (lane.handle !== null) {
            native.requestAgain(lane.handle, handle, method, params, options, events);
        } else {
            lane.handle = native.requestStart(
                handle,
                method,
                params,
                options,
                lane.handler,
                events,
                true,
            );
        }
    }

    /** @internal */
    giveBack(lane: Lane): void {
        this.lanes.put(lane);
    }

    /**
     * Sends any request and returns its result as JSON text.
     *
     * @param method - the method's name, such as `"tools/list"` or a name of your own.
     * @param params - the params of the request. The library adds the `_meta` members
     * that the protocol needs.
     * @throws RemoteError: the server answered with an error.
     * @throws SegueError: any other failure.
     */
    async requestRaw(
        method: string,
        params?: object | null,
        options: RawRequestOptions = {},
    ): Promise<string> {
        const wanted = this.wanted(options.timeoutMs);
        if (options.noCache) wanted.noCache = true;
        const callbacks = this.callbacks(options);
        const raw = params ? wellFormed(JSON.stringify(params)) : null;
        return this.promise(method, raw, wanted, callbacks, options.signal, readText);
    }

    /** Sends any request and returns its result as an object. */
    async request(
        method: string,
        params?: object | null,
        options: RawRequestOptions = {},
    ): Promise<JsonObject> {
        return parseObject(await this.requestRaw(method, params, options), method);
    }

    /** @internal */
    protected callbacks(options: Callbacks): Callbacks | undefined {
        const { onProgress, onStatus, answers } = options;
        const onLog =
            options.onLog ??
            (this.logLevel === undefined ? undefined : this.manners.onLog);
        if (!onProgress && !onLog && !onStatus && !answers) return undefined;
        return { onProgress, onLog, onStatus, answers };
    }

    /**
     * Returns the library's options for a request that has no options of its own. The
     * value is null when the session changes no option, because the binding handles null
     * faster than an empty object.
     *
     * @internal
     */
    protected usual(): Wanted | null {
        const isPlain =
            this.manners.timeoutMs === undefined && this.logLevel === undefined;
        return isPlain ? null : this.wanted(undefined);
    }

    /** @internal */
    protected wanted(timeoutMs: number | undefined): Wanted {
        const made: Wanted = {};
        const ms = milliseconds(timeoutMs ?? this.manners.timeoutMs);
        if (ms !== undefined) made.timeoutMs = ms;
        if (this.logLevel !== undefined) made.logLevel = this.logLevel;
        return made;
    }
}

function parsed(raw: string | null): JsonObject {
    if (!raw) return {};
    const told: unknown = JSON.parse(raw);
    return isObject(told) ? told : {};
}
