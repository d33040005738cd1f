/**
 * A running server: the C handle, the running calls, and the end.
 *
 *     Server -- one for each store --> Hosting --> native.Server
 *                                         |
 *                    Servings: listeners, standard input and output, attached ends
 *
 * A hosting lives as long as it has servings. When its last serving ends, its connections
 * are closed, which cancels plain calls. Tasks continue.
 *
 * When the server ends, the signals of the running handlers abort, and the handlers may
 * run PATIENCE_MS longer. Then the tasks are released in the store. The next server on
 * the store, in this process or another, runs the tasks again or fails them. When the
 * process ends, the tasks are released at once, together with the runtime.
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
import { clearTimeout, setImmediate, setTimeout } from "../timers.js";
import type { Context } from "./context.js";
import type { Item } from "./item.js";
import { Listers } from "./lists.js";
import type { Server } from "./server.js";
import { Sessions } from "./session.js";
import type { Store } from "./stores.js";

/**
 * The item that failed, as {@link Hosting.report} gets it.
 */
type Where = Pick<Item, "what" | "key"> & { readonly owner?: Server };

/** How long handlers may still run after their signals abort, in milliseconds. */
const PATIENCE_MS = 1000;

function endTurn(call: Call): void {
    try {
        native.callEndTurn(call);
    } catch (error) {
        // ClosedError means that the call has already ended.
        if (!(error instanceof ClosedError)) throw error;
    }
}

/**
 * The native server of a `Server` for one store. All transports (servings) of the
 * `Server` with this store share it.
 */
export class Hosting {
    readonly server: Server;
    readonly runtime: Runtime;
    readonly handle: Handle;
    /** The store of the server. This reference keeps the store open. */
    readonly store: Store | undefined;
    /** The contexts of the running calls. */
    readonly running = new Set<Context>();
    /** The sessions of the clients. */
    readonly sessions: Sessions;
    readonly maxCalls: number;
    /**
     * true = the server is about to end. Tasks that it takes over wait for the next
     * server.
     */
    isDraining = false;
    /** true = no new calls begin, because the server is about to end. */
    refuses = false;
    isClosed = false;
    /** The number of transports (servings) that this native server serves. */
    users = 0;
    /** Callbacks that run each time the last connection of the server has ended. */
    readonly onIdle = new Set<() => void>();
    /**
     * Tasks that were taken over from another server and wait until fewer than maxCalls
     * calls run. The key is the context of the task, and the value is the function that
     * begins the task. The store bounds the number of these tasks. While the server is
     * open, the call of a waiting task must not be freed, because the task would fail.
     */
    readonly #waiting = new Map<Context, () => void>();
    #isAdvancing = false;
    /**
     * Calls whose handlers have begun in this turn of the event loop. Their answers wait
     * until the end of this turn (their first turn), because a handler may end by then.
     */
    readonly #turns: Call[] = [];
    readonly #quiet = new Set<() => void>();
    readonly #listers = new Listers();
    readonly #forget: () => void;
    #ending: Promise<void> | undefined;

    constructor(server: Server, store: Store | undefined) {
        this.server = server;
        this.store = store;
        this.maxCalls = server.maxCalls;
        this.runtime = Runtime.current();
        this.sessions = new Sessions({
            hold: () => this.runtime.hold(),
            release: () => this.runtime.release(),
            report: (error, { id }) => this.report(error, { what: "session", key: id }),
        });
        const tell: Handler = (kind) => {
            if (kind === Kind.IDLE) for (const one of [...this.onIdle]) one();
        };
        const onClient: Handler = (kind, number, principal, told) => {
            if (kind === Kind.CLIENT_CLOSED) this.sessions.closed(number);
            else if (!this.isClosed) this.sessions.opened(number, principal, told);
        };
        this.handle = native.serverNew(
            this.runtime.handle,
            { ...server.nativeOptions, store: store?.handle },
            tell,
            server.principalHook,
        );
        native.serverWatchClients(this.handle, onClient);
        this.#forget = this.runtime.beforeClose(() => this.#abort());
        this.refreshLists();
        for (const item of server.items) this.add(item);
    }

    // ---- items

