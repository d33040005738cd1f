/**
 * The context of a call: what a handler can do besides returning a result.
 *
 * One object for each call. The library's events of a call cost something, so they are
 * asked for when somebody wants to hear of them: the signal, a send that may have to
 * wait.
 *
 * @module
 */

import type { Meta, PromptMessage } from "../content.js";
import {
    ClosedError,
    EndedError,
    RequestCancelledError,
    StateError,
    UnsupportedError,
} from "../errors.js";
import { Declined } from "../failures.js";
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
import type { Hosting } from "./hosting.js";
import type { Sendable } from "./options.js";
import { DONE, Room } from "./room.js";
import { jsonText, pieceOf, resultOf } from "./values.js";

const { callSendText, callSendJson } = native;

/** The levels of RFC 5424 that log messages have. */
export type LogLevelName =
    | "debug"
    | "info"
    | "notice"
    | "warning"
    | "error"
    | "critical"
    | "alert"
    | "emergency";

/** Where an earlier run of this task ended. */
export class Resumed {
    /** How many segments are stored; the next one that is sent comes behind. */
    readonly segments: number;
    /** The last checkpoint, as it is stored; null when there is none. */
    readonly bytes: Buffer | null;

    /** @internal */
    constructor(segments: number, bytes: Buffer | null) {
        this.segments = segments;
        this.bytes = bytes;
    }

    /** The checkpoint, if it was a value and not bytes; undefined when there is none. */
    // biome-ignore lint/suspicious/noExplicitAny: what the handler itself has stored
    get data(): any {
        return this.bytes === null ? undefined : JSON.parse(this.bytes.toString());
    }
}

const META = "io.modelcontextprotocol/";
/** The context of a call. Of no use after the handler has ended. */
export class Context {
    readonly #call: Call;
    readonly #host: Hosting;
    #isWatched = false;
    #isCancelled = false;
    /** Hosting.began has the process wait for it. */
    #isHeld = true;
    #controller: AbortController | undefined;
    /** Made when something has to wait for the first time. */
    #room: Room | undefined;
    #meta: Meta | undefined;

    /** @internal */
    constructor(call: Call, host: Hosting) {
        this.#call = call;
        this.#host = host;
    }

    // ---- events of the library

