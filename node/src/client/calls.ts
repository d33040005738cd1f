/** Calls tools: `call` waits for the result, `stream` reads segments, `start` makes
 * tasks. */

import { Result, type TextContent } from "../content.js";
import { InvalidError, ProtocolError } from "../errors.js";
import { ToolError } from "../failures.js";
import type { RawText } from "../late.js";
import { checkOptionNames } from "../names.js";
import { native, type RequestOptions as Wanted } from "../native.js";
import type { JsonObject } from "../questions.js";
import { wellFormed } from "../wellformed.js";
import { Conversation, milliseconds, type RequestOptions } from "./conversation.js";
import type { Callbacks } from "./exchange.js";
import { Flow } from "./flow.js";
import { modesOf, type ResponseMode } from "./modes.js";
import { isObject } from "./peer.js";
import { type Answering, Answers, type OnInput } from "./questions.js";
import { type Leave, Stream } from "./stream.js";
import { attachTask, isToken, partsOf, Task } from "./task.js";

/** The arguments of a tool, by name. */
export type Arguments = { readonly [name: string]: unknown };

/** The options of `session.call`. */
export interface CallOptions extends RequestOptions {
    /** Called whenever the status of a task, or the text about the status, changes. */
    onStatus?: ((status: string, message: string | undefined) => unknown) | undefined;
    /** Answers the server's questions during this call, instead of the session's
     * callbacks. */
    onInput?: OnInput | undefined;
    /**
     * The idempotency key of the call, 16 to 128 bytes. If the server supports
     * idempotency keys, calls with the same key run once, even over broken connections
     * and from several programs. Default: a new key for each call.
     */
    idempotencyKey?: string | undefined;
    /** `_meta` of the request. */
    meta?: JsonObject | undefined;
    /**
     * true = a result with `isError` is thrown as a `ToolError`. Default: the setting of
     * the session.
     */
    throwOnError?: boolean | undefined;
    /**
     * How a server of 2025-11-25 may answer a call that it can run as a task (SEP-1905).
     * Each mode must be one of the session's modes. Default: all modes of the session.
     */
    responseModes?: readonly ResponseMode[] | undefined;
}

/** The options for reading segments. */
export interface ReadOptions {
    /**
     * Maximum number of unread segments. When this number is reached, the server must
     * pause. Default 1024.
     */
    window?: number | undefined;
    /**
     * false = segments are not collected, and `result` has no content. Use false for
     * results that are too large for memory. An answer that is not streamed arrives whole
     * and keeps its content.
     */
    collect?: boolean | undefined;
}

/** The options of `session.start`. */
export interface StartOptions extends CallOptions, ReadOptions {
    /** How long a server of 2025-11-25 should keep the task, in milliseconds. */
    ttlMs?: number | undefined;
}

/** The options of `session.stream`. */
export interface StreamOptions extends StartOptions {
    /**
     * Called with the stream as soon as the call has become a task. The callback can
     * store the stream's `token` or `taskId`.
     */
    onTask?: ((stream: Stream) => unknown) | undefined;
    /**
     * What happens to the request when the reader leaves before the end. `"cancel"` ends
     * the request, and `"detach"` lets a task continue on the server.
     */
    onLeave?: Leave | undefined;
    /** true = segments may arrive out of order when the server streams by SEP-1905. */
    unordered?: boolean | undefined;
}

/** The options of `session.resume`. */
export type ResumeOptions = Omit<
    StartOptions,
    "idempotencyKey" | "meta" | "responseModes" | "ttlMs"
>;

/** The options of `session.task`. */
export type TaskOptions = Pick<
    StartOptions,
    "signal" | "onStatus" | "onInput" | "throwOnError" | "window" | "collect"
>;

const CALL = "tools/call";
const NONE: CallOptions = {};
const BRACE = "{".charCodeAt(0);
const WINDOW = 1024;
/**
 * Minimum and maximum length of an idempotency key, in bytes. A short key could be
 * guessed, and a guessed key would give access to the call of another client.
 */
const KEY_LEAST = 16;
const KEY_MOST = 128;

const OF_TASK = ["signal", "onStatus", "onInput", "throwOnError", "window", "collect"];
const OF_RESUME = [...OF_TASK, "timeoutMs", "onProgress", "onLog"];
const OF_START = [...OF_RESUME, "idempotencyKey", "meta", "responseModes", "ttlMs"];
const KNOWN = {
    call: OF_START.filter((one) => !["window", "collect", "ttlMs"].includes(one)),
    stream: [...OF_START, "onTask", "onLeave", "unordered"],
    start: OF_START,
    resume: OF_RESUME,
    task: OF_TASK,
};

/** Throws for an option that is unknown, or is no function and has to be one. */
function check(verb: keyof typeof KNOWN, options: object): void {
    checkOptionNames(`${verb}()`, options, KNOWN[verb]);
    for (const name in options) {
        const given = options[name as keyof typeof options] as unknown;
        if (name.startsWith("on") && name !== "onLeave" && name !== "onInput") {
            if (given !== undefined && typeof given !== "function") {
                throw new TypeError(`${name} has to be a function, not ${String(given)}`);
            }
        }
    }
}

