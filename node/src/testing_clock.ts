/** A clock for tests, which stands still until a test moves it. */

import module from "node:module";
import timers from "node:timers";
import promises from "node:timers/promises";

/** Milliseconds of real time without a new sleeper after which none is expected. */
const IDLE_MS = 50;
/** Milliseconds of real time for somebody to sleep. */
const PATIENCE_MS = 10_000;

const REAL = {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    setInterval: globalThis.setInterval,
    clearInterval: globalThis.clearInterval,
    sleep: promises.setTimeout,
};

/** What `setTimeout` and `setInterval` return. */
class Sleep {
    constructor(
        readonly clock: Clock,
        public due: number,
        readonly every: number | undefined,
        readonly run: () => void,
    ) {}

    ref(): this {
        return this;
    }

    unref(): this {
        return this;
    }

    hasRef(): boolean {
        return true;
    }

    refresh(): this {
        return this;
    }

    close(): this {
        this.clock.forget(this);
        return this;
    }

    [Symbol.toPrimitive](): number {
        return 0;
    }
}

/**
 * A clock that stands still. It counts for `setTimeout` and `setInterval` of the program
 * and of `node:timers`, and for `setTimeout` of `node:timers/promises`. It does not count
 * for `Date`, and not for the timers of this package: limits of calls, times to live.
 */
export class Clock {
    #now = 0;
    readonly #sleeps = new Set<Sleep>();

    constructor() {
        const wait = (every: boolean, real: (...args: never[]) => unknown) => {
            return (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
                if (isOurs()) return real(...([run, ms, ...args] as never[]));
                const delay = Math.max(1, Number(ms) || 0);
                return this.#sleep(delay, every, () => run(...args));
            };
        };
        const clear = (real: (timer: never) => void) => (timer: unknown) => {
            if (timer instanceof Sleep) this.forget(timer);
            else real(timer as never);
        };
        const fake = {
            setTimeout: wait(false, REAL.setTimeout as never),
            setInterval: wait(true, REAL.setInterval as never),
            clearTimeout: clear(REAL.clearTimeout as never),
            clearInterval: clear(REAL.clearInterval as never),
        };
        Object.assign(globalThis, fake);
        Object.assign(timers, fake);
        Object.assign(promises, { setTimeout: this.#promised.bind(this) });
        module.syncBuiltinESMExports();
    }

    /** Returns the time of the clock in milliseconds, which begins at 0. */
    now(): number {
        return this.#now;
    }

    /**
     * Waits until somebody sleeps, and moves the clock to the end of the shortest sleep.
     *
     * @returns the milliseconds that have passed on the clock.
     * @throws Error: nobody sleeps within 10 s of real time.
     */
    async next(): Promise<number> {
        const sleep = await this.#shortest(Number.POSITIVE_INFINITY, PATIENCE_MS);
        if (!sleep) throw new Error(`nobody has begun to sleep within ${PATIENCE_MS} ms`);
        const passed = sleep.due - this.#now;
        await this.#end(sleep);
        return passed;
    }

    /**
     * Lets time pass. Sleeps that end meanwhile end in their order, also those that begin
     * after others have ended.
     */
    async advance(ms: number): Promise<void> {
        if (!(ms >= 0)) throw new RangeError("a clock does not go back");
        const until = this.#now + ms;
        for (;;) {
            const sleep = await this.#shortest(until, IDLE_MS);
            if (!sleep) break;
            await this.#end(sleep);
        }
        this.#now = until;
    }

    /** Lets the program use the real time again. Sleeps that have not ended end never. */
    restore(): void {
        const { sleep, ...real } = REAL;
        Object.assign(globalThis, real);
        Object.assign(timers, real);
        Object.assign(promises, { setTimeout: sleep });
        module.syncBuiltinESMExports();
        this.#sleeps.clear();
    }

    /** @internal */
    forget(sleep: Sleep): void {
        this.#sleeps.delete(sleep);
    }

    #sleep(ms: number, every: boolean, run: () => void): Sleep {
        const sleep = new Sleep(this, this.#now + ms, every ? ms : undefined, run);
        this.#sleeps.add(sleep);
        return sleep;
    }

    #promised<T>(ms = 0, value?: T, options: { signal?: AbortSignal } = {}): Promise<T> {
        const { signal } = options;
        if (isOurs()) return REAL.sleep(ms, value, options) as Promise<T>;
        if (signal?.aborted) return Promise.reject(signal.reason);
        return new Promise((resolve, reject) => {
            const abort = (): void => {
                this.forget(sleep);
                reject(signal?.reason);
            };
            const sleep = this.#sleep(Math.max(1, ms), false, () => {
                signal?.removeEventListener("abort", abort);
                resolve(value as T);
            });
            signal?.addEventListener("abort", abort, { once: true });
        });
    }

    /** Waits, for at most `patienceMs` of real time, for a sleep that ends by `until`. */
    async #shortest(until: number, patienceMs: number): Promise<Sleep | undefined> {
        const limit = performance.now() + patienceMs;
        for (;;) {
            let found: Sleep | undefined;
            for (const sleep of this.#sleeps) {
                if (!found || sleep.due < found.due) found = sleep;
            }
            if (found && found.due <= until) return found;
            if (performance.now() > limit) return undefined;
            await new Promise((resolve) => REAL.setTimeout(resolve, 1));
        }
    }

    async #end(sleep: Sleep): Promise<void> {
        this.#now = Math.max(this.#now, sleep.due);
        if (sleep.every === undefined) this.#sleeps.delete(sleep);
        else sleep.due += sleep.every;
        sleep.run();
        await new Promise((resolve) => setImmediate(resolve));
    }
}

/** Whether the code that called a function of the clock belongs to this package. */
function isOurs(): boolean {
    const caller = (new Error().stack ?? "").split("\n")[3] ?? "";
    return caller.includes(__dirname) && !caller.includes(__filename);
}
