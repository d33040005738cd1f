/**
 * Middleware: functions of the application around the calls of a server's items, its
 * lists and its completions.
 *
 *     CALL --> middleware --> middleware --> arguments, handler
 *     reply <-- value ------------ value --------'  `--> segments, directly to the client
 *
 * Segments do not pass the middleware on their way, so nothing is gathered. A middleware
 * that wants to see the segments registers a function for them (`Call.onSegment`).
 *
 * @module
 */

import { native } from "../native.js";
import type { Context } from "./context.js";
import { drain, type Run, stepsOf } from "./drain.js";
import { isGenerator } from "./item.js";
import type { Listed } from "./lists.js";

/** The methods around which a middleware goes by default. */
export const CALLS = ["tools/call", "resources/read", "prompts/get"] as const;
/** The methods of lists. */
export const LISTS = [
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
] as const;
/** The methods around which a middleware may go. */
export const METHODS = [...CALLS, "completion/complete", ...LISTS] as const;
/** The method of a request that passes a middleware. */
export type Method = (typeof METHODS)[number];
/** The method of a list. */
export type ListMethod = (typeof LISTS)[number];

/**
 * Runs the rest: the next middleware, or the handler. Returns the value of the handler.
 */
export type Proceed = () => Promise<unknown>;

/** A function around the calls of a server's items; see {@link Server.use}. */
export type Middleware = (call: Call, proceed: Proceed) => unknown;

/**
 * A function around lists. `proceed` returns the items, and the function returns those
 * that the caller sees; see {@link Server.use}.
 */
export type ListMiddleware = (
    call: Call,
    proceed: () => Promise<Listed[]>,
) => Iterable<Listed> | PromiseLike<Iterable<Listed>>;

/**
 * A function around completions. `proceed` returns the suggested values, and the function
 * returns those that the caller gets.
 */
export type CompletionMiddleware = (
    call: Call,
    proceed: () => Promise<string[]>,
) => Iterable<string> | PromiseLike<Iterable<string>>;

/** The options of `Server.use`. */
export interface UseOptions {
    /**
     * The methods of the requests. By default those of calls: "tools/call",
     * "resources/read" and "prompts/get". The functions of the object `middleware`,
     * except `limitRate`, go around all methods by default.
     */
    methods?: readonly Method[] | undefined;
}

/**
 * A call of a tool or prompt, a read of a resource, a completion, or a list, as a
 * middleware gets it.
 */
export class Call {
    /** The method of the request. */
    readonly method: Method;
    /**
     * The name of the tool or prompt; for a resource, the URI that is read; for a
     * completion, the name of the prompt or the text of the template. For a list it is
     * "", or the name of the only item in question; see {@link Server.use}.
     */
    readonly name: string;
    /** The context of the call: its caller, its log messages and its progress. */
    readonly context: Context;
    readonly #run: Run;
    readonly #params: string;
    #arguments: Record<string, unknown> | undefined;

    /** @internal */
    constructor(run: Run, params: string, method: Method = run.item.method) {
        this.#run = run;
        this.#params = params;
        this.method = method;
        this.name = native.callName(run.call);
        this.context = run.context;
    }

    /**
     * The arguments as the caller sent them; for a resource, the variables of its
     * template. The handler gets the changes that a middleware makes. For a completion,
     * the other arguments and the text that was typed; for a list, `{}`.
     */
    get arguments(): Record<string, unknown> {
        const { item, call } = this.#run;
        this.#arguments ??= item.given(call, this.#params);
        return this.#arguments;
    }

    /** The handler gets these arguments in place of those of the caller. */
    set arguments(value: Record<string, unknown>) {
        this.#arguments = value;
    }

    /** Whether the handler has sent a segment. */
    get hasSent(): boolean {
        return this.context.hasSent;
    }

    /**
     * Registers a function that gets each value that the handler yields or sends, and
     * returns the value that is sent. The functions of several middlewares run in the
     * order from the handler to the client. The value that the handler returns is the
     * value of `proceed`.
     */
    onSegment(change: (value: unknown) => unknown): void {
        const { context } = this;
        const before = context.change;
        // The middleware that registers later is nearer to the handler.
        context.change = before ? (value) => before(change(value)) : change;
    }