/**
 * The methods of a session that call tools. The class `Session` (session.ts) has the
 * other methods.
 */
export class Calls extends Conversation {
    private readonly finishAny = this.finisher(undefined);

    /**
     * Calls a tool and waits for its result.
     *
     * The result is the same whether the server answers at once, in segments or as a
     * task. Aborting the `signal` cancels the call or the task. The promise then rejects
     * with the signal's reason once the cancellation is done.
     *
     * @param tool - the name of the tool.
     * @param args - the arguments of the tool, by name.
     * @throws ToolError: the tool failed; `result` has its output.
     * @throws RemoteError: the server answered with an error.
     * @throws RequestTimeoutError: the call took too long. A task continues on the
     * server; the error has its `token`.
     * @throws DisconnectedError: the connection broke, and the tool may or may not have
     * run.
     * @throws SegueError: any other failure. `partial` is the part of the result that had
     * arrived. `token`, if set, resumes the call.
     */
    call(
        tool: string,
        args: Arguments = {},
        options: CallOptions = NONE,
    ): Promise<Result> {
        try {
            check("call", options);
            const { signal, throwOnError: throws } = options;
            const wanted = options === NONE ? this.usual() : this.wantedOf(options);
            const callbacks = this.callbacksOf(options);
            const params = paramsOf(tool, args, options.meta);
            const finish = throws === undefined ? this.finishAny : this.finisher(throws);
            return this.promise(CALL, params, wanted, callbacks, signal, finish);
        } catch (error) {
            return Promise.reject(error);
        }
    }

    /**
     * Calls a tool and reads its result in segments while the tool runs; see
     * {@link Stream}. The request is sent when the program begins to read the stream.
     */
    stream(tool: string, args: Arguments = {}, options: StreamOptions = {}): Stream {
        return this.streamWith({}, tool, args, options);
    }

    /** @internal Does what `stream` does, with more options of the library. */
    streamWith(
        more: Wanted,
        tool: string,
        args: Arguments,
        options: StreamOptions,
    ): Stream {
        check("stream", options);
        const { onTask, signal, onLeave = "cancel", unordered = false } = options;
        const wanted = { ...this.wantedOfReader(options), ...more };
        if (unordered) wanted.unordered = true;
        const params = paramsOf(tool, args, options.meta);
        const begin = (): Flow => {
            const flow = this.flowOf(options, !unordered);
            // The flow (the request behind the stream) must not refer to the stream (see
            // flow.ts), so the callback uses a weak reference.
            if (onTask) flow.onBegin = () => tellTask(held, onTask);
            this.send(flow, CALL, params, wanted);
            flow.mark(0);
            return flow;
        };
        const finish = this.finisher(options.throwOnError);
        const stream = new Stream({ begin, finish, onLeave, signal });
        const held = new WeakRef(stream);
        return stream;
    }

    /**
     * Calls a tool and returns as soon as the call can be resumed: the server has made a
     * task, or has given the call a resumption id (SEP-975). The program can then store
     * the call's `token`. If the server makes no task and gives no resumption id, `start`
     * returns at the first segment or at the end of the call. Only the option `timeoutMs`
     * limits the time of the call. A task that has failed by then is returned, too: its
     * `result` throws the error.
     *
     * @throws SegueError: the call failed and is no task: the server has refused it, for
     * example.
     */
    async start(
        tool: string,
        args: Arguments = {},
        options: StartOptions = {},
    ): Promise<Task> {
        check("start", options);
        const wanted = this.wantedOfReader({ timeoutMs: 0, ...options });
        const params = paramsOf(tool, args, options.meta);
        const begin = (): Flow => {
            const flow = this.flowOf(options);
            this.send(flow, CALL, params, wanted);
            flow.mark(0);
            return flow;
        };
        const task = this.taskOf(begin, options);
        await task.started();
        task.throwIfFailed();
        return task;
    }

    /**
     * Resumes a request of an earlier connection or process. The resumed request delivers
     * the segments that follow the segments covered by the token, and then the whole
     * result.
     *
     * @param token - the token of a `Stream`, a `Task` or an error.
     * @throws InvalidError: the token is damaged.
     */
    resume(token: string, options: ResumeOptions = {}): Task {
        check("resume", options);
        const wanted = this.wantedOfReader({ timeoutMs: 0, ...options });
        const begin = (): Flow => {
            const flow = this.flowOf(options);
            flow.handle = resumed(this, token, wanted, flow);
            flow.mark(0);
            return flow;
        };
        const task = this.taskOf(begin, options, token);
        task.begin();
        return task;
    }

