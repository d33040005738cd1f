/**
 * The options of a server, of its items and of the ways to serve it.
 *
 * An option of the library has the same name as in `segue.h`, in camelCase, and is passed
 * to the library unchanged. Durations are in milliseconds, sizes in bytes.
 *
 * @module
 */

import type { IncomingMessage } from "node:http";
import type {
    Annotations,
    Bytes,
    Content,
    EmbeddedResource,
    GivenContent,
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
import type { Lifespan } from "./lifespan.js";
import type { Store } from "./stores.js";

type Clean<T> = { [Name in keyof T]?: Exclude<T[Name], null> };

/**
 * The item that failed, as {@link ServerOptions.onError} gets it.
 */
export interface Failure {
    /**
     * The kind of item: "tool", "resource", "prompt", "completion", "auth", "session",
     * "lifespan", or "callback" for one of a `Remote`.
     */
    readonly what: string;
    /** The name of the item; for a resource, its URI; the id of a session. */
    readonly name: string;
}

/** The options of a {@link Server}. */
export interface ServerOptions<Life = unknown>
    extends Clean<Omit<native.ServerOptions, "store" | "listScope">> {
    /**
     * The name of the server. Clients see the name, the version, the title and the
     * instructions of a server.
     */
    name: string;
    /**
     * Where tasks are stored: a store that `stores` has opened, the path of a SQLite file
     * (which survives a crash), or the URL of a Redis or PostgreSQL server. By default
     * tasks are stored in memory.
     */
    store?: Store | string | undefined;
    /**
     * "public" = shared caches may give lists to other callers, too, while the lists are
     * fresh (`listTtlMs`).
     */
    listScope?: "private" | "public" | undefined;
    /**
     * Maximum number of calls that run at the same time; 16384 by default. Further calls
     * are refused (-32603, `{"reason": "limit"}`). Tasks that were taken over from
     * another server wait instead.
     */
    maxCalls?: number | undefined;
    /**
     * The name of all callers, for a server with one user; or a function that returns the
     * principal of a caller, from data of the connection. To refuse the caller, the
     * function throws. The function runs for each request and must be quick. The option
     * cannot be combined with `auth`.
     */
    principal?: string | ((peer: Caller) => string | null | undefined) | undefined;
    /**
     * Called with an exception of a handler that the caller should not see. By default
     * the exception is printed to standard error, as is an exception of `onError` itself.
     */
    onError?: ((error: unknown, failure: Failure) => unknown) | undefined;
    /**
     * true = callers get the messages of all exceptions. By default callers only learn
     * that the tool failed. `ToolError` and `RpcError` are meant for callers, who always
     * get their messages.
     */
    exposeErrors?: boolean | undefined;
    /**
     * Opens what the handlers share, such as a database, before the server begins to
     * serve, and closes it when no transport is served and no handler runs any more.
     * Handlers get the value as {@link Context.lifespan}. `onError` gets the error of a
     * clean-up.
     */
    lifespan?: Lifespan<Life> | undefined;
}

/** The options that all items have. */
export interface ItemOptions {
    /** Name for people. */
    title?: string | undefined;
    /** Text for people and models. */
    description?: string | undefined;
    /** Pictures, in several sizes. */
    icons?: readonly Icon[] | undefined;
    /** Additional data, see `Meta`. */
    _meta?: Meta | undefined;
    /**
     * The scopes that a call of the item needs. Over HTTP the caller's token must grant
     * all these scopes.
     */
    scopes?: string | readonly string[] | undefined;
}

/**
 * Hints for a client that decides whether to call a tool. Clients may distrust the hints.
 */
export interface ToolAnnotations {
    /** Name for people. */
    title?: string | undefined;
    /** True: the tool changes nothing. */
    readOnlyHint?: boolean | undefined;
    /** True: the tool may delete or overwrite. */
    destructiveHint?: boolean | undefined;
    /** True: a second call with the same arguments changes nothing more. */
    idempotentHint?: boolean | undefined;
    /** True: the tool deals with things outside, such as the web. */
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
     * with a Standard Schema for each member, or a JSON Schema. Anything else is a
     * TypeError. The check of a JSON Schema does not check `format`. If the arguments do
     * not fit, the handler does not run. The caller then gets a result with `isError`
     * that says what does not fit.
     */
    input?: In | undefined;
    /**
     * Whether unknown arguments are an error. By default, they are an error if `input`
     * is an object of a Standard Schema or of members, unless the schema says otherwise
     * (`z.looseObject`), or if there is no `input`. A JSON Schema says so itself
     * (`additionalProperties: false`). false = unknown arguments get past the names, and
     * `input` decides. Without `input` the handler then gets all arguments.
     */
    forbidExtra?: boolean | undefined;
    /**
     * The schema of the structured result, in the same forms as `input`. If the result
     * does not fit, the call ends with an internal error.
     */
    output?: Out | undefined;
    /** What the tool does to its surroundings. */
    annotations?: ToolAnnotations | undefined;
    /**
     * Whether a call becomes a task; "never" by default. "must" refuses callers that do
     * not support tasks.
     */
    task?: TaskPolicy | undefined;
    /**
     * How long a task lives from its creation, in milliseconds; 1 h by default. A task
     * that still runs then fails, so a longer tool needs a larger value.
     */
    ttlMs?: number | undefined;
    /**
     * How often clients should ask for the status of a task, as an interval in
     * milliseconds; 1000 by default.
     */
    pollMs?: number | undefined;
    /**
     * With `task: "may"`: the time in milliseconds after which a running call becomes a
     * task; 0 = at once.
     */
    promoteAfterMs?: number | undefined;
    /**
     * true = after a crash, tasks of this tool run again; see {@link Context.resumed}.
     */
    restartable?: boolean | undefined;
    /**
     * true = a caller that lost its connection may come back for the answer (SEP-975,
     * revisions before 2026-07-28). The caller may come back from `resumeMinWaitMs` to
     * `resumeMaxWaitMs` (10 min by default) after the loss. A call whose caller does not
     * come back is cancelled.
     */
    resumable?: boolean | undefined;
    /**
     * The time for which a client should wait before it comes back after a lost
     * connection; 0 = the client gets no such time.
     */
    resumeMinWaitMs?: number | undefined;
    /**
     * The call is cancelled when the client does not come back within this time; default
     * 10 min, -1 = 10 min that are not reported to the client.
     */
    resumeMaxWaitMs?: number | undefined;
    /**
     * true = cancelling a task of this tool has no effect. In 2025-11-25, every task can
     * be cancelled nevertheless.
     */
    unstoppable?: boolean | undefined;
    /**
     * true = the store keeps plain calls, too. A stored plain call continues when the
     * caller's connection is lost. After a crash, a stored plain call runs again if the
     * tool is `restartable`.
     */
    stored?: boolean | undefined;
    /**
     * true = the output is sent in segments. Default: true for generators, otherwise
     * false.
     */
    incremental?: boolean | undefined;
}

/**
 * The values that a handler may send or yield: text, a block, a segment of another call,
 * a {@link Result}, or a value that JSON can represent. The blocks of a `Result` are sent
 * at once.
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
 * The values that a tool may return. Without an `output` schema, a tool may return
 * nothing, text, a block, a list of texts and blocks, a {@link Result} (or its form in
 * the protocol), or a value that JSON can represent. An object also becomes the
 * structured content.
 */
export type ToolReturn<Out> = [Out] extends [never]
    ? // biome-ignore lint/suspicious/noConfusingVoidType: a handler may return nothing
      Sendable | void
    : SchemaInput<Out> | Result<SchemaInput<Out>> | GivenResult;

/** A {@link WireResult} that a handler makes. */
export interface GivenResult extends Omit<WireResult, "content"> {
    content: GivenContent[];
}

/** The values that an async iterable, such as a stream, sends one by one. */
interface Sent<Return> {
    [Symbol.asyncIterator](): {
        // biome-ignore lint/suspicious/noConfusingVoidType: iterables that return nothing
        next(): Promise<IteratorResult<Sendable, Return | void>>;
    };
}

/** The handler of a tool: a function or a generator, plain or async. */
// biome-ignore lint/suspicious/noExplicitAny: the lifespan of any server
export type ToolHandler<Args, Return, Life = any> = (
    args: Args,
    ctx: Context<Life>,
) =>
    | Return
    | PromiseLike<Return>
    // biome-ignore lint/suspicious/noConfusingVoidType: generators that return nothing
    | AsyncGenerator<Sendable, Return | void, void>
    // biome-ignore lint/suspicious/noConfusingVoidType: generators that return nothing
    | Generator<Sendable, Return | void, void>
    | Sent<Return>;

/** The type of the arguments that a schema describes. */
export type ArgsOf<In> = SchemaOutput<In>;

type Name<T extends string> = T extends `+${infer Rest}` ? Rest : T;
/**
 * The variables of a URI template: `{ id: string }` for `"note://{id}"`. `{+path}` may
 * have slashes. Other expressions, such as `{?q}`, are refused.
 */
export type Variables<Uri extends string> = string extends Uri
    ? Record<string, string>
    : Uri extends `${string}{${infer Variable}}${infer Rest}`
      ? { [K in Name<Variable>]: string } & Variables<Rest>
      : unknown;

/**
 * Suggests values of an argument. A list suggests those of its values that begin with the
 * typed text. A function gets the typed text and the values of the other arguments so
 * far.
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
    /** MIME type, such as `image/png`. */
    mimeType?: string | undefined;
    /** The size in bytes. */
    size?: number | undefined;
    /** Hints on how to use it. */
    annotations?: Annotations | undefined;
    /**
     * How long the result of a read stays fresh (2026-07-28), in milliseconds; 0 by
     * default.
     */
    readTtlMs?: number | undefined;
    /** "public" = shared caches may give the result to other callers, too. */
    readScope?: "private" | "public" | undefined;
    /** For a template: suggested values of its variables, by the name of the variable. */
    complete?: Readonly<Record<string, Completer>> | undefined;
}

