/**
 * What the adapters for frameworks of agents share: a call whose segments are told, and
 * which a later run of the agent can continue.
 */

import type { Session } from "../client/session.js";
import type { Result } from "../content.js";
import { RemoteError, RequestCancelledError, TaskLostError } from "../errors.js";
import type { Segment } from "../segment.js";

/** Where tokens of running calls are kept, by the id of the call; a `Map`, or a store. */
export interface Tokens {
    get(id: string): string | undefined;
    set(id: string, token: string): unknown;
    delete(id: string): unknown;
}

/** The options of an adapter. */
export interface AdapterOptions {
    /** Gets the name of the tool and each segment. */
    onSegment?: ((tool: string, segment: Segment) => unknown) | undefined;
    /**
     * With it, a call with the id of a kept token continues that call, also in another
     * process. A call that is aborted then goes on at the server.
     */
    tokens?: Tokens | undefined;
}

/** One call of a tool. */
export interface Wanted {
    readonly tool: string;
    readonly args: { readonly [name: string]: unknown };
    readonly id: string | undefined;
    readonly signal?: AbortSignal | undefined;
    readonly tokens: Tokens | undefined;
}

/**
 * Calls a tool, or continues the call of this id. The generator yields the segments and
 * returns the whole result, also one with `isError`.
 */
export async function* segmentsOf(
    session: Session,
    { tool, args, id, signal, tokens }: Wanted,
): AsyncGenerator<Segment, Result, undefined> {
    const key = id ?? "";
    const kept = key ? tokens : undefined;
    const token = kept?.get(key);
    const throwOnError = false;
    const stream = session.stream(tool, args, {
        throwOnError,
        onLeave: kept ? "detach" : "cancel",
        onTask: ({ token: made }) => made && kept?.set(key, made),
        // An aborted signal would cancel the task that is to go on.
        signal: kept ? undefined : signal,
    });
    const task =
        token === undefined ? undefined : session.resume(token, { throwOnError });
    let result: Result;
    try {
        for await (const segment of task ?? stream) {
            yield segment;
            signal?.throwIfAborted();
        }
        result = task ? await task.result() : stream.result;
    } catch (error) {
        const isOver = [RemoteError, RequestCancelledError, TaskLostError].some(
            (kind) => error instanceof kind,
        );
        if (isOver) kept?.delete(key);
        throw error;
    }
    kept?.delete(key);
    return result;
}

/** Returns the text of a result for a model, with the texts and links of resources. */
export function textOf(result: Result): string {
    return result.content
        .map((block) => {
            if (block.type === "text") return String(block["text"]);
            if (block.type === "resource_link")
                return `${block["name"]}: ${block["uri"]}`;
            if (block.type !== "resource") return "";
            const { text, uri } = block["resource"] as { text?: string; uri: string };
            return text ?? uri;
        })
        .join("");
}

/** A picture or a sound of a result, in base64. */
export interface Media {
    readonly type: "image" | "audio";
    readonly data: string;
    readonly mimeType: string;
}

/** Returns the pictures and sounds of a result. */
export function mediaOf(result: Result): Media[] {
    return result.content.filter(
        (block) => block.type === "image" || block.type === "audio",
    ) as unknown as Media[];
}

/** Loads the module of a framework. @throws Error, with what to install. */
export function framework<T>(adapter: string, name: string, load: () => T): T {
    try {
        return load();
    } catch (error) {
        const why = `segue-mcp/adapters/${adapter} needs ${name}: npm install ${name}`;
        throw new Error(why, { cause: error });
    }
}
