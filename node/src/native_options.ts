/**
 * Options that are passed to the library: the members of the structs of `segue.h`, in
 * camelCase. `segue.h` explains each option. A member that is missing, undefined or null
 * has the library's default. An unknown name is a TypeError. Durations are in
 * milliseconds, sizes in bytes.
 *
 * A test compares these types with the tables of the addon, and the tables with the
 * header.
 */
import type { Server, Store } from "./native.js";

type Members<T> = { [Name in keyof T]?: T[Name] | null | undefined };

/** The members of the C struct `segue_runtime_options`. */
export type RuntimeOptions = Members<{
    logLevel: number;
    maxMessageBytes: number;
    maxDepth: number;
    maxQueueBytes: number;
    lendInput: boolean;
    camelCase: boolean;
}>;

/** The members of the C struct `segue_observer_options`. */
export type ObserverOptions = Members<{
    level: number;
    maxArgumentBytes: number;
}>;

/** The members of the C struct `segue_spawn_options`. */
export type SpawnOptions = Members<{
    argv: readonly string[];
    /** environment variables, each as "NAME=value" */
    env: readonly string[];
    workingDir: string;
    restart: boolean;
    closeTimeoutMs: number;
    terminateTimeoutMs: number;
}>;

/** The members of the C struct `segue_http_options`. */
export type HttpOptions = Members<{
    caFile: string;
    certFile: string;
    keyFile: string;
    keyPassword: string;
    proxy: string;
    unixSocket: string;
    insecure: boolean;
    http1: boolean;
    maxConnections: number;
    connectTimeoutMs: number;
    silenceTimeoutMs: number;
    /** HTTP+SSE: 0 = if the server refuses `initialize`, 1 = never, 2 = only */
    httpSse: number;
}>;

/** The members of the C struct `segue_oauth_options`. */
export type OauthOptions = Members<{
    /** 0 = code, 1 = client_credentials, 2 = assertion */
    grant: number;
    clientId: string;
    clientSecret: string;
    privateKey: string;
    issuer: string;
    clientMetadataUrl: string;
    clientName: string;
    redirectUri: string;
    scope: string;
    authMethod: string;
    noRegistration: boolean;
    allowPrivateAddresses: boolean;
    consentTimeoutMs: number;
}>;

/** The members of the C struct `segue_store_options`. */
export type StoreOptions = Members<{
    /** 0 = normal, 1 = full */
    durability: number;
    maxBytes: number;
    busyTimeoutMs: number;
    timeoutMs: number;
    leaseMs: number;
    maxPrincipalOperations: number;
    maxPrincipalBytes: number;
}>;

/** The members of the C struct `segue_server_options`. */
export type ServerOptions = Members<{
    /** Name of the server; default "segue". */
    name: string;
    /** Version of the server; default "0". */
    version: string;
    /** Title of the server, for people; default: none. */
    title: string;
    /** Text for the model that uses the server; default: none. */
    instructions: string;
    /** The store, which is shared; default: the server makes a memory store. */
    store: Store;
    /** Number of items per page of a list; default 1000. */
    pageSize: number;
    /** The largest result of a plain call in bytes; default 16 MiB. */
    maxResultBytes: number;
    /** The largest log of one operation in bytes; default 64 MiB. */
    maxLogBytes: number;
    /** Segments of one operation; default 1,000,000. */
    maxSegments: number;
    /** Questions of one operation; default 64. */
    maxInputs: number;
    /** Running tasks, and calls that wait for answers, per principal; default 100. */
    maxTasks: number;
    /** Requests in flight per connection; default 65536. */
    maxRequests: number;
    /** Open tasks/stream and listen requests per connection; default 256. */
    maxStreams: number;
    /** The longest time to live of a task; default 24 h. */
    maxTtlMs: number;
    /** The time for which an expired task can still be read; default 5 min. */
    graceMs: number;
    /** Failed look-ups of tasks per second and principal; default 100. */
    lookupsPerSecond: number;
    /** The time for which a plain call waits for answers; default 10 min. */
    inputWaitMs: number;
    /** `segue_dialect` bits to switch on in addition to the default. */
    dialectsOn: number;
    /** `segue_dialect` bits to switch off; wins over dialects_on. */
    dialectsOff: number;
    /** `segue_draft_way` bits; default 0 = none of them. */
    draftWays: number;
    /**
     * Tasks/result with lastSeqNr per second and principal; a caller that sends more is
     * asked to wait; default 1000.
     */
    fetchesPerSecond: number;
    /**
     * The time for which clients of 2026-07-28 may cache lists and the answer to
     * server/discover; default 0 = no caching.
     */
    listTtlMs: number;
    /** The callers that may share the answers of list_ttl_ms: `segue_cache_scope`. */
    listScope: number;
    /**
     * A secret random key of seal_key_len = 32 bytes; default: the server makes a key. A
     * store that survives its process keeps the key that a server over HTTP made first,
     * and all such servers on the store use it for cursors and sessions. Servers with the
     * same key accept each other's cursors, continue each other's sessions (Mcp-Session-
     * Id), and take over each other's calls that wait for answers: the tool then runs
     * from its start and finds the answers given so far.
     */
    sealKey: Uint8Array;
    /**
     * The previous key: texts that were sealed with it can still be opened, so that a key
     * can be replaced.
     */
    sealKeyBefore: Uint8Array;
    /**
     * Time to live of a question that is a task. Above 0, all questions to clients of
     * 2025-11-25 that support this are tasks; 0 = default, no question is a task.
     */
    questionTtlMs: number;
    /**
     * The number of a task's last events that can be streamed again; 0 = default, all. A
     * client that asks for older events gets an error; the result still has their
     * contents. Events that `segue_call_replace` made void leave the log and no longer
     * count against max_log_bytes.
     */
    maxEvents: number;
    /** Bytes of event payloads that are stored for streaming again; 0 = no limit. */
    maxEventBytes: number;
    /** The time for which an event is stored for streaming again; 0 = no limit. */
    eventTtlMs: number;
    /** Requests in flight of one principal over all connections; default 65,536. */
    maxPrincipalRequests: number;
    /**
     * Bytes in memory of the requests and logs of one principal; default 256 MiB. A
     * principal over the limit cannot begin calls, and its plain calls get no further
     * segments. From half of the limit on, a task waits for its store. Requests that
     * follow or end a running call are always served.
     */
    maxPrincipalBytes: number;
    /** Requests in flight of all principals together; default 262,144. */
    maxServerRequests: number;
    /** Bytes in memory of the requests and logs of all principals; default 1 GiB. */
    maxServerBytes: number;
    /**
     * The longest time for which `segue_call_hold_turn` delays the answer to a call;
     * default 20.
     */
    firstTurnMs: number;
    /**
     * The lowest level of the log messages that a client before 2026-07-28 gets until it
     * sets a level; default: it gets none.
     */
    logLevel: string;
    /**
     * For servers that learn their tools late, such as gateways: the time for which an
     * interrupted call of a tool that the server does not have waits until the tool is
     * added; 0 = default, such a call fails at once. Above 0, the server takes over no
     * calls before it has a tool of `SEGUE_TOOL_RESTARTABLE`.
     */
    toolWaitMs: number;
}>;

