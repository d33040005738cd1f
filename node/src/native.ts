/**
 * The C library, one to one: what the functions of `segue.h` are called here.
 *
 * `segue_x_y` is `xY`. A function that can fail throws (errors.ts); what C gives by
 * out-parameters is returned. Handles are opaque values with a tag of their kind: each is
 * freed by its `xFree`, or when nothing refers to it any more; one that was freed, given
 * away ("consumed") or whose runtime is freed throws `ClosedError` when it is used,
 * also by a second free. One of another kind, or anything else, is a TypeError.
 *
 * JSON crosses as text (inputs also as bytes), never parsed; durations are milliseconds;
 * options are objects (native_options.ts).
 *
 * Callbacks do not run inside of the library. `runtimeDispatch` returns what has happened
 * as one flat array, `[handler, kind, a, b, c, handler, kind, ...]`, and the glue
 * (runtime.ts) calls `handler(kind, a, b, c)` for each, in order. The library holds the
 * handler, and with it what it refers to, until its last event has been returned.
 * Exceptions are the few questions that C wants answered at once (principal, validate,
 * onHeaders, onBearer, onAssertion, onLoad, onSave): these functions run inside of
 * `runtimeDispatch` and must be quick and synchronous; when one throws, the question is
 * answered "no", and an event without handler, `EXCEPTION`, tells.
 *
 * V8 has no strings beyond 512 MB: a request that would bring one is cancelled, and its
 * COMPLETE says E_NOMEM.
 *
 * All of it is for the thread of the environment (main thread or worker) that loaded it.
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
/** A handle of the library: opaque. */
interface Handle<Name extends string> {
    readonly [kind]: Name;
}

/** `segue_runtime` */
export type Runtime = Handle<"Runtime">;
/** `segue_transport` */
export type Transport = Handle<"Transport">;
/** `segue_store` */
export type Store = Handle<"Store">;
/** `segue_server` */
export type Server = Handle<"Server">;
/** `segue_listener` */
export type Listener = Handle<"Listener">;
/** `segue_bearer` */
export type Bearer = Handle<"Bearer">;
/** `segue_call` */
export type Call = Handle<"Call">;
/** `segue_session` */
export type Session = Handle<"Session">;
/** `segue_request` */
export type Request = Handle<"Request">;
/** `segue_task` */
export type Task = Handle<"Task">;
/** `segue_content` */
export type Content = Handle<"Content">;
/** Our side of a transport of one's own. */
export type Wire = Handle<"Wire">;

/** JSON text. */
export type Json = string | Uint8Array;

/** Gets the events of one thing; constants.ts (Kind) tells what a, b and c are. */
// biome-ignore lint/suspicious/noExplicitAny: what they are depends on kind
export type Handler = (kind: number, a: any, b: any, c: any) => void;

/** status, message, JSON-RPC code (0 = a failure of this side), data (JSON), retryable */
export type ErrorInfo = readonly [
    status: number,
    message: string,
    code: number,
    data: string | null,
    retryable: boolean,
];

/** Makes what functions throw; message is "" when there is no detail, and retryable null
 * when the status alone decides. */
export type ErrorFactory = (
    status: number,
    message: string,
    code: number,
    data: string | null,
    retryable: boolean | null,
) => Error;

/**
 * Does a value fit a JSON Schema? undefined or null: it does. A text: it does not, and
 * why. false: that cannot be told (another dialect, a $ref that was not resolved).
 *
 * @param what - Validation.ARGUMENTS or Validation.RESULT
 */
export type Validate = (
    tool: string,
    what: number,
    schema: string,
    value: string,
) => string | false | null | undefined;

/** Names who is at the other end ("" or null: nobody in particular); throw to refuse. */
export type Principal = (transport: Transport) => string | null | undefined;

/** The functions of the addon. */
export interface Native {
    // ---- library ----
    version(): string;
    statusName(status: number): string;
    setErrorFactory(factory: ErrorFactory | null): void;
    /** Members of each options struct that an object can set, by the struct's name. */
    optionNames(): Record<string, string[]>;
    /** Names of the kinds of events, by number. */
    eventNames(): string[];
    /** Handles of this environment that exist, by kind; for leak checks. */
    liveHandles(): Record<string, number>;
    /** Bytes that runtimes made with `track` hold, of all environments. */
    allocated(): number;
    /** `flock(fd, LOCK_EX | LOCK_NB)`: true when it was taken, false when another process
     * has it; closing the descriptor lets go of it. */
    lockFile(fd: number): boolean;

    // ---- runtime ----
    /**
     * @param onWake - called on this thread, with nothing, when `runtimeDispatch` may
     *     have something; at most once until then
     * @param log - gets RUNTIME_LOG
     * @param track - count what it allocates
     */
    runtimeNew(
        options?: RuntimeOptions | null,
        onWake?: (() => void) | null,
        log?: Handler | null,
        track?: boolean,
    ): Runtime;
    /** Blocks until `runtimeStop` was called in a hook; returns as `runtimeDispatch`. */
    runtimeRun(runtime: Runtime): unknown[];
    runtimeStart(runtime: Runtime): void;
    runtimeFd(runtime: Runtime): number;
    /**
     * What has happened, at most maxEvents callbacks of the library; empty when nothing
     * has. A SEGMENTS event is raw here (segment.ts).
     *
     * @throws ClosedError once the runtime was stopped and nothing is left
     */
    runtimeDispatch(runtime: Runtime, timeoutMs: number, maxEvents: number): unknown[];
    runtimeStop(runtime: Runtime): void;
    /** Joins the threads of the runtime and returns the last events, among them CLOSED
     * and COMPLETE of all that was open. */
    runtimeFree(runtime: Runtime): unknown[];
    /** Holds back what is sent until `runtimeUncork`; they nest. */
    runtimeCork(runtime: Runtime): void;
    runtimeUncork(runtime: Runtime): void;
    /** Whether the doorbell keeps the process alive; at first it does not. */
    runtimeHold(runtime: Runtime, hold: boolean): void;
    runtimeAuthorize(runtime: Runtime, redirectUrl: string): void;

