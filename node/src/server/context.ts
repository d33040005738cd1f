/**
 * The context of a call: everything that a handler can do besides returning a result.
 *
 * Each call has one context. The library's events about a call cost time. So the context
 * asks for the events only in two cases: the handler uses the signal, or a send may have
 * to wait.
 *
 * @module
 */

import type { Meta, PromptMessage } from "../content.js";
import {
    ClosedError,
    EndedError,
    LimitError,
    RequestCancelledError,
    StateError,
    UnsupportedError,
} from "../errors.js";
import { Declined, NotAsked } from "../failures.js";
import { type Call, Kind, native, Status } from "../native.js";
import type { ElicitResult, Root } from "../questions.js";
import type { SchemaLike, SchemaOutput } from "../schema.js";
import {
    type AskOptions,
    ELICIT,
    type Elicited,
    Form,
    messagesOf,
    ROOTS,
    refusal,
    refusedBy,
    SAMPLE,
    type Sampled,
    type SampleOptions,
    sampled,
    TEXT,
} from "./forms.js";
import { headersOf } from "./headers.js";
import type { Hosting } from "./hosting.js";
import type { Item } from "./item.js";
import type { Sendable } from "./options.js";
import { Provided, type Provider } from "./provided.js";
import { DONE, Room } from "./room.js";
import type { ServerSession } from "./session.js";
import { jsonText, resultOf } from "./values.js";

const { callSendText, callSendJson } = native;

/** The levels of log messages (RFC 5424). */
export type LogLevelName =
    | "debug"
    | "info"
    | "notice"
    | "warning"
    | "error"
    | "critical"
    | "alert"
    | "emergency";

/** The point where an earlier run of this task ended. */
export class Resumed {
    /**
     * The number of stored segments. The next segment that the handler sends comes after
     * these segments.
     */
    readonly segments: number;
    /**
     * The bytes of the last checkpoint as the store has them; null = no checkpoint was
     * stored.
     */
    readonly bytes: Buffer | null;

    /** @internal */
    constructor(segments: number, bytes: Buffer | null) {
        this.segments = segments;
        this.bytes = bytes;
    }

    /**
     * The value of the last checkpoint; undefined = no checkpoint was stored. Only for a
     * checkpoint that was stored as a value. For a checkpoint of bytes, use `bytes`.
     */
    // biome-ignore lint/suspicious/noExplicitAny: what the handler itself has stored
    get data(): any {
        return this.bytes === null ? undefined : JSON.parse(this.bytes.toString());
    }
}

const META = "io.modelcontextprotocol/";
/**
 * The context of a call. A handler must not use the context after the handler has ended.
 */
// biome-ignore lint/suspicious/noExplicitAny: the lifespan of any server
export class Context<Life = any> {
    readonly #call: Call;
    readonly #host: Hosting;
    readonly #item: Item;
    #isWatched = false;
    #isCancelled = false;
    /** The error with which the call has failed although its handler still runs. */
    #failure: Error | undefined;
    /**
     * Whether this call keeps the process alive. A call keeps the process alive from
     * Hosting.began on.
     */
    #isHeld = true;
    #controller: AbortController | undefined;
    /**
     * The queue of waiting sends. The context makes the queue when a send has to wait for
     * the first time.
     */
    #room: Room | undefined;
    #meta: Meta | undefined;
    #provided: Provided | undefined;
    #session: ServerSession | undefined;
    #headers: Headers | undefined;
    /** @internal true = the handler has sent a value. */
    hasSent = false;
    /** @internal true = the handler is a generator. */
    isStream = false;
    /** @internal The function of a middleware that changes each value that is sent. */
    change: ((value: unknown) => unknown) | undefined;

    /** @internal */
    constructor(call: Call, host: Hosting, item: Item) {
        this.#call = call;
        this.#host = host;
        this.#item = item;
    }

    // ---- events of the library

