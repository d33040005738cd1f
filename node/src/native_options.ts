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
    name: string;
    version: string;
    title: string;
    instructions: string;
    store: Store;
    pageSize: number;
    maxResultBytes: number;
    maxLogBytes: number;
    maxSegments: number;
    maxInputs: number;
    maxTasks: number;
    maxRequests: number;
    maxStreams: number;
    maxTtlMs: number;
    graceMs: number;
    lookupsPerSecond: number;
    inputWaitMs: number;
    dialectsOn: number;
    dialectsOff: number;
    draftWays: number;
    fetchesPerSecond: number;
    listTtlMs: number;
    listScope: number;
    sealKey: Uint8Array;
    sealKeyBefore: Uint8Array;
    questionTtlMs: number;
    maxEvents: number;
    maxEventBytes: number;
    eventTtlMs: number;
    maxPrincipalRequests: number;
    maxPrincipalBytes: number;
    maxServerRequests: number;
    maxServerBytes: number;
    firstTurnMs: number;
    logLevel: string;
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
    address: string;
    port: number;
    reusePort: boolean;
    path: string;
    healthPath: string;
    certFile: string;
    keyFile: string;
    clientCaFile: string;
    clientCertRequired: boolean;
    hosts: string;
    origins: string;
    cors: boolean;
    unauthenticatedTasks: boolean;
    maxHeaderBytes: number;
    maxConnections: number;
    maxStreams: number;
    maxSessions: number;
    sessionIdleMs: number;
    maxReplayBytes: number;
    idleTimeoutMs: number;
    headerTimeoutMs: number;
    bodyTimeoutMs: number;
    writeTimeoutMs: number;
    keepaliveMs: number;
    streamAfterMs: number;
    drainMs: number;
    readyPath: string;
    livePath: string;
    lenientHeaders: boolean;
    tokensFile: string;
    idleDrainMs: number;
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
}>;
