/**
 * The functions of the C library (`segue.h`), one to one.
 *
 * The C function `segue_x_y` has the name `xY` here. A function that can fail throws
 * (errors.ts). A function returns the out-parameters of C. Handles are opaque values with
 * a tag of their kind. A handle is freed by its `xFree`, or by the garbage collector.
 * Using a handle, or freeing it again, throws `ClosedError` when it was freed, when a
 * function has consumed it, or when its runtime was freed. A handle of another kind, or
 * any other value, throws a TypeError.
 *
 * JSON is passed as text (inputs also as bytes) and is never parsed here. Durations are
 * in milliseconds. Options are objects (native_options.ts).
 *
 * Callbacks do not run inside the library. `runtimeDispatch` returns the events as one
 * flat array, `[handler, kind, a, b, c, handler, kind, ...]`, and runtime.ts calls
 * `handler(kind, a, b, c)` for each, in order. The addon keeps a handler alive until its
 * last event has been returned. Only the hooks that C needs an answer from at once
 * (principal, validate, onHeaders, onBearer, onAssertion, onLoad, onSave) run inside
 * `runtimeDispatch`. They must be quick and synchronous. If a hook throws, the answer is
 * "no", and an event `EXCEPTION` without a handler reports the exception.
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
/** The JavaScript object of a custom transport. */
export type Wire = Handle<"Wire">;

/** JSON text. */
export type Json = string | Uint8Array;

/** Receives the events of one object. `Kind` in constants.ts lists the values a, b and c
 * of each event. */
// biome-ignore lint/suspicious/noExplicitAny: the types of a, b and c depend on the kind
export type Handler = (kind: number, a: any, b: any, c: any) => void;

/** status, message, JSON-RPC code (0 = the error arose on this side), data (JSON),
 * retryable */
export type ErrorInfo = readonly [
    status: number,
    message: string,
    code: number,
    data: string | null,
    retryable: boolean,
];

/** Makes the errors that functions throw. message is "" when there is no detail.
 * retryable is null when the status alone decides. */
export type ErrorFactory = (
    status: number,
    message: string,
    code: number,
    data: string | null,
    retryable: boolean | null,
) => Error;

/**
 * Checks a value against a JSON Schema. undefined or null: the value fits. A text: the
 * reason why it does not fit. false: the check is not possible (another dialect, a $ref
 * that was not resolved).
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
 * Names the peer ("" or null: an anonymous peer). To refuse the peer, the function
 * throws.
 */
export type Principal = (transport: Transport) => string | null | undefined;

/** The functions of the addon. */
export interface Native {
    // ---- library ----
    version(): string;
    statusName(status: number): string;
    setErrorFactory(factory: ErrorFactory | null): void;
    /** The member names that an object may have for each options struct, by the
     * struct's name. */
    optionNames(): Record<string, string[]>;
    /** The names of the kinds of events, by number. */
    eventNames(): string[];
    /** The number of existing handles of this environment, by kind; for leak checks. */
    liveHandles(): Record<string, number>;
    /** Bytes that all runtimes made with `track` hold, in all environments. */
    allocated(): number;
    /** `flock(fd, LOCK_EX | LOCK_NB)`. Returns false when another process has the lock.
     * Closing the descriptor releases the lock. */
    lockFile(fd: number): boolean;

    // ---- runtime ----
    /**
     * @param onWake - called on this thread, without arguments, when `runtimeDispatch`
     * may have events. It is called at most once until the next dispatch.
     * @param log - receives RUNTIME_LOG
     * @param track - true = count the memory that the runtime allocates
     */
    runtimeNew(
        options?: RuntimeOptions | null,
        onWake?: (() => void) | null,
        log?: Handler | null,
        track?: boolean,
    ): Runtime;
    /**
     * Runs the runtime on the calling thread until a hook calls `runtimeStop`. Returns
     * events as `runtimeDispatch` does.
     */
    runtimeRun(runtime: Runtime): unknown[];
    runtimeStart(runtime: Runtime): void;
    runtimeFd(runtime: Runtime): number;
    /**
     * Returns the events of at most maxEvents callbacks of the library; empty without
     * events. A SEGMENTS event has raw values (segment.ts).
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
    /** Sets whether the runtime keeps the process alive. By default it does not. */
    runtimeHold(runtime: Runtime, hold: boolean): void;
    runtimeAuthorize(runtime: Runtime, redirectUrl: string): void;

    // ---- transports ----
    transportPair(runtime: Runtime): [Transport, Transport];
    transportStdio(runtime: Runtime): Transport;
    transportFds(runtime: Runtime, fdIn: number, fdOut: number): Transport;
    /**
     * Starts a child process. The handler receives STDERR. Without a handler the child
     * writes to the standard error of this process.
     */
    transportSpawn(
        runtime: Runtime,
        options: SpawnOptions,
        handler?: Handler | null,
    ): Transport;
    /**
     * @param onHeaders - a function that may call `transportSetHeader` for its transport
     * until it returns. Its argument `status` is 0, or 401 or 403 after a refusal.
     */
    transportHttp(
        runtime: Runtime,
        url: string,
        options?: HttpOptions | null,
        onHeaders?: ((transport: Transport, status: number) => void) | null,
    ): Transport;
    transportSetHeader(transport: Transport, name: string, value: string | null): void;
    /** Sets up OAuth. The handler receives AUTHORIZE. */
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
     * Returns a header of the caller's HTTP request. May only be called inside principal
     * and onBearer.
     */
    transportHeader(transport: Transport, name: string): string | null;
    /**
     * Returns a text that identifies the caller. May only be called inside principal and
     * onBearer.
     */
    transportPeer(transport: Transport): string;
    transportFree(transport: Transport): void;
    /**
     * Makes a custom transport. The handler receives TRANSPORT_*. reopen: true = a lost
     * connection can be opened again.
     */
    transportCustom(runtime: Runtime, handler: Handler, reopen?: boolean): Transport;
    /**
     * Passes input to the library. Returns false when too much input already waits. The
     * event TRANSPORT_PAUSE says when to continue.
     */
    transportFeed(wire: Wire, data: Json): boolean;
    /**
     * Reports that this many bytes of TRANSPORT_SEND were written. The library passes
     * more bytes to send while fewer than 1 MiB are unwritten.
     */
    transportTook(wire: Wire, count: number): void;
    transportWritable(wire: Wire): void;
    transportClosed(wire: Wire): void;

