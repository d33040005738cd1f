/**
 * The options that servers, items, listeners and handlers have. A mistake is found where
 * the options are written.
 *
 * @module
 */

import { checkOptionNames, checkOptionTypes, type OptionTypes } from "../names.js";
import type {
    HandlerOptions,
    ItemOptions,
    ListenOptions,
    PromptOptions,
    ResourceOptions,
    ServeOptions,
    ServerOptions,
    ToolOptions,
} from "./options.js";
import { Store } from "./stores.js";

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
        forbidExtra: true,
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
    prompt: { ...OF_ITEMS, input: true, forbidExtra: true, complete: true },
};

const OF_SERVE: OptionTypes<ServeOptions> = {
    store: undefined,
    signal: undefined,
    drainMs: "number",
};
const OF_HANDLER: OptionTypes<HandlerOptions> = {
    ...OF_SERVE,
    path: "string",
    healthPath: "string",
    metricsPath: "string",
    boardPath: "string",
    boardReadOnly: "boolean",
    boardRedact: "boolean",
    boardToken: "string",
    hosts: undefined,
    origins: undefined,
    cors: "boolean",
    unauthenticatedTasks: "boolean",
    maxHeaderBytes: "number",
    maxConnections: "number",
    maxStreams: "number",
    maxSessions: "number",
    sessionIdleMs: "number",
    maxReplayBytes: "number",
    idleTimeoutMs: "number",
    headerTimeoutMs: "number",
    bodyTimeoutMs: "number",
    writeTimeoutMs: "number",
    keepaliveMs: "number",
    streamAfterMs: "number",
    readyPath: "string",
    livePath: "string",
    lenientHeaders: "boolean",
    tokensFile: "string",
    idleDrainMs: "number",
    auth: undefined,
    principal: "function",
};
const { principal: _, ...OF_HTTP } = OF_HANDLER;
const OF_LISTEN: OptionTypes<ListenOptions> = {
    ...OF_HTTP,
    host: "string",
    address: "string",
    port: "number",
    reusePort: "boolean",
    certFile: "string",
    keyFile: "string",
    clientCaFile: "string",
    clientCertRequired: "boolean",
};
const OF_SERVER: OptionTypes<ServerOptions> = {
    name: "string",
    version: "string",
    title: "string",
    instructions: "string",
    store: undefined,
    pageSize: "number",
    maxResultBytes: "number",
    maxLogBytes: "number",
    maxSegments: "number",
    maxInputs: "number",
    maxTasks: "number",
    maxRequests: "number",
    maxStreams: "number",
    maxTtlMs: "number",
    graceMs: "number",
    lookupsPerSecond: "number",
    inputWaitMs: "number",
    dialectsOn: "number",
    dialectsOff: "number",
    draftWays: "number",
    fetchesPerSecond: "number",
    listTtlMs: "number",
    listScope: undefined,
    sealKey: undefined,
    sealKeyBefore: undefined,
    questionTtlMs: "number",
    maxEvents: "number",
    maxEventBytes: "number",
    eventTtlMs: "number",
    maxPrincipalRequests: "number",
    maxPrincipalBytes: "number",
    maxServerRequests: "number",
    maxServerBytes: "number",
    firstTurnMs: "number",
    logLevel: "string",
    toolWaitMs: "number",
    maxCalls: "number",
    principal: undefined,
    onError: "function",
    exposeErrors: "boolean",
    lifespan: undefined,
};

/**
 * Refuses options that have no effect over standard input and output, such as `auth`.
 *
 * @throws TypeError: an option is unknown, or an option of `listenHttp`.
 */
export function checkStdioOptions(given: ServeOptions): void {
    const advice = (name: string): string =>
        Object.hasOwn(OF_LISTEN, name)
            ? ": options of HTTP, such as auth and tokensFile, belong to listenHttp " +
              "and have no effect here"
            : "";
    checkOptionTypes("serveStdio()", given, OF_SERVE, advice);
    checkStore(given.store);
}

/**
 * Refuses invalid options of a listener.
 *
 * @throws TypeError: an option is unknown or of another type.
 */
export function checkListenOptions(given: ListenOptions): void {
    checkOptionTypes("listenHttp()", given, OF_LISTEN);
    checkStore(given.store);
}

/**
 * Refuses invalid options of a handler.
 *
 * @throws TypeError: an option is unknown, needs a socket, or is of another type.
 */
export function checkHandlerOptions(given: HandlerOptions): void {
    const advice = (name: string): string =>
        Object.hasOwn(OF_LISTEN, name)
            ? ": it belongs to the socket, which the HTTP server of the application has"
            : "";
    checkOptionTypes("handler()", given, OF_HANDLER, advice);
    checkStore(given.store);
}

/**
 * Refuses invalid options of a server.
 *
 * @throws TypeError: an option is unknown or of another type.
 */
export function checkServerOptions(given: ServerOptions): void {
    checkOptionTypes("Server", given, OF_SERVER);
    checkStore(given.store);
    const { listScope } = given;
    if (listScope !== undefined && !SCOPES.includes(listScope))
        throw new TypeError('listScope has to be "private" or "public"');
}

const SCOPES: readonly unknown[] = ["private", "public"];

/** Refuses what is no store. */
function checkStore(given: unknown): void {
    if (given === undefined || given instanceof Store) return;
    if (typeof given === "string" && given) return;
    throw new TypeError(
        `store has to be a path, a URL or a store, not ${JSON.stringify(given)}`,
    );
}

/**
 * Refuses an unknown option of an item. Without this check an unknown option would be
 * ignored silently.
 *
 * @throws TypeError: an option is unknown.
 */
export function checkOptions(what: keyof typeof KNOWN, key: string, given: object): void {
    const known = Object.keys(KNOWN[what]);
    const advice = (name: string): string => {
        const ours = OF_OFFICIAL[name];
        return ours && known.includes(ours) ? `: its name here is "${ours}"` : "";
    };
    checkOptionNames(`${what} ${key}`, given, known, advice);
}

/** Options of the official SDK, and their names here. */
const OF_OFFICIAL: Readonly<Record<string, string | undefined>> = {
    inputSchema: "input",
    outputSchema: "output",
    argsSchema: "input",
};