/** The value of a resource: text, bytes, contents, or a value that is sent as JSON. */
export type Readable = string | Bytes | ResourceContents | object | number | boolean;

/**
 * A piece of a resource. A string continues the text of the resource. Contents become a
 * separate item of the result.
 */
export type ReadablePiece = string | ResourceContents | EmbeddedResource;

/**
 * The handler that reads a resource. If the handler returns null or undefined, or throws
 * an exception with the code `ENOENT`, the resource does not exist. A generator, plain or
 * async, sends a long text in pieces.
 */
// biome-ignore lint/suspicious/noExplicitAny: the lifespan of any server
export type ResourceHandler<Vars, Life = any> = (
    variables: Vars,
    ctx: Context<Life>,
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
    /**
     * The schema of the arguments, in the same forms as `input` of a tool. In the
     * protocol, the arguments of a prompt are strings.
     */
    input?: In | undefined;
    /** Whether unknown arguments are an error, as of a tool. */
    forbidExtra?: boolean | undefined;
    /**
     * Suggested values of arguments, by the name of the argument. By default the values
     * of an enum are suggested.
     */
    complete?: Readonly<Record<string, Completer>> | undefined;
}

/**
 * The values that a prompt may return: a text of the user, a block, messages, or a result
 * with the protocol's member names.
 */
