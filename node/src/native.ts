/**
 * The functions of the C library (`segue.h`), one to one.
 *
 * The C function `segue_x_y` has the name `xY` here. A function that can fail throws
 * (errors.ts). A function returns the out-parameters of C. Handles are opaque values, and
 * each handle has a tag of its kind. The function `xFree` or the garbage collector frees
 * a handle. A function throws `ClosedError` when its handle was freed, when a function
 * has consumed the handle, or when the runtime of the handle was freed. A function throws
 * a TypeError when its argument is a handle of another kind or any other value.
 *
 * JSON is passed as text (inputs also as bytes) and is never parsed here. Durations are
 * in milliseconds. Options are objects (native_options.ts).
 *
 * Callbacks do not run inside the library. `runtimeDispatch` returns the events as one
 * flat array, `[handler, kind, a, b, c, handler, kind, ...]`, and runtime.ts calls
 * `handler(kind, a, b, c)` for each event, in order. The addon keeps a handler alive
 * until its last event has been returned. Only the hooks whose answer C needs at once
 * (principal, validate, onHeaders, onBearer, onAssertion, onLoad, onSave) run inside
 * `runtimeDispatch`. The hooks must be quick and synchronous. If a hook throws, the
 * answer is "no", and an event `EXCEPTION` without a handler reports the exception.
 *
 * V8 strings are limited to 512 MB. A request whose result would be larger is cancelled,
 * and its COMPLETE has the status E_NOMEM.
 *
 * All functions must be called on the thread (main thread or worker) that loaded the
 * addon.
 */
import { loadAddon } from "./loader.js";
import type {
    BearerOptions,
    HttpOptions,
    ItemOptions,
    ListenOptions,
    OauthOptions,
    ObserverOptions,
    RequestOptions,
    RuntimeOptions,
    ServerOptions,
    SessionOptions,
    SpawnOptions,
    StoreOptions,
} from "./native_options.js";

export * from "./constants.js";
export type * from "./native_options.js";

declare const kind: unique symbol;
/** An opaque handle of the library. */
interface Handle<Name extends string> {
    readonly [kind]: Name;
}

/** The handle of a `segue_runtime` of the library. */
export type Runtime = Handle<"Runtime">;
/** The handle of a `segue_transport` of the library. */
export type Transport = Handle<"Transport">;
/** The handle of a `segue_store` of the library. */
export type Store = Handle<"Store">;
/** The handle of a `segue_server` of the library. */
export type Server = Handle<"Server">;
/** The handle of a `segue_listener` of the library. */
export type Listener = Handle<"Listener">;
/** The handle of a `segue_exchange` of the library. */
export type Exchange = Handle<"Exchange">;
/** The handle of a `segue_bearer` of the library. */
export type Bearer = Handle<"Bearer">;
/** The handle of a `segue_call` of the library. */
export type Call = Handle<"Call">;
/** The handle of a `segue_session` of the library. */
export type Session = Handle<"Session">;
/** The handle of a `segue_request` of the library. */
export type Request = Handle<"Request">;
/** The handle of a `segue_task` of the library. */
export type Task = Handle<"Task">;
/** The handle of a `segue_content` of the library. */
export type Content = Handle<"Content">;
/** The long text of a result, which is not a string yet. */
export type Text = Handle<"Text">;
/** The JavaScript object of a custom transport. */
export type Wire = Handle<"Wire">;

/** JSON text. */
export type Json = string | Uint8Array;

/**
 * Receives the events of one object, such as a session or a request. `Kind` in
 * constants.ts lists the values a, b and c of each event.
 */
// biome-ignore lint/suspicious/noExplicitAny: the types of a, b and c depend on the kind
export type Handler = (kind: number, a: any, b: any, c: any) => void;

/** Runs a function with the AsyncLocalStorage values of the app around a request. */
export type AppContext = (run: () => void) => void;

/**
 * The parts of an error. `code` is the JSON-RPC code; 0 = the error arose on this side.
 * `data` is JSON text.
 */
export type ErrorInfo = readonly [
    status: number,
    message: string,
    code: number,
    data: string | null,
    retryable: boolean,
];

/**
 * Makes the errors that functions throw. `message` is "" when nothing is known beyond the
 * status. `retryable` is null when the status alone decides.
 */
export type ErrorFactory = (
    status: number,
    message: string,
    code: number,
    data: string | null,
    retryable: boolean | null,
) => Error;

