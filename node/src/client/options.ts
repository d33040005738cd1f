/** What a session can be told when it is opened, and what the library is told of it. */

import type { HttpOptions, SessionOptions, Validate } from "../native.js";
import type { JsonObject } from "../questions.js";
import type { OAuth } from "./auth.js";
import {
    LEVELS,
    type LogLevel,
    type LogMessage,
    milliseconds,
    type Reconnect,
} from "./conversation.js";
import { modesOf, type ResponseMode } from "./modes.js";
import { type Answering, type AnswerOptions, Answers } from "./questions.js";

const ERAS = { auto: 0, modern: 1, legacy: 2 } as const;
/** segue_dialect */
const DRAFT_TASKS = 4;
const PARTIAL = 32;
const PARTIAL_RESULTS = 64;
const RESUMABLE = 128;
/** Requests at once: promises cost little, who has them may. */
const MANY = 100_000;

/**
 * Tells what is wrong with the structured content of a result, by the `outputSchema` that
 * the tool has told (in `listTools`); nothing when it fits.
 */
export type ValidateResult = (
    tool: string,
    schema: JsonObject,
    value: unknown,
    // biome-ignore lint/suspicious/noConfusingVoidType: a callback need not return
) => string | null | undefined | void;

/** TLS of an HTTP connection; files are PEM. */
export interface TlsOptions {
    /** Certificates to trust instead of the system's. */
    caFile?: string | undefined;
    /** The client's certificate. */
    certFile?: string | undefined;
    keyFile?: string | undefined;
    keyPassword?: string | undefined;
    /** false = certificates are not verified. */
    rejectUnauthorized?: boolean | undefined;
}

/** The options of `connect` and `resume`. Callbacks are plain or async. */
export interface ConnectOptions extends AnswerOptions {
    // ---- what the server tells

    /** Gets each log message; asks for them from `logLevel` on. */
    onLog?: ((message: LogMessage) => unknown) | undefined;
    /** Default `"info"` when there is an `onLog`. */
    logLevel?: LogLevel | undefined;
    /** Gets method and params of what belongs to no request. */
    onNotification?: ((method: string, params: JsonObject) => unknown) | undefined;
    /** Gets told when the server was lost and is tried again. */
    onReconnect?: ((reconnect: Reconnect) => unknown) | undefined;
    /** Gets each line of a child's standard error, which else is ours. */
    onStderr?: ((line: string) => unknown) | undefined;

    // ---- calls

    /** Of calls and other requests, each as a whole, in milliseconds; default: none. */
    timeoutMs?: number | undefined;
    /** Results with `isError` are thrown as `ToolError`; default true. */
    throwOnError?: boolean | undefined;
    /** Checks structured results. */
    validate?: ValidateResult | undefined;

    // ---- the connection

    /** Aborting it gives up connecting. */
    signal?: AbortSignal | undefined;
    /** Of each HTTP request. */
    headers?: { readonly [name: string]: string } | undefined;
    /**
     * A bearer token; {@link OAuth}; or a function that gets 0, or the status 401 or 403
     * that its last token was refused with, and returns a token or nothing. It is called
     * while the library waits, and must be quick.
     */
    auth?: string | OAuth | ((status: number) => string | null | undefined) | undefined;
    /** For the first connection, in milliseconds; 0 = as long as it takes; default
     * 30,000. */
    connectTimeoutMs?: number | undefined;
    /** For the first connection; default 1. */
    connectAttempts?: number | undefined;
    /** Of one exchange on the wire, in milliseconds; default 60,000. */
    requestTimeoutMs?: number | undefined;
    /** A server that says nothing to `server/discover` for so long, over stdio, is one of
     * the handshake eras; in milliseconds, default 5,000. */
    probeTimeoutMs?: number | undefined;
    /** Attempts in a row to connect again, -1 = none; default 20. So often `tasks/get`,
     * `tasks/update` and `tasks/result` that fail are sent again, each by itself. */
    maxReconnects?: number | undefined;
    /** So long, in milliseconds, a server that is lost is tried to be reached again, over
     * HTTP by each request; then that ends with a `DisconnectedError`. `Infinity` = as
     * long as `maxReconnects` allows; default 60,000. */
    reconnectTimeoutMs?: number | undefined;
    tls?: TlsOptions | undefined;
    /** Its URL; "" = none. Default: of the environment. */
    proxy?: string | undefined;
    /** Connect there, whatever host the URL names. */
    unixSocket?: string | undefined;
    /** false = HTTP/1.1 only. */
    http2?: boolean | undefined;
    /** To one server at once; default: of the library. */
    maxConnections?: number | undefined;
    /** A stream that is silent for so long, in milliseconds, is taken for broken. */
    silenceTimeoutMs?: number | undefined;
    /** Variables of a child process, beside our own. */
    env?: { readonly [name: string]: string | undefined } | undefined;
    /** Its directory. */
    cwd?: string | undefined;
    /** false = a child that ends is not started again; default true. */
    restart?: boolean | undefined;

    // ---- the protocol

