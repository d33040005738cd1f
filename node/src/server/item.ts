/**
 * What a server serves, and how a handler of it is run.
 *
 *     event CALL -- arguments --> handler --> value, promise ------> reply
 *                                        `--> generator -- drain --> reply
 *
 * The library has given the call away with its event: each way through here ends it
 * once, by a reply or a failure, and frees it. One that is under way when its server ends
 * is only freed: what it has stored as a task belongs to the next server on the store.
 *
 * @module
 */

import {
    ClosedError,
    EndedError,
    InvalidError,
    NotFoundError,
    RequestCancelledError,
    SegueError,
} from "../errors.js";
import { RpcError, ToolError } from "../failures.js";
import { type Call, type Handler, type ItemOptions, Kind, native } from "../native.js";
import { Context } from "./context.js";
import type { Hosting } from "./hosting.js";
import { blocksOf } from "./values.js";

const { callFree, callSendText } = native;

/** JSON-RPC codes. */
export const INVALID_PARAMS = -32602;
export const INTERNAL = -32603;
export const NOT_FOUND = -32002;

/** All generators together may go on so long in one turn of the loop, in milliseconds. */
const TURN_MS = 2;
/** ... and the clock is looked at after so many segments. */
const CLOCK_EVERY = 16;

let isInTurn = false;
let turnBegan = 0;

/** Whether others shall have their turn: whatever else waits for the loop. */
function isTurnOver(): boolean {
    const now = performance.now();
    if (isInTurn) return now - turnBegan > TURN_MS;
    isInTurn = true;
    turnBegan = now;
    setImmediate(() => {
        isInTurn = false;
    });
    return false;
}

/** A handler was given what it cannot take; the message says what is wrong. */
export class BadArguments extends Error {}

/** What a handler of an item is, as far as running it goes. */
// biome-ignore lint/suspicious/noExplicitAny: arguments are checked before
export type Run = (args: any, ctx: Context) => unknown;

function isPromise(value: unknown): value is PromiseLike<unknown> {
    return typeof (value as PromiseLike<unknown> | null | undefined)?.then === "function";
}

type Steps = AsyncIterator<unknown, unknown> | Iterator<unknown, unknown>;

/** What is drained: generators of both sorts, and whatever is iterated asynchronously.
 * Lists and strings are values. */
function stepsOf(value: unknown): Steps | undefined {
    if (typeof value !== "object" || value === null) return undefined;
    const asynchronous = (value as AsyncIterable<unknown>)[Symbol.asyncIterator];
    if (typeof asynchronous === "function") return asynchronous.call(value);
    const steps = value as Partial<Iterator<unknown> & Iterable<unknown>>;
    const isIterator = typeof steps.next === "function" && Symbol.iterator in steps;
    return isIterator ? (steps as Iterator<unknown>) : undefined;
}

/** Whether a function is a generator, of either sort. */
export function isGenerator(run: unknown): boolean {
    const name = (run as { constructor?: { name?: string } }).constructor?.name ?? "";
    return name.endsWith("GeneratorFunction");
}

/** A tool, a resource, a template or a prompt. */
export abstract class Item {
    /** Its sort, for the library. */
    abstract readonly kind: number;
    /** Its sort, for people. */
    abstract readonly what: string;
    /** What it is found by: a name, a URI, a template. */
    readonly key: string;
    /** As clients see it in a list. */
    abstract readonly told: object;
    abstract readonly options: ItemOptions;
    /** Whether it suggests values of arguments. */
    abstract readonly completes: boolean;
    readonly run: Run;

    constructor(key: string, run: Run) {
        if (typeof key !== "string" || !key) {
            throw new TypeError("a name, or a URI, is a string, not empty");
        }
        if (typeof run !== "function") {
            throw new TypeError(`"${key}" needs a function that handles its calls`);
        }
        this.key = key;
        this.run = run;
    }

    /** The arguments, or a promise of them. @throws BadArguments */
    abstract arguments(call: Call, params: string): unknown;

    /** Ends the call with what the handler returned, and frees it. */
    abstract reply(call: Call, value: unknown): void | Promise<void>;

    /** What is told of an exception: a ToolError, or an RpcError. */
    abstract explain(error: unknown, isExposed: boolean): SegueError;

    /** Answers completion/complete. */
    abstract complete(host: Hosting, call: Call, params: string): Promise<void>;

    // ---- a call

    /** Who gets the events of this item in a server. */
    handler(host: Hosting): Handler {
        const { running, maxCalls } = host;
        return (kind: number, call: Call, params: string) => {
            host.runtime.cork();
            if (kind === Kind.COMPLETION) void this.complete(host, call, params);
            else if (running.size >= maxCalls || host.isDraining)
                this.#refuse(host, call, params);
            else {
                const context = new Context(call, host);
                host.began(context);
                this.#begin(host, call, params, context);
                if (kind === Kind.CALL_NOW) host.endTurnSoon(call);
            }
        };
    }

    /** Answers a call that does not run. A task that another server has left waits: its
     * caller was told that it works. */
    #refuse(host: Hosting, call: Call, params: string): void {
        try {
            if (native.callResumed(call) === null) refuse(host, call);
            else {
                const context = new Context(call, host);
                host.wait(context, () => this.#begin(host, call, params, context));
            }
        } catch (error) {
            if (!isUsual(error)) throw error;
        }
    }