/**
 * Checks a value against a JSON Schema. Returns undefined or null when the value fits,
 * and the reason as a text when the value does not fit. Returns false when the check is
 * not possible (another dialect, a $ref that was not resolved).
 *
 * @param what - Validation.ARGUMENTS or Validation.RESULT
 */
export type Validate = (
    tool: string,
    what: number,
    schema: string,
    value: string,
) => string | false | null | undefined;

/**
 * Returns the principal of the peer; "" or null = the peer is anonymous. Returns false or
 * throws to refuse the peer.
 */
export type Principal = (transport: Transport) => string | false | null | undefined;

/** The functions of the addon. */
export interface Native {
    // ---- library ----
    version(): string;
    statusName(status: number): string;
    setErrorFactory(factory: ErrorFactory | null): void;
    /**
     * The names of the members that each options struct allows, by the name of the
     * struct.
     */
    optionNames(): Record<string, string[]>;
    /**
     * The names of the kinds of events. The index in the array is the number of the kind.
     */
    eventNames(): string[];
    /**
     * The number of existing handles of this environment, by the kind of handle. Tests
     * use these numbers to find leaks.
     */
    liveHandles(): Record<string, number>;
    /**
     * The number of bytes that all runtimes made with `track` hold, in all environments.
     */
    allocated(): number;
    /**
     * Calls `flock(fd, LOCK_EX | LOCK_NB)`. Returns false when another process has the
     * lock. Closing the descriptor releases the lock.
     */
    lockFile(fd: number): boolean;

    // ---- runtime ----
    /**
     * @param onWake - called on this thread, without arguments, when `runtimeDispatch`
     * may have events. `onWake` is called at most once until the next dispatch.
     * @param log - receives the events RUNTIME_LOG
     * @param track - true = count the memory that the runtime allocates
     */
    runtimeNew(
        options?: RuntimeOptions | null,
        onWake?: (() => void) | null,
        log?: Handler | null,
        track?: boolean,
    ): Runtime;
    /** Gives the events of the runtime to a handler (RUNTIME_EVENT); null = to nobody. */
    runtimeObserve(
        runtime: Runtime,
        handler: Handler | null,
        options?: ObserverOptions | null,
    ): void;
    /**
     * Runs the runtime on the calling thread until a hook calls `runtimeStop`. Returns
     * events as `runtimeDispatch` does.
     */
    runtimeRun(runtime: Runtime): unknown[];
    runtimeStart(runtime: Runtime): void;
    runtimeFd(runtime: Runtime): number;
    /**
     * Returns the events of at most maxEvents callbacks of the library; an empty array =
     * no events. A SEGMENTS event has raw values (segment.ts).
     *
     * @throws ClosedError when the runtime was stopped and no events are left
     */
    runtimeDispatch(runtime: Runtime, timeoutMs: number, maxEvents: number): unknown[];
    runtimeStop(runtime: Runtime): void;
    /** Joins the threads of the runtime and returns the last events, among them CLOSED
     * and COMPLETE for everything that was open. */
    runtimeFree(runtime: Runtime): unknown[];
    /** Holds back outgoing messages until `runtimeUncork`. Calls may be nested. */
    runtimeCork(runtime: Runtime): void;
    runtimeUncork(runtime: Runtime): void;
    /**
     * Sets whether the runtime keeps the process alive. By default the runtime does not
     * keep the process alive.
     */
    runtimeHold(runtime: Runtime, hold: boolean): void;
    runtimeAuthorize(runtime: Runtime, redirectUrl: string): void;

