/**
 * A transport for the official SDK (2.x and 1.x) that uses a connection of this library:
 *
 * ```ts
 * import { Client } from "@modelcontextprotocol/client";
 * import { SegueTransport } from "segue-mcp/adapters/mcp";
 *
 * const client = new Client({ name: "my-client", version: "1.0.0" });
 * await client.connect(new SegueTransport("http://127.0.0.1:8000/mcp"));
 * await client.callTool({ name: "story", arguments: { n: 3 } });
 * ```
 *
 * Existing code of the official SDK gets the features of this library. Calls and tasks
 * survive a broken connection, and a server of any revision looks like a server of
 * 2025-11-25. An answer in segments or as a task arrives as one result.
 *
 * The transport does not forward bytes. The transport turns each message of the SDK into
 * a request of this library, because only code that understands a request can repeat the
 * request safely.
 *
 * @module
 */

import type { Change, Changes } from "../client/changes.js";
import type { LogLevel, LogMessage } from "../client/conversation.js";
import { type Callbacks, Exchange, type Progress } from "../client/exchange.js";
import { openSession, type Target } from "../client/opening.js";
import type { ConnectOptions } from "../client/options.js";
import { isObject } from "../client/peer.js";
import { type Answering, Refused } from "../client/questions.js";
import type { Session } from "../client/session.js";
import { RemoteError, StateError } from "../errors.js";
import { readText } from "../late.js";
import { Kind, native } from "../native.js";
import type { JsonObject } from "../questions.js";
import { Runtime } from "../runtime.js";

/** The options of a {@link SegueTransport}: the options of `connect` without the
 * callbacks that the SDK's client provides. */
export type SegueTransportOptions = Omit<
    ConnectOptions,
    | "onElicit"
    | "onSample"
    | "roots"
    | "onInput"
    | "onLog"
    | "logLevel"
    | "onNotification"
>;

/** The options that the SDK passes together with a message. */
export interface SendOptions {
    /** A token of an earlier request. The new request resumes where that request
     * stopped. */
    resumptionToken?: string | undefined;
    /** Receives the resumption token as soon as the request has one. */
    onresumptiontoken?: ((token: string) => void) | undefined;
}

type Id = string | number;
interface Message {
    id?: Id;
    method?: string;
    params?: JsonObject;
    result?: JsonObject;
    error?: { code?: unknown; message?: unknown };
}

const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const OURS = ["elicitation", "sampling", "roots"];
const TAKEN = [
    "onElicit",
    "onSample",
    "roots",
    "onInput",
    "onLog",
    "logLevel",
    "onNotification",
];
const METHOD_NOT_FOUND = -32601;
const INVALID_REQUEST = -32600;
const INTERNAL = -32603;
const FAILED = -32000;
const UPDATED = "notifications/resources/updated";
const LISTS = ["tools", "resources", "prompts"] as const;

/**
 * A request that the SDK sent. The request passes its resumption token to the SDK if the
 * SDK has asked for the token.
 */
class Asked extends Exchange {
    onToken: ((token: string) => void) | undefined;

    override events(): number {
        return super.events() | (1 << Kind.TASK) | (1 << Kind.RESUMABLE);
    }

    protected override canResume(token: string | undefined): void {
        if (token !== undefined) this.session.run("onToken", this.onToken, token);
    }
}

/** A `Transport` for the `Client` of the official SDK. The transport keeps the process
 * alive until it is closed, as the SDK's own transports do. */
export class SegueTransport {
    /**
     * Called when the transport has closed. The SDK sets `onclose`, `onerror` and
     * `onmessage`.
     */
    onclose: (() => void) | undefined;
    /** Called with an error that belongs to no request. */
    onerror: ((error: Error) => void) | undefined;
    /** Called with each message for the SDK. */
    // biome-ignore lint/suspicious/noExplicitAny: SDK versions have different types
    onmessage: ((message: any, extra?: any) => void) | undefined;
    /** Always undefined: the library manages the HTTP session itself and does not show
     * the id of the session. */
    readonly sessionId: undefined;
    /** The protocol revision that the SDK uses on this transport. */
    protocolVersion: string | undefined;

