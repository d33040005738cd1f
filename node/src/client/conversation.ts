/**
 * What a session is before it knows any method: its life, its requests, what it is told.
 *
 *     connecting --> open <--> lost --> closed
 *
 * session.ts has what users see of it.
 */

import { asyncDispose } from "../dispose.js";
import { ClosedError, fromInfo, InvalidError, type SegueError } from "../errors.js";
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

/** The levels of log messages, the least first. */
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
/** A level of log messages (server/utilities/logging). */
export type LogLevel = (typeof LEVELS)[number];

/** What a server logs. */
export interface LogMessage {
    level: LogLevel;
    /** Any value of JSON. */
    data: unknown;
    logger?: string;
}

/** What all requests can be told. */
export interface RequestOptions {
    /** Aborting it cancels the request; the promise rejects with its `reason`. */
    signal?: AbortSignal | undefined;
    /** Milliseconds for all of it; 0 = as long as it takes. Default: the session's. */
    timeoutMs?: number | undefined;
    /** Gets what the server tells about how far it is. */
    onProgress?: ((progress: Progress) => unknown) | undefined;
    /** Gets what the server logs for this request, instead of the session's `onLog`. */
    onLog?: ((message: LogMessage) => unknown) | undefined;
}

/** Of a request by its method. */
export interface RawRequestOptions extends RequestOptions {
    /** Ask the server, also when a result of before is fresh. */
    noCache?: boolean | undefined;
}

/** The server was lost, or could not be reached, and is tried again. */
export interface Reconnect {
    /** Which one in a row, from 1 on. */
    attempt: number;
    /** So long until then. */
    delayMs: number;
    /** What happened; over HTTP with the request that tries. */
    reason: string;
}

/** The part of a session's options that concerns its requests. */
export interface Manners {
    answers: Answering;
    onLog: ((message: LogMessage) => unknown) | undefined;
    logLevel: LogLevel | undefined;
    onNotification: ((method: string, params: JsonObject) => unknown) | undefined;
    onReconnect: ((reconnect: Reconnect) => unknown) | undefined;
    timeoutMs: number | undefined;
    throwOnError: boolean;
}

/** What a session stands on. */
export interface Line {
    /** The session has ended. */
    close(): void;
    /** Waits until that is done. */
    closed(): Promise<void>;
}

const MOST = Number.MAX_SAFE_INTEGER;

/** For the library: at least one; nothing stays nothing, and so does 0. */
export function milliseconds(time: number | undefined): number | undefined {
    if (time === undefined || time === 0) return undefined;
    if (!(time > 0)) throw new RangeError(`not a time in milliseconds: ${time}`);
    return Math.max(1, Math.min(Math.round(time), MOST));
}

/** See session.ts. */
export class Conversation {
    /** @internal */
    readonly runtime: Runtime;
    /** @internal */
    handle!: NativeSession;
    /** @internal */
    readonly answers: Answering;
    /** @internal */
    readonly changes = new Set<Changes>();
    /** How often it has connected. */
    connections = 0;
    /** Whether it has ended. */
    isClosed = false;
    /** @internal Why the last attempt to reach the server failed. */
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

    /** The server, as it said who it is at the last connection. */
    get peer(): Peer {
        if (this.known === undefined) throw new ClosedError("there is no connection yet");
        return this.known;
    }

    /** @internal From which level on log messages are asked for. */
    get levelOfLog(): LogLevel | undefined {
        return this.logLevel;
    }

    // ---- from the binding

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
            if (this.manners.onReconnect) this.run(this.manners.onReconnect, told);
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
        if (this.manners.onNotification !== undefined) {
            this.run(this.manners.onNotification, method, params);
        }
    }

    /**
     * A log message came; `callback` is that of the request it belongs to.
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
        this.run(listener, message);
    }

    // ---- callbacks of the user

    /**
     * Runs a callback; what it awaits goes on by itself.
     *
     * @internal
     */
    run<A extends unknown[]>(callback: (...args: A) => unknown, ...args: A): void {
        try {
            const given = callback(...args) as { then?: unknown } | undefined;
            if (typeof given?.then === "function") {
                Promise.resolve(given).catch((error: unknown) => this.failed(error));
            }
        } catch (error) {
            this.failed(error);
        }
    }

    /**
     * Something of the user failed where nobody waits for it: an uncaught exception.
     *
     * @internal
     */
    failed(error: unknown): void {
        this.runtime.report(error);
    }

    // ---- its life

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
     * Waits until there is a newer connection than that, or the end; which keeps no
     * process alive.
     *
     * @internal
     */
    async reconnected(connections: number): Promise<void> {
        while (this.connections <= connections && !this.isClosed) {
            await this.waiters.idle();
        }
    }

    /**
     * Ends the conversation, and waits for that: calls that run end with `ClosedError`, a
     * child process is shut down. Tasks on the server go on. It may be said twice.
     */
    async close(): Promise<void> {
        if (!this.isClosed) native.sessionClose(this.handle);
        while (!this.isClosed) await this.waiters.change();
        await this.line.closed();
    }

    /**
     * Waits for the end, whoever brings it.
     *
     * @throws why it has ended, if it was not closed on this side.
     */
    async waitClosed(options: { signal?: AbortSignal } = {}): Promise<void> {
        while (!this.isClosed) await this.waiters.change(options.signal);
        if (this.error !== undefined) throw this.error;
    }

    /** The same as {@link close}: `await using session = await connect(...)`. */
    async [asyncDispose](): Promise<void> {
        await this.close();
    }

    // ---- requests

    /**
     * Sends a request; its events go to the exchange.
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
     * Sends a request and waits for what `finish` makes of its result.
     *
     * @internal
     */
    protected promise<T>(
        method: string,
        params: string | null,
        options: Wanted | null,
        callbacks: Callbacks | undefined,
        signal: AbortSignal | undefined,
        finish: (raw: string) => T,
    ): Promise<T> {
        return new Promise((resolve) => {
            signal?.throwIfAborted();
            const asked = new Promised<T>(this, callbacks, resolve, finish, signal);
            const lane = this.lanes.take(); // one that fails does not come back
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
     * Sends any request; the result as JSON text.
     *
     * @param method - such as `"tools/list"`, or one of your own.
     * @param params - the protocol adds its members of `_meta`.
     * @throws RemoteError: the server answered with an error.
     * @throws SegueError: any other end.
     */
    async requestRaw(
        method: string,
        params?: object | null,
        options: RawRequestOptions = {},
    ): Promise<string> {
        // for the library such a one asks nothing, and has no end of its own
        if (method === "") throw new InvalidError("a request without a method");
        const wanted = this.wanted(options.timeoutMs);
        if (options.noCache) wanted.noCache = true;
        const callbacks = this.callbacks(options);
        const raw = params ? wellFormed(JSON.stringify(params)) : null;
        return this.promise(method, raw, wanted, callbacks, options.signal, asItIs);
    }

    /** Sends any request; the result as an object. */
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

    /** What a request without options of its own wants; null costs the binding less than
     * an object without members.
     *
     * @internal */
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

function asItIs(raw: string): string {
    return raw;
}

function parsed(raw: string | null): JsonObject {
    if (!raw) return {};
    const told: unknown = JSON.parse(raw);
    return isObject(told) ? told : {};
}
