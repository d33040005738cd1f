/**
 * Subscriptions to changes that a server reports. A change concerns a resource or one of
 * the server's lists.
 */

import { asyncDispose } from "../dispose.js";
import { ClosedError, SegueError, UnsupportedError } from "../errors.js";
import type { JsonObject } from "../questions.js";
import type { Conversation } from "./conversation.js";
import { Exchange } from "./exchange.js";
import { isObject } from "./peer.js";
import { Waiters } from "./waiting.js";

/** One change of a list or of a resource. */
export type Change =
    | { kind: "tools" | "resources" | "prompts" }
    | { kind: "resource"; uri: string };

/** The lists and resources to subscribe to. */
export interface Interests {
    /** The URIs of resources whose changes are reported. */
    uris?: readonly string[] | undefined;
    /** true = report changes of the list of tools. */
    tools?: boolean | undefined;
    /** true = report changes of the list of resources. */
    resources?: boolean | undefined;
    /** true = report changes of the list of prompts. */
    prompts?: boolean | undefined;
}

/** The options of `session.subscribe`. */
export interface SubscribeOptions {
    /**
     * Called with each change. The callback takes the place of `for await`: with it, the
     * program does not read the changes in a loop. A change may be reported more than
     * once. The callback keeps the process alive until the subscription is closed.
     */
    onChange?: ((change: Change) => unknown) | undefined;
    /** false = `onChange` does not keep the process alive. */
    keepAlive?: boolean | undefined;
    /** Aborting the signal ends the subscription. */
    signal?: AbortSignal | undefined;
}

type List = "tools" | "resources" | "prompts";

/** The name of each list in `subscriptions/listen` (2026-07-28). */
const NAMES: Record<List, string> = {
    tools: "toolsListChanged",
    resources: "resourcesListChanged",
    prompts: "promptsListChanged",
};
const METHODS: Record<string, List> = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
};
const UPDATED = "notifications/resources/updated";
const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
/**
 * The shortest and the longest pause before the client subscribes again, in milliseconds.
 */
const PAUSE_FIRST = 100;
const PAUSE_MOST = 30_000;

function readChange(method: string, params: JsonObject): Change | undefined {
    if (method === UPDATED) {
        const { uri } = params;
        return typeof uri === "string" ? { kind: "resource", uri } : undefined;
    }
    const kind = METHODS[method];
    return kind === undefined ? undefined : { kind };
}

/**
 * A subscription. A loop over the subscription reads each change:
 *
 * ```ts
 * for await (const change of await session.subscribe({ uris: ["file:///log"] })) {
 *     ...
 * }
 * ```
 *
 * A change that arrives several times before the program reads it is reported once. So a
 * slow reader cannot fill the queue. After a broken connection the client subscribes
 * again. Changes during the break are unknown, so every subscribed list and resource is
 * then reported once as changed. Leaving the loop ends the subscription.
 */
export class Changes implements AsyncIterableIterator<Change> {
    private readonly session: Conversation;
    private readonly uris: readonly string[];
    private readonly lists: readonly List[];
    private readonly onChange: ((change: Change) => unknown) | undefined;
    /** Whether the open subscription keeps the process alive. */
    private readonly holds: boolean;
    private readonly waiters: Waiters;
    private readonly pending = new Map<string, Change>();
    private listening: Listening | undefined;
    private isOpen = false;
    /** The value of `session.connections` when the client subscribed last. */
    private generation = 0;
    private end: { error: unknown } | undefined;
    private stopListening: (() => void) | undefined;

    /** @internal */
    constructor(session: Conversation, interests: Interests, options: SubscribeOptions) {
        this.session = session;
        this.uris = [...new Set(interests.uris ?? [])];
        this.lists = (Object.keys(NAMES) as List[]).filter((name) => interests[name]);
        if (this.uris.length === 0 && this.lists.length === 0) {
            throw new TypeError(
                "a subscription needs at least one URI, or tools, resources or prompts",
            );
        }
        this.onChange = options.onChange;
        this.holds = this.onChange !== undefined && options.keepAlive !== false;
        this.waiters = new Waiters(session.runtime);
    }

    // ---- called by the session

    /** @internal Takes a notification that belongs to no request. The session calls this
     * method. */
    notified(method: string, params: JsonObject): void {
        if (method === ACKNOWLEDGED) {
            this.listening?.acknowledge();
            return;
        }
        const change = readChange(method, params);
        if (change !== undefined && this.wants(change)) this.add(change);
    }

    private wants(change: Change): boolean {
        if (change.kind !== "resource") return this.lists.includes(change.kind);
        // A change may concern a part of a subscribed resource, such as a file in a
        // subscribed directory. So each URI that begins with a subscribed URI matches.
        return this.uris.some((uri) => change.uri.startsWith(uri));
    }

    private add(change: Change): void {
        if (this.onChange !== undefined) {
            this.session.run("onChange", this.onChange, change);
            return;
        }
        const key = change.kind === "resource" ? `:${change.uri}` : change.kind;
        this.pending.set(key, change);
        this.waiters.wake();
    }

    /**
     * @internal Ends the subscription and wakes its waiting readers. Called when the
     * session or the server has ended the subscription.
     */
    closed(error: unknown): void {
        if (!this.isOpen) return;
        if (error !== undefined) this.end = { error };
        this.leave();
    }

    private leave(): void {
        this.isOpen = false;
        this.session.changes.delete(this);
        this.stopListening?.();
        if (this.holds) this.session.runtime.release();
        this.waiters.wake();
    }

    // ---- called by the reader