    private readonly target: Target;
    private readonly options: ConnectOptions;
    private readonly runtime = Runtime.current();
    private session: Session | undefined;
    private opening: AbortController | undefined;
    private can: JsonObject = {};
    private state: "new" | "started" | "closed" = "new";
    private number = 0;
    private readonly running = new Map<Id, Exchange>();
    private readonly asked = new Map<Id, (answer: Message) => void>();
    private readonly subscribed = new Map<string, Changes>();

    /**
     * @param target - the server, as in `connect`.
     * @param options - the options of `connect`, except the callbacks for questions and
     * log messages. These callbacks belong to the SDK's client and are refused here.
     */
    constructor(target: Target, options: SegueTransportOptions = {}) {
        const wrong = TAKEN.find((name) => name in options);
        if (wrong !== undefined)
            throw new TypeError(`the option ${wrong} is not allowed: the Client sets it`);
        this.target = target;
        this.options = options;
    }

    /**
     * Starts the transport. The connection is made later, when the SDK's client sends
     * `initialize` with its capabilities. If the connection fails, `client.connect`
     * fails.
     */
    async start(): Promise<void> {
        if (this.state !== "new")
            throw new StateError("the transport was started before");
        this.state = "started";
        this.runtime.hold();
    }

    /** Called by the SDK with the protocol revision that the SDK uses. */
    setProtocolVersion(version: string): void {
        this.protocolVersion = version;
    }

    /** Ends the session. A second call does nothing. */
    async close(): Promise<void> {
        if (this.state === "closed") return;
        const wasStarted = this.state === "started";
        this.state = "closed";
        this.opening?.abort(new StateError("the transport was closed"));
        await this.session?.close();
        if (wasStarted) this.runtime.release();
        this.onclose?.();
    }

    /**
     * Takes one message that the SDK sends. The transport answers the message itself, or
     * makes a request of the session from the message.
     */
    async send(
        given: { [name: string]: unknown } | object,
        options: SendOptions = {},
    ): Promise<void> {
        if (this.state !== "started")
            throw new StateError("the transport is not started");
        const message = given as Message;
        if (message.method === undefined) {
            if (message.id !== undefined) this.asked.get(message.id)?.(message);
        } else if (message.id === undefined) {
            this.notified(message.method, message.params ?? {});
        } else if (message.method === "initialize") {
            const result = await this.initialize(message.params ?? {});
            this.tell({ id: message.id, result });
        } else {
            void this.answer(message.id, message.method, message.params ?? {}, options);
        }
    }

    // ---- messages to the SDK

    private tell(message: Message): void {
        if (this.state !== "closed") this.onmessage?.({ jsonrpc: "2.0", ...message });
    }

    /** Passes a question of the server to the SDK and returns the SDK's answer. */
    private async ask(
        method: string,
        params: JsonObject,
        signal: AbortSignal,
    ): Promise<string> {
        this.number += 1;
        const id = `segue-${this.number}`;
        const answered = new Promise<Message>((resolve, reject) => {
            this.asked.set(id, resolve);
            signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        });
        try {
            this.tell({ id, method, params });
            const { error, result } = await answered;
            if (error !== undefined) {
                throw new Refused(String(error.message), Number(error.code ?? INTERNAL));
            }
            return JSON.stringify(result ?? {});
        } catch (error) {
            if (signal.aborted) {
                const reason = { requestId: id, reason: "the question was withdrawn" };
                this.tell({ method: "notifications/cancelled", params: reason });
            }
            throw error;
        } finally {
            this.asked.delete(id);
        }
    }

    private asking(): Answering {
        return {
            isThere: true,
            capabilities: () =>
                Object.fromEntries(
                    Object.entries(this.can).filter(([name]) => OURS.includes(name)),
                ),
            answer: (_key, method, params, signal) => {
                const told: unknown = JSON.parse(params || "{}");
                return this.ask(method, isObject(told) ? told : {}, signal);
            },
        };
    }