/** The members of the C struct `segue_item_options`. */
export type ItemOptions = Members<{
    flags: number;
    /** 0 = never, 1 = may, 2 = must */
    task: number;
    ttlMs: number;
    pollMs: number;
    promoteAfterMs: number;
    readTtlMs: number;
    readScope: number;
    scopes: string;
    resumeMinWaitMs: number;
    resumeMaxWaitMs: number;
    visibility: number;
}>;

/** The members of the C struct `segue_listen_options`. */
export type ListenOptions = Members<{
    /**
     * The address to listen on: "127.0.0.1" (default), "::1", "0.0.0.0",
     * "unix:/run/x.sock", "systemd" or "systemd:NAME" for an inherited socket.
     */
    address: string;
    /** The port; 0 (default) = any free port, which `url` names. */
    port: number;
    /** true = several processes share the port (SO_REUSEPORT); false by default. */
    reusePort: boolean;
    /** The path of the endpoint; "/mcp" by default. */
    path: string;
    /**
     * The path of the health check, such as "/health": GET answers 200 while the server
     * serves. None by default.
     */
    healthPath: string;
    /**
     * The file of the certificate chain (PEM), for TLS 1.2 or newer. Default: HTTP
     * without TLS.
     */
    certFile: string;
    /** The file of the key of `certFile` (PEM). Default: `certFile` contains the key. */
    keyFile: string;
    /**
     * The file of the authorities (PEM) that verify certificates of clients. Default: no
     * certificates are requested.
     */
    clientCaFile: string;
    /**
     * true = clients without a certificate are refused; false by default. Needs
     * `clientCaFile`.
     */
    clientCertRequired: boolean;
    /**
     * The names that are allowed in the Host header, separated by commas; "*" = any.
     * Default: on loopback the names of loopback; elsewhere localhost and addresses, or
     * any name with TLS or tokens.
     */
    hosts: string;
    /**
     * The origins that are allowed in the Origin header, separated by commas; "*" = any.
     * Default: on loopback the origins of loopback, elsewhere the origin of Host.
     */
    origins: string;
    /**
     * true = web pages of allowed origins may call the server (CORS); false by default.
     */
    cors: boolean;
    /**
     * true = anonymous callers from other machines may have tasks, too; false by
     * default.
     */
    unauthenticatedTasks: boolean;
    /**
     * The largest head of a request, in bytes; 32 KiB by default. Larger ones get 431.
     */
    maxHeaderBytes: number;
    /** Maximum number of open connections; 16384 by default. */
    maxConnections: number;
    /** Maximum number of open event streams of one principal; 1024 by default. */
    maxStreams: number;
    /**
     * Maximum number of sessions (`Mcp-Session-Id`) of clients that use `initialize`;
     * 10000 by default.
     */
    maxSessions: number;
    /**
     * The time after which an unused session ends, in milliseconds; 30 min by default.
     */
    sessionIdleMs: number;
    /**
     * How many bytes of events of one answer a session stores for `Last-Event-ID`; 1 MiB
     * by default. A client that needs older events gets 410.
     */
    maxReplayBytes: number;
    /**
     * The time after which an idle connection closes, in milliseconds; 75000 by default.
     */
    idleTimeoutMs: number;
    /**
     * The longest time for a TLS handshake, and for the head of a request, in
     * milliseconds; 10000 by default.
     */
    headerTimeoutMs: number;
    /** The longest time for the body of a request, in milliseconds; 30000 by default. */
    bodyTimeoutMs: number;
    /**
     * The time after which a client that reads nothing is disconnected, in milliseconds;
     * 60000 by default.
     */
    writeTimeoutMs: number;
    /**
     * The time of silence on a stream after which a comment is sent, in milliseconds;
     * 15000 by default.
     */
    keepaliveMs: number;
    /**
     * The time after which an unfinished answer becomes an event stream, so that proxies
     * see data, in milliseconds; 200 by default.
     */
    streamAfterMs: number;
    /**
     * The longest time that the end takes after `close`, in milliseconds; 10000 by
     * default.
     */
    drainMs: number;
    /**
     * The path of the readiness check, such as "/ready": GET answers 200 while the
     * server serves and is ready, otherwise 503. None by default.
     */
    readyPath: string;
    /**
     * The path of the liveness check, such as "/live": GET answers 200 while the
     * listener runs, also while it closes. None by default.
     */
    livePath: string;
    /**
     * true = requests about a task may lack the header `Mcp-Name`, which some clients
     * leave out (FastMCP 4); false by default: such a request gets 400.
     */
    lenientHeaders: boolean;
    /**
     * The file that has the tokens of callers; `reload` reads it again. With this option
     * every caller needs one of them, and the `principal` of the server does not run.
     * Excludes `auth`.
     */
    tokensFile: string;
    /**
     * The time for which idle connections stay open after `close`, in milliseconds, at
     * most `drainMs`; 0 by default: they close at once. A request that is on its way on
     * one of them then gets 503, and a load balancer can send it to another server.
     */
    idleDrainMs: number;
    /**
     * The path of the metrics, such as "/metrics": GET answers in the text format of
     * Prometheus. Only callers on this machine, and callers with a name, get them; others
     * get 403. None by default.
     */
    metricsPath: string;
    /**
     * The path of the task board, such as "/board": a web page that shows the tasks of
     * the server. Only callers on this machine, and callers with a name, may use it. None
     * by default.
     */
    boardPath: string;
    /** Whether the task board changes nothing; false by default. */
    boardReadOnly: boolean;
    /** Whether the board hides what clients and tools have said; false by default. */
    boardRedact: boolean;
    /**
     * A secret of at least 16 bytes without which nobody may use the board. The page
     * takes it from its URL: `/board/#token=...`. None by default.
     */
    boardToken: string;
}>;

