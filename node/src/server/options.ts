/**
 * What a server, its items and the ways into it take.
 *
 * What the library has an option for has its name of `segue.h` in camelCase, and passes
 * through as it is. Durations are milliseconds, sizes bytes.
 *
 * @module
 */

import type {
    Annotations,
    Bytes,
    Content,
    Icon,
    Meta,
    PromptMessage,
    ResourceContents,
    Result,
    WireResult,
} from "../content.js";
import type * as native from "../native_options.js";
import type { JsonSchema, SchemaInput, SchemaLike, SchemaOutput } from "../schema.js";
import type { Segment } from "../segment.js";
import type { BearerAuth, Caller } from "./auth.js";
import type { Context } from "./context.js";
import type { Store } from "./stores.js";

type Clean<T> = { [Name in keyof T]?: Exclude<T[Name], null> };

/** What failed, for {@link ServerOptions.onError}. */
export interface Failure {
    /** "tool", "resource", "prompt", "completion" or "auth". */
    readonly what: string;
    /** Its name; of a resource its URI. */
    readonly name: string;
}

/** What {@link Server} is made with. */
export interface ServerOptions
    extends Clean<Omit<native.ServerOptions, "store" | "listScope">> {
    /** Told to clients, as are version, title and instructions. */
    name: string;
    /**
     * Where tasks are kept: of `stores`, or the path of a SQLite file, which survives a
     * crash, or the URL of a Redis server. In memory by default.
     */
    store?: Store | string | undefined;
    /** Whether others than who asked may keep lists that are fresh (`listTtlMs`). */
    listScope?: "private" | "public" | undefined;
    /**
     * How many calls run at once; beyond, callers are refused (-32603,
     * `{"reason": "limit"}`), and tasks that were taken over wait. 16384 by default.
     */
    maxCalls?: number | undefined;
    /**
     * Says who a caller is, by what the connection tells of him; what it throws refuses
     * him. It is asked for each request, and must be quick. Not with `auth`.
     */
    principal?: ((peer: Caller) => string | null | undefined) | undefined;
    /**
     * Gets what a handler threw that was not meant for the caller. By default it is
     * printed to standard error.
     */
    onError?: ((error: unknown, failure: Failure) => void) | undefined;
    /**
     * Tells callers the messages of all exceptions, also of those that nobody wrote for
     * them. By default they are told that the tool failed.
     */
    exposeErrors?: boolean | undefined;
}

/** What all items may have. */
export interface ItemOptions {
    title?: string | undefined;
    description?: string | undefined;
    icons?: readonly Icon[] | undefined;
    _meta?: Meta | undefined;
    /** Over HTTP the caller's token needs all of them. */
    scopes?: string | readonly string[] | undefined;
}

/** Hints for who decides whether a tool may be called. Nobody has to believe them. */
export interface ToolAnnotations {
    title?: string | undefined;
    readOnlyHint?: boolean | undefined;
    destructiveHint?: boolean | undefined;
    idempotentHint?: boolean | undefined;
    openWorldHint?: boolean | undefined;
}

/** May a call become a task, which outlives the connection? */
export type TaskPolicy = "never" | "may" | "must";

/** What a tool is made with. */
export interface ToolOptions<
    In extends SchemaLike = JsonSchema,
    Out extends SchemaLike = JsonSchema,
> extends ItemOptions {
    /**
     * Its arguments: a Standard Schema (zod, arktype, valibot), the members of an object
     * as such, or a JSON Schema. What does not fit never reaches the handler: the caller
     * gets a result with `isError` that says why.
     */
    input?: In | undefined;
    /** Its structured result, as `input`. What does not fit is an error of the server. */
    output?: Out | undefined;
    annotations?: ToolAnnotations | undefined;
    /** "never" by default; "must": callers that take no tasks are refused. */
    task?: TaskPolicy | undefined;
    /** An ended task is kept so long; 1 h by default. */
    ttlMs?: number | undefined;
    /** Between looks at a task, told to clients; 1000 by default. */
    pollMs?: number | undefined;
    /** A call becomes a task after so long (`task: "may"`); 0 = at once. */
    promoteAfterMs?: number | undefined;
    /** After a crash its tasks are run again; see {@link Context.resumed}. */
    restartable?: boolean | undefined;
    /**
     * Callers before 2026-07-28 that were cut off may come again (SEP-975): after
     * `resumeMinWaitMs`, and within `resumeMaxWaitMs` (10 min), or the call is cancelled.
     */
    resumable?: boolean | undefined;
    resumeMinWaitMs?: number | undefined;
    resumeMaxWaitMs?: number | undefined;
    /** Cancelling its tasks has no effect. */
    unstoppable?: boolean | undefined;
    /** Its output comes in pieces; by default, of generators. */
    incremental?: boolean | undefined;
}

/**
 * What may be sent, and what a handler may yield: text, a block, a segment to pass on, a
 * {@link Result} whose blocks are sent at once, or whatever has a form in JSON.
 */
export type Sendable =
    | string
    | Content
    | Segment
    | Result
    | number
    | boolean
    | object
    | null
    | undefined;

/**
 * What a tool returns. Without an `output` schema: nothing, text, a block, a list of
 * these, a {@link Result} (or the object it is on the wire), or a value that has a form
 * in JSON: objects become structured, too.
 */
export type ToolReturn<Out> = [Out] extends [never]
    ? // biome-ignore lint/suspicious/noConfusingVoidType: what returns nothing
      Sendable | void
    : SchemaInput<Out> | Result<SchemaInput<Out>> | WireResult;