    // ---- messages from the SDK

    private notified(method: string, params: JsonObject): void {
        if (method !== "notifications/cancelled") return;
        const id = params.requestId as Id;
        const exchange = this.running.get(id);
        // the SDK has cancelled the request, so no answer is sent to the SDK
        this.running.delete(id);
        exchange?.cancel();
    }

    private async answer(
        id: Id,
        method: string,
        params: JsonObject,
        options: SendOptions,
    ): Promise<void> {
        try {
            const result = await this.resultOf(id, method, params, options);
            if (result !== undefined) this.tell({ id, result });
        } catch (error) {
            this.tell({ id, error: errorOf(error) });
        }
    }

    private async resultOf(
        id: Id,
        method: string,
        params: JsonObject,
        options: SendOptions,
    ): Promise<JsonObject | undefined> {
        const { session } = this;
        if (session === undefined) {
            // A request before `initialize` is refused, even `server/discover`: to the
            // SDK, every server looks like a server of 2025-11-25.
            throw new Refused(`${method} was called before initialize`, METHOD_NOT_FOUND);
        }
        if (method === "ping") return {};
        if (method === "logging/setLevel") {
            await session.setLogLevel(params.level as LogLevel);
            return {};
        }
        if (session.peer.era === "modern") {
            if (method === "resources/subscribe") {
                await this.subscribe(session, String(params.uri));
                return {};
            }
            if (method === "resources/unsubscribe") {
                await this.unsubscribe(String(params.uri));
                return {};
            }
        }
        return this.request(session, id, method, params, options);
    }

    private async request(
        session: Session,
        id: Id,
        method: string,
        params: JsonObject,
        options: SendOptions,
    ): Promise<JsonObject | undefined> {
        const { progressToken, ...meta } = isObject(params._meta) ? params._meta : {};
        const { _meta, ...rest } = params;
        const callbacks: Callbacks = { onLog: (message) => this.log(message) };
        if (progressToken !== undefined) {
            callbacks.onProgress = (told) => this.progress(progressToken, told);
        }
        const exchange = new Asked(session, callbacks);
        exchange.onToken = options.onresumptiontoken;
        const all = Object.keys(meta).length > 0 ? { ...rest, _meta: meta } : rest;
        this.begin(
            session,
            exchange,
            method,
            JSON.stringify(all),
            options.resumptionToken,
        );
        this.running.set(id, exchange);
        const [status, raw] = await exchange.wait();
        const isWanted = this.running.get(id) === exchange;
        if (isWanted) this.running.delete(id);
        try {
            if (!isWanted) return undefined;
            if (status !== 0) throw exchange.failure();
        } finally {
            exchange.free();
        }
        const told: unknown = JSON.parse(readText(raw ?? "{}"));
        const result = isObject(told) ? told : {};
        // Only results of 2026-07-28 have `resultType`. The SDK expects a result of
        // 2025-11-25.
        if (result.resultType === "complete") delete result.resultType;
        return result;
    }

    private begin(
        session: Session,
        exchange: Asked,
        method: string,
        params: string,
        token: string | undefined,
    ): void {
        const level = session.levelOfLog;
        const options = level === undefined ? null : { logLevel: level };
        if (token === undefined) {
            session.send(exchange, method, params, options);
        } else {
            exchange.handle = native.requestResume(
                session.handle,
                token,
                options,
                exchange.handler(),
                exchange.events(),
            );
        }
    }

    private progress(progressToken: unknown, told: Progress): void {
        const params = { progressToken, ...told };
        this.tell({ method: "notifications/progress", params });
    }

    private log(message: LogMessage): void {
        this.tell({ method: "notifications/message", params: { ...message } });
    }

    // ---- changes: a server of 2026-07-28 reports only what a client has subscribed to