export type PromptReturn =
    | string
    | GivenContent
    | GivenMessage
    | readonly (string | GivenContent | GivenMessage)[]
    | { description?: string | undefined; messages: readonly GivenMessage[] };

/** A {@link PromptMessage} that a handler makes. */
export interface GivenMessage extends Omit<PromptMessage, "content"> {
    content: GivenContent;
}

/** The handler of a prompt. */
// biome-ignore lint/suspicious/noExplicitAny: the lifespan of any server
export type PromptHandler<Args, Life = any> = (
    args: Args,
    ctx: Context<Life>,
) => PromptReturn | PromiseLike<PromptReturn>;

/**
 * The options that all ways to serve have; see {@link Server.listenHttp}.
 */
export interface ServeOptions {
    /** Where tasks are stored. Default: the store of the server. */
    store?: Store | string | undefined;
    /** Aborting the signal ends this `Serving`, as `close` does. */
    signal?: AbortSignal | undefined;
    /**
     * How long running calls may continue after `close`, and how long clients may come
     * back for their answers, at most, in milliseconds; 10000 by default. `close` ends
     * earlier when no call runs and no client is expected. A client that is away is
     * expected for its poll interval and 1 s more.
     */
    drainMs?: number | undefined;
}

/** The options of a listener; see {@link Server.listenHttp}. */
export interface ListenOptions
    extends ServeOptions,
        Clean<Omit<native.ListenOptions, "hosts" | "origins" | "drainMs">> {
    /**
     * The address to listen on; "127.0.0.1" by default. The option has the same meaning
     * as `address`, and the name that Node's servers use.
     */
    host?: string | undefined;
    /**
     * The names that are allowed in the Host header; "*" = any. Default: on loopback the
     * names of loopback; elsewhere localhost and addresses, or any name with TLS or
     * tokens.
     */
    hosts?: string | readonly string[] | undefined;
    /**
     * The origins whose web pages may call the server; "*" = any. With `cors`, browsers
     * let these pages read the answers. Default: on loopback the origins of loopback,
     * elsewhere the origin of Host.
     */
    origins?: string | readonly string[] | undefined;
    /** Checks the tokens of callers. With this option every caller needs a token. */
    auth?: BearerAuth | undefined;
}

/** The options of a handler; see {@link Server.handler}. */
export interface HandlerOptions
    extends Omit<
        ListenOptions,
        | "host"
        | "address"
        | "port"
        | "reusePort"
        | "certFile"
        | "keyFile"
        | "clientCaFile"
        | "clientCertRequired"
    > {
    /**
     * Returns the principal of a request that the application has authenticated, or
     * undefined. Such a caller needs no token, and the `principal` of the server does not
     * run. The request is what the framework gives: an `IncomingMessage` (`node:http`,
     * Express, Fastify), or the `Request` of `fetch`. Name the type of yours:
     * `(request: express.Request) => ...`.
     */
    principal?: PrincipalOf["of"] | undefined;
}

/** A method, because the parameter of a method may be of one of the types only. */
interface PrincipalOf {
    of(
        request: IncomingMessage | Request,
    ): string | null | undefined | Promise<string | null | undefined>;
}
