/**
 * The sessions of a server's clients, and the state that handlers keep for a session.
 *
 * A session is a connection over a byte stream, or over HTTP what `initialize` begins.
 * The library reports its begin and its end (`CLIENT_OPEN`, `CLIENT_CLOSED`), and tells
 * which session a call is of (`callClient`).
 *
 * @module
 */

import type { Implementation } from "../client/peer.js";
import { clearTimeout, setTimeout } from "../timers.js";

/**
 * What handlers keep for a session. An application may declare the types of its members:
 *
 *     declare module "segue-mcp" {
 *         interface SessionState {
 *             cart?: string[];
 *         }
 *     }
 */
export interface SessionState {
    [name: string]: unknown;
}

interface Declared {
    readonly protocolVersion: string;
    readonly clientInfo?: Readonly<Implementation>;
    readonly isSession: boolean;
}

/** What the sessions need of their running server. */
export interface SessionHost {
    /** Keeps the process alive until {@link release}. */
    hold(): void;
    release(): void;
    report(error: unknown, session: ServerSession): void;
}

/**
 * The session of the client that calls, from {@link Context.session}.
 *
 * All calls of the session get the same object. It is in the memory of this process:
 * after a restart, and in another process that serves the same store, the state of a
 * session is empty.
 */
export class ServerSession {
    /**
     * The name of the session in this process, for logs. It is not the value of
     * `Mcp-Session-Id`, which is a secret.
     */
    readonly id: string;
    /** The client's principal; "" for an anonymous client. */
    readonly principal: string;
    /** The protocol revision that the client speaks. */
    readonly protocolVersion: string;
    /**
     * The client's name and version; undefined = unknown, because the session began in
     * another process.
     */
    readonly clientInfo: Readonly<Implementation> | undefined;
    /** What handlers keep for the session. */
    readonly state: SessionState = {};
    readonly #hooks: (() => unknown)[] = [];
    #isClosed = false;

    /** @internal */
    constructor(number: number, principal: string, told: Declared) {
        this.id = String(number);
        this.principal = principal;
        this.protocolVersion = told.protocolVersion;
        this.clientInfo = told.clientInfo;
    }

    /** Whether the session has ended. A task may outlive its session. */
    get closed(): boolean {
        return this.#isClosed;
    }

    /**
     * Registers a function, plain or async, that runs when the session has ended, to free
     * what `state` holds. Functions run one after the other, the last one first. The
     * server's `onError` gets their errors.
     *
     * @throws TypeError when the session has ended.
     */
    onEnd(run: () => unknown): void {
        if (typeof run !== "function") {
            throw new TypeError(`onEnd takes a function, not ${typeof run}`);
        }
        if (this.#isClosed) throw new TypeError(`the session ${this.id} has ended`);
        this.#hooks.push(run);
    }

    /** @internal Ends the session. Returns undefined when no function has to run. */
    end(report: (error: unknown) => void): Promise<void> | undefined {
        this.#isClosed = true;
        return this.#hooks.length ? this.#run(report) : undefined;
    }

    async #run(report: (error: unknown) => void): Promise<void> {
        for (let hook = this.#hooks.pop(); hook; hook = this.#hooks.pop()) {
            try {
                await hook();
            } catch (error) {
                report(error);
            }
        }
    }
}

/** The sessions of a running server (hosting), by the numbers of their clients. */
export class Sessions {
    readonly #host: SessionHost;
    readonly #byNumber = new Map<number, ServerSession>();
    /** The runs of functions of {@link ServerSession.onEnd}. */
    readonly #ending = new Set<Promise<void>>();

    constructor(host: SessionHost) {
        this.#host = host;
    }

    /** Returns the session of a client; undefined = there is none, or it has ended. */
    of(number: number): ServerSession | undefined {
        return this.#byNumber.get(number);
    }

    opened(number: number, principal: string, told: string): void {
        const declared = JSON.parse(told) as Declared;
        // Over HTTP a request subscriptions/listen of 2026-07-28 is a client, too.
        if (!declared.isSession) return;
        this.#byNumber.set(number, new ServerSession(number, principal, declared));
    }

    closed(number: number): void {
        const session = this.#byNumber.get(number);
        this.#byNumber.delete(number);
        const done = session?.end((error) => this.#host.report(error, session));
        if (!done) return;
        this.#host.hold();
        this.#ending.add(done);
        void done.finally(() => {
            this.#ending.delete(done);
            this.#host.release();
        });
    }

    /** Ends all sessions, because the server has closed their connections. */
    close(): void {
        for (const number of [...this.#byNumber.keys()]) this.closed(number);
    }

    /**
     * Resolves when the functions for the ends of sessions have run, at the latest after
     * `patienceMs` milliseconds.
     */
    async wait(patienceMs: number): Promise<void> {
        if (!this.#ending.size) return;
        let timer: NodeJS.Timeout | undefined;
        const late = new Promise((resolve) => {
            timer = setTimeout(resolve, patienceMs);
        });
        await Promise.race([Promise.all(this.#ending), late]);
        clearTimeout(timer);
    }
}
