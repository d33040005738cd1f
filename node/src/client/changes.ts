/** Changes that a server tells of: a resource, or one of its lists. */

import { asyncDispose } from "../dispose.js";
import { ClosedError, SegueError, UnsupportedError } from "../errors.js";
import type { JsonObject } from "../questions.js";
import type { Conversation } from "./conversation.js";
import { Exchange } from "./exchange.js";
import { isObject } from "./peer.js";
import { Waiters } from "./waiting.js";

/** What has changed: a list, or a resource. */
export type Change =
    | { kind: "tools" | "resources" | "prompts" }
    | { kind: "resource"; uri: string };

/** What is asked for. */
export interface Interests {
    /** Resources. */
    uris?: readonly string[] | undefined;
    /** The list of tools. */
    tools?: boolean | undefined;
    /** The list of resources. */
    resources?: boolean | undefined;
    /** The list of prompts. */
    prompts?: boolean | undefined;
}

/** The options of `session.subscribe`. */
export interface SubscribeOptions {
    /** Gets each change instead of a loop, some more than once. Keeps the process alive
     * until it is closed. */
    onChange?: ((change: Change) => unknown) | undefined;
    /** Aborting it ends the subscription. */
    signal?: AbortSignal | undefined;
}

type List = "tools" | "resources" | "prompts";

/** What 2026-07-28 calls them in `subscriptions/listen`. */
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
/** Milliseconds before it listens again. */
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
 * What has changed since it was looked at:
 *
 * ```ts
 * for await (const change of await session.subscribe({ uris: ["file:///log"] })) {
 *     ...
 * }
 * ```
 *
 * A change that comes several times before it is read is read once, so nothing piles up
 * behind a slow reader. After a broken connection it subscribes again; what changed in
 * between cannot be told, so everything that is watched is reported once. Leaving the
 * loop unsubscribes.
 */
export class Changes implements AsyncIterableIterator<Change> {
    private readonly session: Conversation;
    private readonly uris: readonly string[];
    private readonly lists: readonly List[];
    private readonly onChange: ((change: Change) => unknown) | undefined;
    private readonly waiters: Waiters;
    private readonly pending = new Map<string, Change>();
    private listening: Listening | undefined;
    private isOpen = false;
    /** The connection that it was last begun on. */
    private generation = 0;
    private end: { error: unknown } | undefined;
    private stopListening: (() => void) | undefined;

    /** @internal */
    constructor(session: Conversation, interests: Interests, options: SubscribeOptions) {
        this.session = session;
        this.uris = [...new Set(interests.uris ?? [])];
        this.lists = (Object.keys(NAMES) as List[]).filter((name) => interests[name]);
        if (this.uris.length === 0 && this.lists.length === 0) {
            throw new TypeError("nothing to subscribe to");
        }
        this.onChange = options.onChange;
        this.waiters = new Waiters(session.runtime);
    }

    // ---- from the session

    /** @internal A notification came that belongs to no request. */
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
        // a server may tell of a part of what was subscribed to
        return this.uris.some((uri) => change.uri.startsWith(uri));
    }

    private add(change: Change): void {
        if (this.onChange !== undefined) {
            this.session.run(this.onChange, change);
            return;
        }
        const key = change.kind === "resource" ? `:${change.uri}` : change.kind;
        this.pending.set(key, change);
        this.waiters.wake();
    }

    /** @internal The session, or the subscription, has ended. */
    closed(error: unknown): void {
        if (!this.isOpen) return;
        if (error !== undefined) this.end = { error };
        this.leave();
    }

    private leave(): void {
        this.isOpen = false;
        this.session.changes.delete(this);
        this.stopListening?.();
        if (this.onChange !== undefined) this.session.runtime.release();
        this.waiters.wake();
    }

    // ---- for the reader

    /** @internal Subscribes. */
    async open(signal?: AbortSignal): Promise<void> {
        signal?.throwIfAborted();
        this.session.changes.add(this);
        this.isOpen = true;
        if (this.onChange !== undefined) this.session.runtime.hold();
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

    /** Unsubscribes. May be said twice. */
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
                    .catch(() => undefined); // it is over either way
            }
        }
    }

    /** The same as {@link close}. */
    async [asyncDispose](): Promise<void> {
        await this.close();
    }

    [Symbol.asyncIterator](): this {
        return this;
    }

    /**
     * The next change.
     *
     * @throws why the session has ended, or the signal's reason.
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

    /** Unsubscribes: `for await` calls this at `break`. */
    async return(): Promise<IteratorResult<Change, undefined>> {
        await this.close();
        return { done: true, value: undefined };
    }

    // ---- subscribing

    /** For this connection. */
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
            throw new UnsupportedError("the server has no subscriptions to resources");
        }
        for (const uri of this.uris) {
            await session.request("resources/subscribe", { uri }, { signal });
        }
    }

    /** Waits until this connection is lost. */
    private async lost(): Promise<void> {
        if (this.listening !== undefined) await this.listening.ended;
        else await this.session.reconnected(this.generation);
    }

    /** Subscribes again, with pauses that grow, whenever the connection was lost. */
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

/** Keeps no process alive. */
function sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
        setTimeout(resolve, ms).unref();
    });
}

/** One `subscriptions/listen` (2026-07-28), whose answer is its end. */
class Listening {
    /** Settles with its end. */
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
