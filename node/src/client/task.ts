/** Tasks: work on a server that outlives the connection. */

import { Status } from "../constants.js";
import type { Result } from "../content.js";
import { InvalidError, ProtocolError, StateError, UnsupportedError } from "../errors.js";
import { readText } from "../late.js";
import {
    type Session as NativeSession,
    type Task as NativeTask,
    native,
    type Request,
} from "../native.js";
import type { JsonObject } from "../questions.js";
import type { Runtime } from "../runtime.js";
import type { Segment } from "../segment.js";
import type { Conversation } from "./conversation.js";
import { Exchange } from "./exchange.js";
import { parseObject } from "./items.js";
import { isObject } from "./peer.js";
import { Reader, type Source } from "./stream.js";

const TOKEN = "sg1.";
/** The value of `era` for revisions with `initialize` only (segue_era). */
const LEGACY = 2;
/** How long the end of a session waits for the last status of its task. */
const LAST_STATUS_MS = 5000;
const FINAL = ["completed", "failed", "cancelled"];

/** The answer to `tasks/get`, or to `requests/getStatus` for a resumable call. */
export interface TaskStatus {
    /** The id of the task; `undefined` for a resumable call. */
    id: string | undefined;
    /**
     * `"working"`, `"input_required"`, `"completed"`, `"failed"`, `"cancelled"`, or
     * another text that the server uses.
     */
    status: string;
    /** Whether the status is final. */
    isFinal: boolean;
    /** The server's description of the status, as text. */
    message?: string;
    /** When the task was made. */
    createdAt?: string;
    /** When the task last changed. */
    updatedAt?: string;
    /** How long the server keeps the task, from its creation, in milliseconds. */
    ttlMs?: number;
    /**
     * How often the server wants clients to ask for the status, as an interval in
     * milliseconds.
     */
    pollMs?: number;
    /** The server's whole answer, as JSON. */
    raw: JsonObject;
}

/**
 * Converts a state of SEP-975 to the state of a task. The state "processing" becomes
 * "working" or "input_required". Other states have the same name in both.
 */
function stateOfRequest(raw: JsonObject): unknown {
    if (raw.status !== "processing") return raw.status;
    return raw.hasInputRequest === true ? "input_required" : "working";
}

function readStatus(json: string): TaskStatus {
    let raw = parseObject(json, "the status of a task");
    // DRAFT-2026-v1 wraps the answer in a member "task"
    if (isObject(raw.task)) raw = raw.task;
    const isTask = raw.requestId === undefined;
    const id = isTask ? raw.taskId : undefined;
    const status = isTask ? raw.status : stateOfRequest(raw);
    if ((isTask && typeof id !== "string") || typeof status !== "string") {
        throw new ProtocolError(
            "the server sent the status of a task whose taskId or status is not a string",
        );
    }
    const isFinal = FINAL.includes(status);
    const made: TaskStatus = { id: id as string | undefined, status, isFinal, raw };
    const text = (name: string): string | undefined =>
        typeof raw[name] === "string" ? (raw[name] as string) : undefined;
    const time = (...names: string[]): number | undefined =>
        names.map((name) => raw[name]).find((one) => typeof one === "number") as
            | number
            | undefined;
    return Object.assign(
        made,
        defined({
            message: text("statusMessage"),
            createdAt: text("createdAt"),
            updatedAt: text("lastUpdatedAt"),
            ttlMs: time("ttlMs", "ttl"),
            pollMs: time("pollIntervalMs", "pollInterval", "pollFrequency"),
        }),
    );
}

function defined<T extends object>(members: T): Partial<T> {
    const there = Object.entries(members).filter(([, value]) => value !== undefined);
    return Object.fromEntries(there) as Partial<T>;
}

/** @internal Returns whether a text is a token of this library and not a task id. */
export function isToken(name: string): boolean {
    return name.startsWith("sg1.");
}