    /** @internal Asks the library to report events of the call from now on. */
    watch(): void {
        if (this.#isWatched) return;
        this.#isWatched = true;
        native.callWatch(this.#call, (kind) => {
            if (kind === Kind.CANCEL) this.abort(reasonOfCancel());
            else this.#room?.flush();
        });
        this.#askLibrary();
    }

    /**
     * Learns at once that the call was cancelled. The event CANCEL may come later than
     * another sign of the end, such as a send that the library refuses.
     */
    #askLibrary(): void {
        if (!this.#isCancelled && native.callIsCancelled(this.#call))
            this.abort(reasonOfCancel());
    }

    /**
     * @internal Whether the client or the server has ended the call, as far as the events
     * tell. See {@link cancelled}.
     */
    get isCancelled(): boolean {
        return this.#isCancelled;
    }

    /**
     * @internal Asks the library whether the call has ended, so that an answer reaches
     * nobody. Aborts the signal if so.
     */
    hasEnded(): boolean {
        try {
            this.#askLibrary();
        } catch {
            return true; // the call was freed
        }
        return this.#isCancelled;
    }

    /**
     * @internal Aborts the signal of a handler that is about to see the end of its call.
     *
     * @param error - what ended the call, unless it was cancelled.
     */
    stop(error: unknown): void {
        if (this.hasEnded() || this.#failure) return;
        this.#failure = error instanceof Error ? error : new Error(String(error));
        this.#controller?.abort(this.#failure);
    }

    /** Calls a function of the library. Aborts the signal when the call has ended. */
    #use<T>(deed: () => T): T {
        try {
            return deed();
        } catch (error) {
            if (error instanceof EndedError) this.stop(error);
            throw error;
        }
    }

    /**
     * @internal Whether sends wait for room. While sends wait, a new send must wait
     * behind the waiting sends.
     */
    get isWaiting(): boolean {
        return this.#room?.isWaiting ?? false;
    }

