/**
 * Middlewares that are ready for `Server.use`.
 *
 *     server.use(middleware.logCalls());
 *     server.use(middleware.limitRate(10, { burst: 20 }), { methods: ["tools/call"] });
 *
 * The first that is added is the outermost. So `logCalls` sees what `limitRate` refuses.
 * Unless `methods` says otherwise, these go around calls, lists and completions, except
 * `limitRate`, which goes around calls only.
 *
 * @module
 */

import { isPublic, RpcError, ToolError } from "../failures.js";
import { SchemaError } from "../schema.js";
import { BadArguments, INTERNAL, isMissing } from "./item.js";
import { CALLS, type Call, type Middleware, markMaker, showingAll } from "./layers.js";

/** Refuses options that are no object, and functions among them that are none. */
function checkOptions<T extends object>(
    of: string,
    options: T,
    functions: readonly (keyof T & string)[],
): void {
    if (typeof options !== "object" || options === null) {
        throw new TypeError(
            `the options of ${of} have to be an object, not ${typeof options}`,
        );
    }
    for (const name of functions)
        if (options[name] !== undefined) checkFunction(name, options[name]);
}

function checkFunction(name: string, value: unknown): void {
    if (typeof value === "function") return;
    throw new TypeError(`${name} has to be a function, not ${typeof value}`);
}

/** Classes of errors, or a function that tells whether an error belongs to them. */
export type ErrorKinds =
    // biome-ignore lint/suspicious/noExplicitAny: constructors have various arguments
    readonly (abstract new (...args: any[]) => Error)[] | ((error: unknown) => boolean);

function isOf(kinds: ErrorKinds, error: unknown): boolean {
    if (typeof kinds === "function") return kinds(error);
    return kinds.some((one) => error instanceof one);
}

/** The options of the middlewares that measure time. */
export interface ClockOptions {
    /** Returns the time in milliseconds; `performance.now` by default. */
    clock?: (() => number) | undefined;
}

const now = (): number => performance.now();

/** The options of {@link logCalls}. */
export interface LogOptions extends ClockOptions {
    /** Writes a line; `console.error` by default. */
    log?: ((line: string) => void) | undefined;
    /** true = the arguments are logged, too. */
    arguments?: boolean | undefined;
}

/** Logs the end of each call, with its time. */
export function logCalls(options: LogOptions = {}): Middleware {
    checkOptions("logCalls", options, ["log", "clock"]);
    const { log = console.error, arguments: isWhole = false, clock } = options;
    return timeCalls(
        (call, ms, error) => {
            const hasThem = isWhole && call.name !== "";
            const given = hasThem ? ` ${JSON.stringify(call.arguments)}` : "";
            const name = error instanceof Error ? error.name : typeof error;
            const end = error === undefined ? "ended" : `failed (${name})`;
            const what = `${call.method} ${call.name}${given}`.trimEnd();
            log(`${what} ${end} after ${(ms / 1000).toFixed(3)} s`);
        },
        { clock },
    );
}

/**
 * Measures each call, until its handler has ended.
 *
 * @param report - gets the call, its time in milliseconds, and the error with which the
 * call failed; undefined if it did not fail.
 */
export function timeCalls(
    report: (call: Call, ms: number, error: unknown) => void,
    options: ClockOptions = {},
): Middleware {
    checkOptions("timeCalls", options, ["clock"]);
    checkFunction("report", report);
    const { clock = now } = options;
    return showingAll(async (call, proceed) => {
        const began = clock();
        let value: unknown;
        try {
            value = await proceed();
        } catch (error) {
            report(call, clock() - began, error);
            throw error;
        }
        report(call, clock() - began, undefined);
        return value;
    });
}

/** The options of {@link limitRate}. */
export interface RateOptions extends ClockOptions {
    /**
     * How many calls a caller may begin at once; by default the calls per second, at
     * least 1.
     */
    burst?: number | undefined;
    /**
     * Returns the name of the caller; the principal by default. All anonymous callers
     * together are one caller.
     */
    key?: ((call: Call) => string) | undefined;
}

/** Maximum number of callers whose rates are kept. */
const CALLERS = 65_536;

/**
 * Refuses the calls of a caller who calls too often (-32603, `{"reason": "limit"}`). The
 * error says when the caller may try again.
 *
 * @param perSecond - how many calls a caller may begin per second, over time.
 */