/**
 * Splits a token of this package into the token of the library and the number of the last
 * segment that was read. The number comes after a "+" (flow.ts).
 *
 * @internal
 */
export function partsOf(token: string): { bare: string; seen: number } {
    const [, bare, place] = /^([^+]*)(?:\+([0-9]{1,15}))?$/.exec(token) ?? [];
    if (bare === undefined)
        throw new InvalidError("the token is damaged, or is not a token of this library");
    return { bare, seen: Number(place ?? 0) };
}

/**
 * Returns the option `era` of a session that can resume the token.
 *
 * @throws InvalidError: the token is damaged.
 * @internal
 */
export function eraOf(runtime: Runtime, token: string): "auto" | "legacy" {
    if (typeof token !== "string")
        throw new TypeError(`a token has to be a string, not ${String(token)}`);
    const era = native.tokenEra(runtime.handle, partsOf(token).bare);
    return era === LEGACY ? "legacy" : "auto";
}

/** @internal Makes a task handle from a task id or a token. */
export function attachTask(session: NativeSession, name: string): NativeTask {
    return isToken(name)
        ? native.taskAttachToken(session, partsOf(name).bare)
        : native.taskAttach(session, name);
}

/**
 * Reads the task id from a task's token. A token is "sg1." followed by base64url. The
 * base64url encodes a checksum and JSON with the task id in "t"
 * (core/engine/client/token.c). No other function depends on this format.
 */
function taskIdOf(token: string): string | undefined {
    try {
        const [bare = ""] = token.split("+");
        const raw = bare.slice(bare.indexOf(".") + 1);
        const told: unknown = JSON.parse(
            Buffer.from(raw, "base64url").subarray(8).toString("utf8"),
        );
        return isObject(told) && typeof told.t === "string" ? told.t : undefined;
    } catch {
        return undefined;
    }
}

type Ask = (task: NativeTask, handler: ReturnType<Exchange["handler"]>) => Request;

/**
 * A call that may have become a task. A task continues on the server even if its client
 * leaves.
 *
 * ```ts
 * const task = await session.start("report", { pages: 3 });
 * await save(task.token);          // to come back in another process, another day
 * for await (const segment of task) process.stdout.write(segment.text ?? "");
 * const result = await task.result();
 * ```
 *
 * `break` ends only the loop. Another loop can continue with the next segment. When a
 * `Task` object is no longer used, the object detaches from the task, which does not end
 * the task.
 */
export class Task extends Reader implements AsyncIterable<Segment> {
    private readonly session: Conversation;
    /**
     * The task id or the token from which this object was made; undefined for a call of
     * this session.
     */
    private readonly name: string | undefined;
    private readonly givenId: string | undefined;
    private closing: (() => Promise<void>) | undefined;
    private lastStatus: TaskStatus | undefined;
    /** The status at the end of a task that owns its session. */
    private kept: Promise<TaskStatus> | undefined;

    /** @internal */
    constructor(session: Conversation, source: Source, name?: string) {
        super(source);
        this.session = session;
        this.name = name;
        this.givenId = name?.startsWith(TOKEN) ? taskIdOf(name) : name;
    }

    /** @internal Begins the request now, and not at the first use of the task. */
    begin(): void {
        this.begun();
    }

    /** @internal Throws if the call failed before anything but its end had arrived. */
    throwIfFailed(): void {
        const { flow } = this;
        const hasFailed = flow?.outcome && flow.outcome[0] !== 0;
        if (hasFailed && flow.isEmpty && !flow.isKept) this.end(flow);
    }

    /**
     * @internal Makes this task close the session. The session closes when the task has
     * ended, or when the task object is closed.
     */
    own(session: Conversation): void {
        const flow = this.begun();
        const { onEnd } = flow;
        const weak = new WeakRef(this); // the flow does not keep its task
        flow.onEnd = async () => {
            onEnd?.();
            await weak.deref()?.keepStatus();
            await session.close();
        };
        this.closing = () => session.close();
    }

