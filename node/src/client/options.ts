/** The options of a session, and their conversion to the library's options. */

import { checkOptionTypes, type OptionTypes } from "../names.js";
import type { HttpOptions, SessionOptions, Validate } from "../native.js";
import type { JsonObject } from "../questions.js";
import type { OAuth } from "./auth.js";
import {
    type CallbackFailure,
    checkLevel,
    type LogLevel,
    type LogMessage,
    milliseconds,
    type Reconnect,
} from "./conversation.js";
import { modesOf, type ResponseMode } from "./modes.js";
import { type Answering, type AnswerOptions, Answers } from "./questions.js";
import type { Session } from "./session.js";

const ERAS = { auto: 0, modern: 1, legacy: 2 } as const;
const HTTP_SSE = { auto: 0, never: 1, only: 2 } as const;
/** The next four constants are flags of the C enum segue_dialect. */
const DRAFT_TASKS = 4;
const PARTIAL = 32;
const PARTIAL_RESULTS = 64;
const RESUMABLE = 128;
/** The answer of a validation hook that cannot check a value. */
const UNCHECKED = false;
/**
 * Checks the structured content of a result against the tool's `outputSchema` (from
 * `listTools`). Returns a text that says what is wrong, or nothing when the content fits.
 */
export type ValidateResult = (
    tool: string,
    schema: JsonObject,
    value: unknown,
    // biome-ignore lint/suspicious/noConfusingVoidType: a callback need not return
) => string | null | undefined | void;

/** TLS options of an HTTP connection. Files are in PEM format. */
export interface TlsOptions {
    /** Certificates to trust instead of the system's certificates. */
    caFile?: string | undefined;
    /** The client's certificate. */
    certFile?: string | undefined;
    /** File of the key (PEM). */
    keyFile?: string | undefined;
    /** Password of the key. */
    keyPassword?: string | undefined;
    /** false = certificates are not verified. */
    rejectUnauthorized?: boolean | undefined;
}

/** The options of `connect` and `resume`. Callbacks may be plain or async functions. */
export interface ConnectOptions extends AnswerOptions {
    // ---- callbacks for events

    /**
     * Called with each log message. If this callback is set, the client asks the server
     * for messages from `logLevel` on.
     */
    onLog?: ((message: LogMessage) => unknown) | undefined;
    /**
     * The least severe level of the log messages that the client asks for. Default:
     * `"info"` when `onLog` is set.
     */
    logLevel?: LogLevel | undefined;
    /** Called with the method and params of each notification that belongs to no
     * request. */
    onNotification?: ((method: string, params: JsonObject) => unknown) | undefined;
    /** Called when the server was lost and the client tries to connect again. */
    onReconnect?: ((reconnect: Reconnect) => unknown) | undefined;
    /** Called with each line that a child process writes to its standard error; `close`
     * waits until the child has ended and its last line was passed on. Without this
     * callback the child writes to the standard error of this process. */
    onStderr?: ((line: string) => unknown) | undefined;

    /**
     * Called with the error of a callback that failed: one that threw, or whose promise
     * was rejected. The calls of the session go on. Without this callback the error is
     * printed to standard error.
     */
    onError?: ((error: unknown, failure: CallbackFailure) => unknown) | undefined;

    // ---- calls

    /**
     * Time limit for each call or other request as a whole, in milliseconds; default: no
     * limit.
     */
    timeoutMs?: number | undefined;
    /** true = a result with `isError` is thrown as a `ToolError`. Default true. */
    throwOnError?: boolean | undefined;
    /** Checks the structured content of results. */
    validate?: ValidateResult | undefined;

    // ---- the connection

