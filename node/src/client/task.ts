/** Work on a server that outlives the connection. */

import type { Result } from "../content.js";
import { ProtocolError, StateError, UnsupportedError } from "../errors.js";
import { type Task as NativeTask, native, type Request } from "../native.js";
import type { JsonObject } from "../questions.js";
import type { Segment } from "../segment.js";
import type { Conversation } from "./conversation.js";
import { Exchange } from "./exchange.js";
import { parseObject } from "./items.js";
import { isObject } from "./peer.js";
import { Reader, type Source } from "./stream.js";

const TOKEN = "sg1.";
const FINAL = ["completed", "failed", "cancelled"];

/** What `tasks/get` says, or `requests/getStatus` of a call that can be resumed. */
export interface TaskStatus {
    /** Of the task; `undefined` of a call. */
    id: string | undefined;
    /** `"working"`, `"input_required"`, `"completed"`, `"failed"`, `"cancelled"`; expect
     * others. */
    status: string;
    /** It will not change any more. */
    isFinal: boolean;
    /** The server's text for it. */
    message?: string;
    createdAt?: string;
    updatedAt?: string;
    /** How long the task is kept, from its making, in milliseconds. */
    ttlMs?: number;
    /** How often the server likes to be asked, in milliseconds. */
    pollMs?: number;
    /** All of it, as JSON has it. */
    raw: JsonObject;
}

/** SEP-975 has one word for two of ours. */
function stateOfRequest(raw: JsonObject): unknown {
    if (raw.status !== "processing") return raw.status;
    return raw.hasInputRequest === true ? "input_required" : "working";
}

function readStatus(json: string): TaskStatus {
    let raw = parseObject(json, "the status of a task");
    if (isObject(raw.task)) raw = raw.task; // DRAFT-2026-v1 has it one level deeper
    const isTask = raw.requestId === undefined;
    const id = isTask ? raw.taskId : undefined;
    const status = isTask ? raw.status : stateOfRequest(raw);
    if ((isTask && typeof id !== "string") || typeof status !== "string") {
        throw new ProtocolError("the status of a task: taskId or status is no text");
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

/**
 * The id that a token of a task has: "sg1.", then base64url of a checksum and of JSON
 * with "t" (core/engine/asking/token.c). Nobody else needs to know.
 */
function taskIdOf(token: string): string | undefined {
    try {
        const raw = token.slice(token.indexOf(".") + 1).split("+")[0] ?? "";
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
 * A call that may have become a task: work that goes on whatever its client does.
 *
 * ```ts
 * const task = await session.start("report", { pages: 3 });
 * await save(task.token);          // to come back in another process, another day
 * for await (const segment of task) process.stdout.write(segment.text ?? "");
 * const result = await task.result();
 * ```
 *
 * `break` only ends the loop: the task can be read on by another one. When nobody holds
 * it any more it is let go, which does not end a task.
 */
export class Task extends Reader implements AsyncIterable<Segment> {
    private readonly session: Conversation;
    /** An id, or a token. */
    private readonly name: string | undefined;
    private readonly givenId: string | undefined;
    private closing: (() => Promise<void>) | undefined;
    private lastStatus: TaskStatus | undefined;

    /** @internal */
    constructor(session: Conversation, source: Source, name?: string) {
        super(source);
        this.session = session;
        this.name = name;
        this.givenId = name?.startsWith(TOKEN) ? taskIdOf(name) : name;
    }

    /** @internal Begins at once. */
    begin(): void {
        this.begun();
    }

    /** @internal Throws if it has failed before anything came of it. */
    throwIfFailed(): void {
        const outcome = this.flow?.outcome;
        if (this.flow?.isEmpty && outcome && outcome[0] !== 0) this.end(this.flow);
    }

    /** @internal Ends the session with the task. */
    own(session: Conversation): void {
        const flow = this.begun();
        const { onEnd } = flow;
        flow.onEnd = () => {
            onEnd?.();
            return session.close();
        };
        this.closing = () => session.close();
    }

    /** Lets go of it; of a task of `resume`, its session is closed. */
    override async close(): Promise<void> {
        await super.close();
        await this.closing?.();
    }

    /** The id, by which `session.task` finds it; `undefined` if it became no task. */
    get id(): string | undefined {
        return this.givenId ?? this.taskId;
    }

    /**
     * The segments, from the first one that was not read.
     *
     * @throws SegueError: how it ended otherwise.
     */
    async *[Symbol.asyncIterator](): AsyncGenerator<Segment, undefined, undefined> {
        for (;;) {
            const step = await this.next();
            if (step.done) return undefined;
            yield step.value;
        }
    }

    /**
     * Waits for the end. Segments that nobody reads are skipped.
     *
     * @param options - `signal` gives up the waiting; the task goes on.
     * @throws RequestCancelledError: it was cancelled.
     * @throws TaskLostError: the server does not know it any more.
     * @throws SegueError: how it ended otherwise; `partial` is what there was.
     */
    async result(options: { signal?: AbortSignal } = {}): Promise<Result> {
        const flow = this.begun();
        if (!this.isRead) flow.drop();
        await flow.wait(options.signal);
        return this.resultOf(flow);
    }

    /**
     * Asks the server: of a task, or of a call that can be resumed. An end that it told
     * once stays the answer.
     *
     * @throws StateError: it is neither.
     * @throws RemoteError: the server does not know it.
     */
    async status(options: { signal?: AbortSignal } = {}): Promise<TaskStatus> {
        const told = readStatus(await this.ask(native.taskGet, options.signal));
        if (this.lastStatus !== undefined && told.status !== this.lastStatus.status) {
            return this.lastStatus; // what comes later is older, or wrong
        }
        if (told.isFinal) this.lastStatus = told;
        return told;
    }

    /**
     * Asks the server to end it, and waits until it has said so, 5 s at most. No error
     * when it has ended meanwhile.
     */
    override async cancel(): Promise<void> {
        const flow = this.flow;
        if (flow !== undefined && flow.outcome === null) {
            await flow.leave(false);
        } else if (flow === undefined || flow.isLeft) {
            await this.ask(native.taskCancel);
        }
    }

    private attached(name: string | undefined): NativeTask {
        try {
            if (name !== undefined) return native.taskAttach(this.session.handle, name);
        } catch (error) {
            if (!(error instanceof UnsupportedError)) throw error;
            // a call that is sent again with its key
        }
        throw new StateError("the server did not make a task of it");
    }

    private async ask(verb: Ask, signal?: AbortSignal): Promise<string> {
        signal?.throwIfAborted();
        const task = this.attached(this.taskId ?? this.name ?? this.token);
        const exchange = new Exchange(this.session);
        try {
            exchange.handle = verb(task, exchange.handler());
            const outcome = await exchange.wait(signal);
            if (outcome[0] !== 0) throw exchange.failure();
            return outcome[1] ?? "{}";
        } finally {
            native.taskFree(task);
            exchange.free();
        }
    }
}