    // ---- stores ----
    storeMemory(options?: StoreOptions | null): Store;
    storeSqlite(path: string, options?: StoreOptions | null): Promise<Store>;
    storeRedis(url: string, options?: StoreOptions | null): Promise<Store>;
    storePostgres(url: string, options?: StoreOptions | null): Promise<Store>;
    /** Frees the store, which must not be used any more. Resolves when the store has
     * been closed, unless a server still uses it. */
    storeFree(store: Store): Promise<void>;

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
    /** Makes a server. The handler receives IDLE. */
    serverNew(
        runtime: Runtime,
        options?: ServerOptions | null,
        handler?: Handler | null,
        principal?: Principal | null,
        validate?: Validate | null,
    ): Server;
    /**
     * Adds an item. The handler receives CALL for each call, and COMPLETION if
     * `completion` is set.
     */
    serverAdd(
        server: Server,
        item: number,
        json: Json,
        options: ItemOptions | null,
        handler: Handler,
        completion?: boolean,
    ): void;
    serverRemove(server: Server, item: number, name: string): void;
    serverResourceUpdated(server: Server, uri: string): void;
    /** Returns the statistics as JSON text: an object of objects of numbers. */
    serverStats(server: Server): string;
    /** Serves the client at the other end of the transport, which is consumed. */
    serverAttach(server: Server, transport: Transport): void;
    serverClose(server: Server): void;
    serverFree(server: Server): void;
    /** @param onBearer - a hook that owns the bearer and accepts or refuses it at once or
     * later */
    serverListen(
        server: Server,
        options?: ListenOptions | null,
        bearer?: BearerOptions | null,
        onBearer?: ((bearer: Bearer, transport: Transport) => void) | null,
    ): Listener;
    listenerUrl(listener: Listener): string;
    listenerReload(listener: Listener): void;
    listenerClose(listener: Listener): void;
    listenerFree(listener: Listener): void;
    bearerToken(bearer: Bearer): string;
    bearerAccept(
        bearer: Bearer,
        principal: string,
        scopes?: string | null,
        expiresMs?: number,
    ): void;
    bearerRefuse(bearer: Bearer, reason?: string | null): void;
    bearerFree(bearer: Bearer): void;

    // ---- calls ----
    callMethod(call: Call): string;
    callName(call: Call): string;
    callPrincipal(call: Call): string;
    callHasScope(call: Call, scope: string): boolean;
    callParams(call: Call): string;
    callMeta(call: Call, key: string): string | null;
    callArgument(call: Call, name: string): string | null;
    callArgumentText(call: Call, name: string): string | null;
    /**
     * Returns an integer argument. The value is a bigint when a number could not
     * represent it exactly.
     */
    callArgumentInt(call: Call, name: string): number | bigint | null;
    /** Sets the handler of the call's events: CANCEL, at most once, and DRAIN. */
    callWatch(call: Call, handler: Handler): void;
    callIsCancelled(call: Call): boolean;

    // Functions that send return false for E_WOULD_BLOCK: nothing was sent, and DRAIN
    // (see callWatch) follows when there is room.
    callSend(call: Call, content: Content): boolean;
    callSendText(call: Call, text: string | Uint8Array): boolean;
    callExtendText(call: Call, index: number, text: string | Uint8Array): boolean;
    /** Sends one block, as `callSend` does with a content that has only this block. */
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
    callCompleteJson(call: Call, json: Json): void;
    callSetStatus(call: Call, message: string): boolean;
    /** Asks the client a question. The handler receives INPUT. */
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
     * Returns null on a first run.
     */
    callResumed(call: Call): [lastSegment: number, checkpoint: Buffer | null] | null;
    callComplete(call: Call, content?: Content | null): void;
    /**
     * Completes and frees the call in one step, for the common case. The content is a
     * text block, then the blocks given as JSON, and structuredContent. When the function
     * throws, the call is unchanged: the caller must end the call in another way and free
     * it.
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
    // events are not delivered. Without QUESTION the server learns that the client
    // answers no questions. OPEN, CLOSED and COMPLETE are always delivered.

    /** Opens a session over the transport, which is consumed. */
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
     * Starts a request with the handle and handler of an earlier request, which was
     * started with isKept, has ended and was freed. So a short request needs no new
     * handle. COMPLETE with success frees the request. After any other COMPLETE,
     * `requestFree` must free it.
     *
     * @throws StateError when the handle cannot be used again, or not yet
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