    /** Aborting the signal stops the attempt to connect. */
    signal?: AbortSignal | undefined;
    /** Headers that are added to each HTTP request. */
    headers?: { readonly [name: string]: string } | undefined;
    /**
     * A bearer token, an {@link OAuth}, or a function that returns a token or nothing.
     * The argument of the function is 401 or 403 when the server refused the last token
     * with this status, otherwise 0. The library waits while the function runs, so the
     * function must be quick.
     */
    auth?: string | OAuth | ((status: number) => string | null | undefined) | undefined;
    /**
     * Time limit for the first connection, in milliseconds; 0 = no limit; default 30,000.
     */
    connectTimeoutMs?: number | undefined;
    /** Maximum number of attempts to make the first connection; default 1. */
    connectAttempts?: number | undefined;
    /**
     * Time limit for one request and its answer on the wire, in milliseconds; default
     * 60,000.
     */
    requestTimeoutMs?: number | undefined;
    /** How long a server over stdio may take to answer `server/discover`, in
     * milliseconds; default 5,000. A server that does not answer in time gets
     * `initialize` instead. */
    probeTimeoutMs?: number | undefined;
    /**
     * Maximum number of attempts in a row to connect again; -1 = no attempt; default 20.
     * The same maximum applies to repeating a failed `tasks/get`, `tasks/update` or
     * `tasks/result` request, which is counted separately.
     */
    maxReconnects?: number | undefined;
    /**
     * How long the client tries to reach a lost server, in milliseconds. Over HTTP each
     * request has a time of its own. After this time, requests end with a
     * `DisconnectedError`. `Infinity` = only `maxReconnects` is the limit. Default
     * 60,000.
     */
    reconnectTimeoutMs?: number | undefined;
    /** Certificates and keys. */
    tls?: TlsOptions | undefined;
    /** The URL of a proxy; "" = no proxy. Default: the proxy of the environment
     * variables. */
    proxy?: string | undefined;
    /**
     * The path of a Unix socket to connect to. The host of the URL is then not used to
     * connect.
     */
    unixSocket?: string | undefined;
    /** false = use HTTP/1.1 only. */
    http2?: boolean | undefined;
    /**
     * Whether the client speaks HTTP+SSE of 2024-11-05: `"auto"` (default) = if the
     * server refuses `initialize` with 400, 404 or 405; `"never"`; `"only"` = the URL is
     * that of the event stream, and nothing else is tried.
     */
    httpSse?: keyof typeof HTTP_SSE | undefined;
    /**
     * Maximum number of connections to one server. Default: the default of the library.
     */
    maxConnections?: number | undefined;
    /**
     * Time in milliseconds. A stream on which nothing arrives for this time counts as
     * broken.
     */
    silenceTimeoutMs?: number | undefined;
    /**
     * Environment variables of a child process, which are added to the environment of
     * this process.
     */
    env?: { readonly [name: string]: string | undefined } | undefined;
    /** The working directory of a child process. */
    cwd?: string | undefined;
    /** true = a child process that ends is started again. Default true. */
    restart?: boolean | undefined;

    // ---- the protocol

    /**
     * The revisions that the client speaks: `"modern"` = 2026-07-28 only, `"legacy"` =
     * revisions with `initialize` only, `"auto"` (the default) = all.
     */
    era?: "auto" | "modern" | "legacy" | undefined;
    /** The name of this client. */
    name?: string | undefined;
    /** Version of this client. */
    version?: string | undefined;
    /** More capabilities that the client declares, as a JSON object. */
    capabilities?: JsonObject | undefined;
    /** false = the client does not declare tasks and does not ask for tasks. */
    tasks?: boolean | undefined;
    /**
     * How a server of 2025-11-25 may answer calls that it can run as tasks (SEP-1905);
     * default: `["task", "immediate", "streaming"]`.
     */
    responseModes?: readonly ResponseMode[] | undefined;
    /** false = the client does not ask for segments of plain calls. */
    streaming?: boolean | undefined;
    /** true = the client offers DRAFT-2026-v1 (SEP-2557). */
    draftTasks?: boolean | undefined;
    /**
     * true = after a broken connection, the client can fetch the rest of an answer
     * (SEP-975). Only servers of revisions before 2026-07-28 offer SEP-975. Default true.
     */
    resumable?: boolean | undefined;
    /** false = calls carry no idempotency keys. */
    idempotency?: boolean | undefined;
    /**
     * true = members that are missing in an accepted form get the defaults of the form's
     * schema.
     */
    fillDefaults?: boolean | undefined;
    /** Maximum size of the cache of fresh results, in bytes; -1 = no cache. */
    cacheBytes?: number | undefined;
    /** Maximum number of requests that run at the same time; default 65,536. */
    maxRequests?: number | undefined;
    /** Maximum size of a result that is collected in memory, in bytes; default 64 MiB. */
    maxResultBytes?: number | undefined;
}

