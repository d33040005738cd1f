/**
 * A server as a handler for an application's own HTTP server: `node:http`, Express,
 * Fastify, and everything that passes a `Request` and wants a `Response` (Hono, Next).
 *
 * The application's server carries the requests; everything else is as with a listener. A
 * request is one exchange of the library: this module passes the body in, and the answer
 * out as fast as the client takes it.
 *
 * @module
 */

import { AsyncResource } from "node:async_hooks";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { Kind } from "../constants.js";
import { asyncDispose } from "../dispose.js";
import { ClosedError, InvalidError, LimitError } from "../errors.js";
import {
    type AppContext,
    type Exchange,
    type Listener as Handle,
    native,
} from "../native.js";
import { setImmediate } from "../timers.js";
import { bearerHook, bearerOptions } from "./auth.js";
import type { Hosting } from "./hosting.js";
import type { HandlerOptions } from "./options.js";
import { type CloseOptions, listenOptions, Serving } from "./serving.js";

/**
 * Clients ask for the metadata of a protected resource at this path of the host, wherever
 * the handler is mounted.
 */
const METADATA = "/.well-known/oauth-protected-resource";

/** The listener of a handler, which has no socket. */
export class Mounted extends Serving {
    /** @internal */
    protected override readonly returns = true;
    #handle: Handle | undefined;