    /** @internal Reports an error that the caller should not see. */
    report(error: unknown): void {
        this.#run.host.report(error, this.#run.item);
    }

    /** @internal Runs the handler. Returns its value. */
    async handle(): Promise<unknown> {
        const { context } = this.#run;
        let value: unknown;
        try {
            value = await this.#value();
        } catch (error) {
            const provided = context.takeProvided();
            throw provided ? await provided.abandon(error) : error;
        }
        await context.takeProvided()?.clean();
        return value;
    }

    async #value(): Promise<unknown> {
        const { item, context } = this.#run;
        const value = await item.run(await item.check(this.arguments), context);
        const steps = stepsOf(value);
        return steps ? drain(this.#run, steps) : value;
    }
}

const NONE: readonly Middleware[] = [];

/** The methods around which a marked middleware goes by default. */
const usual = new WeakMap<Middleware, readonly Method[]>();

/**
 * Marks a middleware that returns what `proceed` returned, also for lists. So it hides no
 * item, and calls need not ask it.
 */
export function showingAll(
    middleware: Middleware,
    methods: readonly Method[] = METHODS,
): Middleware {
    usual.set(middleware, methods);
    return middleware;
}

/** Returns whether a middleware is marked by `showingAll`. */
export function showsAll(middleware: Middleware): boolean {
    return usual.has(middleware);
}

/** Functions that make a middleware, and are none themselves. */
const makers = new WeakSet<object>();

/** Marks a function that makes a middleware, so that `Server.use` can refuse it. */
export function markMaker(...functions: readonly object[]): void {
    for (const one of functions) makers.add(one);
}

/**
 * Refuses what cannot be a middleware.
 *
 * @throws TypeError: it is no function of a call and `proceed`.
 */
function check(middleware: unknown): void {
    if (typeof middleware !== "function") {
        throw new TypeError(
            `a middleware has to be a function, not ${JSON.stringify(middleware)}`,
        );
    }
    const { name } = middleware;
    if (makers.has(middleware)) {
        throw new TypeError(`${name} makes a middleware: use(middleware.${name}())`);
    }
    const kind = /^class\b/.test(Function.prototype.toString.call(middleware))
        ? "a class"
        : isGenerator(middleware)
          ? "a generator"
          : undefined;
    if (kind) throw new TypeError(`a middleware cannot be ${kind} (${name})`);
    // A function of fewer parameters answers each call itself, or reads `...given`.
    const { length } = middleware;
    if (length > 2) {
        throw new TypeError(
            "a middleware is called with a call and `proceed`, but " +
                `${name || "it"} has ${length} parameters`,
        );
    }
}

/** The middlewares of a server. */
export class Layers {
    readonly #of = new Map<Method, readonly Middleware[]>();

    /** Returns the middlewares around the calls of a method, the outermost first. */
    of(method: Method): readonly Middleware[] {
        return this.#of.get(method) ?? NONE;
    }

    add(middleware: Middleware, options: UseOptions): void {
        check(middleware);
        const methods = options.methods ?? usual.get(middleware) ?? CALLS;
        if (typeof methods === "string") {
            throw new TypeError(`methods has to be an array: ["${methods}"]`);
        }
        for (const method of methods) {
            if (METHODS.includes(method)) continue;
            const names = METHODS.join(", ");
            throw new TypeError(`methods has to have some of ${names}, not "${method}"`);
        }
        for (const method of new Set(methods)) {
            this.#of.set(method, [...this.of(method), middleware]);
        }
    }
}

/**
 * Runs the middlewares around the handler of a call. Returns the value of the outermost
 * one.
 */
export function runLayers(
    layers: readonly Middleware[],
    call: Call & { handle(): Promise<unknown> },
): Promise<unknown> {
    const rest = async (place: number): Promise<unknown> => {
        const layer = layers[place];
        return layer ? layer(call, () => rest(place + 1)) : call.handle();
    };
    return rest(0);
}