const TYPES: OptionTypes<ConnectOptions> = {
    auth: undefined,
    cacheBytes: "number",
    capabilities: undefined,
    connectAttempts: "number",
    connectTimeoutMs: "number",
    cwd: "string",
    draftTasks: "boolean",
    env: undefined,
    era: undefined,
    fillDefaults: "boolean",
    headers: undefined,
    http2: "boolean",
    httpSse: undefined,
    idempotency: "boolean",
    logLevel: undefined,
    maxConnections: "number",
    maxReconnects: "number",
    maxRequests: "number",
    maxResultBytes: "number",
    name: "string",
    onElicit: "function",
    onError: "function",
    onInput: "function",
    onLog: "function",
    onNotification: "function",
    onReconnect: "function",
    onSample: "function",
    onStderr: "function",
    probeTimeoutMs: "number",
    proxy: "string",
    reconnectTimeoutMs: "number",
    requestTimeoutMs: "number",
    responseModes: undefined,
    restart: "boolean",
    resumable: "boolean",
    roots: undefined,
    signal: undefined,
    silenceTimeoutMs: "number",
    streaming: "boolean",
    tasks: "boolean",
    throwOnError: "boolean",
    timeoutMs: "number",
    /** Certificates and keys. */
    tls: undefined,
    unixSocket: "string",
    validate: "function",
    /** Version of this client. */
    version: "string",
};
const TLS_TYPES: OptionTypes<TlsOptions> = {
    caFile: "string",
    certFile: "string",
    keyFile: "string",
    keyPassword: "string",
    rejectUnauthorized: "boolean",
};

/**
 * Refuses invalid options.
 *
 * @throws TypeError: an option is unknown, or a callback is not a function.
 */
export function check(options: ConnectOptions): void {
    checkOptionTypes("connect()", options, TYPES);
    if (options.tls !== undefined)
        checkOptionTypes("tls of connect()", options.tls, TLS_TYPES);
    const { logLevel, era = "auto" } = options;
    if (logLevel !== undefined) checkLevel(logLevel);
    if (!Object.hasOwn(ERAS, era)) {
        const known = Object.keys(ERAS).join(", ");
        throw new TypeError(`unknown era: ${JSON.stringify(era)}; the eras are ${known}`);
    }
    const { httpSse = "auto" } = options;
    if (!Object.hasOwn(HTTP_SSE, httpSse)) {
        const known = Object.keys(HTTP_SSE).join(", ");
        throw new TypeError(
            `unknown httpSse: ${JSON.stringify(httpSse)}; it is one of ${known}`,
        );
    }
    modesOf(options.responseModes);
}

/** Makes the options for `segue_transport_http`. */
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
        httpSse: HTTP_SSE[options.httpSse ?? "auto"],
    };
}

/** Makes the options for `segue_session_open`. */
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
        maxRequests: options.maxRequests,
        noIdempotency: options.idempotency === false,
        noTasks: options.tasks === false,
        fillDefaults: options.fillDefaults === true,
        cacheBytes: options.cacheBytes,
        dialectsOff: options.streaming === false ? PARTIAL | PARTIAL_RESULTS : 0,
        dialectsOn: on | (options.draftTasks ? DRAFT_TASKS : 0),
        responseModes: modesOf(options.responseModes),
    };
}

/**
 * Makes the library's validation hook from the user's function. If the function fails,
 * the call fails, because its result cannot be checked.
 */
export function validator(session: Session, validate: ValidateResult): Validate {
    const check: Validate = (tool, _what, schema, value) =>
        validate(tool, JSON.parse(schema) as JsonObject, JSON.parse(value)) ?? null;
    return session.hook("validate", check, UNCHECKED);
}

/** Makes the object that answers the server's questions. */
export function answersOf(options: ConnectOptions): Answering {
    return new Answers(options);
}
