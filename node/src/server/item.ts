/**
 * The items of a server, and how their handlers run.
 *
 *     event CALL -- arguments --> handler --> value, promise ------> reply
 *                                        `--> generator -- drain --> reply
 *
 * The CALL event passes the call to this module. Each path ends the call once, with a
 * reply or a failure, and frees the call. A call that still runs when its server ends is
 * only freed. If such a call is a task, the next server on the store continues the task.
 *
 * @module
 */

import {
    ClosedError,
    EndedError,
    InvalidError,
    NotFoundError,
    RequestCancelledError,
    type SegueError,
} from "../errors.js";
import { isPublic, RpcError, ToolError } from "../failures.js";
import { type Call, type Handler, type ItemOptions, Kind, native } from "../native.js";
import { Context } from "./context.js";
import { type Run as CallRun, drain, isPromise, stepsOf } from "./drain.js";
import type { Hosting } from "./hosting.js";
import { Call as LayersCall, type Method, type Middleware, runLayers } from "./layers.js";
import type { Server } from "./server.js";
import { blocksOf, type Piece, pieceOf } from "./values.js";

const { callFree } = native;

/** Codes of JSON-RPC errors. */
export const INVALID_PARAMS = -32602;
export const INTERNAL = -32603;
export const NOT_FOUND = -32002;

/**
 * The arguments of a call do not fit the schema of the item. The message says what does
 * not fit.
 */
export class BadArguments extends Error {}

/** The handler of an item: a function of the arguments and the context of a call. */
// biome-ignore lint/suspicious/noExplicitAny: the item checks the arguments first
export type Run = (args: any, ctx: Context) => unknown;

/** Returns whether a function is a generator function, plain or async. */
export function isGenerator(run: unknown): boolean {
    const name = (run as { constructor?: { name?: string } }).constructor?.name ?? "";
    return name.endsWith("GeneratorFunction");
}

/** A tool, a resource, a template of resources or a prompt. */
export abstract class Item {
    /** The kind of item, as a number of the library. */
    abstract readonly kind: number;
    /** The kind of item, as a word for messages. */
    abstract readonly what: string;
    /** The method of a request for the item. */
    abstract readonly method: Method;
    /** The name of a tool or prompt, the URI of a resource, or the URI template. */
    readonly key: string;
    /** The description of the item that clients see in a list. */
    abstract readonly told: object;
    abstract readonly options: ItemOptions;
    /** Whether the item suggests values for its arguments. */
    abstract readonly completes: boolean;
    readonly run: Run;

    constructor(key: string, run: Run) {
        if (typeof key !== "string" || !key) {
            throw new TypeError("a name or URI has to be a string that is not empty");
        }
        if (typeof run !== "function") {
            throw new TypeError(`"${key}" needs a function that handles its calls`);
        }
        this.key = key;
        this.run = run;
    }

    /**
     * The server that the clients see, and for the item of a mounted server those inside
     * it. The last one has made the item.
     */
    servers: readonly Server[] = [];

    /** The server that has made the item. */
    get owner(): Server {
        return this.servers.at(-1) as Server;
    }

    /** The middlewares around the calls of this item, the outermost first. */
    get around(): readonly Middleware[] {
        return this.aroundOf(this.method);
    }

    protected aroundOf(method: Method): readonly Middleware[] {
        const [first, ...others] = this.servers;
        const own = first?.layers.of(method) ?? [];
        if (!others.length) return own;
        return [...own, ...others.flatMap((one) => one.layers.of(method))];
    }

    /** Returns the item under another name or URI. */
    abstract renamed(key: string): Item;

    /**
     * Refuses an item that no server can have, where it is declared. The library decides.
     * A warning says what the specification advises against.
     *
     * @throws InvalidError when the name, the URI, the template or an option is invalid.
     */
    verify(): void {
        const json = JSON.stringify(this.told);
        const advice = native.itemCheck(this.kind, json, this.options);
        if (!advice) return;
        const text = `the ${this.what} "${this.key}": ${advice}`;
        process.emitWarning(text, { type: "SegueWarning" });
    }

    /** Does now what the first call would do once: compiles the schemas. */
    prepare(): void {}

    /** Returns the arguments of a call as the caller sent them. */
    given(_call: Call, params: string): Record<string, unknown> {
        return (JSON.parse(params) as { arguments?: never }).arguments ?? {};
    }

    /**
     * Returns the checked arguments of a call, or a promise of the arguments. @throws
     * BadArguments when the arguments do not fit the schema.
     */
    abstract check(given: Record<string, unknown>): unknown;

