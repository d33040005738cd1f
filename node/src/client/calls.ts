/** Calls of tools: awaited, streamed, as tasks. */

import { Result, type TextContent } from "../content.js";
import { InvalidError, ProtocolError } from "../errors.js";
import { ToolError } from "../failures.js";
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
import { Task } from "./task.js";

/** The arguments of a tool, by name. */
export type Arguments = { readonly [name: string]: unknown };

/** The options of `session.call`. */
export interface CallOptions extends RequestOptions {
    /** Gets the status of a task and its text, as they change. */
    onStatus?: ((status: string, message: string | undefined) => unknown) | undefined;
    /** Answers what the server asks for this call, instead of the session's callbacks. */
    onInput?: OnInput | undefined;
    /**
     * Calls of the same key run once, also over broken connections and from several
     * programs, if the server knows keys; 16 to 128 bytes. Default: a fresh one.
     */
    idempotencyKey?: string | undefined;
    /** `_meta` of the request. */
    meta?: JsonObject | undefined;
    /** Whether a result with `isError` is thrown; default: the session's, true. */
    throwOnError?: boolean | undefined;
    /**
     * How a server of 2025-11-25 may answer a call that it can run as a task (SEP-1905).
     * Default: the session's; each has to be one of those.
     */
    responseModes?: readonly ResponseMode[] | undefined;
}

/** The options of a reader of segments. */
export interface ReadOptions {
    /** So many segments may wait for their reader, before the server does; 1024. */
    window?: number | undefined;
    /** false = segments are not kept, and `result` has no content: for results larger
     * than memory should hold. A plain answer, which comes whole, keeps its own. */
    collect?: boolean | undefined;
}

/** The options of `session.start`. */
export interface StartOptions extends CallOptions, ReadOptions {
    /** How long a server of 2025-11-25 shall keep the task, in milliseconds. */
    ttlMs?: number | undefined;
}

/** The options of `session.stream`. */
export interface StreamOptions extends StartOptions {
    /** Gets the stream once it has become a task: the moment to store its `token`, or
     * `taskId`. */
    onTask?: ((stream: Stream) => unknown) | undefined;
    /** What becomes of it when its reader leaves early: `"cancel"`, or `"detach"`, which
     * lets a task go on. */
    onLeave?: Leave | undefined;
    /** Segments as they come, where the server streams by SEP-1905. */
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
const WINDOW = 1024;
/** Of an idempotency key: one that is guessed finds the work of somebody else. */
const KEY_LEAST = 16;
const KEY_MOST = 128;

const OF_TASK = ["signal", "onStatus", "onInput", "throwOnError", "window", "collect"];
const OF_RESUME = [...OF_TASK, "timeoutMs", "onProgress", "onLog"];
const OF_START = [...OF_RESUME, "idempotencyKey", "meta", "responseModes", "ttlMs"];
const KNOWN = {
    call: new Set(
        OF_START.filter((one) => !["window", "collect", "ttlMs"].includes(one)),
    ),
    stream: new Set([...OF_START, "onTask", "onLeave", "unordered"]),
    start: new Set(OF_START),
    resume: new Set(OF_RESUME),
    task: new Set(OF_TASK),
};

/** Refuses an option that is none: without types it would be of no effect, silently. */
function check(verb: keyof typeof KNOWN, options: object): void {
    for (const name in options) {
        if (!KNOWN[verb].has(name)) {
            throw new TypeError(`${verb}() has no option ${JSON.stringify(name)}`);
        }
        const given = options[name as keyof typeof options] as unknown;
        if (name.startsWith("on") && name !== "onLeave" && name !== "onInput") {
            if (given !== undefined && typeof given !== "function") {
                throw new TypeError(`${name} is a function, not ${String(given)}`);
            }
        }
    }
}

/** See session.ts. */
export class Calls extends Conversation {
    private readonly finishAny = this.finisher(undefined);

