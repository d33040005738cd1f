/**
 * The options of a server, of its items and of the ways to serve it.
 *
 * An option of the library has its name from `segue.h` in camelCase and is passed on
 * unchanged. Durations are in milliseconds, sizes in bytes.
 *
 * @module
 */

import type {
    Annotations,
    Bytes,
    Content,
    EmbeddedResource,
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

/** The failed item, for {@link ServerOptions.onError}. */
export interface Failure {
    /** The kind of item: "tool", "resource", "prompt", "completion" or "auth". */
    readonly what: string;
    /** The name of the item; for a resource, its URI. */
    readonly name: string;
}

/** The options of a {@link Server}. */
export interface ServerOptions
    extends Clean<Omit<native.ServerOptions, "store" | "listScope">> {
    /** The server's name. Clients see the name, the version, the title and the
     * instructions. */
    name: string;
    /**
     * Where tasks are stored: one of `stores`, the path of a SQLite file (which survives
     * a crash), or the URL of a Redis or PostgreSQL server. By default in memory.
     */
    store?: Store | string | undefined;
    /** Whether shared caches may keep lists for other callers, too, while they are
     * fresh (`listTtlMs`). */
    listScope?: "private" | "public" | undefined;
    /**
     * Maximum number of running calls; 16384 by default. Further callers are refused
     * (-32603, `{"reason": "limit"}`). Tasks taken over from another server wait.
     */
    maxCalls?: number | undefined;
    /**
     * Returns the principal of a caller, from data of the connection. Throwing refuses
     * the caller. The function runs for each request and must be quick. It cannot be
     * combined with `auth`.
     */
    principal?: ((peer: Caller) => string | null | undefined) | undefined;
    /**
     * Called with an exception of a handler that is not meant for the caller. By default
     * the exception is printed to standard error.
     */
    onError?: ((error: unknown, failure: Failure) => void) | undefined;
    /**
     * true = callers get the messages of all exceptions. By default callers only learn
     * that the tool failed, unless the exception is meant for them (`ToolError`,
     * `RpcError`).
     */
    exposeErrors?: boolean | undefined;
}

/** The options that all items have. */
export interface ItemOptions {
    title?: string | undefined;
    description?: string | undefined;
    icons?: readonly Icon[] | undefined;
    _meta?: Meta | undefined;
    /** Over HTTP the caller's token needs all of these scopes. */
    scopes?: string | readonly string[] | undefined;
}

/** Hints for a client that decides whether to call a tool. The client need not trust the
 * hints. */
export interface ToolAnnotations {
    title?: string | undefined;
    readOnlyHint?: boolean | undefined;
    destructiveHint?: boolean | undefined;
    idempotentHint?: boolean | undefined;
    openWorldHint?: boolean | undefined;
}

/** Whether a call may or must become a task. A task outlives the connection. */
export type TaskPolicy = "never" | "may" | "must";

/** The options of a tool. */
export interface ToolOptions<
    In extends SchemaLike = JsonSchema,
    Out extends SchemaLike = JsonSchema,
> extends ItemOptions {
    /**
     * The schema of the arguments: a Standard Schema (zod, arktype, valibot), an object
     * with a schema for each member, or a JSON Schema. Arguments that do not fit never
     * reach the handler: the caller gets a result with `isError` that says why.
     */
    input?: In | undefined;
    /** The schema of the structured result, in the same forms as `input`. A result that
     * does not fit is an error of the server. */
    output?: Out | undefined;
    annotations?: ToolAnnotations | undefined;
    /** Whether a call becomes a task; "never" by default. With "must", callers that do
     * not support tasks are refused. */
    task?: TaskPolicy | undefined;
    /** How long an ended task is kept; 1 h by default. */
    ttlMs?: number | undefined;
    /** How often clients should ask for the status of a task; 1000 by default. */
    pollMs?: number | undefined;
    /** A call becomes a task after this time (`task: "may"`); 0 = at once. */
    promoteAfterMs?: number | undefined;
    /** true = tasks of this tool are run again after a crash; see
     * {@link Context.resumed}. */
    restartable?: boolean | undefined;
    /**
     * true = callers of revisions before 2026-07-28 may come back after a lost connection
     * (SEP-975): not before `resumeMinWaitMs` and within `resumeMaxWaitMs` (10 min by
     * default). Otherwise the call is cancelled.
     */
    resumable?: boolean | undefined;
    resumeMinWaitMs?: number | undefined;
    resumeMaxWaitMs?: number | undefined;
    /** true = cancelling a task of this tool has no effect. */
    unstoppable?: boolean | undefined;
    /**
     * true = plain calls are in the store, too: they go on when the caller's connection
     * is lost, and after a crash they run again if the tool is `restartable`.
     */
    stored?: boolean | undefined;
    /** true = the output is sent in segments; the default for generators. */
    incremental?: boolean | undefined;
}

/**
 * The values that a handler may send or yield: text, a block, a segment to pass on, a
 * {@link Result} whose blocks are sent at once, or a value that JSON can represent.
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
 * The values that a tool may return. Without an `output` schema: nothing, text, a block,
 * a list of these, a {@link Result} (or its form in the protocol), or a value that JSON
 * can represent. An object also becomes the structured content.
 */
export type ToolReturn<Out> = [Out] extends [never]
    ? // biome-ignore lint/suspicious/noConfusingVoidType: a handler may return nothing
      Sendable | void
    : SchemaInput<Out> | Result<SchemaInput<Out>> | WireResult;

/** The handler of a tool: a plain or async function, or a generator of either kind. */
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

/** The type of the arguments that a schema describes. */
export type ArgsOf<In> = SchemaOutput<In>;

type Name<T extends string> = T extends `+${infer Rest}` ? Rest : T;
/** The variables of a URI template: `{ id: string }` for `"note://{id}"`. */
export type Variables<Uri extends string> = string extends Uri
    ? Record<string, string>
    : Uri extends `${string}{${infer Variable}}${infer Rest}`
      ? { [K in Name<Variable>]: string } & Variables<Rest>
      : unknown;

/**
 * Suggests values of an argument: a list, of which the values that begin with the typed
 * text are suggested, or a function of the typed text and the other arguments so far.
 */
export type Completer =
    | readonly string[]
    | ((
          typed: string,
          others: Readonly<Record<string, string>>,
      ) => Iterable<string> | PromiseLike<Iterable<string>>);

/** The options of a resource or of a template of resources. */
export interface ResourceOptions extends ItemOptions {
    /** The resource's name; by default its URI. */
    name?: string | undefined;
    mimeType?: string | undefined;
    /** The size in bytes. */
    size?: number | undefined;
    annotations?: Annotations | undefined;
    /** How long a read result stays fresh (2026-07-28); 0 by default. */
    readTtlMs?: number | undefined;
    /** Whether shared caches may keep the result for other callers, too. */
    readScope?: "private" | "public" | undefined;
    /** For a template: suggestions for its variables. */
    complete?: Readonly<Record<string, Completer>> | undefined;
}

/** The contents of a resource: text, bytes, contents, or a value that is sent as JSON. */
export type Readable = string | Bytes | ResourceContents | object | number | boolean;

/** A piece of a resource. A string continues the text of the resource, and contents are a
 * separate item. */
export type ReadablePiece = string | ResourceContents | EmbeddedResource;

/**
 * The handler that reads a resource. Returning null or undefined, or an exception with
 * the code `ENOENT`, means that the resource does not exist. A generator of either kind
 * sends a long text in pieces.
 */
export type ResourceHandler<Vars> = (
    variables: Vars,
    ctx: Context,
) =>
    | Readable
    | readonly ResourceContents[]
    | null
    | undefined
    | PromiseLike<Readable | readonly ResourceContents[] | null | undefined>
    | AsyncGenerator<ReadablePiece, void, void>
    | Generator<ReadablePiece, void, void>
    | AsyncIterable<ReadablePiece>;

/** The options of a prompt. */
export interface PromptOptions<In extends SchemaLike = JsonSchema> extends ItemOptions {
    /** The schema of the arguments, which are strings in the protocol; see `input` of a
     * tool. */
    input?: In | undefined;
    /** Suggestions for arguments. The values of an enum are suggested by default. */
    complete?: Readonly<Record<string, Completer>> | undefined;
}

/**
 * The values that a prompt may return: a text of the user, a block, messages, or the
 * result with the protocol's member names.
 */
export type PromptReturn =
    | string
    | Content
    | PromptMessage
    | readonly (string | Content | PromptMessage)[]
    | { description?: string | undefined; messages: readonly PromptMessage[] };

/** The handler of a prompt. */
export type PromptHandler<Args> = (
    args: Args,
    ctx: Context,
) => PromptReturn | PromiseLike<PromptReturn>;

/** The options of all ways to serve; see {@link Server.listenHttp}. */
export interface ServeOptions {
    /** Where tasks are stored, if not in the store of the server. */
    store?: Store | string | undefined;
    /** Aborting the signal ends the serving, as `close` does. */
    signal?: AbortSignal | undefined;
    /** How long running calls may continue after `close`; 10000 by default. */
    drainMs?: number | undefined;
}

/** The options of a listener; see {@link Server.listenHttp}. */
export interface ListenOptions
    extends ServeOptions,
        Clean<Omit<native.ListenOptions, "hosts" | "origins" | "drainMs">> {
    /**
     * The address to listen on. Node's servers call this option `host`, too. "127.0.0.1"
     * by default.
     */
    host?: string | undefined;
    /** The accepted values of the Host header; "*" = any. */
    hosts?: string | readonly string[] | undefined;
    /** The origins of web pages that may call; "*" = any. `cors` lets browsers read
     * answers. */
    origins?: string | readonly string[] | undefined;
    /** Checks the callers. With this option every caller needs a token. */
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
        stored: true,
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
 * Refuses an unknown option of an item. Without this check an unknown option would be
 * ignored silently.
 *
 * @throws TypeError: an option is unknown.
 */
export function checkOptions(what: keyof typeof KNOWN, key: string, given: object): void {
    for (const name in given) {
        if (!Object.hasOwn(KNOWN[what], name)) {
            throw new TypeError(`${what} ${key}: no option ${JSON.stringify(name)}`);
        }
    }
}