    /** @internal */
    constructor(
        host: Hosting,
        options: HandlerOptions,
        leave: (host: Hosting) => Promise<void>,
    ) {
        super(host, options, leave);
        const { auth, principal: _, ...rest } = options;
        const listen = listenOptions(rest, this.drainMs);
        const report = (error: unknown): void =>
            this.host.report(error, { what: "auth", key: "verify" });
        this.begin(() => {
            this.#handle = native.listenerOpen(
                host.handle,
                listen,
                auth ? bearerOptions(auth) : null,
                auth ? bearerHook(auth, report) : null,
            );
        });
        // the application's HTTP server keeps the process alive
        this.unref();
    }

    /** @internal */
    get handle(): Handle {
        if (!this.#handle) throw new ClosedError("the handler is closed");
        return this.#handle;
    }

    /** @internal */
    reload(): void {
        native.listenerReload(this.handle);
    }

    /** @internal */
    protected override stop(): void {
        if (this.#handle) native.listenerClose(this.#handle);
    }

    /** @internal */
    protected override ended(): void {
        if (this.#handle) native.listenerFree(this.#handle);
        this.#handle = undefined;
    }
}

/** What an HTTP server says about a request. */
interface Head {
    method: string;
    target: string;
    /** Names and values in turns. */
    headers: readonly string[];
    peer: string | undefined;
    local: string | undefined;
    isTls: boolean;
    principal: string | undefined;
}

/** What becomes of the answer. */
interface Sink {
    /**
     * The answer is complete: head and body in one. No other call but `end` follows.
     *
     * @param body - one character for each byte.
     */
    whole(status: number, headers: string[], body: string): void;
    head(status: number, headers: string[]): void;
    /** Calls `sent` when the client, or its connection, has taken the bytes. */
    bytes(bytes: Uint8Array, sent: () => void): void;
    /** The answer is complete. */
    end(): void;
    /** The answer ends too early; without a head, the answer is 503. */
    cut(hasHead: boolean): void;
}

/** Calls a function of the library, and ignores that its exchange has ended. */
function unlessClosed(call: () => void): void {
    try {
        call();
    } catch (error) {
        if (!(error instanceof ClosedError)) throw error;
    }
}

/** Returns the texts in one string, in which each text ends with a NUL. */
function terminated(texts: readonly string[]): string {
    return texts.length ? `${texts.join("\0")}\0` : "";
}

/** One request and its answer. */
class Carried {
    readonly #sink: Sink;
    readonly #handle: Exchange;
    readonly #runtime: Hosting["runtime"];
    #hasHead = false;
    #isOver = false;
    #room: (() => void) | undefined;

    constructor(
        mounted: Mounted,
        head: Head,
        body: Uint8Array | string | null,
        isWhole: boolean,
        sink: Sink,
    ) {
        this.#sink = sink;
        // Handlers run in the AsyncLocalStorage contexts of the app around the request.
        const scope = new AsyncResource("SegueRequest", { requireManualDestroy: true });
        this.#handle = native.exchangeOpen(
            mounted.handle,
            head.method,
            head.target,
            terminated(head.headers),
            this.#onEvent,
            head.peer ?? null,
            head.local ?? null,
            head.isTls,
            head.principal ?? null,
            body,
            isWhole,
            scope.runInAsyncScope.bind(scope) as AppContext,
            head.headers.length,
        );
        // a request keeps the process alive until it is answered
        this.#runtime = mounted.host.runtime;
        this.#runtime.hold();
    }

    readonly #onEvent = (
        kind: number,
        a: unknown,
        b: Uint8Array | string | null,
        isComplete: unknown,
    ): void => {
        if (kind === Kind.ANSWER) {
            if (a !== null) this.#begin(a as string, b);
            if (b !== null && typeof b !== "string")
                this.#sink.bytes(b, () => this.#sent(b.length));
            if (isComplete) this.#end(true);
        } else if (kind === Kind.ANSWER_ROOM) {
            this.#room?.();
        } else if (kind === Kind.ANSWER_END) {
            this.#end(a === 0);
        }
    };

    #end(isComplete: boolean): void {
        this.#isOver = true;
        this.#runtime.release();
        this.#room?.();
        if (isComplete) this.#sink.end();
        else this.#sink.cut(this.#hasHead);
        unlessClosed(() => native.exchangeFree(this.#handle));
    }

    /** Passes the head on, and the body if it is the whole one. */
    #begin(head: string, body: Uint8Array | string | null): void {
        const headers = head.split("\0");
        const status = Number(headers.shift());
        headers.pop(); // what stands behind the last NUL
        this.#hasHead = true;
        if (typeof body === "string") this.#sink.whole(status, headers, body);
        else this.#sink.head(status, headers);
    }

    #sent(count: number): void {
        if (!this.#isOver) unlessClosed(() => native.exchangeSent(this.#handle, count));
    }

    /**
     * Passes a piece of the body in. Resolves when there is room for the next piece, to
     * false when the answer needs no more.
     */
    async feed(piece: Uint8Array): Promise<boolean> {
        while (!this.#isOver) {
            try {
                if (native.exchangeFeed(this.#handle, piece)) return true;
            } catch (error) {
                if (error instanceof ClosedError) return false;
                throw error;
            }
            await new Promise<void>((resolve) => {
                this.#room = resolve;
            });
        }
        return false;
    }

    end(): void {
        if (!this.#isOver) unlessClosed(() => native.exchangeEnd(this.#handle));
    }

    /** The client's connection is gone. */
    gone(): void {
        if (!this.#isOver) unlessClosed(() => native.exchangeClosed(this.#handle));
    }
}

/** The status and the text of an answer when a request cannot be carried. */
function refusal(error: unknown): [number, string] {
    if (error instanceof InvalidError)
        return [400, `The request is malformed: ${error.message}`];
    if (error instanceof LimitError || error instanceof ClosedError)
        return [503, `The server cannot take the request: ${error.message}`];
    throw error;
}

const ENDED = "The server has ended before it answered";

function refusalHeaders(status: number): Record<string, string> {
    const type = { "content-type": "text/plain; charset=utf-8" };
    return status === 503 ? { ...type, "retry-after": "1" } : type;
}

function place(host: string | undefined, port: number | undefined): string | undefined {
    if (host === undefined) return undefined;
    return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** What Express and Fastify add to the requests of Node. */
type Incoming = IncomingMessage & { originalUrl?: string; body?: unknown };

/** Sends an answer with Node's response. */
class NodeSink implements Sink {
    readonly #res: ServerResponse;
    /** What to call when the response has taken all that it holds. */
    #draining: (() => void)[] = [];

    constructor(res: ServerResponse) {
        this.#res = res;
    }

    whole(status: number, headers: string[], body: string): void {
        this.#res.writeHead(status, headers);
        // Node sends head and body in one write if both are strings
        this.#res.end(body, "latin1");
    }

    head(status: number, headers: string[]): void {
        this.#res.writeHead(status, headers);
        // the head of a stream goes out before its first event
        if (!headers.includes("content-length")) this.#res.flushHeaders();
    }

    bytes(bytes: Uint8Array, sent: () => void): void {
        // no callback of `write`: middlewares such as compression() drop it
        if (this.#res.write(bytes)) {
            sent();
            return;
        }
        if (this.#draining.push(sent) > 1) return;
        this.#res.once("drain", () => {
            const waiting = this.#draining;
            this.#draining = [];
            for (const call of waiting) call();
        });
    }

    end(): void {
        if (!this.#res.writableEnded) this.#res.end();
    }

    cut(hasHead: boolean): void {
        if (hasHead) this.#res.destroy();
        else this.refuse(503, ENDED);
    }

    refuse(status: number, text: string): void {
        if (this.#res.destroyed || this.#res.headersSent) return;
        this.#res.writeHead(status, refusalHeaders(status));
        this.#res.end(text);
    }
}

function webHeaders(headers: readonly string[]): Headers {
    const made = new Headers();
    for (let i = 0; i < headers.length; i += 2)
        made.append(headers[i] as string, headers[i + 1] as string);
    return made;
}

/** Statuses of answers without a body. */
const NO_BODY: ReadonlySet<number> = new Set([202, 204]);

/** Makes a `Response` of an answer, whose body is read at the reader's pace. */
class WebSink implements Sink {
    readonly response: Promise<Response>;
    #resolve: (response: Response) => void = () => undefined;
    #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
    #waiting: [Uint8Array, () => void][] = [];
    #isWanted = false;
    #isOver = false;
    readonly #gone: () => void;

    constructor(gone: () => void) {
        this.#gone = gone;
        this.response = new Promise((resolve) => {
            this.#resolve = resolve;
        });
    }

    whole(status: number, headers: string[], body: string): void {
        const made = webHeaders(headers);
        const bytes = NO_BODY.has(status) ? null : Buffer.from(body, "latin1");
        this.#resolve(new Response(bytes, { status, headers: made }));
    }

    head(status: number, headers: string[]): void {
        const made = webHeaders(headers);
        const stream = new ReadableStream<Uint8Array>(
            {
                start: (controller) => {
                    this.#controller = controller;
                },
                pull: () => {
                    this.#isWanted = true;
                    this.#pass();
                },
                cancel: () => {
                    this.#isOver = true;
                    this.#gone();
                },
            },
            { highWaterMark: 0 },
        );
        const body = NO_BODY.has(status) ? null : stream;
        this.#resolve(new Response(body, { status, headers: made }));
    }

    bytes(bytes: Uint8Array, sent: () => void): void {
        this.#waiting.push([bytes, sent]);
        this.#pass();
    }

    #pass(): void {
        const next = this.#isWanted ? this.#waiting.shift() : undefined;
        if (next) {
            this.#isWanted = false;
            this.#controller?.enqueue(next[0]);
            next[1]();
        }
        if (this.#isOver && this.#waiting.length === 0) this.#close();
    }

    #close(): void {
        try {
            this.#controller?.close();
        } catch {
            // the reader has cancelled the stream
        }
    }

    end(): void {
        this.#isOver = true;
        this.#pass();
    }

    cut(hasHead: boolean): void {
        if (!hasHead) this.refuse(503, ENDED);
        else this.#controller?.error(new Error(ENDED));
    }

    refuse(status: number, text: string): void {
        this.#resolve(new Response(text, { status, headers: refusalHeaders(status) }));
    }
}

/**
 * The handler of a server; `Server.handler` makes it. It is a function for `node:http`,
 * Express and Connect: `http.createServer(handler)`, `app.all("/mcp", handler)`.
 */
export interface Handler {
    /**
     * Answers a request of Node. The third argument is the body if the framework has
     * parsed it already, as Fastify does (`request.body`); a function there is ignored.
     */
    (req: IncomingMessage, res: ServerResponse, body?: unknown): void;
    /**
     * Answers a web-standard request, for Hono, Next and other frameworks. Such a request
     * does not tell from where it came: name the hosts of the server (`hosts`), and say
     * who calls (`principal`) if callers shall have tasks.
     */
    fetch(request: Request): Promise<Response>;
    /** Reads the files of keys and tokens again. */
    reload(): Promise<void>;
    /**
     * Ends the handler: new calls are refused, and running calls may end within
     * `drainMs`. `Server.close` does the same.
     */
    close(options?: CloseOptions): Promise<void>;
    /** Closes the handler, as `close` does. */
    [asyncDispose](): Promise<void>;
}

function restOf(req: Incoming): string {
    const whole = req.originalUrl ?? req.url ?? "/";
    return whole.startsWith(METADATA) ? whole : (req.url ?? "/");
}

/** The two ends of a connection, which stay the same for all of its requests. */
interface Ends {
    readonly peer: string | undefined;
    readonly local: string | undefined;
    readonly isTls: boolean;
}

const endsOf = new WeakMap<Socket, Ends>();

function findEnds(socket: Socket): Ends {
    const isUnix = socket.remoteAddress === undefined && !socket.destroyed;
    const ends: Ends = {
        peer: isUnix ? "unix" : place(socket.remoteAddress, socket.remotePort),
        local: isUnix ? "unix" : place(socket.localAddress, socket.localPort),
        isTls: (socket as TLSSocket).encrypted === true,
    };
    // A socket that is gone tells no address.
    if (!socket.destroyed) endsOf.set(socket, ends);
    return ends;
}

function headOf(req: Incoming): Head {
    const { peer, local, isTls } = endsOf.get(req.socket) ?? findEnds(req.socket);
    return {
        method: req.method ?? "GET",
        target: restOf(req),
        headers: req.rawHeaders,
        peer,
        local,
        isTls,
        principal: undefined,
    };
}

/** What stands between the commas of a header; a comma in quotes does not count. */
const PART = /(?:"(?:\\.|[^"\\])*"|[^,])+/g;
const PARAMETER = /^\s*[^\s=,"]+\s*=\s*[^\s=]/;

/**
 * Returns the values of the headers Authorization. A `Request` joins repeated headers by
 * commas. In one value a comma stands only before a parameter, such as `realm="a"`.
 */
function credentialsOf(request: Request): string[] {
    const value = request.headers.get("authorization");
    if (value === null) return [];
    const found: string[] = [];
    for (const part of value.match(PART) ?? []) {
        const last = found.length - 1;
        if (last >= 0 && PARAMETER.test(part)) found[last] += `,${part}`;
        else found.push(part.trim());
    }
    return found.length > 1 ? found : [value];
}

function webHeadOf(request: Request, credentials: readonly string[]): Head {
    const url = new URL(request.url);
    const headers = credentials.flatMap((value) => ["authorization", value]);
    request.headers.forEach((value, name) => {
        if (name !== "authorization") headers.push(name, value);
    });
    if (!request.headers.has("host")) headers.push("host", url.host);
    return {
        method: request.method,
        target: url.pathname + url.search,
        headers,
        peer: undefined,
        local: undefined,
        isTls: url.protocol === "https:",
        principal: undefined,
    };
}

/** Returns the body that a framework has read; undefined = it is still to be read. */
function bodyRead(req: Incoming, given: unknown): Uint8Array | string | undefined {
    const body = given !== undefined && typeof given !== "function" ? given : req.body;
    if (body === undefined || (body === req.body && !req.readableEnded)) return undefined;
    if (typeof body === "string" || body instanceof Uint8Array) return body;
    return body === null ? "" : JSON.stringify(body);
}

/**
 * Resolves to the body if it arrives as a whole in this turn of the event loop, as that
 * of a small request does; undefined = it is still to be read. Node reports a request
 * before it parses the body, even if both came together.
 */
async function bodyArrived(req: Incoming): Promise<Uint8Array | string | undefined> {
    if (req.readableEnded || req.readableFlowing) return undefined;
    if (!req.complete) await undefined;
    if (!req.complete) await new Promise<void>((resolve) => setImmediate(resolve));
    if (!req.complete) return undefined;
    return (req.read() as Uint8Array | string | null) ?? "";
}

/** Makes a handler of a serving that may still be opening. */
export function makeHandler(
    opening: Promise<Mounted>,
    principalOf: HandlerOptions["principal"],
): Handler {
    let opened: Mounted | undefined;
    opening.then(
        (mounted) => {
            opened = mounted;
        },
        () => undefined, // each request reports it
    );

    async function name(head: Head, request: IncomingMessage | Request): Promise<void> {
        const found = await principalOf?.(request);
        if (found !== undefined && found !== null && typeof found !== "string")
            throw new TypeError("principal has to return a string, null or undefined");
        head.principal = found ?? undefined;
    }

    async function serve(req: Incoming, res: ServerResponse, given: unknown) {
        const sink = new NodeSink(res);
        const head = headOf(req);
        if (principalOf) await name(head, req);
        const mounted = opened ?? (await opening);
        const parsed = bodyRead(req, given);
        // a parsed body may be written in another length than it was sent
        if (parsed !== undefined) head.headers = withoutLength(head.headers);
        const body = parsed ?? (await bodyArrived(req));
        if (res.destroyed) return;
        let carried: Carried;
        try {
            carried = new Carried(mounted, head, body ?? null, body !== undefined, sink);
        } catch (error) {
            sink.refuse(...refusal(error));
            return;
        }
        res.on("close", () => carried.gone());
        if (body !== undefined) return;
        for await (const piece of req) if (!(await carried.feed(piece))) return;
        carried.end();
    }

    function handler(req: IncomingMessage, res: ServerResponse, body?: unknown): void {
        serve(req, res, body).catch((error: unknown) => {
            if (req.destroyed || res.destroyed) return;
            void opening.then(
                (mounted) => mounted.host.report(error, { what: "handler", key: "" }),
                () => undefined,
            );
            if (res.headersSent) res.destroy();
            else new NodeSink(res).refuse(500, "The server cannot answer");
        });
    }

    async function answer(request: Request): Promise<Response> {
        const credentials = credentialsOf(request);
        const head = webHeadOf(request, credentials);
        // the library refuses a request that has several
        if (principalOf && credentials.length < 2) await name(head, request);
        const mounted = opened ?? (await opening);
        let carried: Carried | undefined;
        const sink = new WebSink(() => carried?.gone());
        try {
            carried = new Carried(mounted, head, null, request.body === null, sink);
        } catch (error) {
            sink.refuse(...refusal(error));
            return sink.response;
        }
        const made = carried;
        request.signal.addEventListener("abort", () => made.gone(), { once: true });
        if (request.body) void feedAll(request.body, made);
        return sink.response;
    }

    return Object.assign(handler, {
        fetch: answer,
        reload: async () => (await opening).reload(),
        close: async (options?: CloseOptions) => (await opening).close(options),
        [asyncDispose]: async () => (await opening).close(),
    });
}

function withoutLength(headers: readonly string[]): string[] {
    const kept: string[] = [];
    for (let i = 0; i < headers.length; i += 2)
        if (headers[i]?.toLowerCase() !== "content-length")
            kept.push(headers[i] as string, headers[i + 1] as string);
    return kept;
}

async function feedAll(
    body: ReadableStream<Uint8Array>,
    carried: Carried,
): Promise<void> {
    const reader = body.getReader();
    try {
        for (;;) {
            const { done, value } = await reader.read();
            if (done) break;
            if (!(await carried.feed(value))) {
                await reader.cancel();
                return;
            }
        }
        carried.end();
    } catch {
        carried.gone(); // the request was cut
    }
}
