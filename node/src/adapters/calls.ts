/**
 * What the adapters for frameworks of agents share: a call whose segments are told, and
 * which a later run of the agent can continue.
 */

import type { Session } from "../client/session.js";
import type { Reader } from "../client/stream.js";
import type { Content, Result } from "../content.js";
import { RemoteError, RequestCancelledError, TaskLostError } from "../errors.js";
import type { Segment } from "../segment.js";

/** Where tokens of running calls are kept, by the id of the call; a `Map`, or a store. */
export interface Tokens {
    /** Returns the token that is kept for the call of this id. */
    get(id: string): string | undefined;
    /** Keeps a token. */
    set(id: string, token: string): unknown;
    /** Forgets the token of a call that has ended. */
    delete(id: string): unknown;
}

/** The options of an adapter. */
export interface AdapterOptions {
    /** Gets the name of the tool and each segment. */
    onSegment?: ((tool: string, segment: Segment) => unknown) | undefined;
    /**
     * With it, a call with the id of a kept token continues that call, also in another
     * process. A call that is aborted then goes on at the server if its token is kept;
     * any other call that is aborted is cancelled.
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
 * returns the whole result, also one with `isError`. When the signal is aborted or the
 * reader leaves, a call whose token is kept goes on, and any other call is cancelled.
 */
export async function* segmentsOf(
    session: Session,
    { tool, args, id, signal, tokens }: Wanted,
): AsyncGenerator<Segment, Result, undefined> {
    const key = id ?? "";
    const kept = key ? tokens : undefined;
    const token = kept?.get(key);
    const throwOnError = false;
    let isKept = token !== undefined;
    const stream = session.stream(tool, args, {
        throwOnError,
        onTask: ({ token: made }) => {
            if (!made || !kept) return;
            kept.set(key, made);
            isKept = true;
        },
    });
    const task =
        token === undefined ? undefined : session.resume(token, { throwOnError });
    let isEnded = false;
    try {
        for (;;) {
            const step = await unlessAborted(() => (task ?? stream).next(), signal);
            if (step.done) break;
            yield step.value;
        }
        const result = task ? await task.result() : stream.result;
        isEnded = true;
        kept?.delete(key);
        return result;
    } catch (error) {
        const isOver = [RemoteError, RequestCancelledError, TaskLostError].some(
            (kind) => error instanceof kind,
        );
        if (isOver) kept?.delete(key);
        throw error;
    } finally {
        if (!isEnded) leave(task ?? stream, isKept);
    }
}

/** Waits, but not after the signal was aborted. @throws the reason of the signal. */
async function unlessAborted<T>(
    begin: () => Promise<T>,
    signal: AbortSignal | undefined,
): Promise<T> {
    if (!signal) return begin();
    signal.throwIfAborted();
    let stop = (): void => undefined;
    const aborted = new Promise<never>((_, reject) => {
        const onAbort = (): void => reject(signal.reason);
        signal.addEventListener("abort", onAbort, { once: true });
        stop = () => signal.removeEventListener("abort", onAbort);
    });
    try {
        return await Promise.race([begin(), aborted]);
    } finally {
        stop();
    }
}

/** Leaves a call without waiting for the server. */
function leave(call: Reader, isKept: boolean): void {
    if (isKept && call.token !== undefined) call.detach();
    else if (!isKept) call.cancel().catch(() => undefined);
}

/** A text, a picture or a sound of a result. A picture and a sound are in base64. */
export type Part =
    | { readonly type: "text"; readonly text: string }
    | {
          readonly type: "image" | "audio";
          readonly data: string;
          readonly mimeType: string;
      };

/** Returns the text of a block for a model: that of a resource, or its link. */
function wordsOf(block: Content): string {
    if (block.type === "text") return String(block["text"]);
    if (block.type === "resource_link") return `${block["name"]}: ${block["uri"]}`;
    if (block.type !== "resource") return "";
    const { text, uri } = block["resource"] as { text?: string; uri: string };
    return text ?? uri;
}

/** Returns the texts of a result for a model as one text. */
export function textOf(result: Result): string {
    return result.content.map(wordsOf).join("");
}

/**
 * Returns the blocks of a result for a model, in their order. Texts that follow each
 * other are one text. There is no empty text, because some models refuse it.
 */
export function partsOf(result: Result): Part[] {
    const parts: Part[] = [];
    for (const block of result.content) {
        if (block.type === "image" || block.type === "audio") {
            parts.push(block as unknown as Part);
            continue;
        }
        const text = wordsOf(block);
        const last = parts.at(-1);
        if (last?.type === "text")
            parts.splice(-1, 1, { type: "text", text: last.text + text });
        else if (text) parts.push({ type: "text", text });
    }
    return parts;
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
