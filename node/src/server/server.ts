/**
 * What a server serves, and how it is run.
 *
 * @module
 */

import { asyncDispose } from "../dispose.js";
import { ClosedError, NotFoundError } from "../errors.js";
import { native, type Principal, Item as Sort, type Transport } from "../native.js";
import type { ServerOptions as NativeOptions } from "../native_options.js";
import type { JsonSchema, SchemaLike } from "../schema.js";
import { principalHook } from "./auth.js";
import { Hosting } from "./hosting.js";
import { compact, type Item, type Run } from "./item.js";
import { Completing, Prompt, Resource } from "./listed.js";
import type {
    ArgsOf,
    Completer,
    Failure,
    ListenOptions,
    PromptHandler,
    PromptOptions,
    ResourceHandler,
    ResourceOptions,
    ServeOptions,
    ServerOptions,
    ToolHandler,
    ToolOptions,
    ToolReturn,
    Variables,
} from "./options.js";
import { type CloseOptions, Listener, type Serving, Stdio } from "./serving.js";
import { closeOnSignals, type SignalOptions } from "./signals.js";
import { guardOutput } from "./stdio.js";
import { type Store, stores } from "./stores.js";
import { Tool } from "./tool.js";

/** An item of a server. */
export interface Registered {
    /** Its name; of a resource its URI. */
    readonly name: string;
    /** Takes it away. Calls that run go on. Does nothing the second time. */
    remove(): void;
}

/**
 * An MCP server: tools, resources and prompts, made of functions.
 *
 * It may be served several times, in several ways. What is added or removed while it is
 * served is told to the clients that listen.
 */
export class Server {
    readonly name: string;
    readonly version: string;
    /** @internal */
    readonly maxCalls: number;
    /** @internal */
    readonly exposesErrors: boolean;
    /** @internal */
    readonly nativeOptions: NativeOptions;
    /** @internal */
    readonly principalHook: Principal | null;
    readonly #onError: (error: unknown, failure: Failure) => void;
    readonly #store: Store | string | undefined;
    readonly #items = new Map<string, Item>();
    readonly #hosts = new Set<Hosting>();
    readonly #servings = new Set<Serving>();
    readonly #opened = new Map<string, Promise<Store>>();
    /** Stores on their way to their end, which nobody else is given. */
    readonly #shutting = new Set<Promise<void>>();
    /** Those that nobody serves any more, whose tasks may still run. */
    readonly #left = new Set<Hosting>();
    #closings = 0;
    /** Of transports that were attached. */
    #attached: Hosting | undefined;

    constructor(options: ServerOptions) {
        const { store, listScope, maxCalls, principal, onError, exposeErrors, ...rest } =
            options;
        if (typeof rest.name !== "string" || !rest.name) {
            throw new TypeError("a server has a name");
        }
        this.name = rest.name;
        this.version = rest.version ?? "0";
        this.maxCalls = maxCalls ?? 16_384;
        if (!(this.maxCalls >= 1)) throw new RangeError("maxCalls is at least 1");
        this.exposesErrors = exposeErrors ?? false;
        this.#store = store;
        this.#onError = onError ?? printError;
        this.principalHook = principal ? principalHook(principal) : null;
        this.nativeOptions = compact({
            ...rest,
            version: this.version,
            listScope:
                listScope === undefined ? undefined : listScope === "public" ? 1 : 0,
        });
    }

    // ---- tools

    /**
     * Makes a function a tool.
     *
     * The function is plain, async, or a generator of either sort: each `yield` is a
     * segment of the result, which a client sees as it comes, and what it returns is
     * the end. What is given: text, blocks (`image()`, ...), a list of these, a
     * `Result`, or a value that has a form in JSON.
     *
     * What it throws becomes a result with `isError`: a `ToolError` with its message, an
     * `RpcError` (and any other `SegueError`) a JSON-RPC error, and all else a text that
     * tells nothing of it (`onError` gets it).
     *
     * @param name - what a model calls it.
     * @throws ExistsError when there is one already; TypeError for options that are none.
     */
    tool(
        name: string,
        handler: ToolHandler<Record<string, unknown>, ToolReturn<never>>,
    ): Registered;
    tool<In extends SchemaLike = JsonSchema, Out extends SchemaLike = never>(
        name: string,
        options: ToolOptions<In, Out>,
        handler: ToolHandler<ArgsOf<In>, ToolReturn<Out>>,
    ): Registered;
    tool(name: string, ...rest: unknown[]): Registered {
        const [options, run] = split<ToolOptions>(rest);
        return this.#add(new Tool(name, options, run));
    }

    // ---- resources, prompts, completion

    /**
     * Makes a function a resource, or a template: `server.resource("note://{id}", ...)`.
     *
     * The function gets the variables of the template. Their values come from strangers
     * and may hold anything, "../" too. It gives text, bytes (a blob), contents, a list
     * of these, or a value that is JSON then; nothing means that there is no such
     * resource.
     */
    resource<Uri extends string>(
        uri: Uri,
        handler: ResourceHandler<Variables<Uri>>,
    ): Registered;
    resource<Uri extends string>(
        uri: Uri,
        options: ResourceOptions,
        handler: ResourceHandler<Variables<Uri>>,
    ): Registered;
    resource(uri: string, ...rest: unknown[]): Registered {
        const [options, run] = split<ResourceOptions>(rest);
        return this.#add(new Resource(uri, options, run));
    }