/** What runs a tool: a plain function, an async one, or a generator of either sort. */
export type ToolHandler<Args, Return> = (
    args: Args,
    ctx: Context,
) =>
    | Return
    | PromiseLike<Return>
    // biome-ignore lint/suspicious/noConfusingVoidType: generators that return nothing
    | AsyncGenerator<Sendable, Return | void, void>
    // biome-ignore lint/suspicious/noConfusingVoidType: the same
    | Generator<Sendable, Return | void, void>
    | AsyncIterable<Sendable>;

/** The arguments that a schema describes. */
export type ArgsOf<In> = SchemaOutput<In>;

type Name<T extends string> = T extends `+${infer Rest}` ? Rest : T;
/** The variables of a URI template: `{ id: string }` of `"note://{id}"`. */
export type Variables<Uri extends string> = string extends Uri
    ? Record<string, string>
    : Uri extends `${string}{${infer Variable}}${infer Rest}`
      ? { [K in Name<Variable>]: string } & Variables<Rest>
      : unknown;

/**
 * Values of an argument to suggest: those of a list that begin with what was typed, or
 * what a function gives for it and for the other arguments so far.
 */
export type Completer =
    | readonly string[]
    | ((
          typed: string,
          others: Readonly<Record<string, string>>,
      ) => Iterable<string> | PromiseLike<Iterable<string>>);

/** What a resource, or a template of resources, is made with. */
export interface ResourceOptions extends ItemOptions {
    /** Its URI by default. */
    name?: string | undefined;
    mimeType?: string | undefined;
    /** In bytes. */
    size?: number | undefined;
    annotations?: Annotations | undefined;
    /** What was read stays fresh so long (2026-07-28); 0 by default. */
    readTtlMs?: number | undefined;
    /** Whether others than who asked may keep it. */
    readScope?: "private" | "public" | undefined;
    /** Of a template: suggestions for its variables. */
    complete?: Readonly<Record<string, Completer>> | undefined;
}

/** What one resource is: text, bytes, contents, or a value that is told as JSON. */
export type Readable = string | Bytes | ResourceContents | object | number | boolean;

/**
 * What reads a resource; null or undefined, and an exception with the code `ENOENT`, mean
 * that there is none.
 */
export type ResourceHandler<Vars> = (
    variables: Vars,
    ctx: Context,
) =>
    | Readable
    | readonly ResourceContents[]
    | null
    | undefined
    | PromiseLike<Readable | readonly ResourceContents[] | null | undefined>;

/** What a prompt is made with. */
export interface PromptOptions<In extends SchemaLike = JsonSchema> extends ItemOptions {
    /** Its arguments, which are strings on the wire; as `input` of a tool. */
    input?: In | undefined;
    /** Suggestions for arguments; those of an enum are known. */
    complete?: Readonly<Record<string, Completer>> | undefined;
}

/**
 * What a prompt gives: text of the user, a block, messages, or the result on the wire.
 */
export type PromptReturn =
    | string
    | Content
    | PromptMessage
    | readonly (string | Content | PromptMessage)[]
    | { description?: string | undefined; messages: readonly PromptMessage[] };

/** What makes a prompt. */
export type PromptHandler<Args> = (
    args: Args,
    ctx: Context,
) => PromptReturn | PromiseLike<PromptReturn>;

/** How a server is served; see {@link Server.listenHttp}. */
export interface ServeOptions {
    /** Where tasks are kept, if not in the store of the server. */
    store?: Store | string | undefined;
    /** Ends it, as `close` does. */
    signal?: AbortSignal | undefined;
    /** Calls may end so long after the end was asked for; 10000 by default. */
    drainMs?: number | undefined;
}

/** How a server listens; see {@link Server.listenHttp}. */
export interface ListenOptions
    extends ServeOptions,
        Clean<Omit<native.ListenOptions, "hosts" | "origins" | "drainMs">> {
    /** `address`, by the name that Node has for it: "127.0.0.1" by default. */
    host?: string | undefined;
    /** Names that Host may have; "*" = any. */
    hosts?: string | readonly string[] | undefined;
    /** Pages that may call; "*" = any. `cors` lets browsers read answers. */
    origins?: string | readonly string[] | undefined;
    /** Who may call: every caller needs a token. */
    auth?: BearerAuth | undefined;
}

const OF_ITEMS: Record<keyof ItemOptions, true> = {
    title: true,
    description: true,
    icons: true,
    _meta: true,
    scopes: true,
};
const KNOWN: {
    tool: Record<keyof ToolOptions, true>;
    resource: Record<keyof ResourceOptions, true>;
    prompt: Record<keyof PromptOptions, true>;
} = {
    tool: {
        ...OF_ITEMS,
        input: true,
        output: true,
        annotations: true,
        task: true,
        ttlMs: true,
        pollMs: true,
        promoteAfterMs: true,
        restartable: true,
        resumable: true,
        resumeMinWaitMs: true,
        resumeMaxWaitMs: true,
        unstoppable: true,
        incremental: true,
    },
    resource: {
        ...OF_ITEMS,
        name: true,
        mimeType: true,
        size: true,
        annotations: true,
        readTtlMs: true,
        readScope: true,
        complete: true,
    },
    prompt: { ...OF_ITEMS, input: true, complete: true },
};

/**
 * Refuses what is no option of an item: without types it would be of no effect, silently.
 *
 * @throws TypeError: one is none.
 */
export function checkOptions(what: keyof typeof KNOWN, key: string, given: object): void {
    for (const name in given) {
        if (!Object.hasOwn(KNOWN[what], name)) {
            throw new TypeError(`${what} ${key}: no option ${JSON.stringify(name)}`);
        }
    }
}
