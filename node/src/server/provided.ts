/**
 * Values that a call needs, such as a database or a user: functions of the application
 * make them, each once in a call, and clean up when the handler has ended.
 *
 *     CALL --> middleware --> handler -- ctx.get(f) --> f --> value
 *     reply <-------------- clean-up, in the opposite order
 *
 * @module
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Context } from "./context.js";
import { isPromise, type Steps, stepsOf } from "./drain.js";

/**
 * A function that makes a value for a call; see {@link Context.get}. A generator yields
 * the value once. The rest of it is the clean-up.
 */
export type Provider<T = unknown> =
    | ((ctx: Context) => T | PromiseLike<T>)
    | ((ctx: Context) => AsyncGenerator<T, unknown, void>)
    | ((ctx: Context) => Generator<T, unknown, void>);

/** The functions that replace others, by the function that is replaced. */
export type Overrides = Map<Provider, Provider>;

/** The provider that runs, and the values that it belongs to. */
const current = new AsyncLocalStorage<{ of: Provided; provider: Provider }>();

/** The values of one call. */
export class Provided {
    readonly #context: Context;
    readonly #overrides: Overrides;
    readonly #made = new Map<Provider, Promise<unknown>>();
    /** For each provider, the providers for whose values it waits or has waited. */
    readonly #needs = new Map<Provider, Set<Provider>>();
    readonly #open: Steps[] = [];

    constructor(context: Context, overrides: Overrides) {
        this.#context = context;
        this.#overrides = overrides;
    }

    /** Returns the value of a provider, which is made if the call does not have it. */
    get(provider: Provider): Promise<unknown> {
        const running = current.getStore();
        if (running?.of === this) {
            if (this.#reaches(provider, running.provider)) {
                const name = provider.name || "a provider";
                return Promise.reject(new TypeError(`${name} needs its own value`));
            }
            const needs = this.#needs.get(running.provider) ?? new Set();
            this.#needs.set(running.provider, needs.add(provider));
        }
        let made = this.#made.get(provider);
        if (!made) {
            made = this.#make(provider);
            made.catch(() => undefined); // nobody may wait for it
            this.#made.set(provider, made);
        }
        return made;
    }

    #reaches(from: Provider, to: Provider): boolean {
        if (from === to) return true;
        return [...(this.#needs.get(from) ?? [])].some((one) => this.#reaches(one, to));
    }

    async #make(provider: Provider): Promise<unknown> {
        const run = this.#overrides.get(provider) ?? provider;
        return current.run({ of: this, provider }, async () => {
            const value = run(this.#context);
            const steps = isPromise(value) ? undefined : stepsOf(value);
            if (!steps || !isGenerator(value)) return value;
            const { value: made, done } = await steps.next();
            if (done) throw new TypeError(`${run.name} has to yield a value`);
            this.#open.push(steps);
            return made;
        });
    }

    /**
     * Cleans up after a handler that has returned.
     *
     * @throws the first error of a clean-up.
     */
    async clean(): Promise<void> {
        await Promise.allSettled(this.#made.values());
        for (let steps = this.#open.pop(); steps; steps = this.#open.pop()) {
            try {
                await finish(steps);
            } catch (error) {
                throw await this.abandon(error);
            }
        }
    }

    /**
     * Cleans up after a handler that has failed. Each clean-up gets the error.
     *
     * @returns the error of the call: the same one, or that of a clean-up.
     */
    async abandon(error: unknown): Promise<unknown> {
        this.#context.hasEnded(); // a clean-up may read the signal
        await Promise.allSettled(this.#made.values());
        let last = error;
        for (let steps = this.#open.pop(); steps; steps = this.#open.pop()) {
            try {
                await steps.throw?.(last);
            } catch (why) {
                last = why;
            }
        }
        return last;
    }
}

function isGenerator(value: unknown): boolean {
    return String(Object.prototype.toString.call(value)).endsWith("Generator]");
}

async function finish(steps: Steps): Promise<void> {
    if ((await steps.next()).done) return;
    await steps.return?.();
    throw new TypeError("a provider has to yield one value, not several");
}
