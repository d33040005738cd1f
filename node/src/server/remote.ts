/**
 * A server somewhere else, whose items this process offers.
 *
 *     client --> Server "all" -- Mount("git") --> Remote -- Session --> the remote server
 *                  git_log   <--- a copy ---        log  <--- listed ---   log
 *
 * A `Remote` is a server whose items come from the lists of another server. Each item
 * relays its calls over one session. What the remote server reports as changed is listed
 * again, as is everything after each new connection.
 *
 * @module
 */

import type { Change, Changes } from "../client/changes.js";
import type { LogMessage } from "../client/conversation.js";
import type { Progress } from "../client/exchange.js";
import { connect, type Target } from "../client/opening.js";
import type { ConnectOptions } from "../client/options.js";
import { Answers, type Question, Refused } from "../client/questions.js";
import type { Session } from "../client/session.js";
import { type Meta, Result } from "../content.js";
import {
    ClosedError,
    RemoteError,
    SegueError,
    TransportError,
    UnsupportedError,
} from "../errors.js";
import { isPublic, RpcError, report } from "../failures.js";
import {
    type Call,
    type ItemOptions,
    native,
    Item as Sort,
    ToolFlag,
} from "../native.js";
import { type Suggested, Suggestions } from "./completion.js";
import type { Context } from "./context.js";
import { INTERNAL, type Run, rpcError } from "./item.js";
import type { Method } from "./layers.js";
import { Completing } from "./listed.js";
import type { ServerOptions } from "./options.js";
import { Server } from "./server.js";
import type { CloseOptions } from "./serving.js";
import { jsonText } from "./values.js";

const METHOD_NOT_FOUND = -32601;
const MISSING_CAPABILITY = -32021;
const PROTOCOL = "io.modelcontextprotocol/";

/** The options of {@link Remote.connect}. */
export interface RemoteOptions extends Omit<ConnectOptions, "onInput" | "onError"> {
    /** The name of this server, which clients see when it is served by itself. */
    serverName?: string | undefined;
    /**
     * Gets each error that clients should not see, as {@link ServerOptions.onError}, and
     * that of a callback of these options.
     */
    onError?: ServerOptions["onError"];
}

type Kind = "tools" | "resources" | "prompts";
const KINDS: readonly Kind[] = ["tools", "resources", "prompts"];

/** An item in a list of the remote server. */
interface Told {
    name: string;
    uri?: string;
    uriTemplate?: string;
    arguments?: readonly unknown[];
    execution?: { taskSupport?: string };
    [member: string]: unknown;
}

/**
 * A remote MCP server as a {@link Server}, to mount it in another one:
 *
 *     const example = await Remote.connect("https://example.com/mcp", { auth: token });
 *     app.mount(example, { prefix: "example" });
 *     app.mount(await Remote.connect(["npx", "-y", "some-server"]), { prefix: "some" });
 *
 * The tools, resources, templates and prompts of the remote server appear here as its
 * lists change. Calls, reads and suggestions are relayed: with segments, progress, log
 * messages, questions (elicitation, sampling, roots) and cancellation. The session
 * connects again as each session does. Until then calls wait, or fail with an error that
 * says so.
 *
 * A remote item that another item of the same name hides is left out, and `onError` is
 * told. Links to resources inside of results keep the URI of the remote server. Updates
 * of a single resource are not relayed. A remote server of a revision before 2026-07-28
 * does not say to which call a log message over stdio belongs, so such messages are
 * dropped. The connection does not keep the process alive.
 */
export class Remote extends Server {
    /** The session with the remote server. */
    readonly session: Session;
    readonly #link: Link;
    #changes: Changes | undefined;
    /** The refreshes of the lists run one after the other. */
    #refreshing: Promise<void> = Promise.resolve();

    private constructor(
        link: Link,
        options: { name: string; onError?: ServerOptions["onError"] },
    ) {
        super(options);
        this.#link = link;
        this.session = link.session;
    }

    /**
     * Connects to a remote server, and lists its items.
     *
     * @param target - the URL of the server, or the command that starts it.
     * @param options - those of `connect`. All clients share the session.
     * @throws what `connect` throws.
     */
    static async connect(target: Target, options: RemoteOptions = {}): Promise<Remote> {
        if (target instanceof Server) {
            throw new TypeError("mount a Server itself, not a Remote of it");
        }
        const { serverName: name = "remote", onError, ...rest } = options;
        const asks: Asks = new Set();
        const session = await connect(target, {
            logLevel: "debug",
            onLog: () => undefined, // a message that belongs to no call
            ...rest,
            onError: (error, { callback: name }) =>
                report(
                    onError,
                    error,
                    { what: "callback", name },
                    `the callback ${name}`,
                ),
            onInput: (question) => askOnly(asks, question),
        });
        const remote = new Remote(
            { session, asks },
            { name, ...(onError && { onError }) },
        );
        try {
            await remote.#begin();
        } catch (error) {
            await session.close();
            throw error;
        }
        return remote;
    }