/** The members of the C struct `segue_bearer_options`. */
export type BearerOptions = Members<{
    resource: string;
    authorizationServers: string;
    scopesSupported: string;
    requiredScopes: string;
    impliedScopes: string;
    resourceName: string;
    documentation: string;
    checkTimeoutMs: number;
    issuer: string;
    audience: string;
    algorithms: string;
    jwks: string;
    jwksFile: string;
    jwksUrl: string;
    caFile: string;
    accessTokensOnly: boolean;
    leewayMs: number;
    jwksAgeMs: number;
    jwksRefreshMs: number;
    maxTokens: number;
}>;

/** The members of the C struct `segue_session_options`. */
export type SessionOptions = Members<{
    name: string;
    version: string;
    /** a JSON object as text */
    capabilities: string;
    /** 0 = auto, 1 = modern, 2 = legacy */
    era: number;
    probeTimeoutMs: number;
    requestTimeoutMs: number;
    maxReconnects: number;
    firstAttempts: number;
    /** in milliseconds; -1 = no limit */
    reconnectTimeoutMs: number;
    maxResultBytes: number;
    maxRequests: number;
    noIdempotency: boolean;
    noTasks: boolean;
    fillDefaults: boolean;
    cacheBytes: number;
    dialectsOff: number;
    dialectsOn: number;
    host: Server;
    /** a set of `ResponseMode` bits; 0 = all */
    responseModes: number;
}>;

/** The members of the C struct `segue_request_options`. */
export type RequestOptions = Members<{
    timeoutMs: number;
    /** 0 = leave a task running, 1 = cancel it */
    onTimeout: number;
    credit: number;
    discard: boolean;
    logLevel: string;
    idempotencyKey: string;
    ttlMs: number;
    unordered: boolean;
    noCache: boolean;
    /** a set of `ResponseMode` bits; 0 = the modes of the session */
    responseModes: number;
    seen: number;
    noIdempotency: number;
    /** JSON object, declared by the request in 2026-07-28 */
    capabilities: string;
    noTask: boolean;
}>;