    // ---- transports ----
    transportPair(runtime: Runtime): [Transport, Transport];
    transportStdio(runtime: Runtime): Transport;
    transportFds(runtime: Runtime, fdIn: number, fdOut: number): Transport;
    /** handler gets STDERR; without one the child has our standard error. */
    transportSpawn(
        runtime: Runtime,
        options: SpawnOptions,
        handler?: Handler | null,
    ): Transport;
    /** @param onHeaders - may call `transportSetHeader` of what it is given, until it
     *     returns; status is 0, or 401 or 403 */
    transportHttp(
        runtime: Runtime,
        url: string,
        options?: HttpOptions | null,
        onHeaders?: ((transport: Transport, status: number) => void) | null,
    ): Transport;
    transportSetHeader(transport: Transport, name: string, value: string | null): void;
    /** handler gets AUTHORIZE. */
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
    /** Only inside of principal and onBearer. */
    transportHeader(transport: Transport, name: string): string | null;
    /** Only inside of principal and onBearer. */
    transportPeer(transport: Transport): string;
    transportFree(transport: Transport): void;
    /** handler gets TRANSPORT_*; reopen: a loss is not final. */
    transportCustom(runtime: Runtime, handler: Handler, reopen?: boolean): Transport;
    /** false: too much waits already, TRANSPORT_PAUSE tells when to go on. */
    transportFeed(wire: Wire, data: Json): boolean;
    /** So many bytes of TRANSPORT_SEND are gone. More are sent while less than 1 MiB is
     * under way. */
    transportTook(wire: Wire, count: number): void;
    transportWritable(wire: Wire): void;
    transportClosed(wire: Wire): void;

    // ---- stores ----
    storeMemory(options?: StoreOptions | null): Store;
    storeSqlite(path: string, options?: StoreOptions | null): Promise<Store>;
    storeRedis(url: string, options?: StoreOptions | null): Promise<Store>;
    /** Of no use from now on; resolves when it has been closed, if no server has it. */
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
    /** handler gets IDLE. */
    serverNew(
        runtime: Runtime,
        options?: ServerOptions | null,
        handler?: Handler | null,
        principal?: Principal | null,
        validate?: Validate | null,
    ): Server;
    /** handler gets CALL for each call, and COMPLETION if completion is set. */
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
    /** An object of objects of numbers, as JSON text. */
    serverStats(server: Server): string;
    /** transport is consumed. */
    serverAttach(server: Server, transport: Transport): void;
    serverClose(server: Server): void;
    serverFree(server: Server): void;
    /** @param onBearer - owns the bearer from then on, and decides now or later */
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
    /** A bigint when a number could not hold it exactly. */
    callArgumentInt(call: Call, name: string): number | bigint | null;
    /** handler gets CANCEL, at most once, and DRAIN. */
    callWatch(call: Call, handler: Handler): void;
    callIsCancelled(call: Call): boolean;

    // Those that send return false for E_WOULD_BLOCK: nothing was taken, DRAIN follows
    // (callWatch).
    callSend(call: Call, content: Content): boolean;
    callSendText(call: Call, text: string | Uint8Array): boolean;
    callExtendText(call: Call, index: number, text: string | Uint8Array): boolean;
    /** `callSend` of a content with this one block. */
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
    callSetStatus(call: Call, message: string): boolean;
    /** handler gets INPUT. */
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
    /** Last segment and checkpoint of an earlier run; null on a first run. */
    callResumed(call: Call): [lastSegment: number, checkpoint: Buffer | null] | null;
    callComplete(call: Call, content?: Content | null): void;
    /**
     * `callComplete` and `callFree` with a content made of a text block, then blocks
     * given as JSON, and structuredContent: one step for the common case. When this
     * throws, the call is as it was, to be ended otherwise and freed by the caller.
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

    // `events` is the mask of what handler gets (default: all); what it lacks the library
    // does not deliver, which means something for QUESTION (the server is told there is
    // nobody to ask) and SEGMENTS. OPEN, CLOSED and COMPLETE always come.

    /** transport is consumed. */
    sessionOpen(
        runtime: Runtime,
        transport: Transport,
        options?: SessionOptions | null,
        handler?: Handler | null,
        events?: number,
        validate?: Validate | null,
    ): Session;
    sessionPeer(session: Session): string;
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
     * `requestStart` by the value, and the handler, of a request that was started as one
     * to be kept (isKept), has ended and was freed: so that a short one costs no new
     * handle. It is freed with its COMPLETE when that tells of success, else by
     * `requestFree`.
     *
     * @throws StateError it cannot be used again (yet)
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

/** The addon of this environment. */
export const native: Native = loadAddon() as Native;