    /** @internal Sends the subscription to the server. */
    async open(signal?: AbortSignal): Promise<void> {
        signal?.throwIfAborted();
        this.session.changes.add(this);
        this.isOpen = true;
        if (this.holds) this.session.runtime.hold();
        try {
            await this.subscribe(signal);
        } catch (error) {
            if (this.isOpen) this.leave();
            throw error;
        }
        if (signal !== undefined) {
            const onAbort = (): void => {
                this.end ??= { error: signal.reason };
                void this.close();
            };
            signal.addEventListener("abort", onAbort, { once: true });
            this.stopListening = () => signal.removeEventListener("abort", onAbort);
        }
        void this.keep();
    }

    /** Unsubscribes. A second call does nothing. */
    async close(): Promise<void> {
        if (!this.isOpen) return;
        this.leave();
        if (this.listening !== undefined) {
            await this.listening.cancel();
        } else if (!this.session.isClosed) {
            for (const uri of this.uris) {
                const others = [...this.session.changes];
                if (others.some((other) => other.uris.includes(uri))) continue;
                await this.session
                    .request("resources/unsubscribe", { uri })
                    // A failure of this request does not matter, because the subscription
                    // ends in any case.
                    .catch(() => undefined);
            }
        }
    }

    /** Does the same as {@link close}. */
    async [asyncDispose](): Promise<void> {
        await this.close();
    }

    /** The object is its own iterator. */
    [Symbol.asyncIterator](): this {
        return this;
    }

    /**
     * Waits for the next change.
     *
     * @throws the error that ended the session, or the signal's reason.
     */
    async next(): Promise<IteratorResult<Change, undefined>> {
        for (;;) {
            const first = this.pending.entries().next();
            if (!first.done) {
                this.pending.delete(first.value[0]);
                return { done: false, value: first.value[1] };
            }
            if (!this.isOpen) {
                if (this.end !== undefined) throw this.end.error;
                return { done: true, value: undefined };
            }
            await this.waiters.change();
        }
    }

    /** Ends the subscription. `for await` calls this method at `break`. */
    async return(): Promise<IteratorResult<Change, undefined>> {
        await this.close();
        return { done: true, value: undefined };
    }

    // ---- subscribing

    /**
     * Subscribes to the lists and resources of this subscription, over the current
     * connection.
     */
    private async subscribe(signal?: AbortSignal): Promise<void> {
        const { session } = this;
        this.generation = session.connections;
        if (session.peer.era === "modern") {
            const wanted: JsonObject = {};
            for (const name of this.lists) wanted[NAMES[name]] = true;
            if (this.uris.length > 0) wanted.resourceSubscriptions = this.uris;
            this.listening = new Listening(session, wanted);
            await this.listening.begin(signal);
            return;
        }
        const told = session.peer.capabilities.resources;
        if (this.uris.length > 0 && !(isObject(told) && told.subscribe)) {
            throw new UnsupportedError(
                "the server does not support subscriptions to resources",
            );
        }
        for (const uri of this.uris) {
            await session.request("resources/subscribe", { uri }, { signal });
        }
    }

    /** Waits until the connection that carries the subscription is lost. */
    private async lost(): Promise<void> {
        if (this.listening !== undefined) await this.listening.ended;
        else await this.session.reconnected(this.generation);
    }

    /**
     * Subscribes again each time the connection was lost. Each failed attempt doubles the
     * pause before the next attempt.
     */
    private async keep(): Promise<void> {
        let pause = PAUSE_FIRST;
        await this.lost();
        while (this.isOpen && !this.session.isClosed) {
            if (this.listening !== undefined) await sleep(pause);
            if (!this.isOpen) return;
            try {
                await this.subscribe();
            } catch (error) {
                if (this.session.isClosed || !this.isOpen) return;
                if (!(error instanceof SegueError && error.retryable)) {
                    this.closed(error);
                    return;
                }
                if (this.listening === undefined) await sleep(pause);
                pause = Math.min(pause * 2, PAUSE_MOST);
                continue;
            }
            pause = PAUSE_FIRST;
            for (const uri of this.uris) this.add({ kind: "resource", uri });
            for (const kind of this.lists) this.add({ kind });
            await this.lost();
        }
    }
}

/** Waits for a time in milliseconds without keeping the process alive. */
function sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
        setTimeout(resolve, ms).unref();
    });
}

/** One `subscriptions/listen` request (2026-07-28). The server's answer to this request
 * ends the subscription. */
class Listening {
    /** Resolves when the request has ended. */
    ended: Promise<void> = Promise.resolve();
    private readonly exchange: Exchange;
    private readonly wanted: JsonObject;
    private begun: (() => void) | undefined;

    constructor(
        private readonly session: Conversation,
        wanted: JsonObject,
    ) {
        this.exchange = new Exchange(session);
        this.wanted = wanted;
    }

    acknowledge(): void {
        this.begun?.();
    }

    async begin(signal?: AbortSignal): Promise<void> {
        const { exchange, session } = this;
        const begun = new Promise<void>((resolve) => {
            this.begun = resolve;
        });
        const params = JSON.stringify({ notifications: this.wanted });
        session.send(exchange, "subscriptions/listen", params, null);
        this.ended = exchange.idle().then(() => exchange.free());
        const onAbort = (): void => exchange.cancel();
        signal?.addEventListener("abort", onAbort, { once: true });
        session.runtime.hold();
        try {
            await Promise.race([begun, this.ended]);
        } finally {
            session.runtime.release();
            signal?.removeEventListener("abort", onAbort);
        }
        signal?.throwIfAborted();
        if (exchange.outcome !== null) {
            if (exchange.outcome[0] !== 0) throw exchange.failure();
            throw new ClosedError("the server ended the subscription");
        }
    }

    async cancel(): Promise<void> {
        const { runtime } = this.session;
        this.exchange.cancel();
        runtime.hold();
        await this.ended;
        runtime.release();
    }
}