    /** Ends the call with the value that the handler returned, and frees the call. */
    abstract reply(call: Call, value: unknown, context: Context): void | Promise<void>;

    /**
     * Converts an exception of the handler to the error that the caller gets: a ToolError
     * or an RpcError.
     */
    abstract explain(error: unknown, isExposed: boolean): SegueError;

    /** Returns whether an exception of the handler is an answer: it is not reported. */
    expects(error: unknown): boolean {
        return error instanceof BadArguments || isPublic(error);
    }

    /** Answers a request completion/complete for this item. */
    abstract complete(host: Hosting, call: Call, params: string): Promise<void>;

    // ---- a call

    /** Makes the handler that receives the library's events for this item. */
    handler(host: Hosting): Handler {
        const { running, maxCalls } = host;
        const take = (kind: number, call: Call, params: string) => {
            host.runtime.cork();
            if (kind === Kind.COMPLETION) void this.complete(host, call, params);
            else if (running.size >= maxCalls || host.isDraining)
                this.#takeLate(host, kind, call, params);
            else this.#run(host, kind, call, params);
        };
        return (kind: number, call: Call, params: string) => {
            const context = native.callContext(call);
            if (context) context(() => take(kind, call, params));
            else take(kind, call, params);
        };
    }

    #run(host: Hosting, kind: number, call: Call, params: string): void {
        const context = new Context(call, host, this);
        host.began(context);
        this.#begin(host, call, params, context);
        if (kind === Kind.CALL_NOW) host.endTurnSoon(call);
    }

    /**
     * Handles a call that comes when no call may begin, or when the server is about to
     * end. A task that was taken over from another server is not refused but waits,
     * because its client knows that the task works. A task of a server that has closed is
     * left to the next server on the store.
     */
    #takeLate(host: Hosting, kind: number, call: Call, params: string): void {
        try {
            if (host.isClosed) callFree(call);
            else if (native.callResumed(call) !== null) {
                const context = new Context(call, host, this);
                host.wait(context, () => this.#begin(host, call, params, context));
            } else if (host.running.size >= host.maxCalls || host.refuses)
                refuse(host, call);
            else this.#run(host, kind, call, params);
        } catch (error) {
            if (!isUsual(error)) throw error;
        }
    }

    #begin(host: Hosting, call: Call, params: string, context: Context): void {
        const run = new Running(this, host, call, context);
        try {
            const { around } = this;
            if (around.length) {
                const parts = { item: this, host, call, context };
                run.given(runLayers(around, new LayersCall(parts, params)));
                return;
            }
            const args = this.check(this.given(call, params));
            if (!isPromise(args)) run.given(this.run(args, context));
            else
                args.then((made) => run.given(this.run(made, context))).then(
                    null,
                    (error: unknown) => run.fail(error),
                );
        } catch (error) {
            run.fail(error);
        }
    }

    // ---- sending

    /** Converts a value that the handler sends or yields to a block. */
    piece(value: unknown): Piece {
        return pieceOf(value);
    }

    /**
     * Called for each yielded value. Returns the value that the reply at the end of the
     * call uses. `last` is the value that this method returned for the earlier yielded
     * values.
     */
    lastWord(_value: unknown, last: unknown): unknown {
        return last;
    }
}

/** One call whose handler runs or has run, until the call has ended. */
class Running {
    readonly #run: CallRun;
    /**
     * true = the handler has returned, so a later error comes from the reply and not from
     * the handler.
     */
    #replies = false;

    constructor(item: Item, host: Hosting, call: Call, context: Context) {
        this.#run = { item, host, call, context };
    }

    /**
     * Handles the value that the handler returned: a promise, a generator or a result.
     */
    given(value: unknown): void {
        if (isPromise(value)) {
            value
                .then((one) => this.given(one))
                .then(null, (error: unknown) => this.fail(error));
            return;
        }
        const steps = stepsOf(value);
        if (steps)
            drain(this.#run, steps)
                .then((last) => this.#end(last))
                .then(null, (error: unknown) => this.fail(error));
        else this.#end(value);
    }

    #end(value: unknown): void {
        const provided = this.#run.context.takeProvided();
        if (!provided) this.#reply(value);
        else
            provided
                .clean()
                .then(() => this.#reply(value))
                .then(null, (error: unknown) => this.fail(error));
    }

    #reply(value: unknown): void {
        this.#replies = true;
        this.#run.host.runtime.cork();
        try {
            const replied = this.#run.item.reply(
                this.#run.call,
                value,
                this.#run.context,
            );
            if (replied)
                replied
                    .then(() => this.#ended())
                    .then(null, (why: unknown) => this.fail(why));
            else this.#ended();
        } catch (error) {
            this.fail(error);
        }
    }

    #ended(): void {
        this.#run.host.ended(this.#run.context);
    }