export function limitRate(perSecond: number, options: RateOptions = {}): Middleware {
    checkOptions("limitRate", options, ["clock", "key"]);
    const { clock = now, key = (call) => call.context.principal } = options;
    const most = options.burst ?? Math.max(1, perSecond);
    if (!(perSecond > 0) || !(most >= 1)) {
        throw new RangeError("perSecond has to be above 0, and burst at least 1");
    }
    const each = 1000 / perSecond;
    // For each caller, the time at which all of the burst is available again. Callers are
    // in the order of their last calls.
    const fullAt = new Map<string, number>();
    const limited: Middleware = (call, proceed) => {
        const at = clock();
        const name = key(call);
        const full = Math.max(fullAt.get(name) ?? at, at) + each;
        const wait = full - at - most * each;
        if (wait > 1e-6) {
            const retryAfterMs = Math.max(1, Math.round(wait));
            throw new RpcError(
                INTERNAL,
                `Too many calls: at most ${perSecond} a second. Try again in ` +
                    `${retryAfterMs} ms`,
                {
                    reason: "limit",
                    limit: "calls_per_second",
                    value: perSecond,
                    retryAfterMs,
                },
            );
        }
        fullAt.delete(name);
        fullAt.set(name, full);
        for (const [other, time] of fullAt) {
            if (fullAt.size <= CALLERS && time > at) break;
            fullAt.delete(other);
        }
        return proceed();
    };
    return showingAll(limited, CALLS);
}

/** The options of {@link maskErrors}. */
export interface MaskOptions {
    /** The errors whose own messages the caller gets, such as `[RangeError]`. */
    show?: ErrorKinds | undefined;
    /** Gets each error that is masked, in place of the server's `onError`. */
    onError?: ((call: Call, error: unknown) => void) | undefined;
}

/**
 * Says which errors callers see. By default, callers of a tool get "The tool NAME failed"
 * for every error that is no `ToolError` and no `RpcError`; this middleware sets the
 * text.
 *
 * @param text - what the caller gets for an error that is masked.
 */
export function maskErrors(
    text = "The call failed",
    options: MaskOptions = {},
): Middleware {
    checkOptions("maskErrors", options, ["onError"]);
    if (typeof text !== "string") {
        throw new TypeError(`text has to be a string, not ${typeof text}`);
    }
    const { show = [], onError = (call, error) => call.report(error) } = options;
    return showingAll(async (call, proceed) => {
        try {
            return await proceed();
        } catch (error) {
            if (isTold(call, error)) throw error;
            if (isOf(show, error)) {
                throw new ToolError(
                    error instanceof Error ? error.message : String(error),
                );
            }
            onError(call, error);
            throw new ToolError(text);
        }
    });
}

/** Returns whether the message of an error is written for the caller. */
function isTold(call: Call, error: unknown): boolean {
    const isWritten = error instanceof BadArguments || error instanceof SchemaError;
    if (isWritten || isPublic(error)) return true;
    return call.method === "resources/read" && isMissing(error);
}

const TRANSIENT = new Set([
    "EAI_AGAIN",
    "ECONNABORTED",
    "ECONNREFUSED",
    "ECONNRESET",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "ENOTFOUND",
    "EPIPE",
    "ETIMEDOUT",
    "UND_ERR_BODY_TIMEOUT",
    "UND_ERR_CONNECT_TIMEOUT",
    "UND_ERR_HEADERS_TIMEOUT",
    "UND_ERR_SOCKET",
]);
/** How many causes of an error are looked at: `fetch` gives its errors a cause. */
const CAUSES = 4;

function isTransient(error: unknown): boolean {
    let one = error;
    for (let i = 0; i < CAUSES && isError(one); i++) {
        const { code, name } = one;
        if (name === "TimeoutError" || TRANSIENT.has(String(code))) return true;
        one = one instanceof AggregateError ? one.errors[0] : one.cause;
    }
    return false;
}

function isError(value: unknown): value is NodeJS.ErrnoException {
    return value instanceof Error || value instanceof DOMException;
}

/** The options of {@link retry}. */
export interface RetryOptions {
    /**
     * The errors after which the handler runs again; by default a lost or refused
     * connection, a host that is not found or not reached, and time that is over. The
     * cause of an error counts, too, such as that of "fetch failed".
     */
    on?: ErrorKinds | undefined;
    /**
     * The time before the second run, in milliseconds; 100 by default. It doubles with
     * each run.
     */
    delayMs?: number | undefined;
    /** Waits; `setTimeout` by default. */
    sleep?: ((ms: number) => Promise<unknown>) | undefined;
}

/**
 * Runs a handler again that failed before it sent a segment.
 *
 * @param times - how often the handler runs again at most.
 */
export function retry(times = 2, options: RetryOptions = {}): Middleware {
    checkOptions("retry", options, ["sleep"]);
    const { on = isTransient, delayMs = 100 } = options;
    const { sleep = (ms) => new Promise((done) => setTimeout(done, ms)) } = options;
    return showingAll(async (call, proceed) => {
        for (let run = 0; run < times; run++) {
            try {
                return await proceed();
            } catch (error) {
                const isOver = call.hasSent || call.context.cancelled;
                if (isOver || !isOf(on, error)) throw error;
            }
            await sleep(delayMs * 2 ** run);
        }
        return proceed();
    });
}

markMaker(logCalls, timeCalls, limitRate, maskErrors, retry);
