/**
 * Events: what the library does, for logs and traces.
 *
 *     const stop = observe(({ name, fields }) => console.error(name, fields));
 *     logEvents(); // lines of JSON on standard error
 *
 * `core/docs/logs-and-traces.md` lists the events and their fields. They are those of all
 * servers and sessions of the environment (main thread or worker). No event has a result,
 * a token or a header.
 *
 * @module
 */
import type { Handler } from "./native.js";
import { LEVELS, type Level, observeRuntime } from "./runtime.js";

/** One event. */
export interface Event {
    /** Such as "call_ended". */
    readonly name: string;
    /** How much it matters. */
    readonly level: Level;
    /** The time in RFC 3339, in UTC. */
    readonly time: string;
    /** The other fields, by name. */
    readonly fields: Readonly<Record<string, string | number>>;
}

/** The options of {@link observe}. */
export interface ObserveOptions {
    /** The lowest level of the events; default "debug". */
    level?: Level | undefined;
    /**
     * How many bytes of the arguments of a call the event `call_started` has; default 0:
     * nothing. Arguments can be secret.
     */
    maxArgumentBytes?: number | undefined;
}

interface Observer {
    readonly take: (line: string) => unknown;
    readonly level: number;
    readonly maxArgumentBytes: number;
}

const observers = new Set<Observer>();

/**
 * Returns the line with at most this number of bytes of the arguments. The runtime has
 * the highest limit of all observers. So a line can have more than an observer asked for.
 */
function cutArguments(line: string, most: number): string {
    // a text cannot have this, because its quotation marks are escaped
    if (!line.includes('"arguments":')) return line;
    const { arguments: all, ...rest } = JSON.parse(line);
    if (most === 0) return JSON.stringify(rest);
    // in stream mode, the decoder leaves out a character that is cut off
    const bytes = new TextEncoder().encode(all).subarray(0, most);
    const cut = new TextDecoder().decode(bytes, { stream: true });
    return JSON.stringify({ ...rest, arguments: cut });
}

const deliver: Handler = (_kind, level: number, line: string) => {
    for (const observer of [...observers])
        if (level >= observer.level)
            observer.take(cutArguments(line, observer.maxArgumentBytes));
};

function apply(): void {
    if (observers.size === 0) {
        observeRuntime(undefined);
        return;
    }
    const all = [...observers];
    observeRuntime(deliver, {
        level: Math.min(...all.map(({ level }) => level)),
        maxArgumentBytes: Math.max(...all.map((one) => one.maxArgumentBytes)),
    });
}

function add(
    take: (line: string) => unknown,
    { level = "debug", maxArgumentBytes = 0 }: ObserveOptions,
): () => void {
    const rank = LEVELS.indexOf(level);
    if (rank < 0)
        throw new TypeError(`level must be one of ${LEVELS.join(", ")}, not ${level}`);
    const isSize = Number.isInteger(maxArgumentBytes) && maxArgumentBytes >= 0;
    if (!isSize || maxArgumentBytes >= 2 ** 31)
        throw new RangeError(
            `maxArgumentBytes must be from 0 to 2**31 - 1, not ${maxArgumentBytes}`,
        );
    const made = { take, level: rank, maxArgumentBytes };
    observers.add(made);
    apply();
    return () => {
        if (observers.delete(made)) apply();
    };
}

/**
 * Calls a function with each event from now on. Returns a function that ends this. At
 * most 1024 events wait for the callback; further events are dropped, and the event
 * `events_dropped` has their number.
 */
export function observe(
    callback: (event: Event) => unknown,
    options: ObserveOptions = {},
): () => void {
    return add((line) => {
        const { event: name, level, time, ...fields } = JSON.parse(line);
        return callback({ name, level, time, fields });
    }, options);
}

/**
 * Logs each event from now on, as one line of JSON. Returns a function that ends this.
 *
 * @param level - the lowest level of the events
 * @param write - gets each line, without its end; default: writes to standard error
 */
export function logEvents(
    level: Level = "info",
    write: (line: string) => unknown = (line) => process.stderr.write(`${line}\n`),
): () => void {
    return add(write, { level });
}