    /**
     * Calls a tool and waits for its result.
     *
     * Whether the server answers at once, in pieces, or makes a task of it makes no
     * difference. Aborting the `signal` withdraws the call, or cancels the task; the
     * promise rejects with the signal's reason when that has been done.
     *
     * @param tool - its name.
     * @param args - its arguments, by name.
     * @throws ToolError: the tool failed; `result` has what it said.
     * @throws RemoteError: the server answered with an error.
     * @throws RequestTimeoutError: a task goes on on the server; the error has its
     *     `token`.
     * @throws DisconnectedError: it is not known whether the call was run.
     * @throws SegueError: any other end. `partial` is what had come of the result;
     *     `token`, when it is there, resumes it.
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
     * Calls a tool and reads its result while it is made; see {@link Stream}. Nothing is
     * sent before it is read.
     */
    stream(tool: string, args: Arguments = {}, options: StreamOptions = {}): Stream {
        check("stream", options);
        const { onTask, signal, onLeave = "cancel", unordered = false } = options;
        const wanted = this.wantedOfReader(options);
        if (unordered) wanted.unordered = true;
        const params = paramsOf(tool, args, options.meta);
        const begin = (): Flow => {
            const flow = this.flowOf(options, !unordered);
            // the flow must not hold the stream: see flow.ts
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
     * Calls a tool and returns as soon as there is a task, or a call that can be resumed
     * (SEP-975), whose `token` can be stored; or, if the server makes neither of it, the
     * first segment, or the end. Without a `timeoutMs` of its own it has none.
     *
     * @throws SegueError: it ended before anything came of it.
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
     * Goes on with a request of an earlier connection or process: the segments behind
     * those that its token covers, then its result, which is whole all the same.
     *
     * @param token - of a `Stream`, a `Task` or an error.
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
     * The task of an id. Nothing is sent until it is used; it is then read from its first
     * segment that is kept.
     */
    task(id: string, options: TaskOptions = {}): Task {
        check("task", options);
        if (typeof id !== "string" || id === "") {
            throw new TypeError("the id of a task is a text that is not empty");
        }
        const wanted = this.wantedOfReader({ timeoutMs: 0, ...options });
        const begin = (): Flow => {
            const flow = this.flowOf(options);
            const task = native.taskAttach(this.handle, id);
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

    // ---- parts

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
                    `an idempotency key has ${KEY_LEAST} to ${KEY_MOST} bytes: ` +
                        JSON.stringify(key),
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
            throw new RangeError("a window has room for one segment at least");
        }
        const made = this.wantedOf(options);
        made.credit = window;
        if (!collect) made.discard = true;
        made.ttlMs = milliseconds(options.ttlMs);
        return made;
    }

    private finisher(throwOnError: boolean | undefined): (raw: string) => Result {
        return (raw) => this.finish(raw, throwOnError);
    }

    private finish(raw: string, throwOnError: boolean | undefined): Result {
        let result: Result;
        try {
            result = raw.startsWith("{") ? Result.fromObject(raw) : Result.fromJson(raw);
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
 * Why a tool failed: its last text. A tool that streamed says it behind all that it had
 * sent, which is output and no reason. `result` has all of it.
 */
function why(result: Result): string {
    const last = result.content.findLast((block) => block.type === "text");
    return (last as TextContent | undefined)?.text ?? "";
}

/** The tool that was called last, as JSON. */
let named = { tool: "", quoted: '""' };

function paramsOf(tool: string, args: Arguments, meta: JsonObject | undefined): string {
    if (typeof tool !== "string") throw new TypeError("the name of a tool is a text");
    if (!isObject(args)) throw new TypeError("the arguments of a tool are an object");
    const json: string | undefined =
        meta === undefined ? JSON.stringify(args) : undefined;
    if (json === undefined) {
        return wellFormed(JSON.stringify({ name: tool, arguments: args, _meta: meta }));
    }
    // what is the same all the time is quoted once
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
    if (typeof token !== "string") throw new InvalidError("a token is a text");
    try {
        return native.requestResume(
            session.handle,
            token,
            wanted,
            flow.handler(),
            flow.events(),
        );
    } catch (error) {
        if (!(error instanceof InvalidError)) throw error;
        throw new InvalidError("it is no token, or a damaged one");
    }
}