    /**
     * Makes a task object for a task id. Nothing is sent until the object is used.
     * Reading begins at the first segment that the server still has.
     */
    task(id: string, options: TaskOptions = {}): Task {
        check("task", options);
        if (typeof id !== "string" || id === "") {
            throw new TypeError("the id of a task has to be a string that is not empty");
        }
        const wanted = this.wantedOfReader({ timeoutMs: 0, ...options });
        if (isToken(id)) wanted.seen = partsOf(id).seen;
        const begin = (): Flow => {
            const flow = this.flowOf(options);
            const task = attachTask(this.handle, id);
            try {
                flow.handle = native.taskWatch(
                    task,
                    wanted,
                    flow.handler(),
                    flow.events(),
                );
            } finally {
                native.taskFree(task);
            }
            flow.mark(0);
            return flow;
        };
        return this.taskOf(begin, options, id);
    }

    // ---- helpers

    private taskOf(begin: () => Flow, options: TaskOptions, name?: string): Task {
        const finish = this.finisher(options.throwOnError);
        const { signal } = options;
        return new Task(this, { begin, finish, onLeave: "detach", signal }, name);
    }

    private flowOf(options: StartOptions, isOrdered = true): Flow {
        const window = options.window ?? WINDOW;
        return new Flow(this, this.callbacksOf(options), window, isOrdered);
    }

    private callbacksOf(options: CallOptions): Callbacks | undefined {
        const { onInput } = options;
        if (!onInput) return this.callbacks(options);
        const answers: Answering = new Answers({ onInput });
        return this.callbacks({ ...options, answers });
    }

    private wantedOf(options: CallOptions): Wanted {
        const made = this.wanted(options.timeoutMs);
        const key = options.idempotencyKey;
        if (key !== undefined) {
            const size = Buffer.byteLength(key);
            if (size < KEY_LEAST || size > KEY_MOST) {
                throw new RangeError(
                    `an idempotency key has to have ${KEY_LEAST} to ${KEY_MOST} bytes, ` +
                        `not ${JSON.stringify(key)}`,
                );
            }
            made.idempotencyKey = key;
        }
        if (options.responseModes !== undefined) {
            made.responseModes = modesOf(options.responseModes);
        }
        return made;
    }

    private wantedOfReader(options: StartOptions): Wanted {
        const { window = WINDOW, collect = true } = options;
        if (!Number.isSafeInteger(window) || window < 1) {
            throw new RangeError("window has to be at least 1 segment");
        }
        const made = this.wantedOf(options);
        made.credit = window;
        if (!collect) made.discard = true;
        made.ttlMs = milliseconds(options.ttlMs);
        return made;
    }

    private finisher(
        throwOnError: boolean | undefined,
    ): (raw: RawText, saysError: boolean) => Result {
        return (raw, saysError) => this.finish(raw, saysError, throwOnError);
    }

    private finish(
        raw: RawText,
        saysError: boolean,
        throwOnError: boolean | undefined,
    ): Result {
        let result: Result;
        try {
            // the library gives a long text only of an object
            result =
                typeof raw !== "string" || raw.charCodeAt(0) === BRACE
                    ? Result.fromObject(raw, saysError)
                    : Result.fromJson(raw);
        } catch (error) {
            throw new ProtocolError(`tools/call: ${(error as Error).message}`);
        }
        if (result.isError && (throwOnError ?? this.manners.throwOnError)) {
            throw new ToolError(why(result), result);
        }
        return result;
    }
}

/**
 * Returns the reason why a tool failed: the last text block of the result. A tool that
 * has streamed output adds the reason as the last block. The whole output is in the
 * result.
 */
function why(result: Result): string {
    const last = result.content.findLast((block) => block.type === "text");
    return (last as TextContent | undefined)?.text ?? "";
}

/**
 * A cache with one entry: the name of the tool that was called last, and the same name as
 * JSON.
 */
let named = { tool: "", quoted: '""' };

function paramsOf(tool: string, args: Arguments, meta: JsonObject | undefined): string {
    if (typeof tool !== "string")
        throw new TypeError("the name of a tool has to be a string");
    if (!isObject(args))
        throw new TypeError("the arguments of a tool have to be an object");
    const json: string | undefined =
        meta === undefined ? JSON.stringify(args) : undefined;
    if (json === undefined) {
        return wellFormed(JSON.stringify({ name: tool, arguments: args, _meta: meta }));
    }
    // The name is converted to JSON again only when it differs from the name of the last
    // call.
    if (tool !== named.tool) named = { tool, quoted: JSON.stringify(tool) };
    return wellFormed(`{"name":${named.quoted},"arguments":${json}}`);
}

function tellTask(held: WeakRef<Stream>, onTask: (stream: Stream) => unknown): unknown {
    const stream = held.deref();
    return stream === undefined ? undefined : onTask(stream);
}

function resumed(
    session: Conversation,
    token: string,
    wanted: Wanted,
    flow: Flow,
): ReturnType<typeof native.requestResume> {
    if (typeof token !== "string") {
        throw new InvalidError(`a token has to be a string, not ${String(token)}`);
    }
    const { bare, seen } = partsOf(token);
    try {
        return native.requestResume(
            session.handle,
            bare,
            { ...wanted, seen },
            flow.handler(),
            flow.events(),
        );
    } catch (error) {
        if (!(error instanceof InvalidError)) throw error;
        throw new InvalidError("the token is damaged, or is not a token of this library");
    }
}