    // ---- transports ----
    transportPair(runtime: Runtime): [Transport, Transport];
    transportStdio(runtime: Runtime): Transport;
    transportFds(runtime: Runtime, fdIn: number, fdOut: number): Transport;
    /**
     * Starts a child process. The handler receives the events STDERR, the last one
     * without a line: the child has ended, and nothing more comes of it. Without a
     * handler the child writes to the standard error of this process.
     */
    transportSpawn(
        runtime: Runtime,
        options: SpawnOptions,
        handler?: Handler | null,
    ): Transport;
    /**
     * Makes a transport over HTTP.
     *
     * @param onHeaders - a function that may call `transportSetHeader` for the transport
     * until `onHeaders` returns. `status` is 401 or 403 when the server has refused the
     * last request with this status, otherwise 0.
     */
    transportHttp(
        runtime: Runtime,
        url: string,
        options?: HttpOptions | null,
        onHeaders?: ((transport: Transport, status: number) => void) | null,
    ): Transport;
    transportSetHeader(transport: Transport, name: string, value: string | null): void;
    /** Sets up OAuth for the transport. The handler receives the events AUTHORIZE. */
    transportSetOauth(
        transport: Transport,
        options: OauthOptions,
        handler?: Handler | null,
        onAssertion?:
            | ((issuer: string, resource: string) => string | null | undefined)
            | null,
        onLoad?: ((key: string) => string | null | undefined) | null,
        onSave?: ((key: string, json: string) => void) | null,
    ): void;
    /**
     * Returns a header of the caller's HTTP request. Only the hooks `principal` and
     * `onBearer` may call this function.
     */
    transportHeader(transport: Transport, name: string): string | null;
    /**
     * Returns a text that identifies the caller. Only the hooks `principal` and
     * `onBearer` may call this function.
     */
    transportPeer(transport: Transport): string;
    transportFree(transport: Transport): void;
    /**
     * Makes a custom transport. The handler receives the events TRANSPORT_*. `reopen`:
     * true = a lost connection can be opened again.
     */
    transportCustom(runtime: Runtime, handler: Handler, reopen?: boolean): Transport;
    /**
     * Passes received bytes to the library. Returns false when too much input already
     * waits. The event TRANSPORT_PAUSE then says when to continue.
     */
    transportFeed(wire: Wire, data: Json): boolean;
    /**
     * Reports that the first `count` unwritten bytes of TRANSPORT_SEND were written. The
     * library passes more bytes to send while fewer than 1 MiB are unwritten.
     */
    transportTook(wire: Wire, count: number): void;
    transportWritable(wire: Wire): void;
    transportClosed(wire: Wire): void;

    // ---- stores ----
    storeMemory(options?: StoreOptions | null): Store;
    storeSqlite(path: string, options?: StoreOptions | null): Promise<Store>;
    storeRedis(url: string, options?: StoreOptions | null): Promise<Store>;
    storePostgres(url: string, options?: StoreOptions | null): Promise<Store>;
    /**
     * Frees the handle of the store, which must not be used any more. If no server uses
     * the store, the store closes, and the promise resolves when the store has closed.
     * Otherwise the promise resolves at once, and the store closes together with its last
     * server.
     */
    storeFree(store: Store): Promise<void>;

    // ---- long texts of results ----
    /**
     * Makes a string of the text. The text of a result that is longer than 128 KiB
     * arrives as a handle, because a turn of the event loop must not be long.
     */
    textRead(text: Text): string;
    textFree(text: Text): void;

    // ---- content ----
    contentNew(runtime: Runtime): Content;
    contentAddText(content: Content, text: string | Uint8Array): void;
    contentAddBlob(
        content: Content,
        type: "image" | "audio",
        mimeType: string,
        data: Uint8Array,
    ): void;
    contentAddJson(content: Content, json: Json): void;
    contentAddResourceText(
        content: Content,
        uri: string,
        mimeType: string | null,
        text: string | Uint8Array,
    ): void;
    contentAddResourceBlob(
        content: Content,
        uri: string,
        mimeType: string | null,
        data: Uint8Array,
    ): void;
    contentSetRole(content: Content, role: "user" | "assistant" | null): void;
    contentSetStructured(content: Content, json: Json): void;
    contentSetError(content: Content, isError: boolean): void;
    contentFree(content: Content): void;