    /** `"auto"`, `"modern"` (2026-07-28 only), or `"legacy"` (initialize only). */
    era?: "auto" | "modern" | "legacy" | undefined;
    /** Of this client. */
    name?: string | undefined;
    version?: string | undefined;
    /** More of them, as JSON has them. */
    capabilities?: JsonObject | undefined;
    /** false = no tasks are declared or asked for. */
    tasks?: boolean | undefined;
    /**
     * How a server of 2025-11-25 may answer calls that it can run as tasks (SEP-1905);
     * default: `["task", "immediate", "streaming"]`.
     */
    responseModes?: readonly ResponseMode[] | undefined;
    /** false = segments of plain calls are not asked for. */
    streaming?: boolean | undefined;
    /** Offer DRAFT-2026-v1 (SEP-2557). */
    draftTasks?: boolean | undefined;
    /** Take servers of SEP-975 at their word; default true. */
    resumable?: boolean | undefined;
    /** false = no idempotency keys. */
    idempotency?: boolean | undefined;
    /** What an accepted form leaves out has the default of its schema. */
    fillDefaults?: boolean | undefined;
    /** Of results that are kept while they are fresh; -1 = none. */
    cacheBytes?: number | undefined;
    /** In flight at once; default 100,000. */
    maxRequests?: number | undefined;
    /** Of one result that is collected; default 64 MiB. */
    maxResultBytes?: number | undefined;
}

const KNOWN: Record<keyof ConnectOptions, true> = {
    auth: true,
    cacheBytes: true,
    capabilities: true,
    connectAttempts: true,
    connectTimeoutMs: true,
    cwd: true,
    draftTasks: true,
    env: true,
    era: true,
    fillDefaults: true,
    headers: true,
    http2: true,
    idempotency: true,
    logLevel: true,
    maxConnections: true,
    maxReconnects: true,
    maxRequests: true,
    maxResultBytes: true,
    name: true,
    onElicit: true,
    onInput: true,
    onLog: true,
    onNotification: true,
    onReconnect: true,
    onSample: true,
    onStderr: true,
    probeTimeoutMs: true,
    proxy: true,
    reconnectTimeoutMs: true,
    requestTimeoutMs: true,
    responseModes: true,
    restart: true,
    resumable: true,
    roots: true,
    signal: true,
    silenceTimeoutMs: true,
    streaming: true,
    tasks: true,
    throwOnError: true,
    timeoutMs: true,
    tls: true,
    unixSocket: true,
    validate: true,
    version: true,
};

/**
 * Refuses what is no option.
 *
 * @throws TypeError: one is none, or a callback is no function.
 */
export function check(options: ConnectOptions): void {
    if (typeof options !== "object" || options === null) {
        throw new TypeError(`options are an object, not ${String(options)}`);
    }
    for (const name in options) {
        if (!Object.hasOwn(KNOWN, name)) {
            throw new TypeError(`connect() has no option ${JSON.stringify(name)}`);
        }
        const given = options[name as keyof ConnectOptions];
        if (name.startsWith("on") && given !== undefined && typeof given !== "function") {
            throw new TypeError(`${name} is a function, not ${String(given)}`);
        }
    }
    const { logLevel, era = "auto" } = options;
    if (logLevel !== undefined && !LEVELS.includes(logLevel)) {
        throw new TypeError(`no level of a log: ${JSON.stringify(logLevel)}`);
    }
    if (!Object.hasOwn(ERAS, era)) {
        throw new TypeError(`no such era: ${JSON.stringify(era)}`);
    }
    modesOf(options.responseModes);
}

/** Of `segue_transport_http`. */
export function httpOptions(options: ConnectOptions): HttpOptions {
    const { tls = {} } = options;
    return {
        caFile: tls.caFile,
        certFile: tls.certFile,
        keyFile: tls.keyFile,
        keyPassword: tls.keyPassword,
        insecure: tls.rejectUnauthorized === false,
        proxy: options.proxy,
        unixSocket: options.unixSocket,
        http1: options.http2 === false,
        maxConnections: options.maxConnections,
        connectTimeoutMs: options.connectTimeoutMs,
        silenceTimeoutMs: options.silenceTimeoutMs,
    };
}

/** Of `segue_session_open`. */
export function sessionOptions(
    options: ConnectOptions,
    answers: Answering,
): SessionOptions {
    const can = { ...answers.capabilities(), ...options.capabilities };
    const on = options.resumable === false ? 0 : RESUMABLE;
    return {
        name: options.name,
        version: options.version,
        capabilities: Object.keys(can).length > 0 ? JSON.stringify(can) : undefined,
        era: ERAS[options.era ?? "auto"],
        requestTimeoutMs: options.requestTimeoutMs,
        probeTimeoutMs: options.probeTimeoutMs,
        maxReconnects: options.maxReconnects,
        reconnectTimeoutMs:
            options.reconnectTimeoutMs === Infinity
                ? -1
                : milliseconds(options.reconnectTimeoutMs),
        firstAttempts: options.connectAttempts ?? 1,
        maxResultBytes: options.maxResultBytes,
        maxRequests: options.maxRequests ?? MANY,
        noIdempotency: options.idempotency === false,
        noTasks: options.tasks === false,
        fillDefaults: options.fillDefaults === true,
        cacheBytes: options.cacheBytes,
        dialectsOff: options.streaming === false ? PARTIAL | PARTIAL_RESULTS : 0,
        dialectsOn: on | (options.draftTasks ? DRAFT_TASKS : 0),
        responseModes: modesOf(options.responseModes),
    };
}

/** The hook of the library, of the user's. */
export function validator(validate: ValidateResult): Validate {
    return (tool, _what, schema, value) =>
        validate(tool, JSON.parse(schema) as JsonObject, JSON.parse(value)) ?? null;
}

/** Who answers. */
export function answersOf(options: ConnectOptions): Answering {
    return new Answers(options);
}
