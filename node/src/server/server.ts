/**
 * A server: its items and the ways to serve the items.
 *
 * @module
 */

import { asyncDispose } from "../dispose.js";
import { ClosedError, ExistsError, NotFoundError, StateError } from "../errors.js";
import { report } from "../failures.js";
import { native, type Principal, Item as Sort, type Transport } from "../native.js";
import type { ServerOptions as NativeOptions } from "../native_options.js";
import type { JsonSchema, SchemaLike, Sound } from "../schema.js";
import { principalHook } from "./auth.js";
import {
    checkHandlerOptions,
    checkListenOptions,
    checkServerOptions,
    checkStdioOptions,
} from "./checks.js";
import { type Handler, Mounted, makeHandler } from "./handler.js";
import { Hosting } from "./hosting.js";
import { compact, type Item, type Run } from "./item.js";
import {
    type CompletionMiddleware,
    Layers,
    type ListMethod,
    type ListMiddleware,
    type Middleware,
    type UseOptions,
} from "./layers.js";
import { Life as Lifetime, Lives } from "./lifespan.js";
import { Completing, Prompt, Resource } from "./listed.js";
import { Mount } from "./mount.js";
import type {
    ArgsOf,
    Completer,
    Failure,
    HandlerOptions,
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
import type { Overrides } from "./provided.js";
import { type CloseOptions, Listener, type Serving, Stdio } from "./serving.js";
import { closeOnSignals, type SignalOptions } from "./signals.js";
import { guardOutput } from "./stdio.js";
import { type Store, stores } from "./stores.js";
import { Tool } from "./tool.js";

/** The options of {@link Server.mount}. */
export interface MountOptions {
    /**
     * What the names begin with: letters, digits, "_", "." and "-"; by default the names
     * stay as they are.
     */
    prefix?: string | undefined;
}

/** An item that was added to a server. */
export interface Registered {
    /** The name of the item; for a resource, its URI. */
    readonly name: string;
    /** Removes the item. Running calls continue. A second call does nothing. */
    remove(): void;
}

/**
 * An MCP server: tools, resources and prompts, made of functions.
 *
 * A program may serve a server several times and in several ways. When an item is added
 * or removed, the clients that subscribe to changes are notified.
 */
// biome-ignore lint/suspicious/noExplicitAny: the lifespan of any server
export class Server<Life = any> {
    /** Name that clients see. */
    readonly name: string;
    /** Version that clients see. */
    readonly version: string;
    /** @internal */
    readonly maxCalls: number;
    /** @internal */
    readonly exposesErrors: boolean;
    /** @internal */
    readonly nativeOptions: NativeOptions;
    /** @internal */
    readonly principalHook: Principal | null;
    /** @internal */
    readonly layers = new Layers();
    /** @internal */
    readonly life: Lifetime | undefined;
    /** For each serving its end, and that of its use of the lifespans. */
    readonly #ends = new WeakMap<Serving, Promise<void>>();
    /** Ends of lifespans that are under way. */
    readonly #leaving = new Set<Promise<void>>();
    /** @internal The servers inside this one. */
    readonly mounts: Mount[] = [];
    readonly #parents: Mount[] = [];
    /**
     * Functions in place of those of {@link Context.get}, by the function that is
     * replaced; for tests.
     */
    readonly dependencyOverrides: Overrides = new Map();
    readonly #onError: ((error: unknown, failure: Failure) => void) | undefined;
    readonly #store: Store | string | undefined;
    readonly #items = new Map<string, Item>();
    readonly #hosts = new Set<Hosting>();
    readonly #servings = new Set<Serving>();
    readonly #opened = new Map<string, Promise<Store>>();
    /**
     * The stores that are being closed. A new `Serving` (one transport of this server)
     * does not use these stores.
     */
    readonly #shutting = new Set<Promise<void>>();
    /**
     * Native servers (hostings) that serve no transport any more, but whose tasks may
     * still run.
     */
    readonly #left = new Set<Hosting>();
    #closings = 0;
    /** The native server (hosting) that serves the transports of `_attach`. */
    #attached: Hosting | undefined;
    /** The lifespans that the transports of `_attach` use. */
    #attachedLives: Lives | undefined;

    constructor(options: ServerOptions<Life>) {
        if (typeof options !== "object" || options === null) {
            throw new TypeError("a server needs a name: new Server({ name })");
        }
        checkServerOptions(options);
        const {
            store,
            listScope,
            maxCalls,
            principal,
            onError,
            exposeErrors,
            ...others
        } = options;
        const { lifespan, ...rest } = others;
        if (typeof rest.name !== "string" || !rest.name) {
            throw new TypeError("a server needs a name");
        }
        this.name = rest.name;
        this.version = rest.version ?? "0";
        this.maxCalls = maxCalls ?? 16_384;
        if (!(this.maxCalls >= 1)) throw new RangeError("maxCalls has to be at least 1");
        this.exposesErrors = exposeErrors ?? false;
        this.#store = store;
        this.#onError = onError;
        this.life = lifespan && new Lifetime(this, lifespan);
        const refused = (error: unknown): void =>
            this.report(error, { what: "auth", name: "principal" });
        this.principalHook =
            principal === undefined ? null : principalHook(principal, refused);
        this.nativeOptions = compact({
            ...rest,
            version: this.version,
            listScope:
                listScope === undefined ? undefined : listScope === "public" ? 1 : 0,
        });
        native.serverCheck(this.nativeOptions);
    }

    // ---- tools

    /**
     * Makes a tool of a function.
     *
     * The function is plain or async, or a generator, plain or async. Each `yield` of a
     * generator sends a segment of the result, which a client receives at once. The
     * returned value ends the result. Values may be text, blocks (`image()`, ...), a list
     * of texts and blocks, a `Result`, or a value that JSON can represent.
     *
     * A thrown `ToolError` becomes a result with `isError` and the message of the error.
     * An `RpcError` becomes a JSON-RPC error. Any other exception, also another
     * `SegueError`, becomes a result with `isError` and a general text, and `onError`
     * gets the exception.
     *
     * @param name - the name by which the model calls the tool.
     * @throws ExistsError when the tool exists already; InvalidError when a name or an
     * option is invalid; TypeError for unknown options. A warning of the process names
     * what the specification advises against, such as a blank in the name of a tool.
     */
    tool(
        name: string,
        handler: ToolHandler<Record<string, unknown>, ToolReturn<never>, Life>,
    ): Registered;
    tool<In extends SchemaLike = JsonSchema, Out extends SchemaLike = never>(
        name: string,
        options: ToolOptions<In, Out> & Sound<"input", In> & Sound<"output", Out>,
        handler: ToolHandler<ArgsOf<In>, ToolReturn<Out>, Life>,
    ): Registered;
    tool(name: string, ...rest: unknown[]): Registered {
        const [options, run] = split<ToolOptions>(rest);
        return this.#add(new Tool(name, options, run));
    }

    // ---- resources, prompts, completion

    /**
     * Makes a resource of a function, or a template: `server.resource("note://{id}",
     * ...)`.
     *
     * The function gets the variables of the template. Clients choose the values of the
     * variables, so a value may contain anything, even "../". The function returns text,
     * bytes (a blob), contents, a list of contents, or a value that is sent as JSON. A
     * function that returns nothing reports that the resource does not exist.
     *
     * The function may send a long text in pieces. Such a function is a generator, plain
     * or async, or uses `ctx.send`. All strings together form one text, and contents are
     * a separate item. Clients of revisions before 2026-07-28 that allow pieces receive
     * each piece at once. All other clients receive the whole text.
     *
     * @throws ExistsError when the resource exists already; InvalidError when the URI or
     * the template is invalid.
     */
    resource<Uri extends string>(
        uri: Uri,
        handler: ResourceHandler<Variables<Uri>, Life>,
    ): Registered;
    resource<Uri extends string>(
        uri: Uri,
        options: ResourceOptions,
        handler: ResourceHandler<Variables<Uri>, Life>,
    ): Registered;
    resource(uri: string, ...rest: unknown[]): Registered {
        const [options, run] = split<ResourceOptions>(rest);
        return this.#add(new Resource(uri, options, run));
    }

    /**
     * Makes a prompt of a function. The function returns text (a message of the user), a
     * block, messages (`user()`, `assistant()`), or a list of texts, blocks and messages.
     */
    prompt(
        name: string,
        handler: PromptHandler<Record<string, string>, Life>,
    ): Registered;
    prompt<In extends SchemaLike = JsonSchema>(
        name: string,
        options: PromptOptions<In> & Sound<"input", In>,
        handler: PromptHandler<ArgsOf<In>, Life>,
    ): Registered;
    prompt(name: string, ...rest: unknown[]): Registered {
        const [options, run] = split<PromptOptions>(rest);
        return this.#add(new Prompt(name, options, run));
    }

    /**
     * Sets the function or list that suggests values for an argument of an existing
     * prompt, or for a variable of an existing template. The option `complete` of the
     * item does the same.
     *
     * @throws NotFoundError when the prompt or template does not exist, TypeError when
     * the item does not have the argument.
     */
    completion(of: string, argument: string, completer: Completer): void {
        const item =
            this.#items.get(keyOf(Sort.PROMPT, of)) ??
            this.#items.get(keyOf(Sort.RESOURCE_TEMPLATE, of));
        if (!(item instanceof Completing)) {
            throw new NotFoundError(`there is no prompt or template "${of}"`);
        }
        this.#checkOwn(item);
        const had = item.completes;
        item.suggestions.set(argument, completer);
        if (!had) this._addAgain(item);
    }

    // ---- middleware

    /**
     * Puts a middleware around the calls of all items, around lists or around
     * completions.
     *
     *     server.use(async (call, proceed) => {
     *         const began = performance.now();
     *         try {
     *             return await proceed();
     *         } finally {
     *             console.error(call.method, call.name, performance.now() - began);
     *         }
     *     });
     *
     * `await proceed()` runs the rest: the next middleware, or the handler. It returns
     * the value that the handler returned, and throws what the handler threw, also if the
     * arguments do not fit. The middleware may return another value, throw another error,
     * not proceed, or proceed again. The middleware that was added first is the
     * outermost.
     *
     * Segments go to the client while `proceed` runs. `Call.onSegment` changes them. The
     * object `middleware` of the package has some middlewares that are ready.
     *
     * Around a list, `proceed` returns an array of `Listed`, and the middleware returns
     * those that the caller sees:
     *
     *     server.use(
     *         async (call, proceed) => {
     *             const tools = await proceed();
     *             if (call.context.principal === "admin") return tools;
     *             return tools.filter(({ name }) => !name.startsWith("admin_"));
     *         },
     *         { methods: ["tools/list"] },
     *     );
     *
     * The same middleware decides about requests that name an item: it then gets an array
     * of this one item, and `Call.name` is its name. A hidden item is answered as an
     * unknown one. So decide about each item by itself. Around a completion, `proceed`
     * returns the suggested values.
     *
     * @returns this server.
     */
    use(
        middleware: ListMiddleware,
        options: UseOptions & { methods: readonly ListMethod[] },
    ): this;
    use(
        middleware: CompletionMiddleware,
        options: UseOptions & { methods: readonly ["completion/complete"] },
    ): this;
    use(middleware: Middleware, options?: UseOptions): this;
    use(
        middleware: Middleware | ListMiddleware | CompletionMiddleware,
        options: UseOptions = {},
    ): this {
        this.layers.add(middleware as Middleware, options);
        this._refreshLists();
        return this;
    }

    /**
     * @internal Makes the lists depend on the middlewares of now, here and where this
     * server is mounted.
     */
    _refreshLists(): void {
        for (const host of this.#hosts) host.refreshLists();
        for (const { parent } of this.#parents) parent._refreshLists();
    }

    // ---- adding and removing items

    #add(item: Item): Registered {
        item.servers = [this];
        item.verify();
        this._checkNew([item]);
        this._insert(item);
        return { name: item.key, remove: () => this.#drop(item) };
    }

    /** @internal Refuses items that this server, or one that contains it, has. */
    _checkNew(items: readonly Item[]): void {
        for (const { kind, key, what } of items) {
            const had = this.#items.get(keyOf(kind, key));
            if (!had) continue;
            const of = had.owner === this ? "" : `, of the server "${had.owner.name}"`;
            throw new ExistsError(
                `the server "${this.name}" already has a ${what} "${key}"${of}`,
            );
        }
        for (const mount of this.#parents)
            mount.parent._checkNew(items.map((item) => mount.copy(item)));
    }

    /** @internal Adds an item here, and where this server is mounted. */
    _insert(item: Item): void {
        const done: Hosting[] = [];
        try {
            for (const host of this.#hosts) {
                host.add(item);
                done.push(host);
            }
        } catch (error) {
            for (const host of done) host.remove(item);
            throw error;
        }
        this.#items.set(keyOf(item.kind, item.key), item);
        for (const mount of this.#parents) mount.parent._insert(mount.copy(item));
    }

    /** @internal Removes an item here, and where this server is mounted. */
    _remove(kind: number, name: string): void {
        const key = keyOf(kind, name);
        const item = this.#items.get(key);
        if (!item) return;
        this.#items.delete(key);
        for (const host of this.#hosts) host.remove(item);
        for (const mount of this.#parents)
            mount.parent._remove(kind, mount.key(kind, name));
    }

    /** @internal Reports that an item now suggests values for its arguments. */
    _addAgain(item: Item): void {
        for (const host of this.#hosts) {
            host.remove(item);
            host.add(item);
        }
        for (const mount of this.#parents) {
            const key = keyOf(item.kind, mount.key(item.kind, item.key));
            const copy = mount.parent.#items.get(key);
            if (copy) mount.parent._addAgain(copy);
        }
    }

    #drop(item: Item | undefined): boolean {
        if (!item || this.#items.get(keyOf(item.kind, item.key)) !== item) return false;
        this.#checkOwn(item);
        this._remove(item.kind, item.key);
        return true;
    }

    #checkOwn({ owner, what, key }: Item): void {
        if (owner === this) return;
        throw new TypeError(
            `the ${what} "${key}" belongs to the server "${owner.name}": change it there`,
        );
    }

    #remove(name: string, kinds: readonly number[]): boolean {
        return kinds.some((kind) => this.#drop(this.#items.get(keyOf(kind, name))));
    }

    /**
     * Removes a tool. Running calls of the tool continue.
     *
     * @returns false when the server has no tool of this name.
     */
    removeTool(name: string): boolean {
        return this.#remove(name, [Sort.TOOL]);
    }

    /**
     * Removes a resource or a template. Returns false when the server does not have the
     * item, as {@link removeTool} does.
     */
    removeResource(uri: string): boolean {
        return this.#remove(uri, [Sort.RESOURCE, Sort.RESOURCE_TEMPLATE]);
    }

    /**
     * Removes a prompt. Returns false when the server has no prompt of this name, as
     * {@link removeTool} does.
     */
    removePrompt(name: string): boolean {
        return this.#remove(name, [Sort.PROMPT]);
    }

    /**
     * Reports that a resource has changed. The clients that subscribed to the resource
     * are notified.
     */
    resourceUpdated(uri: string): void {
        for (const host of this.#hosts) native.serverResourceUpdated(host.handle, uri);
        for (const mount of this.#parents)
            mount.parent.resourceUpdated(mount.key(Sort.RESOURCE, uri));
    }

    // ---- servers inside this one

    /**
     * Adds the items of another server to this one. A `Remote` is a server of another
     * process or machine.
     *
     *     app.mount(weather, { prefix: "weather" });
     *
     * The tool or prompt `today` of the other server is `weather_today` here, and the
     * resource or template `data://now` is `data://weather/now`. Items that are added to
     * the other server later, or removed there, appear and disappear here, too, and
     * clients are notified. The middlewares of this server are around those of the other
     * one, which still hold for its items, as do its `lifespan`, its `onError`, its
     * `exposeErrors` and its `dependencyOverrides`. Its store, its principals and its
     * limits do not hold here. Handlers and middlewares see the names that the client has
     * used. The other server may also be served by itself, and be mounted several times.
     *
     * @throws ExistsError when both servers have an item of the same name or URI;
     * TypeError when the server would contain itself, or when the prefix is invalid;
     * StateError when the other server has a lifespan and this one is served already.
     * Nothing is added then.
     * @returns this server.
     */
    mount(other: Server, { prefix = "" }: MountOptions = {}): this {
        if (!(other instanceof Server)) {
            throw new TypeError(
                "mount takes a Server; Remote.connect makes one of a URL or a command",
            );
        }
        const mount = new Mount(this, other, prefix);
        if (!other._lives().isEmpty && this.#isServed()) {
            throw new StateError(
                `the server "${other.name}" has a lifespan, which begins when serving ` +
                    `begins: mount it before "${this.name}" is served`,
            );
        }
        const items = [...other.items].map((item) => mount.copy(item));
        this._checkNew(items);
        this.mounts.push(mount);
        other.#parents.push(mount);
        this._refreshLists(); // before the items, so that none is shown too early
        try {
            for (const item of items) this._insert(item);
        } catch (error) {
            this.#unmount(mount);
            throw error;
        }
        return this;
    }

    /**
     * Removes the items of a server that was mounted here. Running calls continue.
     *
     * @returns false when the server is not mounted here.
     */
    unmount(other: Server): boolean {
        const found = this.mounts.filter(({ child }) => child === other);
        for (const mount of found) this.#unmount(mount);
        return found.length > 0;
    }

    #unmount(mount: Mount): void {
        this.mounts.splice(this.mounts.indexOf(mount), 1);
        const parents = mount.child.#parents;
        parents.splice(parents.indexOf(mount), 1);
        for (const { kind, key } of [...mount.child.items])
            this._remove(kind, mount.key(kind, key));
        this._refreshLists();
    }

    // ---- serving

    /**
     * Serves over HTTP. One URL serves all revisions of Streamable HTTP. The listener
     * keeps the process alive until `close` or `unref` of the listener is called.
     *
     * Without TLS and `auth`, every host name of the server must be in `hosts`. This rule
     * protects against DNS rebinding by web pages. A `host` that begins with "unix:" is
     * the path of a Unix socket.
     *
     * @returns the listener, with its `url`.
     * @throws TypeError when an option is unknown or invalid; InputOutputError when the
     * address or a certificate cannot be used; StoreError when the store cannot be
     * opened.
     */
    async listenHttp(options: ListenOptions = {}): Promise<Listener> {
        checkListenOptions(options);
        const leave = (one: Hosting): Promise<void> => this.#leave(one);
        return this.#with(options.store, (store, lives) => {
            this.#prepare();
            return this.#served(new Listener(this.#host(store), options, leave), lives);
        });
    }

    /**
     * Returns a handler for an application's own HTTP server: a function of `node:http`,
     * Express and Connect, and `handler.fetch` for frameworks of `Request` and
     * `Response`.
     *
     *     const mcp = server.handler();
     *     app.all("/mcp", mcp); // Express
     *     fastify.all("/mcp", (request, reply) => {
     *         reply.hijack();
     *         mcp(request.raw, reply.raw, request.body);
     *     });
     *     app.all("/mcp", (c) => mcp.fetch(c.req.raw)); // Hono
     *
     * Sessions, streams, limits and the rules for hosts, origins and tokens are those of
     * `listenHttp`; the address at which the HTTP server got the request counts as the
     * address of the listener. The handler answers at every path, unless `path` is set.
     * With `auth`, name its `resource`, and mount the handler also at
     * "/.well-known/oauth-protected-resource". The handler does not keep the process
     * alive.
     *
     * @throws TypeError when an option is unknown or invalid, or needs a socket.
     */
    handler(options: HandlerOptions = {}): Handler {
        checkHandlerOptions(options);
        const leave = (one: Hosting): Promise<void> => this.#leave(one);
        const opening = this.#with(options.store, (store, lives) => {
            this.#prepare();
            return this.#served(new Mounted(this.#host(store), options, leave), lives);
        });
        opening.catch((error: unknown) => {
            // each request is refused from now on
            if (!(error instanceof ClosedError))
                this.report(error, { what: "handler", name: "" });
        });
        return makeHandler(opening, options.principal);
    }

    /**
     * Serves standard input and output, until the input ends, the server is closed, or
     * `signal` is aborted. During this time the program's own output (`console.log`) goes
     * to standard error.
     *
     * @returns a promise that resolves when standard input and output are no longer
     * served.
     * @throws TypeError when an option is unknown, or an option of HTTP.
     */
    async serveStdio(options: ServeOptions = {}): Promise<void> {
        checkStdioOptions(options);
        const leave = (one: Hosting): Promise<void> => this.#leave(one);
        const restore = guardOutput();
        try {
            const serving = await this.#with(options.store, (store, lives) =>
                this.#served(new Stdio(this.#newHost(store), options, leave), lives),
            );
            await this.#ends.get(serving);
        } finally {
            restore();
        }
    }

    #served<T extends Serving>(serving: T, lives: Lives): T {
        this.#servings.add(serving);
        const end = serving.closed.then(() => {
            this.#servings.delete(serving);
            return this.#leaveLives(lives, serving.host);
        });
        this.#ends.set(serving, end);
        serving.lives = end;
        return serving;
    }

    /** @internal Serves the other end of a transport until the server is closed. */
    _attach(transport: Transport): Promise<void> {
        return this.#with(undefined, (store, lives) => {
            const had = this.#attached;
            const host = had && !had.isClosed ? had : this.#host(store);
            // The attached transports together count as one user of the native server
            // (hosting). So the native server and its tasks stay when one transport ends.
            if (host !== had) host.users++;
            this.#attached = host;
            // One use of the lifespans is enough for all attached transports.
            if (this.#attachedLives) void this.#leaveLives(lives);
            else this.#attachedLives = lives;
            native.serverAttach(host.handle, transport);
        });
    }

    /**
     * Stops serving on all transports. New calls are refused, and running calls may
     * continue for `drainMs`. Then the signals of running calls abort, and handlers may
     * run one more second. Tasks that still run after this second are released in the
     * store. The next server on the store, in this process or another, runs these tasks
     * again (`restartable`) or fails them.
     */
    async close(options: CloseOptions = {}): Promise<void> {
        this.#closings++;
        await Promise.all([...this.#servings].map((serving) => serving.close(options)));
        for (const host of this.#hosts) this.#left.add(host);
        this.#hosts.clear();
        this.#attached = undefined;
        await Promise.all([...this.#left].map((host) => this.#end(host)));
        if (this.#attachedLives) void this.#leaveLives(this.#attachedLives);
        this.#attachedLives = undefined;
        await Promise.all(this.#leaving);
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
            // An error means that the store could not be opened. The caller that tried to
            // open the store has received the error.
        }
    }

    /** Does the same as {@link close}. */
    [asyncDispose](): Promise<void> {
        return this.close();
    }

    /**
     * Closes the server when SIGINT or SIGTERM arrives, and then ends the process. A
     * second signal ends the process at once.
     *
     * @returns a function that stops listening for the signals.
     */
    closeOnSignals(options: SignalOptions = {}): () => void {
        return closeOnSignals(this, options);
    }

    /**
     * Returns statistics: one object for each store that is served, and one object for
     * standard input. `segue.h` (segue_server_stats) explains the numbers.
     */
    stats(): Record<string, Record<string, number>>[] {
        return [...this.#hosts].map(({ handle }) =>
            JSON.parse(native.serverStats(handle)),
        );
    }

    /**
     * Returns the metrics in the text format of Prometheus, version 0.0.4, for an app
     * that serves them itself; `""` while nothing is served. A listener has the option
     * `metricsPath`, which needs no code.
     *
     * @throws StateError: the server is served with several stores, or both over HTTP and
     *     over standard input. Each then has metrics of its own: use `metricsPath`.
     */
    metrics(): string {
        const [host, ...more] = this.#hosts;
        if (more.length > 0)
            throw new StateError(
                `the server "${this.name}" is served in ${more.length + 1} ways that ` +
                    "share no tasks, and each has metrics of its own: use metricsPath",
            );
        return host ? native.serverMetrics(host.handle) : "";
    }

    // ---- for the other parts of the server

    /**
     * @internal Ends the server as a crash does. Handlers may continue to run, but their
     * calls do nothing more.
     */
    _crash(): Promise<void> {
        for (const host of [...this.#hosts, ...this.#left]) host.crash();
        return this.close({ drainMs: 0 });
    }

    /** @internal */
    get items(): Iterable<Item> {
        return this.#items.values();
    }

    /** @internal Whether the server has a store of its own. */
    get hasStore(): boolean {
        return this.#store !== undefined;
    }

    /** @internal */
    report(error: unknown, failure: Failure): void {
        const { what, name } = failure;
        report(this.#onError, error, failure, `the ${what} "${name}"`);
    }

    /**
     * Begins the lifespans, opens the store if it is not open, and calls `make` with
     * both.
     */
    async #with<T>(
        given: Store | string | undefined,
        make: (store: Store | undefined, lives: Lives) => T,
    ): Promise<T> {
        const closings = this.#closings;
        const lives = this._lives();
        if (!lives.isEmpty) await lives.enter();
        try {
            const store = given ?? this.#store;
            const opened = typeof store === "string" ? await this.#open(store) : store;
            if (closings === this.#closings) return make(opened, lives);
            throw new ClosedError("the server was closed while its store was opened");
        } catch (error) {
            await this.#leaveLives(lives);
            throw error;
        }
    }

    /** @internal Returns the lifespans of this server and of those inside it. */
    _lives(): Lives {
        return new Lives([...new Set(this.#allLives())]);
    }

    *#allLives(): Generator<Lifetime> {
        if (this.life) yield this.life;
        for (const { child } of this.mounts) yield* child.#allLives();
    }

    /** Whether this server, or one that it is mounted in, is served. */
    #isServed(): boolean {
        return (
            this.#hosts.size > 0 || this.#parents.some(({ parent }) => parent.#isServed())
        );
    }

    /** Ends the use of lifespans, when no handler of the native server runs any more. */
    async #leaveLives(lives: Lives, host?: Hosting): Promise<void> {
        if (lives.isEmpty) return;
        const done = this.#leaveSoon(lives, host);
        this.#leaving.add(done);
        await done;
        this.#leaving.delete(done);
    }

    async #leaveSoon(lives: Lives, host: Hosting | undefined): Promise<void> {
        if (host && !host.users) await host.quiet();
        try {
            await lives.leave();
        } catch (error) {
            this.report(error, { what: "lifespan", name: this.name });
        }
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

    /**
     * Compiles the schemas of the items. A listener that exists answers at once: the
     * clients of a server that was restarted are waiting for it.
     */
    #prepare(): void {
        for (const item of this.#items.values()) item.prepare();
    }

    #host(store: Store | undefined): Hosting {
        for (const host of this.#hosts) {
            const isFit = host.store === store && !host.isDraining && !host.isClosed;
            if (isFit && !this.#own.has(host)) return host;
        }
        return this.#keep(new Hosting(this, store));
    }

    /**
     * The native servers (hostings) of standard input and output. Such a native server
     * serves only this one transport, and ends with it.
     */
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

    /**
     * Closes or ends a native server (hosting). Called when the last transport that it
     * serves has ended.
     */
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
const POSTGRES = /^postgres(ql)?:\/\//;

function open(store: string): Promise<Store> {
    if (POSTGRES.test(store)) return stores.postgres(store);
    return REDIS.test(store) ? stores.redis(store) : stores.sqlite(store);
}

function keyOf(kind: number, name: string): string {
    return `${kind} ${name}`;
}

/**
 * Separates the two parts of an argument list: the options, which may be missing, and the
 * handler, which is the last argument.
 */
function split<T extends object>(rest: readonly unknown[]): [T, Run] {
    const [options, run] = rest.length > 1 ? rest : [{}, rest[0]];
    if (typeof options !== "object" || options === null) {
        throw new TypeError(
            "the options have to be an object, and the handler is the last argument",
        );
    }
    return [options as T, run as Run];
}