    // ---- server ----
    /** Makes a server. The handler receives the events IDLE. */
    serverNew(
        runtime: Runtime,
        options?: ServerOptions | null,
        handler?: Handler | null,
        principal?: Principal | null,
        validate?: Validate | null,
    ): Server;
    /**
     * Adds an item. The handler receives one event CALL for each call. If `completion` is
     * true, the handler also receives the events COMPLETION.
     */
    serverAdd(
        server: Server,
        item: number,
        json: Json,
        options: ItemOptions | null,
        handler: Handler,
        completion?: boolean,
    ): void;
    /**
     * Checks an item as serverAdd does, before there is a server. It also refuses a
     * resource or template whose URI has no scheme or has blanks.
     *
     * @returns what the specification advises against a valid item, or undefined.
     */
    itemCheck(item: number, json: Json, options: ItemOptions | null): string | undefined;
    /** Checks the options of a server, without a runtime. */
    serverCheck(options: ServerOptions): void;
    /**
     * Makes the handler receive the events CLIENT_OPEN and CLIENT_CLOSED. To be called
     * before the server is served.
     */
    serverWatchClients(server: Server, handler: Handler): void;
    serverRemove(server: Server, item: number, name: string): void;
    serverResourceUpdated(server: Server, uri: string): void;
    /** Returns the statistics as JSON text: an object of objects of numbers. */
    serverStats(server: Server): string;
    /** Returns the metrics in the text format of Prometheus. */
    serverMetrics(server: Server): string;
    /**
     * Serves the client at the other end of the transport. The handle of the transport
     * cannot be used afterwards.
     */
    serverAttach(server: Server, transport: Transport): void;
    serverClose(server: Server): void;
    serverFree(server: Server): void;
    /**
     * Begins to listen.
     *
     * @param onBearer - a hook that gets the token of each request as a Bearer. The hook
     * owns the Bearer, and must accept or refuse the token, at once or later.
     */
    serverListen(
        server: Server,
        options?: ListenOptions | null,
        bearer?: BearerOptions | null,
        onBearer?: ((bearer: Bearer, transport: Transport) => void) | null,
    ): Listener;
    listenerUrl(listener: Listener): string;
    listenerAdd(listener: Listener, server: Server, path: string): void;
    listenerRemove(listener: Listener, path: string): void;
    listenerReload(listener: Listener): void;
    listenerSetReady(listener: Listener, ready: number): void;
    listenerClose(listener: Listener): void;
    listenerFree(listener: Listener): void;
    listenerOpen(
        server: Server,
        options?: ListenOptions | null,
        bearer?: BearerOptions | null,
        onBearer?: ((bearer: Bearer, transport: Transport) => void) | null,
    ): Listener;
    /**
     * headers: names and values in turns, as `rawHeaders` of Node, each with a NUL behind
     * it; headerTexts: the number of these texts.
     */
    exchangeOpen(
        listener: Listener,
        method: string,
        target: string,
        headers: string,
        handler: Handler,
        peer: string | null,
        local: string | null,
        isTls: boolean | null,
        principal: string | null,
        body: Uint8Array | string | null,
        isWhole: boolean | null,
        context: AppContext | null,
        headerTexts: number,
    ): Exchange;
    /** Returns false when there is no room: feed again after ANSWER_ROOM. */
    exchangeFeed(exchange: Exchange, data: Uint8Array | string): boolean;
    exchangeEnd(exchange: Exchange): void;
    exchangeSent(exchange: Exchange, len: number): void;
    exchangeClosed(exchange: Exchange): void;
    exchangeFree(exchange: Exchange): void;
    bearerToken(bearer: Bearer): string;
    bearerAccept(
        bearer: Bearer,
        principal: string,
        scopes?: string | null,
        expiresMs?: number,
    ): void;
    bearerRefuse(bearer: Bearer, reason?: string | null): void;
    bearerFree(bearer: Bearer): void;
    tokensCheck(runtime: Runtime, path: string): void;

    // ---- calls ----
    callMethod(call: Call): string;
    callName(call: Call): string;
    callPrincipal(call: Call): string;
    /** Returns the number of the client; 0 = the call is of no session. */
    callClient(call: Call): number;
    callHasScope(call: Call, scope: string): boolean;
    callParams(call: Call): string;
    callMeta(call: Call, key: string): string | null;
    callHeader(call: Call, name: string, index: number): string | null;
    callHeaderAt(call: Call, index: number): [name: string, value: string] | null;
    /** Returns the context of the exchange that made the call. */
    callContext(call: Call): AppContext | null;
    callArgument(call: Call, name: string): string | null;
    callArgumentText(call: Call, name: string): string | null;
    /**
     * Returns an integer argument as a number, or as a bigint when a number could not
     * represent the value exactly.
     */
    callArgumentInt(call: Call, name: string): number | bigint | null;
    /**
     * Sets the handler of the call's events: CANCEL, at most once, and DRAIN, perhaps
     * many times.
     */
    callWatch(call: Call, handler: Handler): void;
    callIsCancelled(call: Call): boolean;