    /**
     * Adds an item to the library's server.
     *
     * @throws ExistsError when the item exists already.
     */
    add(item: Item): void {
        const { kind, told, options, completes } = item;
        const handler = item.handler(this);
        const json = JSON.stringify(told);
        try {
            native.serverAdd(this.handle, kind, json, options, handler, completes);
        } catch (error) {
            if (!(error instanceof ExistsError)) throw error;
            throw new ExistsError(`the server already has a ${item.what} "${item.key}"`);
        }
    }

    /** Makes the lists depend on the middlewares that the server has now. */
    refreshLists(): void {
        this.#listers.refresh(this);
    }

    remove(item: Item): void {
        native.serverRemove(this.handle, item.kind, item.key);
    }

    // ---- calls

    /**
     * Called when a handler has begun. From now on the call keeps the process alive, so
     * that events such as the cancellation of the call arrive.
     */
    began(context: Context): void {
        this.running.add(context);
        this.runtime.hold();
    }

    /**
     * Makes the answer of a call wait only until the end of this turn of the event loop
     * (its first turn), after the pending promises have run.
     */
    endTurnSoon(call: Call): void {
        if (this.#turns.push(call) > 1) return;
        setImmediate(() => {
            for (const one of this.#turns.splice(0)) endTurn(one);
        });
    }

    /** Called when a handler has ended. */
    ended(context: Context): void {
        this.running.delete(context);
        context.release();
        this.#advance();
        if (this.running.size || !this.#quiet.size) return;
        const all = [...this.#quiet];
        this.#quiet.clear();
        for (const tell of all) tell();
    }

    /** Reports an error that the caller should not see to the server's `onError`. */
    report(error: unknown, where: Where): void {
        const { what, key, owner = this.server } = where;
        owner.report(error, { what, name: key });
    }

    /**
     * Makes a task that was taken over wait until fewer calls run. If this native server
     * is closed, the task is left to the next server that uses the store.
     */
    wait(context: Context, begin: () => void): void {
        this.runtime.hold();
        this.#waiting.set(context, begin);
        if (this.isClosed) this.dismiss(context);
        else context.watch();
    }

    /** Removes a waiting task, whose handler then never begins here. */
    dismiss(context: Context): void {
        if (!this.#waiting.delete(context)) return;
        context.release();
        context.leave();
    }

    /**
     * Begins waiting tasks while fewer than maxCalls calls run. The method is called
     * again when a task ends during `begin`; `#isAdvancing` ignores this second call.
     */
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

    /**
     * Waits until no call runs, at most `patienceMs` milliseconds.
     *
     * @param refuses - true = new calls are refused here. A listener that closes refuses
     * new calls itself. A call that still comes from there was accepted before, and must
     * begin: its store may know it already, and would keep the refusal as its result.
     */
    async drain(patienceMs: number, refuses: boolean): Promise<void> {
        this.isDraining = true;
        this.refuses = refuses;
        await this.#quietWithin(patienceMs);
    }

    /** Resolves when no call runs. */
    async quiet(): Promise<void> {
        if (!this.running.size) return;
        await new Promise<void>((resolve) => {
            this.#quiet.add(resolve);
        });
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
     * Closes the connections when all queued output was sent. Plain calls end, and tasks
     * continue.
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
                // ClosedError means that the runtime has ended and freed the handle.
                if (!(error instanceof ClosedError)) throw error;
            }
        }
        for (const context of [...this.#waiting.keys()]) this.dismiss(context);
        this.sessions.close();
    }

    /**
     * Ends the server: aborts the signals of the running handlers, waits PATIENCE_MS for
     * the handlers, and frees the calls that still run. The handlers of these calls may
     * continue to run.
     */
    end(): Promise<void> {
        this.#ending ??= this.#end();
        return this.#ending;
    }

    /**
     * Ends the server as a crash does: the calls that run are freed at once, so whatever
     * their handlers still do reaches neither the store nor a client.
     */
    crash(): void {
        this.close();
        for (const context of [...this.running]) {
            context.leave();
            this.ended(context);
            context.abort(reasonOfEnd());
        }
    }

    async #end(): Promise<void> {
        this.#abort();
        await this.#quietWithin(PATIENCE_MS);
        for (const context of [...this.running]) {
            context.leave();
            this.ended(context);
        }
        await this.sessions.wait(PATIENCE_MS);
    }

    #abort(): void {
        this.close();
        const reason = reasonOfEnd();
        for (const context of [...this.running]) context.abort(reason);
    }
}

function reasonOfEnd(): DOMException {
    return new DOMException("The server has ended", "AbortError");
}