    #begin(host: Hosting, call: Call, params: string, context: Context): void {
        const run = new Running(this, host, call, context);
        try {
            const args = this.arguments(call, params);
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

    // ---- generators

    /** What of a value that was yielded is kept for the end. */
    lastWord(_value: unknown, last: unknown): unknown {
        return last;
    }
}

/** One call on its way to its end. */
class Running {
    readonly #item: Item;
    readonly #host: Hosting;
    readonly #call: Call;
    readonly #context: Context;
    /** The handler has returned: what fails from here on is the reply. */
    #replies = false;

    constructor(item: Item, host: Hosting, call: Call, context: Context) {
        this.#item = item;
        this.#host = host;
        this.#call = call;
        this.#context = context;
    }

    /** The handler has given something. */
    given(value: unknown): void {
        if (isPromise(value)) {
            value
                .then((one) => this.given(one))
                .then(null, (error: unknown) => this.fail(error));
            return;
        }
        const steps = stepsOf(value);
        if (steps)
            this.#drain(steps)
                .then((last) => this.#end(last))
                .then(null, (error: unknown) => this.fail(error));
        else this.#end(value);
    }

    #end(value: unknown): void {
        this.#replies = true;
        this.#host.runtime.cork();
        try {
            const replied = this.#item.reply(this.#call, value);
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
        this.#host.ended(this.#context);
    }

    /** Sends what comes, and gives what ends the result. */
    async #drain(steps: Steps): Promise<unknown> {
        try {
            this.#context.watch();
            return await this.#sendAll(steps);
        } catch (error) {
            await steps.return?.(); // its finally blocks run
            throw error;
        }
    }

    async #sendAll(steps: Steps): Promise<unknown> {
        const context = this.#context;
        const call = this.#call;
        let last: unknown;
        for (let count = 1; !context.cancelled; count++) {
            const step = steps.next();
            const { value, done } = isPromise(step) ? await step : step;
            if (done) return value === undefined ? last : value;
            if (context.cancelled) break;
            this.#host.runtime.cork();
            const isShort = typeof value === "string" && !context.isWaiting;
            if (!isShort || !callSendText(call, value)) {
                last = this.#item.lastWord(value, last);
                await context.send(value as object);
            }
            if (count % CLOCK_EVERY === 0 && isTurnOver())
                await new Promise(setImmediate);
        }
        throw new RequestCancelledError();
    }

    // ---- failures

    /** Ends a call that came to no good end, and frees it. */
    fail(error: unknown): void {
        try {
            if (!this.#context.cancelled) this.#tell(error);
        } catch (why) {
            if (!isUsual(why)) this.#host.report(why, this.#item);
        } finally {
            this.#ended();
        }
        try {
            callFree(this.#call);
        } catch {
            // The reply that told it did so, or the runtime has ended.
        }
    }

    #tell(error: unknown): void {
        const { server } = this.#host;
        const told = this.#item.explain(error, server.exposesErrors);
        if (this.#replies ? !isOfReplies(error) : !isMeant(error)) {
            this.#host.report(error, this.#item);
        }
        if (told instanceof ToolError) {
            const content = told.result?.content ?? [told.message];
            const { structured } = told.result ?? {};
            const json = structured === undefined ? null : JSON.stringify(structured);
            native.callReply(this.#call, null, blocksOf(content), json, true);
            return;
        }
        const { rpcCode, message, dataJson } = told;
        try {
            native.callFail(this.#call, rpcCode || INTERNAL, message, dataJson);
        } catch (why) {
            if (!(why instanceof InvalidError)) throw why;
            // A code that the protocol reserves for something else.
            this.#host.report(why, this.#item);
            native.callFail(this.#call, INTERNAL, message, dataJson);
        }
    }
}

/** The call, or all, has ended meanwhile: nobody's mistake. */
function isUsual(error: unknown): boolean {
    return (
        error instanceof EndedError ||
        error instanceof RequestCancelledError ||
        error instanceof ClosedError
    );
}

/** What was thrown for the caller. */
function isMeant(error: unknown): boolean {
    return (
        error instanceof BadArguments || error instanceof SegueError || isMissing(error)
    );
}

/** What a reply may throw without that anything is wrong. */
function isOfReplies(error: unknown): boolean {
    return error instanceof ToolError || error instanceof RpcError || isUsual(error);
}

/** Whether an exception says that there is no such thing. */
export function isMissing(error: unknown): boolean {
    return (
        error instanceof NotFoundError ||
        (error instanceof Error && (error as NodeJS.ErrnoException).code === "ENOENT")
    );
}

/** The client sends its call again: the next server answers it. */
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
 * The message of an exception that nobody wrote for the caller, or what stands for it.
 */
export function safeText(error: unknown, isExposed: boolean, instead: string): string {
    if (!isExposed) return instead;
    const message = error instanceof Error ? error.message || error.name : String(error);
    return message || instead;
}

/** What is told of an exception where results have no isError: a JSON-RPC error. */
export function rpcError(error: unknown, isExposed: boolean): SegueError {
    if (error instanceof BadArguments) return new RpcError(INVALID_PARAMS, error.message);
    if (error instanceof ToolError) return new RpcError(INTERNAL, error.message);
    if (error instanceof SegueError) return error;
    return new RpcError(INTERNAL, safeText(error, isExposed, "Internal error"));
}

/** What is thrown for a member that is undefined is left out of what is told. */
export function compact<T extends object>(given: T): T {
    return Object.fromEntries(
        Object.entries(given).filter(([, value]) => value !== undefined),
    ) as T;
}