    /** Stops serving, as {@link Server.close} does, and closes the session. */
    override async close(options: CloseOptions = {}): Promise<void> {
        await super.close(options);
        await this.#changes?.close();
        await this.session.close();
    }

    // ---- the items

    async #begin(): Promise<void> {
        const { capabilities } = this.session.peer;
        const kinds = KINDS.filter((kind) => kind in capabilities);
        if (!kinds.length) return;
        const wanted = Object.fromEntries(kinds.map((kind) => [kind, true]));
        const onChange = (change: Change): void => this.#refreshSoon(change.kind as Kind);
        try {
            const options = { onChange, keepAlive: false };
            this.#changes = await this.session.subscribe(wanted, options);
        } catch (error) {
            // A server that does not report changes has lists that stay as they are.
            if (!(error instanceof SegueError)) throw error;
        }
        for (const kind of kinds) await this.#refresh(kind);
    }

    #refreshSoon(kind: Kind): void {
        this.#refreshing = this.#refreshing
            .then(() => this.#refresh(kind))
            // The next connection reports a change, too.
            .catch((error: unknown) => {
                if (!this.session.isClosed) {
                    this.report(error, { what: "list", name: kind });
                }
            });
    }

    /** Makes the items of one kind those that the remote server lists now. */
    async #refresh(kind: Kind): Promise<void> {
        const found = new Map<string, Relay>();
        for (const item of await this.#listed(kind)) {
            found.set(`${item.kind} ${item.key}`, item);
        }
        for (const had of [...this.items]) {
            if (!(had instanceof Relay) || had.list !== kind) continue;
            const now = found.get(`${had.kind} ${had.key}`);
            if (now && jsonText(now.told) === jsonText(had.told)) {
                found.delete(`${had.kind} ${had.key}`);
            } else this._remove(had.kind, had.key);
        }
        for (const item of found.values()) {
            item.servers = [this];
            try {
                this._checkNew([item]);
                this._insert(item);
            } catch (error) {
                this.report(error, { what: item.what, name: item.key });
            }
        }
    }

    async #listed(kind: Kind): Promise<Relay[]> {
        const { session } = this;
        const fresh = { noCache: true };
        const told = async (listing: PromiseLike<unknown[]>): Promise<Told[]> =>
            (await listing) as Told[];
        if (kind === "tools") {
            const tools = await told(session.listTools(fresh));
            return tools.map((one) => toolOf(this.#link, one));
        }
        if (kind === "prompts") {
            const prompts = await told(session.listPrompts(fresh));
            return prompts.map((one) => promptOf(this.#link, one));
        }
        const resources = await told(session.listResources(fresh));
        const templates = await told(session.listResourceTemplates(fresh));
        return [...resources, ...templates].map((one) => resourceOf(this.#link, one));
    }
}

// ---- questions outside of calls

/** Asks the client of a call. */
type Ask = (question: Pick<Question, "method" | "params">) => Promise<object>;
/** What asks the clients of the calls that are open. */
type Asks = Set<Ask>;

/** The session with the remote server, and its open calls. */
interface Link {
    readonly session: Session;
    readonly asks: Asks;
}

/**
 * Asks the client of the only open call.
 *
 * A server of a revision before 2026-07-28 may send a question on a stream that names no
 * call: the official SDK does so over HTTP, unless the server's program says to which
 * call the question belongs. A question may only follow from a call, so it is that of
 * the only open one. If there are several calls, their clients may be several users, and
 * nobody is asked.
 */
async function askOnly(asks: Asks, { method, params }: Question): Promise<object> {
    const [ask] = asks;
    if (ask && asks.size === 1) return ask({ method, params });
    const count = asks.size || "no";
    throw new Refused(
        `${method} names no call, and ${count} calls are open: nobody is asked`,
        METHOD_NOT_FOUND,
    );
}

// ---- relaying

/** What differs between the kinds of items. */
interface Way {
    readonly sort: { list: Kind; kind: number; what: string; method: Method };
    readonly told: Told;
    /** The member of `told` that is the key. */
    readonly named: "name" | "uri" | "uriTemplate";
    readonly options: ItemOptions;
    readonly suggestions: Suggestions;
    /** Ends a call with the answer of the remote server. */
    readonly reply: (call: Call, answer: never) => void;
}

/** An item of the remote server. */
class Relay extends Completing {
    readonly kind: number;
    readonly what: string;
    readonly method: Method;
    readonly told: Told;
    readonly options: ItemOptions;
    readonly suggestions: Suggestions;
    readonly list: Kind;
    readonly #way: Way;

    constructor(key: string, run: Run, way: Way) {
        super(key, run);
        this.#way = way;
        ({
            kind: this.kind,
            what: this.what,
            method: this.method,
            list: this.list,
        } = way.sort);
        this.options = way.options;
        this.suggestions = way.suggestions;
        this.told = { ...way.told, [way.named]: key };
    }

    override renamed(key: string): Relay {
        return new Relay(key, this.run, this.#way);
    }

    override check(given: Record<string, unknown>): unknown {
        return given;
    }

    override lastWord(value: unknown, last: unknown): unknown {
        return value instanceof Result ? value : last;
    }

    override reply(call: Call, value: unknown): void {
        this.#way.reply(call, value as never);
    }

    override explain(error: unknown, isExposed: boolean): SegueError {
        if (isPublic(error) || isExposed) return rpcError(error, isExposed);
        const isLost = error instanceof TransportError || error instanceof ClosedError;
        const why = isLost ? "The remote server cannot be reached" : "Internal error";
        return new RpcError(INTERNAL, why);
    }
}

interface Completed {
    values: string[];
    total?: number;
    hasMore?: boolean;
}

/** Suggestions that the remote server makes, if it makes any. */
class RemoteSuggestions extends Suggestions {
    readonly #session: Session;
    readonly #of: object | undefined;

    /** @param of - what completion/complete calls the item; undefined = nothing. */
    constructor(session: Session, of: object | undefined) {
        super("", []);
        this.#session = session;
        this.#of = of;
    }

    override get size(): number {
        return this.#of && "completions" in this.#session.peer.capabilities ? 1 : 0;
    }

    override async answer(params: string): Promise<Suggested> {
        const { argument, context } = JSON.parse(params) as Record<string, unknown>;
        const given = { ref: this.#of, argument, context };
        const answer = await this.#session
            .request("completion/complete", given)
            .catch(answering);
        const { values, total, hasMore } = answer["completion"] as Completed;
        return { values, total: total ?? values.length, hasMore: hasMore ?? false };
    }
}

function toolOf({ session, asks }: Link, given: Told): Relay {
    const { execution, ...told } = given;
    const support = execution?.taskSupport ?? "forbidden";
    // What is known of tasks: 2026-07-28 does not tell it before a call.
    let mustBeTask = support === "required";
    async function* run(args: Record<string, unknown>, ctx: Context, noTask: boolean) {
        const { answers, ...passed } = passing(ctx);
        asks.add(answers);
        try {
            const stream = session.streamWith({ noTask }, told.name, args, {
                ...passed,
                onInput: answers,
                meta: metaOf(ctx),
                signal: ctx.signal,
                throwOnError: false,
                collect: false,
            });
            let blocks = 0;
            for await (const segment of stream) {
                if (segment.replaces) {
                    await ctx.replace(segment);
                    blocks = 1;
                } else if (segment.index < blocks && segment.text !== undefined) {
                    await ctx.extend(segment.index, segment.text);
                } else {
                    yield segment;
                    blocks++;
                }
            }
            const { structured, isError, meta } = stream.result;
            yield new Result([], { structured, isError, meta });
        } finally {
            asks.delete(answers);
        }
    }
    async function* call(args: Record<string, unknown>, ctx: Context) {
        const noTask = isHeard(ctx) && !mustBeTask;
        try {
            yield* run(args, ctx, noTask);
            return;
        } catch (error) {
            // The tool has not run: it must be a task, which reports no progress.
            const isRefused =
                error instanceof RemoteError && error.rpcCode === MISSING_CAPABILITY;
            if (!noTask || !isRefused) answering(error);
        }
        mustBeTask = true;
        try {
            yield* run(args, ctx, false);
        } catch (error) {
            answering(error);
        }
    }
    return new Relay(told.name, call, {
        sort: { list: "tools", kind: Sort.TOOL, what: "tool", method: "tools/call" },
        told,
        named: "name",
        options: { flags: ToolFlag.INCREMENTAL, task: support === "forbidden" ? 0 : 1 },
        suggestions: new RemoteSuggestions(session, undefined),
        reply: (call, { structured, isError, meta }: Result) => {
            setMeta(call, meta);
            const json = structured === undefined ? null : jsonText(structured);
            native.callReply(call, null, [], json, isError);
        },
    });
}

function resourceOf(link: Link, told: Told): Relay {
    const isTemplate = told.uriTemplate !== undefined;
    const own = told.uriTemplate ?? told.uri ?? "";
    const beginOf = (uri: string): string => uri.split("{", 1)[0] as string;
    const read = async (_: unknown, ctx: Context): Promise<Contents> => {
        // The beginning of the URI has the prefixes of all mounts.
        const shown = beginOf(ctx.item.key);
        const uri = beginOf(own) + ctx.name.slice(shown.length);
        const answer = (await relay(link, "resources/read", { uri }, ctx)) as unknown;
        const contents = (answer as Contents).contents.map((one) =>
            one.uri === uri ? { ...one, uri: ctx.name } : one,
        );
        return { ...(answer as Contents), contents };
    };
    const kind = isTemplate ? Sort.RESOURCE_TEMPLATE : Sort.RESOURCE;
    const of = isTemplate ? { type: "ref/resource", uri: own } : undefined;
    return new Relay(own, read, {
        sort: { list: "resources", kind, what: "resource", method: "resources/read" },
        told,
        named: isTemplate ? "uriTemplate" : "uri",
        options: {},
        suggestions: new RemoteSuggestions(link.session, of),
        reply: (call, { contents, _meta }: Contents) => {
            setMeta(call, _meta);
            native.callReply(call, null, contents.map(jsonText));
        },
    });
}

interface Contents {
    contents: { uri?: string }[];
    _meta?: Meta;
}

interface Messages {
    messages: object[];
    description?: string;
    _meta?: Meta;
}

function promptOf(link: Link, told: Told): Relay {
    const { name } = told;
    const get = (args: Record<string, unknown>, ctx: Context): Promise<object> =>
        relay(link, "prompts/get", { name, arguments: args }, ctx);
    const of = told.arguments?.length ? { type: "ref/prompt", name } : undefined;
    return new Relay(name, get, {
        sort: {
            list: "prompts",
            kind: Sort.PROMPT,
            what: "prompt",
            method: "prompts/get",
        },
        told,
        named: "name",
        options: {},
        suggestions: new RemoteSuggestions(link.session, of),
        reply: (call, { messages, description, _meta }: Messages) => {
            setMeta(call, _meta);
            if (description !== undefined) {
                native.callSetField(call, "description", jsonText(description));
            }
            native.callReply(call, null, messages.map(jsonText));
        },
    });
}

/** Returns the callbacks that pass on what comes during a call. */
function passing(ctx: Context) {
    const answers: Ask = async ({ method, params }) => {
        try {
            return (await ctx.request(method, params)) as object;
        } catch (error) {
            if (error instanceof RpcError) {
                throw new Refused(error.message, error.rpcCode ?? INTERNAL);
            }
            if (error instanceof UnsupportedError) {
                throw new Refused(error.message, METHOD_NOT_FOUND);
            }
            throw error;
        }
    };
    return {
        onProgress: ({ progress, total, message }: Progress): void =>
            ctx.progress(progress, total, message),
        onLog: ({ data, level }: LogMessage): void => ctx.log(data, level),
        answers,
    };
}

/**
 * Returns whether the client of a call gets progress and log messages. With 2026-07-28 it
 * does not, if the call becomes a task, as each call that may be one does at once.
 */
function isHeard(ctx: Context): boolean {
    const can = ctx.meta?.[`${PROTOCOL}clientCapabilities`] as Capabilities | undefined;
    return can?.extensions?.[`${PROTOCOL}tasks`] === undefined;
}

interface Capabilities {
    extensions?: { [name: string]: unknown };
}

/** Throws an error of the remote server as one that the caller gets. */
function answering(error: unknown): never {
    if (!(error instanceof RemoteError)) throw error;
    throw RpcError.from(error.rpcCode || INTERNAL, error.message, error.data);
}

/** Sends a request to the remote server, and returns its answer. */
async function relay(
    { session, asks }: Link,
    method: string,
    params: object,
    ctx: Context,
): Promise<Record<string, unknown>> {
    const { answers, ...passed } = passing(ctx);
    const given = { ...params, _meta: metaOf(ctx) };
    const options = { answers: new Answers({ onInput: answers }), signal: ctx.signal };
    asks.add(answers);
    try {
        return await session
            .request(method, given, { ...passed, ...options })
            .catch(answering);
    } finally {
        asks.delete(answers);
    }
}

/** Returns `_meta` for the request to the remote server, with the trace of the call. */
function metaOf(ctx: Context): Meta | undefined {
    const { traceParent } = ctx;
    const kept = withoutProtocol(ctx.meta);
    return traceParent === undefined ? kept : { ...kept, traceparent: traceParent };
}

/** Returns the members of `_meta` that do not belong to one connection. */
function withoutProtocol(meta: Readonly<Meta> | undefined): Meta | undefined {
    const kept = Object.entries(meta ?? {}).filter(
        ([key]) => key !== "progressToken" && !key.startsWith(PROTOCOL),
    );
    return kept.length ? Object.fromEntries(kept) : undefined;
}

function setMeta(call: Call, given: Readonly<Meta> | undefined): void {
    const meta = withoutProtocol(given);
    if (meta) native.callSetField(call, "_meta", jsonText(meta));
}