    /** @internal Has the library tell of the call from here on. */
    watch(): void {
        if (this.#isWatched) return;
        this.#isWatched = true;
        native.callWatch(this.#call, (kind) => {
            if (kind === Kind.CANCEL) this.abort(reasonOfCancel());
            else this.#room?.flush();
        });
        if (native.callIsCancelled(this.#call)) this.abort(reasonOfCancel());
    }

    /** @internal Something waits for room: what comes now has to stay behind it. */
    get isWaiting(): boolean {
        return this.#room?.isWaiting ?? false;
    }

    /** @internal The end of the call is wanted. */
    abort(reason: unknown): void {
        if (this.#isCancelled) return;
        this.#isCancelled = true;
        this.release();
        this.#room?.end();
        this.#controller?.abort(reason);
        this.#host.dismiss(this);
    }

    /** @internal The server has ended, and with it the call, for the handler. */
    leave(): void {
        try {
            native.callFree(this.#call);
        } catch (error) {
            if (!(error instanceof ClosedError)) throw error; // the reply did so
        }
    }

    /** @internal The process need not wait for this call any more. */
    release(): void {
        if (!this.#isHeld) return;
        this.#isHeld = false;
        this.#host.runtime.release();
    }

    /** Does at once what can be done at once, and else when there is room. */
    #take(attempt: () => boolean): Promise<void> {
        try {
            this.watch();
            this.#host.runtime.cork();
            if (!this.#room) {
                if (attempt()) return DONE;
                if (this.#isCancelled) throw new RequestCancelledError();
                this.#room = new Room();
            }
        } catch (error) {
            return Promise.reject(error);
        }
        return this.#room.take(attempt);
    }

    // ---- who and what

    /** Who calls; "" for nobody in particular. */
    get principal(): string {
        return native.callPrincipal(this.#call);
    }

    /** Whether the caller's token grants a scope. Over stdio everybody has all. */
    hasScope(scope: string): boolean {
        return native.callHasScope(this.#call, scope);
    }

    /** "tools/call", "resources/read" or "prompts/get". */
    get method(): string {
        return native.callMethod(this.#call);
    }

    /** The tool or prompt; of a resource the URI that is read. */
    get name(): string {
        return native.callName(this.#call);
    }

    /** The whole params of the request, as they came: decoded anew each time. */
    get params(): Record<string, unknown> {
        return JSON.parse(native.callParams(this.#call)) as Record<string, unknown>;
    }

    /** The request's `_meta`, such as its "traceparent". */
    get meta(): Readonly<Meta> {
        this.#meta ??= (this.params._meta ?? {}) as Meta;
        return this.#meta;
    }

    /** What the client says of itself with each request (2026-07-28). */
    get clientInfo(): { name: string; version: string; title?: string } | undefined {
        return this.meta[`${META}clientInfo`] as ReturnType<() => Context["clientInfo"]>;
    }

    /** The revision that the request names (2026-07-28). */
    get protocolVersion(): string | undefined {
        return this.meta[`${META}protocolVersion`] as string | undefined;
    }

    /**
     * Aborts when the client wants the call to end, and when the server ends. To pass on
     * to whatever takes a signal; a handler that ignores it does no harm, what it says
     * after the end is dropped.
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
        }
        return this.#controller.signal;
    }

    /** Whether the call shall end: `signal.aborted`. */
    get cancelled(): boolean {
        if (this.#isCancelled || this.#isWatched) return this.#isCancelled;
        try {
            return native.callIsCancelled(this.#call);
        } catch {
            return true;
        }
    }

    // ---- what is told on the way

    /**
     * Reports progress, if the client asked for it. Does not wait.
     *
     * @param progress - how far it is; only ever more.
     * @param total - how much there is, if that is known.
     */
    progress(progress: number, total?: number, message?: string): void {
        tell(() =>
            native.callProgress(this.#call, progress, total ?? 0, message ?? null),
        );
    }

    /**
     * Sends a log message to a client that asked for this level. Does not wait.
     *
     * @param data - text, or any value that has a form in JSON.
     */
    log(data: unknown, level: LogLevelName = "info"): void {
        const json = jsonText(data);
        tell(() => native.callLog(this.#call, level, json));
    }

    // ---- what becomes of the call

    /** Where an earlier run ended; undefined on a first run (`restartable` tools). */
    get resumed(): Resumed | undefined {
        const found = native.callResumed(this.#call);
        return found === null ? undefined : new Resumed(found[0], found[1]);
    }

    /**
     * Turns the call into a task now, which outlives the connection.
     *
     * @param ttlMs - it is kept so long after its end; what the tool says by default.
     * @returns false when the tool or the client rules tasks out: the call stays plain.
     */
    defer(ttlMs = 0): boolean {
        return isSupported(() => native.callDefer(this.#call, ttlMs));
    }

    /**
     * Ends the event stream, for a client to come back for the rest (2025-11-25
     * basic/transports, "Sending Messages to the Server").
     *
     * @param retryMs - when it is to come.
     * @returns false when it could not come back; then nothing has happened.
     */
    hangUp(retryMs = 1000): boolean {
        return isSupported(() => native.callHangUp(this.#call, retryMs));
    }

    // ---- what may have to wait

    /**
     * Emits a segment for each value; waits while the client, or the store, is slow.
     *
     * @param values - text, blocks, segments of another call, results (their blocks), or
     *     what has a form in JSON.
     * @throws EndedError when the call has ended, for instance by a cancel; LimitError
     *     when the result has become too large, and the call has failed.
     */
    send(...values: Sendable[]): Promise<void> {
        if (values.length === 1) return this.#sendOne(values[0]);
        const sent = values.map((value) => this.#sendOne(value));
        return sent.every((one) => one === DONE)
            ? DONE
            : Promise.all(sent).then(() => undefined);
    }

    #sendOne(value: Sendable): Promise<void> {
        const call = this.#call;
        if (typeof value === "string") return this.#take(() => callSendText(call, value));
        try {
            const result = resultOf(value);
            if (result) return this.send(...result.content);
            const { text, json } = pieceOf(value);
            if (json === undefined) return this.#take(() => callSendText(call, text));
            return this.#take(() => callSendJson(call, json));
        } catch (error) {
            return Promise.reject(error);
        }
    }

    /**
     * Emits text that goes on in a block of the result: whoever reads along gets a
     * segment of its own, whose text stands in that block in the end. To a client that
     * streams a task by SEP-1905 it is a block of its own.
     *
     * @param index - the place of the block, from 0, as blocks were sent since the last
     *     `replace`.
     * @throws InvalidError when there is no such block yet, or it is no text; EndedError,
     *     LimitError as of `send`.
     */
    extend(index: number, text: string): Promise<void> {
        return this.#take(() => native.callExtendText(this.#call, index, text));
    }

    /** Throws away what was emitted, for everybody; values start the result anew. */
    async replace(...values: Sendable[]): Promise<void> {
        await this.#take(() => native.callReplace(this.#call));
        await this.send(...values);
    }

    /**
     * Sets a member of the result beside its list, such as "structuredContent" of a tool,
     * "description" of a prompt, "ttlMs" of what is read.
     */
    async setField(name: string, value: unknown): Promise<void> {
        const json = jsonText(value);
        await this.#take(() => native.callSetField(this.#call, name, json));
    }

    /** Sets the text that describes the state of a task. */
    setStatus(message: string): Promise<void> {
        return this.#take(() => native.callSetStatus(this.#call, message));
    }

    /**
     * Stores where the handler is, for a later run after a crash ({@link resumed}).
     *
     * @param data - bytes, or a value that has a form in JSON.
     * @returns false when the call is no task, and so nothing outlives it.
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
     * Asks the client anything, and gives its answer as it came, decoded.
     *
     * @param method - such as "elicitation/create".
     * @throws UnsupportedError when the client has not declared that it can be asked
     *     this; RpcError when it answered with an error; RequestCancelledError when the
     *     call has ended.
     */
    request(
        method: string,
        params: object = {},
        options: AskOptions = {},
    ): Promise<unknown> {
        return new Promise((resolve, reject) => {
            const answered = (_: number, status: number, answer: string | null): void => {
                if (status === Status.OK && answer !== null) resolve(JSON.parse(answer));
                else reject(refusal(status, answer));
            };
            const key = options.key ?? null;
            const json = jsonText(params);
            try {
                native.callRequireInput(this.#call, key, method, json, answered);
            } catch (error) {
                if (!(error instanceof UnsupportedError)) throw error;
                const why = "the client cannot be asked this: it has not declared";
                throw new UnsupportedError(`${why} ${method}`);
            }
        });
    }

    /**
     * Asks the user, and gives what he filled in.
     *
     * @param message - what he reads.
     * @param schema - what is asked for: one simple value, a choice, or a flat object of
     *     these; text by default.
     * @throws Declined when he declined, or did not decide: as a ToolError it ends the
     *     tool with a result that says so. UnsupportedError when the client cannot ask
     *     anybody.
     */
    ask(message: string): Promise<string>;
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

    /** Like {@link ask}, but tells a refusal by `action`. */
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

    /** Sends the user to a URL, for what may not pass through the client. */
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
     * @param messages - a string, which the user says, a message, or a list of them.
     * @param maxTokens - bounds the answer.
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

    /** Asks where the client works. */
    async listRoots(options: AskOptions = {}): Promise<Root[]> {
        const answer = (await this.request(ROOTS, {}, options)) as { roots?: Root[] };
        return Array.isArray(answer?.roots) ? answer.roots : [];
    }
}

function reasonOfCancel(): DOMException {
    return new DOMException("The call was cancelled", "AbortError");
}

/** What is told of a call that has ended is told to nobody. */
function tell(deed: () => void): void {
    try {
        deed();
    } catch (error) {
        if (!(error instanceof EndedError || error instanceof ClosedError)) throw error;
    }
}

function isSupported(deed: () => void): boolean {
    try {
        deed();
    } catch (error) {
        if (error instanceof UnsupportedError) return false;
        throw error;
    }
    return true;
}
