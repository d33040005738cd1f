/**
 * Sends the values that a generator yields.
 *
 * @module
 */

import { RequestCancelledError } from "../errors.js";
import { type Call, native } from "../native.js";
import { performance, setImmediate } from "../timers.js";
import type { Context } from "./context.js";
import type { Hosting } from "./hosting.js";
import type { Item } from "./item.js";

const { callSendText } = native;

/**
 * How long the generators of all calls together may run in one turn of the event loop, in
 * milliseconds.
 */
const TURN_MS = 2;
/** The number of segments between two readings of the clock. */
const CLOCK_EVERY = 16;

let isInTurn = false;
let turnBegan = 0;

/** Returns whether the generators must pause so that other work of the event loop can
 * run. */
function isTurnOver(): boolean {
    const now = performance.now();
    if (isInTurn) return now - turnBegan > TURN_MS;
    isInTurn = true;
    turnBegan = now;
    setImmediate(() => {
        isInTurn = false;
    });
    return false;
}

export function isPromise(value: unknown): value is PromiseLike<unknown> {
    return typeof (value as PromiseLike<unknown> | null | undefined)?.then === "function";
}

/** The iterator of a generator, plain or async. */
export type Steps = AsyncIterator<unknown, unknown> | Iterator<unknown, unknown>;

/**
 * Returns the iterator of a generator, plain or async, or of another async iterable.
 * Returns undefined for any other value. Lists and strings count as other values.
 */
export function stepsOf(value: unknown): Steps | undefined {
    if (typeof value !== "object" || value === null) return undefined;
    const asynchronous = (value as AsyncIterable<unknown>)[Symbol.asyncIterator];
    if (typeof asynchronous === "function") return asynchronous.call(value);
    const steps = value as Partial<Iterator<unknown> & Iterable<unknown>>;
    const isIterator = typeof steps.next === "function" && Symbol.iterator in steps;
    return isIterator ? (steps as Iterator<unknown>) : undefined;
}

/** A call whose handler runs. */
export interface Run {
    readonly item: Item;
    readonly host: Hosting;
    readonly call: Call;
    readonly context: Context;
}

/**
 * Sends the values that a generator yields. Returns the value with which the reply ends
 * the result.
 */
export async function drain(run: Run, steps: Steps): Promise<unknown> {
    try {
        run.context.watch();
        run.context.isStream = true;
        return await sendAll(run, steps);
    } catch (error) {
        await steps.return?.(); // runs the finally blocks of the generator
        throw error;
    }
}

async function sendAll(
    { item, host, call, context }: Run,
    steps: Steps,
): Promise<unknown> {
    let last: unknown;
    for (let count = 1; !context.isCancelled; count++) {
        const step = steps.next();
        const { value, done } = isPromise(step) ? await step : step;
        if (done) return value === undefined ? last : value;
        if (context.isCancelled) break;
        if (value === undefined) continue;
        host.runtime.cork();
        context.hasSent = true;
        try {
            const isShort = typeof value === "string" && !context.isWaiting;
            if (!isShort || context.change || !callSendText(call, value)) {
                last = item.lastWord(value, last);
                await context.send(value as object);
            }
        } catch (error) {
            context.stop(error); // before the generator is closed
            throw error;
        }
        if (count % CLOCK_EVERY === 0 && isTurnOver()) await new Promise(setImmediate);
    }
    throw new RequestCancelledError();
}