    // Functions that send return false when the status is E_WOULD_BLOCK. Nothing was then
    // sent, and the event DRAIN (see callWatch) follows when there is room.
    callSend(call: Call, content: Content): boolean;
    callSendText(call: Call, text: string | Uint8Array): boolean;
    callExtendText(call: Call, index: number, text: string | Uint8Array): boolean;
    /**
     * Sends one block given as JSON, as `callSend` does with a content that has only this
     * block.
     */
    callSendJson(call: Call, json: Json): boolean;
    callReplace(call: Call): boolean;
    callSetField(call: Call, name: string, json: Json): boolean;
    callSetCompletion(
        call: Call,
        values: readonly string[],
        total?: number,
        hasMore?: boolean,
    ): boolean;
    callProgress(
        call: Call,
        progress: number,
        total?: number,
        message?: string | null,
    ): void;
    callLog(call: Call, level: string, json: Json): void;
    callLogJson(call: Call, json: Json): void;
    callLogLevel(call: Call): string | null;
    callSetTraceParent(call: Call, traceParent: string): void;
    callTraceParent(call: Call): string | null;
    callCompleteJson(call: Call, json: Json): void;
    callSetStatus(call: Call, message: string): boolean;
    /**
     * Asks the client a question. The handler receives the event INPUT with the answer.
     */
    callRequireInput(
        call: Call,
        key: string | null,
        method: string,
        params: Json | null,
        handler: Handler,
    ): void;
    callHangUp(call: Call, retryMs?: number): void;
    callEndTurn(call: Call): void;
    callDefer(call: Call, ttlMs?: number): void;
    callCheckpoint(call: Call, data: string | Uint8Array): boolean;
    /**
     * Returns the number of the last segment and the checkpoint of an earlier run.
     * Returns null when the call runs for the first time.
     */
    callResumed(call: Call): [lastSegment: number, checkpoint: Buffer | null] | null;
    callComplete(call: Call, content?: Content | null): void;
    /**
     * Completes and frees the call in one step, for the common case. The content is a
     * text block, then the blocks given as JSON. `structured` is the structuredContent.
     * When the function throws, the call is unchanged: the caller must end the call in
     * another way and free the call.
     */
    callReply(
        call: Call,
        text?: string | Uint8Array | null,
        blocks?: readonly Json[] | null,
        structured?: Json | null,
        isError?: boolean,
    ): void;
    callFail(call: Call, code: number, message: string, data?: Json | null): void;
    callFree(call: Call): void;

    // ---- client ----

    // `events` is a mask of the events that the handler receives (default: all). Other
    // events are not delivered, except OPEN, CLOSED and COMPLETE, which are always
    // delivered. Without QUESTION in the mask, the server learns that the client answers
    // no questions.

    /**
     * Opens a session over the transport. The handle of the transport cannot be used
     * afterwards.
     */
    sessionOpen(
        runtime: Runtime,
        transport: Transport,
        options?: SessionOptions | null,
        handler?: Handler | null,
        events?: number,
        validate?: Validate | null,
    ): Session;
    sessionPeer(session: Session): string;
    sessionTakeInput(session: Session, handler: Handler | null, events?: number): Request;
    sessionNotify(session: Session, method: string, params?: Json | null): void;
    sessionClose(session: Session): void;
    sessionFree(session: Session): void;
    requestStart(
        session: Session,
        method: string,
        params: Json | null,
        options: RequestOptions | null,
        handler: Handler | null,
        events?: number,
        isKept?: boolean,
    ): Request;
    /**
     * Starts a request with the handle and handler of an earlier request, so that a short
     * request needs no new handle. The earlier request must have been started with
     * `isKept`, must have ended, and must have been freed. COMPLETE with success frees
     * the new request. After any other COMPLETE, `requestFree` must free the new request.
     *
     * @throws StateError when the handle cannot be used again, or its request has not
     * ended
     */
    requestAgain(
        request: Request,
        session: Session,
        method: string,
        params: Json | null,
        options: RequestOptions | null,
        events?: number,
    ): void;
    requestResume(
        session: Session,
        token: string,
        options: RequestOptions | null,
        handler: Handler | null,
        events?: number,
    ): Request;
    requestToken(request: Request): string;
    /** Returns the `era` of the sessions that can resume the token; 0 = all can. */
    tokenEra(runtime: Runtime, token: string): number;
    requestMeta(request: Request, key: string): string | null;
    requestAnswer(request: Request, key: string, json: Json): void;
    requestAnswerError(
        request: Request,
        key: string,
        code: number,
        message: string,
        data?: Json | null,
    ): void;
    requestGrant(request: Request, n: number): void;
    requestCancel(request: Request): void;
    requestDetach(request: Request): void;
    requestFree(request: Request): void;
    taskAttach(session: Session, taskId: string): Task;
    taskAttachToken(session: Session, token: string): Task;
    taskId(task: Task): string;
    taskGet(task: Task, handler: Handler | null, events?: number): Request;
    taskGetState(task: Task): number;
    taskWatch(
        task: Task,
        options: RequestOptions | null,
        handler: Handler | null,
        events?: number,
    ): Request;
    taskCancel(task: Task, handler: Handler | null, events?: number): Request;
    taskFree(task: Task): void;
}

/** The addon, loaded for this environment. */
export const native: Native = loadAddon() as Native;