    /**
     * Makes a function a prompt. It gives text (a message of the user), a block, messages
     * (`user()`, `assistant()`), or a list of these.
     */
    prompt(name: string, handler: PromptHandler<Record<string, string>>): Registered;
    prompt<In extends SchemaLike = JsonSchema>(
        name: string,
        options: PromptOptions<In>,
        handler: PromptHandler<ArgsOf<In>>,
    ): Registered;
    prompt(name: string, ...rest: unknown[]): Registered {
        const [options, run] = split<PromptOptions>(rest);
        return this.#add(new Prompt(name, options, run));
    }

    /**
     * Suggests values of an argument of a prompt, or a variable of a template, that is
     * there already. The same as `complete` among its options.
     *
     * @throws NotFoundError without such a prompt or template, TypeError without such an
     *     argument.
     */
    completion(of: string, argument: string, completer: Completer): void {
        const item =
            this.#items.get(keyOf(Sort.PROMPT, of)) ??
            this.#items.get(keyOf(Sort.RESOURCE_TEMPLATE, of));
        if (!(item instanceof Completing)) {
            throw new NotFoundError(`there is no prompt or template "${of}"`);
        }
        const had = item.completes;
        item.suggestions.set(argument, completer);
        if (had) return;
        for (const host of this.#hosts) {
            host.remove(item);
            host.add(item);
        }
    }

    // ---- items that come and go

    #add(item: Item): Registered {
        const key = keyOf(item.kind, item.key);
        const done: Hosting[] = [];
        if (!this.#hosts.size && this.#items.has(key)) this.#exists(item);
        try {
            for (const host of this.#hosts) {
                host.add(item);
                done.push(host);
            }
        } catch (error) {
            for (const host of done) host.remove(item);
            throw error;
        }
        this.#items.set(key, item);
        return { name: item.key, remove: () => this.#drop(item) };
    }

    #exists(item: Item): never {
        throw new TypeError(`there is a ${item.what} "${item.key}" already`);
    }

    #drop(item: Item | undefined): boolean {
        const key = item && keyOf(item.kind, item.key);
        if (!key || this.#items.get(key) !== item) return false;
        this.#items.delete(key);
        for (const host of this.#hosts) host.remove(item);
        return true;
    }

    #remove(name: string, kinds: readonly number[]): boolean {
        return kinds.some((kind) => this.#drop(this.#items.get(keyOf(kind, name))));
    }

    /** Takes a tool away. Calls that run go on. @returns false when there is none. */
    removeTool(name: string): boolean {
        return this.#remove(name, [Sort.TOOL]);
    }

    /** Takes a resource, or a template, away; as {@link removeTool}. */
    removeResource(uri: string): boolean {
        return this.#remove(uri, [Sort.RESOURCE, Sort.RESOURCE_TEMPLATE]);
    }

    /** Takes a prompt away; as {@link removeTool}. */
    removePrompt(name: string): boolean {
        return this.#remove(name, [Sort.PROMPT]);
    }

    /** Tells the clients that subscribed to a resource that it has changed. */
    resourceUpdated(uri: string): void {
        for (const host of this.#hosts) native.serverResourceUpdated(host.handle, uri);
    }

    // ---- serving

    /**
     * Serves over HTTP, at one URL all revisions of Streamable HTTP at once. It keeps the
     * process alive until it is closed, or `unref`d.
     *
     * Without TLS or `auth`, a name under which the server is known has to be in
     * `hosts`: it keeps other pages out. A path in `host` that begins with "unix:" is a
     * Unix socket.
     *
     * @returns what listens, with its `url`.
     * @throws InputOutputError when the address cannot be had, or a certificate not be
     *     used; StoreError when the store cannot be opened.
     */
    listenHttp(options: ListenOptions = {}): Promise<Listener> {
        const leave = (one: Hosting): Promise<void> => this.#leave(one);
        return this.#with(options.store, (store) =>
            this.#served(new Listener(this.#host(store), options, leave)),
        );
    }

    /**
     * Serves standard input and output, until the input ends; `close` and `signal` end
     * it, too. What the program prints (`console.log`) goes to standard error
     * meanwhile.
     *
     * @returns when it has ended.
     */
    async serveStdio(options: ServeOptions = {}): Promise<void> {
        const leave = (one: Hosting): Promise<void> => this.#leave(one);
        const restore = guardOutput();
        try {
            const serving = await this.#with(options.store, (store) =>
                this.#served(new Stdio(this.#newHost(store), options, leave)),
            );
            await serving.closed;
        } finally {
            restore();
        }
    }

    #served<T extends Serving>(serving: T): T {
        this.#servings.add(serving);
        void serving.closed.then(() => this.#servings.delete(serving));
        return serving;
    }

