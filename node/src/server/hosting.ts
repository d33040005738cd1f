/**
 * A server at work: the handle of C, the calls that run, and its end.
 *
 *     Server -- one for each store --> Hosting --> native.Server
 *                                         |
 *                    Servings: listeners, standard input and output, attached ends
 *
 * A hosting lives as long as it has servings. When the last one has gone its
 * connections are ended, which cancels plain calls; tasks go on. When the server ends
 * their handlers are aborted, and get a moment to see to their end; then what is stored
 * of the tasks is let go: the next server on the store, of this process or another, runs
 * them again, or fails them. With the end of the process there is no such moment, and
 * they are let go with the runtime.
 *
 * @module
 */

import { ClosedError, ExistsError } from "../errors.js";
import {
    type Call,
    type Server as Handle,
    type Handler,
    Kind,
    native,
} from "../native.js";
import { Runtime } from "../runtime.js";
import type { Context } from "./context.js";
import type { Item } from "./item.js";
import type { Server } from "./server.js";
import type { Store } from "./stores.js";

/** What the caller of {@link Hosting.report} tells of where something failed. */
type Where = Pick<Item, "what" | "key"> | { what: string; key: string };

/** Handlers have so long to see to their end. */
const PATIENCE_MS = 1000;

function endTurn(call: Call): void {
    try {
        native.callEndTurn(call);
    } catch (error) {
        if (!(error instanceof ClosedError)) throw error; // it is done
    }
}

/** A server at work, on one store. */
export class Hosting {
    readonly server: Server;
    readonly runtime: Runtime;
    readonly handle: Handle;
    /** Held as long as this is. */
    readonly store: Store | undefined;
    /** Contexts of the calls that run. */
    readonly running = new Set<Context>();
    readonly maxCalls: number;
    isDraining = false;
    isClosed = false;
    /** Servings that use it. */
    users = 0;
    /** Called each time when the last conversation has ended. */
    readonly onIdle = new Set<() => void>();
    /** Of tasks that were taken over, and for which there is no room yet, and what begins
     * them. As many as the store has at most. Freed before the end they would fail. */
    readonly #waiting = new Map<Context, () => void>();
    #isAdvancing = false;
    /** Calls whose first turn ends with this turn of the loop. */
    readonly #turns: Call[] = [];
    readonly #quiet = new Set<() => void>();
    readonly #forget: () => void;
    #ending: Promise<void> | undefined;

    constructor(server: Server, store: Store | undefined) {
        this.server = server;
        this.store = store;
        this.maxCalls = server.maxCalls;
        this.runtime = Runtime.current();
        const tell: Handler = (kind) => {
            if (kind === Kind.IDLE) for (const one of [...this.onIdle]) one();
        };
        this.handle = native.serverNew(
            this.runtime.handle,
            { ...server.nativeOptions, store: store?.handle },
            tell,
            server.principalHook,
        );
        this.#forget = this.runtime.beforeClose(() => this.#abort());
        for (const item of server.items) this.add(item);
    }

    // ---- items

    /** @throws ExistsError when there is such an item already. */
    add(item: Item): void {
        const { kind, told, options, completes } = item;
        const handler = item.handler(this);
        const json = JSON.stringify(told);
        try {
            native.serverAdd(this.handle, kind, json, options, handler, completes);
        } catch (error) {
            if (!(error instanceof ExistsError)) throw error;
            throw new ExistsError(`there is a ${item.what} "${item.key}" already`);
        }
    }

    remove(item: Item): void {
        native.serverRemove(this.handle, item.kind, item.key);
    }

    // ---- calls

    /** A handler runs: the process waits for what it hears, such as its cancellation. */
    began(context: Context): void {
        this.running.add(context);
        this.runtime.hold();
    }

    /** The first turn of a handler ends when the promises that are due now have run. */
    endTurnSoon(call: Call): void {
        if (this.#turns.push(call) > 1) return;
        setImmediate(() => {
            for (const one of this.#turns.splice(0)) endTurn(one);
        });
    }

    /** A handler has come to its end. */
    ended(context: Context): void {
        this.running.delete(context);
        context.release();
        this.#advance();
        if (this.running.size || !this.#quiet.size) return;
        const all = [...this.#quiet];
        this.#quiet.clear();
        for (const tell of all) tell();
    }

    /** Something failed that was not meant for a caller. */
    report(error: unknown, { what, key }: Where): void {
        this.server.report(error, { what, name: key });
    }

    /** A task that was taken over begins when there is room for it, or is left to the
     * next server on the store when this one is closed. */
    wait(context: Context, begin: () => void): void {
        this.runtime.hold();
        this.#waiting.set(context, begin);
        if (this.isClosed) this.dismiss(context);
        else context.watch();
    }

    /** It need not begin any more. */
    dismiss(context: Context): void {
        if (!this.#waiting.delete(context)) return;
        context.release();
        context.leave();
    }

    /** Begins what waits, as far as there is room. What ends at once calls this anew. */
    #advance(): void {
        if (this.#isAdvancing || !this.#waiting.size) return;
        this.#isAdvancing = true;
        for (const [context, begin] of this.#waiting) {
            if (this.isDraining || this.running.size >= this.maxCalls) break;
            this.#waiting.delete(context);
            this.running.add(context);
            this.runtime.cork();
            begin();
        }
        this.#isAdvancing = false;
    }

    // ---- the end

    /** Takes no more calls, and waits until none runs, or so long. */
    async drain(patienceMs: number): Promise<void> {
        this.isDraining = true;
        await this.#quietWithin(patienceMs);
    }

    async #quietWithin(patienceMs: number): Promise<void> {
        if (!this.running.size || patienceMs <= 0) return;
        let timer: NodeJS.Timeout | undefined;
        await new Promise<void>((resolve) => {
            this.#quiet.add(resolve);
            timer = setTimeout(() => {
                this.#quiet.delete(resolve);
                resolve();
            }, patienceMs);
        });
        clearTimeout(timer);
    }

    /**
     * Ends the connections after what is queued has been sent, and plain calls with them.
     * Tasks go on.
     */
    close(): void {
        if (this.isClosed) return;
        this.isClosed = true;
        this.isDraining = true;
        this.#forget();
        for (const end of [native.serverClose, native.serverFree]) {
            try {
                end(this.handle);
            } catch (error) {
                if (!(error instanceof ClosedError)) throw error; // the runtime was first
            }
        }
        for (const context of [...this.#waiting.keys()]) this.dismiss(context);
    }

    /** Ends it: aborts what runs, waits a moment for it, and leaves the rest: handlers
     * that go on do so without their calls. */
    end(): Promise<void> {
        this.#ending ??= this.#end();
        return this.#ending;
    }

    async #end(): Promise<void> {
        this.#abort();
        await this.#quietWithin(PATIENCE_MS);
        for (const context of [...this.running]) {
            context.leave();
            this.ended(context);
        }
    }

    #abort(): void {
        this.close();
        const reason = new DOMException("The server has ended", "AbortError");
        for (const context of [...this.running]) context.abort(reason);
    }
}