    // ---- failures

    /** Ends a call with an error, and frees the call. */
    fail(error: unknown): void {
        const provided = this.#run.context.takeProvided();
        if (provided) void provided.abandon(error).then((why) => this.#fail(why));
        else this.#fail(error);
    }

    #fail(error: unknown): void {
        try {
            if (!this.#run.context.hasEnded()) this.#tell(error);
        } catch (why) {
            if (!isUsual(why)) this.#run.host.report(why, this.#run.item);
        } finally {
            this.#ended();
        }
        try {
            callFree(this.#run.call);
        } catch {
            // callFree throws when the call was freed before: by the reply of the
            // failure, or by the end of the runtime.
        }
    }

    #tell(error: unknown): void {
        const { host, item } = this.#run;
        const isExpected = this.#replies ? isPublic(error) : item.expects(error);
        const isOfEnd = isUsual(error);
        if (!isExpected && !isOfEnd) host.report(error, item);
        this.#answer(item.explain(error, item.owner.exposesErrors));
        // The call had not ended, so another object had, such as a session.
        if (isOfEnd) host.report(error, item);
    }

    #answer(told: SegueError): void {
        if (told instanceof ToolError) {
            const content = told.result?.content ?? [told.message];
            const { structured } = told.result ?? {};
            const json = structured === undefined ? null : JSON.stringify(structured);
            native.callReply(this.#run.call, null, blocksOf(content), json, true);
            return;
        }
        const { rpcCode, message, dataJson } = told;
        try {
            native.callFail(this.#run.call, rpcCode || INTERNAL, message, dataJson);
        } catch (why) {
            if (!(why instanceof InvalidError)) throw why;
            // InvalidError means that the protocol reserves the error code that the
            // handler used.
            this.#run.host.report(why, this.#run.item);
            native.callFail(this.#run.call, INTERNAL, message, dataJson);
        }
    }
}

/**
 * Returns whether an error only means that the call or the whole server has ended, if it
 * has. A session of the handler throws these errors, too.
 */
function isUsual(error: unknown): boolean {
    return (
        error instanceof EndedError ||
        error instanceof RequestCancelledError ||
        error instanceof ClosedError
    );
}

/** Returns whether an exception of a handler means that a resource does not exist. */
export function isMissing(error: unknown): boolean {
    return (
        error instanceof NotFoundError ||
        (error instanceof Error && (error as NodeJS.ErrnoException).code === "ENOENT")
    );
}

/**
 * The data of the error with which an ending server refuses a call. The client sends the
 * call again later, and the server that has replaced the ended server answers the call.
 */
const ENDING = '{"reason":"server_ending","retryAfterMs":1000}';

function refuse(host: Hosting, call: Call): void {
    const most = host.maxCalls;
    const [why, data] = host.isDraining
        ? ["The server is about to end", ENDING]
        : [
              `Too many calls at once: maxCalls is ${most}`,
              `{"reason":"limit","limit":"max_calls","value":${most}}`,
          ];
    native.callFail(call, INTERNAL, why, data);
    callFree(call);
}

/**
 * Returns the message of an exception that was not written for the caller. Returns
 * `instead` when the message must not be shown to the caller.
 */
export function safeText(error: unknown, isExposed: boolean, instead: string): string {
    if (!isExposed) return instead;
    const message = error instanceof Error ? error.message || error.name : String(error);
    return message || instead;
}

/**
 * Converts an exception to a JSON-RPC error, for methods whose results have no member
 * isError.
 */
export function rpcError(error: unknown, isExposed: boolean): SegueError {
    if (error instanceof BadArguments) return new RpcError(INVALID_PARAMS, error.message);
    if (error instanceof ToolError) return new RpcError(INTERNAL, error.message);
    if (isPublic(error)) return error;
    return new RpcError(INTERNAL, safeText(error, isExposed, "Internal error"));
}

/** Returns a copy of an object without the members that are undefined. */
export function compact<T extends object>(given: T): T {
    return Object.fromEntries(
        Object.entries(given).filter(([, value]) => value !== undefined),
    ) as T;
}