    /** @internal Serves the other end of a transport, as long as the server lives. */
    _attach(transport: Transport): Promise<void> {
        return this.#with(undefined, (store) => {
            const had = this.#attached;
            const host = had && !had.isClosed ? had : this.#host(store);
            if (host !== had) host.users++; // its tasks stay for who comes again
            this.#attached = host;
            native.serverAttach(host.handle, transport);
        });
    }

    /**
     * Ends all that serves: no new calls, those that run may end within `drainMs`. Then
     * their signals abort, and handlers have a second to see to their end. What is stored
     * of tasks that still run then is let go: the next server on the store, of this
     * process or another, runs them again (`restartable`), or fails them.
     */
    async close(options: CloseOptions = {}): Promise<void> {
        this.#closings++;
        await Promise.all([...this.#servings].map((serving) => serving.close(options)));
        for (const host of this.#hosts) this.#left.add(host);
        this.#hosts.clear();
        this.#attached = undefined;
        await Promise.all([...this.#left].map((host) => this.#end(host)));
        for (const opened of this.#opened.values()) {
            const shutting = this.#shut(opened);
            this.#shutting.add(shutting);
            void shutting.then(() => this.#shutting.delete(shutting));
        }
        this.#opened.clear();
        await Promise.all(this.#shutting);
    }

    async #shut(opened: Promise<Store>): Promise<void> {
        try {
            await (await opened).close();
        } catch {
            // It could not be opened: who wanted it was told.
        }
    }

    /** As {@link close}. */
    [asyncDispose](): Promise<void> {
        return this.close();
    }

    /**
     * Has SIGINT and SIGTERM end the server in good order, and then the process; a second
     * signal ends it at once.
     *
     * @returns what takes the signals no more.
     */
    closeOnSignals(options: SignalOptions = {}): () => void {
        return closeOnSignals(this, options);
    }

    /**
     * How the server is, by where it works: one for each store that it serves, and for
     * standard input. `segue.h` (segue_server_stats) says what the numbers are.
     */
    stats(): Record<string, Record<string, number>>[] {
        return [...this.#hosts].map(({ handle }) =>
            JSON.parse(native.serverStats(handle)),
        );
    }

    // ---- what the parts ask

    /** @internal */
    get items(): Iterable<Item> {
        return this.#items.values();
    }

    /** @internal */
    report(error: unknown, failure: Failure): void {
        try {
            this.#onError(error, failure);
        } catch (why) {
            // As what any callback throws: an uncaughtException. The call still ends.
            queueMicrotask(() => {
                throw why;
            });
        }
    }

    /** What is made with a store, which may have to be opened first. */
    async #with<T>(
        given: Store | string | undefined,
        make: (store: Store | undefined) => T,
    ): Promise<T> {
        const store = given ?? this.#store;
        if (typeof store !== "string") return make(store);
        const closings = this.#closings;
        const opened = await this.#open(store);
        if (closings === this.#closings) return make(opened);
        throw new ClosedError("the server was closed while its store was opened");
    }

    #open(name: string): Promise<Store> {
        const had = this.#opened.get(name);
        if (had) return had;
        const opened = open(name);
        this.#opened.set(name, opened);
        opened.catch(() => {
            if (this.#opened.get(name) === opened) this.#opened.delete(name);
        });
        return opened;
    }

    #host(store: Store | undefined): Hosting {
        for (const host of this.#hosts) {
            const isFit = host.store === store && !host.isDraining && !host.isClosed;
            if (isFit && !this.#own.has(host)) return host;
        }
        return this.#keep(new Hosting(this, store));
    }

    /** Hosts that nobody shares: of standard input, whose end is theirs. */
    readonly #own = new WeakSet<Hosting>();

    #newHost(store: Store | undefined): Hosting {
        const host = this.#keep(new Hosting(this, store));
        this.#own.add(host);
        return host;
    }

    #keep(host: Hosting): Hosting {
        this.#hosts.add(host);
        return host;
    }

    /** Nobody serves it any more. */
    async #leave(host: Hosting): Promise<void> {
        this.#hosts.delete(host);
        for (const one of this.#left) if (!one.running.size) this.#left.delete(one);
        const isOwn = this.#own.has(host);
        if (isOwn || host.running.size) this.#left.add(host);
        if (isOwn) await this.#end(host);
        else host.close();
    }

    async #end(host: Hosting): Promise<void> {
        await host.end();
        this.#left.delete(host);
    }
}

const REDIS = /^(rediss?|unix):\/\//;

function open(store: string): Promise<Store> {
    return REDIS.test(store) ? stores.redis(store) : stores.sqlite(store);
}

function keyOf(kind: number, name: string): string {
    return `${kind} ${name}`;
}

/** The options, which may be missing, and the handler behind them. */
function split<T extends object>(rest: readonly unknown[]): [T, Run] {
    const [options, run] = rest.length > 1 ? rest : [{}, rest[0]];
    if (typeof options !== "object" || options === null) {
        throw new TypeError(
            "the options are an object, and the handler comes behind them",
        );
    }
    return [options as T, run as Run];
}

function printError(error: unknown, { what, name }: Failure): void {
    console.error(`segue: the ${what} "${name}" failed:`, error);
}