    /** @internal Marks the call as cancelled and aborts its signal. Called when the
     * client or the server ends the call. */
    abort(reason: unknown): void {
        if (this.#isCancelled) return;
        this.#isCancelled = true;
        this.release();
        this.#room?.end();
        this.#controller?.abort(reason);
        this.#host.dismiss(this);
    }

    /**
     * @internal Frees the call because the server has ended. The handler may continue to
     * run.
     */
    leave(): void {
        try {
            native.callFree(this.#call);
        } catch (error) {
            // ClosedError means that the reply has already freed the call.
            if (!(error instanceof ClosedError)) throw error;
        }
    }

    /** @internal Stops this call from keeping the process alive. */
    release(): void {
        if (!this.#isHeld) return;
        this.#isHeld = false;
        this.#host.runtime.release();
    }

    /**
     * Calls `attempt`, which tries to send. If there is no room, calls `attempt` again
     * when there is room. The promise resolves when the value was sent.
     */
    #take(attempt: () => boolean): Promise<void> {
        try {
            this.watch();
            this.#host.runtime.cork();
            if (!this.#room) {
                if (this.#use(attempt)) return DONE;
                if (this.#isCancelled) throw new RequestCancelledError();
                this.#room = new Room();
            }
        } catch (error) {
            return Promise.reject(error);
        }
        return this.#room.take(() => this.#use(attempt));
    }

    /** Does what #take does, for a part of the result: without room the call fails. */
    #put(attempt: () => boolean): Promise<void> {
        return this.#take(() => {
            try {
                return attempt();
            } catch (error) {
                if (error instanceof LimitError) this.stop(error);
                throw error;
            }
        });
    }

    /** @internal The item that is called. */
    get item(): Item {
        return this.#item;
    }

    // ---- the caller and the request

    /** The caller's principal; "" for an anonymous caller. */
    get principal(): string {
        return native.callPrincipal(this.#call);
    }

    /**
     * Returns whether the caller's token grants a scope. Over stdio the result is true
     * for every scope.
     */
    hasScope(scope: string): boolean {
        return native.callHasScope(this.#call, scope);
    }

    /**
     * The value of the `lifespan` of the server that has the item; undefined without
     * one.
     */
    get lifespan(): Life {
        return this.#item.owner.life?.value as Life;
    }

    /**
     * The session of the client, with its `state`. undefined = the request is of no
     * session: over HTTP clients of 2026-07-28 have none, and a task that runs again
     * after a crash has lost its session. Such state belongs to the {@link principal}.
     * undefined also for a task whose session has ended before its handler asked.
     */
    get session(): ServerSession | undefined {
        this.#session ??= this.#host.sessions.of(native.callClient(this.#call));
        return this.#session;
    }

    /**
     * The headers of the HTTP request that made the call, among them `authorization` and
     * `cookie`: do not log them. Empty over stdio, and when the call is a task that runs
     * again after a crash, because headers are not stored. A task has the headers of the
     * request that made it.
     */
    get headers(): Headers {
        this.#headers ??= headersOf(this.#call);
        return this.#headers;
    }

    /** The method of the request: "tools/call", "resources/read" or "prompts/get". */
    get method(): string {
        return native.callMethod(this.#call);
    }

    /** The name of the tool or prompt; for a resource, the URI that is read. */
    get name(): string {
        return native.callName(this.#call);
    }

    /** The whole params of the request. Each use decodes the params anew. */
    get params(): Record<string, unknown> {
        return JSON.parse(native.callParams(this.#call)) as Record<string, unknown>;
    }

    /** The `_meta` of the request. A client may have set "traceparent" in `_meta`. */
    get meta(): Readonly<Meta> {
        this.#meta ??= (this.params._meta ?? {}) as Meta;
        return this.#meta;
    }

    /**
     * The trace of the call (W3C traceparent): the span that was set, else the caller's;
     * undefined when the call is in no trace. The caller's trace is stored with a
     * task, so a server that goes on with the task after a crash has it, too. A span that
     * was set is not stored. An adapter for traces sets the span that it makes for the
     * call; the events of the call then name it.
     */
    get traceParent(): string | undefined {
        return native.callTraceParent(this.#call) ?? undefined;
    }

    /** Sets the span that the events of the call name from now on (W3C traceparent). */
    set traceParent(value: string) {
        native.callSetTraceParent(this.#call, value);
    }

    /**
     * The client's name and version. Only clients of 2026-07-28 send name and version,
     * with each request.
     */
    get clientInfo(): { name: string; version: string; title?: string } | undefined {
        return this.meta[`${META}clientInfo`] as ReturnType<() => Context["clientInfo"]>;
    }

    /**
     * The protocol revision that the request names; undefined for requests of revisions
     * before 2026-07-28, which name no revision.
     */
    get protocolVersion(): string | undefined {
        return this.meta[`${META}protocolVersion`] as string | undefined;
    }

    /**
     * A signal that aborts when the call ends before its handler: the client cancels the
     * call, the server ends, or a value cannot be sent and the call fails. The signal
     * aborts before the handler sees the end in another way, such as an error of `send`
     * or the `finally` of a generator. `signal.reason` says why the call has ended. Pass
     * the signal on to functions that take a signal. A handler may ignore the signal:
     * output that the handler sends after the end of the call is dropped.
     */
    get signal(): AbortSignal {
        if (!this.#controller) {
            this.#controller = new AbortController();
            try {
                this.watch();
            } catch (error) {
                if (!(error instanceof ClosedError)) throw error;
                this.#isCancelled = true;
            }
            if (this.#isCancelled) this.#controller.abort(reasonOfCancel());
            else if (this.#failure) this.#controller.abort(this.#failure);
        }
        return this.#controller.signal;
    }

    /**
     * true = the call has ended or has to end; see {@link signal}. A handler that
     * computes for long without a turn of the event loop asks here, because the signal
     * cannot abort by itself meanwhile.
     */
    get cancelled(): boolean {
        return this.#failure !== undefined || this.hasEnded();
    }

    // ---- values that the call needs

    /**
     * Returns a value that a function of the application makes for this call, such as a
     * database or a user. The function runs once in a call. It may use `ctx.get` itself.
     *
     *     async function* transaction(ctx) {
     *         const begun = await database.begin();
     *         try {
     *             yield begun;
     *             await begun.commit();
     *         } finally {
     *             await begun.close();
     *         }
     *     }
     *     const { insert } = await ctx.get(transaction);
     *
     * A generator yields the value once. The rest of it is the clean-up: it runs when the
     * handler has ended, in the opposite order, and before the result is sent. So the
     * call fails if the clean-up fails. The error of a handler appears at the `yield`,
     * and a clean-up cannot hide it. `Server.dependencyOverrides` replaces a function in
     * tests.
     *
     * @param provider - the function, plain or async, or a generator of either kind.
     */
    get<T>(provider: (ctx: Context) => AsyncGenerator<T, unknown, void>): Promise<T>;
    get<T>(provider: (ctx: Context) => Generator<T, unknown, void>): Promise<T>;
    get<T>(provider: (ctx: Context) => T | PromiseLike<T>): Promise<T>;
    get<T>(provider: Provider<T>): Promise<T>;
    get(provider: Provider): Promise<unknown> {
        this.#provided ??= new Provided(this, this.#item.owner.dependencyOverrides);
        return this.#provided.get(provider);
    }

    /** @internal Returns the values that the call has got, and forgets them. */
    takeProvided(): Provided | undefined {
        const provided = this.#provided;
        this.#provided = undefined;
        return provided;
    }

    // ---- progress and log messages

    /**
     * Reports progress to the client if the client asked for progress. Does not wait
     * until the report is sent. While the client reads slowly, a newer report replaces an
     * older one that was not sent; the last one arrives before the answer.
     *
     * @param progress - the amount of work that is done, which must grow from report to
     * report.
     * @param total - the amount of the whole work, if known.
     */
    progress(progress: number, total?: number, message?: string): void {
        this.#tell(() =>
            native.callProgress(this.#call, progress, total ?? 0, message ?? null),
        );
    }

    /**
     * Sends a log message to a client that asked for messages of this level. Does not
     * wait until the message is sent. While the client reads slowly, messages are
     * replaced as reports of progress are.
     *
     * @param data - text, or any value that JSON can represent.
     */
    log(data: unknown, level: LogLevelName = "info"): void {
        const json = jsonText(data);
        this.#tell(() => native.callLog(this.#call, level, json));
    }

    /** Reports something about the call, unless the call has ended. */
    #tell(deed: () => void): void {
        try {
            this.#use(deed);
        } catch (error) {
            if (!(error instanceof EndedError || error instanceof ClosedError))
                throw error;
        }
    }

    // ---- tasks and resumption

    /**
     * The point where an earlier run of the task ended; undefined on the first run. Only
     * tools with the option `restartable` run again.
     */
    get resumed(): Resumed | undefined {
        const found = native.callResumed(this.#call);
        return found === null ? undefined : new Resumed(found[0], found[1]);
    }

    /**
     * Turns the call into a task now. A task outlives the connection.
     *
     * @param ttlMs - how long the task lives from its creation, in milliseconds; 0 = as
     * the client has asked, or the tool's option `ttlMs`.
     * @returns false when the tool or the client does not allow tasks; the call then
     * stays a plain call.
     */
    defer(ttlMs = 0): boolean {
        return this.#isSupported(() => native.callDefer(this.#call, ttlMs));
    }

    /**
     * Closes the event stream of the call. The client then connects again to get the rest
     * of the answer (2025-11-25 basic/transports, "Sending Messages to the Server").
     *
     * @param retryMs - the time after which the client should connect again.
     * @returns false when the client cannot connect again; the stream then stays open.
     */
    hangUp(retryMs = 1000): boolean {
        return this.#isSupported(() => native.callHangUp(this.#call, retryMs));
    }

    #isSupported(deed: () => void): boolean {
        try {
            this.#use(deed);
        } catch (error) {
            if (error instanceof UnsupportedError) return false;
            throw error;
        }
        return true;
    }

    // ---- sending, which may have to wait

    /**
     * Sends a segment for each value. Waits while the client or the store is slow.
     *
     * @param values - text, blocks, segments of another call, results (their blocks), or
     * values that JSON can represent; `undefined` sends nothing. The handler of a
     * resource sends contents, or strings, which together form one text.
     * @throws EndedError when the call has ended, for instance because the call was
     * cancelled; LimitError when the result has become too large and the call has failed.
     */
    send(...values: Sendable[]): Promise<void> {
        if (values.length === 1) return this.#sendOne(values[0]);
        const sent = values.map((value) => this.#sendOne(value));
        return sent.every((one) => one === DONE)
            ? DONE
            : Promise.all(sent).then(() => undefined);
    }

    #sendOne(given: Sendable): Promise<void> {
        const call = this.#call;
        if (given === undefined) return DONE;
        this.hasSent = true;
        try {
            const result = typeof given === "string" ? undefined : resultOf(given);
            if (result) return this.send(...result.content);
            const value = this.change ? this.change(given) : given;
            if (typeof value === "string")
                return this.#put(() => callSendText(call, value));
            const { text, json } = this.#item.piece(value);
            if (json === undefined) return this.#put(() => callSendText(call, text));
            return this.#put(() => callSendJson(call, json));
        } catch (error) {
            return Promise.reject(error);
        }
    }

    /**
     * Sends text that continues a text block of the result. A client that reads segments
     * receives a new segment. In the result, the text is appended to the block. A client
     * that streams a task by SEP-1905 receives a new block instead.
     *
     * @param index - the index of the block, from 0, in the order in which blocks were
     * sent since the last `replace`.
     * @throws InvalidError when the result has no block at `index` yet, or the block is
     * not text; EndedError and LimitError as in `send`.
     */
    extend(index: number, text: string): Promise<void> {
        const more = this.change ? String(this.change(text)) : text;
        return this.#put(() => native.callExtendText(this.#call, index, more));
    }

    /**
     * Discards everything that the call has sent so far, for every reader, and begins a
     * new result with these values.
     */
    async replace(...values: Sendable[]): Promise<void> {
        await this.#put(() => native.callReplace(this.#call));
        await this.send(...values);
    }

    /**
     * Sets a member of the result beside its content, such as "structuredContent" of a
     * tool, "description" of a prompt, or "ttlMs" of a resource that is read.
     */
    async setField(name: string, value: unknown): Promise<void> {
        const json = jsonText(value);
        await this.#put(() => native.callSetField(this.#call, name, json));
    }

    /** Sets the text that describes the status of a task to clients. */
    setStatus(message: string): Promise<void> {
        return this.#put(() => native.callSetStatus(this.#call, message));
    }

    /**
     * Stores data about the handler's progress. After a crash, the next run of the task
     * finds the data in {@link resumed}.
     *
     * @param data - bytes, or a value that JSON can represent.
     * @returns false when the call is no task and cannot become one, so that nothing was
     * stored.
     */
    async checkpoint(data: unknown): Promise<boolean> {
        const stored = data instanceof Uint8Array ? data : jsonText(data);
        try {
            await this.#take(() => native.callCheckpoint(this.#call, stored));
        } catch (error) {
            if (error instanceof StateError) return false;
            throw error;
        }
        return true;
    }

    // ---- questions

    /**
     * Asks the client any question and returns the client's answer, decoded from JSON.
     *
     * @param method - the method, such as "elicitation/create".
     * @throws UnsupportedError when the client has not declared that it answers this
     * method; RpcError when the client answered with an error; RequestCancelledError when
     * the call has ended.
     */
    request(
        method: string,
        params: object = {},
        options: AskOptions = {},
    ): Promise<unknown> {
        return new Promise((resolve, reject) => {
            const answered = (_: number, status: number, answer: string | null): void => {
                if (status === Status.OK && answer !== null) resolve(JSON.parse(answer));
                else {
                    const error = refusal(status, answer);
                    if (error instanceof RequestCancelledError) this.stop(error);
                    reject(error);
                }
            };
            const key = options.key ?? null;
            const json = jsonText(params);
            try {
                this.#use(() =>
                    native.callRequireInput(this.#call, key, method, json, answered),
                );
            } catch (error) {
                if (!(error instanceof UnsupportedError)) throw error;
                const why = "the client has not declared that it answers";
                throw new NotAsked(`${why} ${method}`);
            }
        });
    }

    /**
     * Asks the user for a text.
     *
     * @param message - the text that the user reads.
     * @throws Declined when the user declined or did not decide; UnsupportedError when
     * the client cannot ask its user. If the handler does not catch Declined, the tool
     * ends with an error result that says what the user did.
     */
    ask(message: string): Promise<string>;
    /**
     * Asks the user and returns the user's input.
     *
     * @param message - the text that the user reads.
     * @param schema - the kind of input: one simple value, a choice, or a flat object
     * with such fields.
     * @throws Declined, UnsupportedError as for a text.
     */
    ask<S extends SchemaLike>(
        message: string,
        schema: S,
        options?: AskOptions,
    ): Promise<SchemaOutput<S>>;
    async ask(
        message: string,
        schema: SchemaLike = TEXT,
        options: AskOptions = {},
    ): Promise<unknown> {
        const { action, content } = await this.elicit(message, schema, options);
        if (action === "accept") return content;
        const told = action === "decline" ? "declined" : "did not decide";
        throw new Declined(`The user ${told}`, action);
    }

    /**
     * Asks the user as {@link ask} does. When the user declines or does not decide,
     * `elicit` does not throw: `action` of the result is "decline" or "cancel".
     */
    async elicit<S extends SchemaLike>(
        message: string,
        schema: S,
        options: AskOptions = {},
    ): Promise<Elicited<SchemaOutput<S>>> {
        const form = new Form(schema);
        const params = { mode: "form", message, requestedSchema: form.json };
        const answer = (await this.request(ELICIT, params, options)) as ElicitResult;
        if (answer.action !== "accept") return { action: refusedBy(answer.action) };
        const content = (await form.decode(answer.content)) as SchemaOutput<S>;
        return { action: "accept", content };
    }

    /**
     * Asks the user to open a URL, for data that must not pass through the client.
     * Returns what the user did: "accept", "decline" or "cancel".
     */
    async elicitUrl(
        message: string,
        url: string | URL,
        elicitationId: string,
        options: AskOptions = {},
    ): Promise<ElicitResult["action"]> {
        const params = { mode: "url", message, url: String(url), elicitationId };
        const answer = (await this.request(ELICIT, params, options)) as ElicitResult;
        return answer.action === "accept" ? "accept" : refusedBy(answer.action);
    }

    /**
     * Asks the client's model.
     *
     * @param messages - a string (a message of the user), a message, or a list of strings
     * and messages.
     * @param maxTokens - maximum length of the answer, in tokens.
     * @param options - the other members of the request: systemPrompt, temperature, ...
     */
    async sample(
        messages: string | PromptMessage | readonly (string | PromptMessage)[],
        maxTokens: number,
        options: SampleOptions = {},
    ): Promise<Sampled> {
        const { key, ...others } = options;
        const params = { messages: messagesOf(messages), maxTokens, ...others };
        return sampled(await this.request(SAMPLE, params, { key }));
    }

    /**
     * Asks the client for its roots: the directories and files that the client works in.
     */
    async listRoots(options: AskOptions = {}): Promise<Root[]> {
        const answer = (await this.request(ROOTS, {}, options)) as { roots?: Root[] };
        return Array.isArray(answer?.roots) ? answer.roots : [];
    }
}

function reasonOfCancel(): DOMException {
    return new DOMException("The call was cancelled", "AbortError");
}