    private async subscribe(session: Session, uri: string): Promise<void> {
        const onChange = (change: Change): void => this.changed(change);
        const changes = await session.subscribe([uri], { onChange });
        const before = this.subscribed.get(uri);
        this.subscribed.set(uri, changes);
        await before?.close();
    }

    private async unsubscribe(uri: string): Promise<void> {
        const left = this.subscribed.get(uri);
        this.subscribed.delete(uri);
        await left?.close();
    }

    private async watchLists(session: Session): Promise<void> {
        const wanted = Object.fromEntries(
            LISTS.map((name) => {
                const told = session.peer.capabilities[name];
                return [name, isObject(told) && told.listChanged === true];
            }),
        );
        if (!Object.values(wanted).includes(true)) return;
        const onChange = (change: Change): void => this.changed(change);
        // The call fails when the server declares subscriptions that it does not support.
        // The failure is ignored.
        await session.subscribe(wanted, { onChange }).catch(() => undefined);
    }

    private changed(change: Change): void {
        if (change.kind === "resource") {
            this.tell({ method: UPDATED, params: { uri: change.uri } });
        } else {
            this.tell({ method: `notifications/${change.kind}/list_changed` });
        }
    }

    /** Passes a notification that belongs to no request to the SDK. With a server of
     * 2026-07-28, notifications of changes come from the subscriptions instead. */
    private heard(method: string, params: JsonObject): void {
        const isChange = method === UPDATED || method.endsWith("/list_changed");
        const isOurs = method === "notifications/subscriptions/acknowledged";
        const isModern = this.session === undefined || this.session.peer.era === "modern";
        if (!isOurs && !(isChange && isModern)) this.tell({ method, params });
    }

    // ---- the session

    private async initialize(params: JsonObject): Promise<JsonObject> {
        if (this.session !== undefined || this.opening !== undefined) {
            throw new Refused("initialize was sent before", INVALID_REQUEST);
        }
        this.can = isObject(params.capabilities) ? params.capabilities : {};
        const info = isObject(params.clientInfo) ? params.clientInfo : {};
        const opening = new AbortController();
        this.opening = opening;
        const { signal } = this.options;
        const onAbort = (): void => opening.abort(signal?.reason);
        if (signal?.aborted) onAbort();
        signal?.addEventListener("abort", onAbort, { once: true });
        const session = await openSession(
            this.target,
            {
                name: String(info.name ?? ""),
                version: String(info.version ?? ""),
                ...this.options,
                onNotification: (method, told) => this.heard(method, told),
                signal: AbortSignal.any([
                    this.opening.signal,
                    ...(signal ? [signal] : []),
                ]),
            },
            this.asking(),
        ).finally(() => signal?.removeEventListener("abort", onAbort));
        this.session = session;
        void this.watch(session);
        if (session.peer.era === "modern") await this.watchLists(session);
        return this.described(session, params.protocolVersion);
    }

    private described(session: Session, version: unknown): JsonObject {
        const { server, capabilities, instructions } = session.peer;
        const { tasks: _, ...can } = capabilities;
        const isKnown = VERSIONS.includes(String(version));
        const told: JsonObject = {
            protocolVersion: isKnown ? version : VERSIONS[0],
            capabilities: can,
            serverInfo: server,
        };
        if (instructions !== undefined) told.instructions = instructions;
        return told;
    }

    /** Closes the transport when the session ends. */
    private async watch(session: Session): Promise<void> {
        try {
            await session.waitClosed();
        } catch (error) {
            this.onerror?.(error as Error);
        }
        await this.close();
    }
}

/** Converts an error to the JSON-RPC error object that the SDK reads. */
function errorOf(error: unknown): { code: number; message: string; data?: unknown } {
    if (error instanceof RemoteError) {
        const { rpcCode: code, message, dataJson, data } = error;
        return dataJson === null ? { code, message } : { code, message, data };
    }
    const code = error instanceof Refused ? error.code : FAILED;
    return { code, message: error instanceof Error ? error.message : String(error) };
}
