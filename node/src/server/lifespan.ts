/**
 * The lifespan of a server: what the application opens before the first call, and closes
 * after the last one.
 *
 * A server has one lifespan at a time. It begins before the first transport is served,
 * and ends when no transport is served and no handler runs.
 *
 * @module
 */

import { asyncDispose } from "../dispose.js";
import { isPromise, type Steps, stepsOf } from "./drain.js";
import type { Server } from "./server.js";

/**
 * A function that opens what the handlers of a server share. It gets the server.
 *
 * A generator, plain or async, yields the value once; the rest of it is the clean-up. An
 * async function returns the value. If the value has a method `Symbol.asyncDispose`, the
 * method is the clean-up.
 */
export type Lifespan<T> =
    | ((server: Server) => AsyncGenerator<T, unknown, void>)
    | ((server: Server) => Generator<T, unknown, void>)
    | ((server: Server) => T | PromiseLike<T>);

/** The lifespan of a server. */
export class Life {
    /** The value that the lifespan has given; undefined before and after it. */
    value: unknown;
    readonly #server: Server;
    readonly #lifespan: Lifespan<unknown>;
    #users = 0;
    #cleanUp: (() => Promise<void>) | undefined;
    /** Begins and ends run one after the other. */
    #turn: Promise<unknown> = Promise.resolve();

    constructor(server: Server, lifespan: Lifespan<unknown>) {
        if (typeof lifespan !== "function") {
            throw new TypeError(`lifespan has to be a function, not ${typeof lifespan}`);
        }
        this.#server = server;
        this.#lifespan = lifespan;
    }

    /** Begins the lifespan for its first user. Rejects with the error of the function. */
    enter(): Promise<void> {
        return this.#next(async () => {
            if (!this.#users) this.#cleanUp = await this.#begin();
            this.#users++;
        });
    }

    /** Ends the lifespan after its last user. Rejects with the error of the clean-up. */
    leave(): Promise<void> {
        return this.#next(async () => {
            if (--this.#users) return;
            try {
                await this.#cleanUp?.();
            } finally {
                this.value = undefined;
            }
        });
    }

    #next(work: () => Promise<void>): Promise<void> {
        const done = this.#turn.then(work);
        this.#turn = done.catch(() => undefined);
        return done;
    }

    /** Returns the clean-up. */
    async #begin(): Promise<() => Promise<void>> {
        const made: unknown = this.#lifespan(this.#server);
        const steps = isPromise(made) ? undefined : stepsOf(made);
        if (steps) {
            const { value, done } = await steps.next();
            if (done) throw new TypeError("lifespan has to yield once: it ended before");
            this.value = value;
            return () => finish(steps);
        }
        const value = await made;
        this.value = value;
        return async () => {
            if (typeof value !== "object" || value === null) return;
            await (value as Partial<AsyncDisposable>)[asyncDispose]?.();
        };
    }
}

async function finish(steps: Steps): Promise<void> {
    const { done } = await steps.next();
    if (done) return;
    await steps.return?.();
    throw new TypeError("lifespan has to yield once: it yielded again");
}

/**
 * The lifespans of a server and of the servers that are mounted in it. They begin in this
 * order, and end in the opposite order.
 */
export class Lives {
    readonly #lives: readonly Life[];

    constructor(lives: readonly Life[]) {
        this.#lives = lives;
    }

    get isEmpty(): boolean {
        return !this.#lives.length;
    }

    /** Begins all of them. If one cannot begin, those that began before end. */
    async enter(): Promise<void> {
        const begun: Life[] = [];
        try {
            for (const life of this.#lives) {
                await life.enter();
                begun.push(life);
            }
        } catch (error) {
            await leaveAll(begun).catch(() => undefined);
            throw error;
        }
    }

    /** Ends all of them. Rejects with the first error, after all have ended. */
    leave(): Promise<void> {
        return leaveAll(this.#lives);
    }
}

async function leaveAll(lives: readonly Life[]): Promise<void> {
    const errors: unknown[] = [];
    for (const life of [...lives].reverse())
        await life.leave().catch((error: unknown) => errors.push(error));
    if (errors.length) throw errors[0];
}