    /** Asks for the status before the session closes, for the calls of `status` after
     * that. */
    private async keepStatus(): Promise<void> {
        const signal = AbortSignal.timeout(LAST_STATUS_MS);
        this.kept = this.asked(signal);
        await this.kept.catch(() => undefined); // `status` throws the error
    }

    /**
     * Detaches from the task. If the function `resume` made the task, `close` also closes
     * the session.
     */
    override async close(): Promise<void> {
        await super.close();
        await this.closing?.();
    }

    /** The id by which `session.task` finds the task; `undefined` if the call is not a
     * task. */
    get id(): string | undefined {
        return this.givenId ?? this.taskId;
    }

    /**
     * Reads the segments, from the first unread segment on.
     *
     * @throws SegueError: the task failed.
     */
    async *[Symbol.asyncIterator](): AsyncGenerator<Segment, undefined, undefined> {
        for (;;) {
            const step = await this.next();
            if (step.done) return undefined;
            yield step.value;
        }
    }

    /**
     * Waits for the result. Unread segments are skipped.
     *
     * @param options - aborting `signal` ends only the wait, and the task continues.
     * @throws RequestCancelledError: the task was cancelled.
     * @throws TaskLostError: the server does not know the task any more.
     * @throws SegueError: the task failed; `partial` is the part of the result that had
     * arrived.
     */
    async result(options: { signal?: AbortSignal } = {}): Promise<Result> {
        const flow = this.begun();
        if (!this.isRead) flow.drop();
        await flow.wait(options.signal);
        return this.resultOf(flow);
    }

    /**
     * Asks the server for the status of a task or of a resumable call. Once the status is
     * final, this method always returns the final status.
     *
     * @throws StateError: the call is neither a task nor resumable.
     * @throws TaskLostError: the server does not know the task.
     */
    async status(options: { signal?: AbortSignal } = {}): Promise<TaskStatus> {
        options.signal?.throwIfAborted();
        return this.kept ?? this.asked(options.signal);
    }

    private async asked(signal?: AbortSignal): Promise<TaskStatus> {
        const told = readStatus(await this.ask(native.taskGet, signal));
        if (this.lastStatus !== undefined && told.status !== this.lastStatus.status) {
            // A status that arrives after the final status is outdated or wrong.
            return this.lastStatus;
        }
        if (told.isFinal) this.lastStatus = told;
        return told;
    }

    /**
     * Asks the server to cancel the task and waits for the answer, at most 5 s. A task
     * that has already ended is no error.
     *
     * @throws TaskLostError: the server does not know the task.
     */
    override async cancel(): Promise<void> {
        const flow = this.flow;
        if (flow !== undefined && flow.outcome === null) {
            await flow.leave(false);
        } else if (flow === undefined || flow.isLeft) {
            await this.ask(native.taskCancel);
        }
        if (flow?.outcome?.[0] === Status.E_TASK_LOST) throw flow.failure();
    }

    private attached(name: string | undefined): NativeTask {
        try {
            if (name !== undefined) return attachTask(this.session.handle, name);
        } catch (error) {
            if (!(error instanceof UnsupportedError)) throw error;
            // UnsupportedError means that the call is not a task. The token can only send
            // the call again with its idempotency key. Such a call has no status.
        }
        throw new StateError("the call is not a task: the server made no task");
    }

    private async ask(verb: Ask, signal?: AbortSignal): Promise<string> {
        signal?.throwIfAborted();
        const task = this.attached(this.taskId ?? this.name ?? this.token);
        const exchange = new Exchange(this.session);
        try {
            exchange.handle = verb(task, exchange.handler());
            const outcome = await exchange.wait(signal);
            if (outcome[0] !== 0) throw exchange.failure();
            return readText(outcome[1] ?? "{}");
        } finally {
            native.taskFree(task);
            exchange.free();
        }
    }
}
