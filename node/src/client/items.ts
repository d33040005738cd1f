/**
 * The items of a server (tools, resources, templates, prompts), and the results of
 * requests that read a resource, get a prompt or complete an argument.
 *
 * Items are plain objects with the member names of the protocol (2026-07-28 schema; older
 * revisions have fewer members). Required members were checked when the answer arrived.
 */

import type { PromptMessage, ResourceContents } from "../content.js";
import { ProtocolError } from "../errors.js";
import type { JsonObject } from "../questions.js";
import { isObject } from "./peer.js";

/** The members that all items have. */
export interface Item {
    /** Name, unique in its list. */
    name: string;
    /** Name for people. */
    title?: string;
    /** Text for people and models. */
    description?: string;
    /** Pictures, in several sizes. */
    icons?: JsonObject[];
    /** Additional data, see `Meta`. */
    _meta?: JsonObject;
}

/** A tool, as in the answer to `tools/list`. */
export interface Tool extends Item {
    /** JSON Schema of the arguments. */
    inputSchema: JsonObject;
    /** JSON Schema of the structured result. */
    outputSchema?: JsonObject;
    /** What the tool does to its surroundings. */
    annotations?: JsonObject;
    /** Whether calls may become tasks. */
    execution?: JsonObject;
}

/** A resource, as in the answer to `resources/list`. */
export interface Resource extends Item {
    /** URI of the resource. */
    uri: string;
    /** MIME type, such as `image/png`. */
    mimeType?: string;
    /** The size in bytes. */
    size?: number;
    /** Hints on how to use it. */
    annotations?: JsonObject;
}

/** A family of resources whose URIs follow one template. */
export interface ResourceTemplate extends Item {
    /** The template (RFC 6570). */
    uriTemplate: string;
    /** MIME type, such as `image/png`. */
    mimeType?: string;
    /** Hints on how to use it. */
    annotations?: JsonObject;
}

/** An argument of a prompt. Its value is a string. */
export interface PromptArgument {
    /** Name, unique in its list. */
    name: string;
    /** Name for people. */
    title?: string;
    /** Text for people and models. */
    description?: string;
    /** Whether the argument must be given. */
    required?: boolean;
}

/** A prompt, as in the answer to `prompts/list`. */
export interface Prompt extends Item {
    /** The arguments that the prompt takes. */
    arguments?: PromptArgument[];
}

/** The answer to `resources/read`. */
export class ReadResult {
    /** The contents, one for each part. */
    readonly contents: ResourceContents[];
    /**
     * How long the result stays fresh, in milliseconds; undefined when the server does
     * not say.
     */
    readonly ttlMs: number | undefined;
    /** For whom the contents may be cached. */
    readonly cacheScope: string | undefined;
    /** Additional data, see `Meta`. */
    readonly _meta: JsonObject | undefined;

    /** @internal */
    constructor(told: JsonObject) {
        this.contents = told.contents as ResourceContents[];
        this.ttlMs = typeof told.ttlMs === "number" ? told.ttlMs : undefined;
        this.cacheScope =
            typeof told.cacheScope === "string" ? told.cacheScope : undefined;
        this._meta = isObject(told._meta) ? told._meta : undefined;
    }

    /** The texts of all contents, joined. */
    get text(): string {
        return this.contents.map((one) => one.text ?? "").join("");
    }

    /** The bytes of all contents, joined. Texts are in UTF-8. */
    get bytes(): Buffer {
        const parts = this.contents.map((one) =>
            one.blob === undefined
                ? Buffer.from(one.text ?? "", "utf8")
                : Buffer.from(one.blob, "base64"),
        );
        return Buffer.concat(parts);
    }
}

/** The answer to `prompts/get`. */
export interface PromptResult {
    /** The messages, in their order. */
    messages: PromptMessage[];
    /** What the prompt is for. */
    description?: string;
    /** Additional data, see `Meta`. */
    _meta?: JsonObject;
}

/** Suggested values of an argument, the best first. `values` has at most 100 values. */
export interface Completion {
    /** The suggested values. */
    values: string[];
    /**
     * The number of all suggestions; missing when the server does not know the number.
     */
    total?: number;
    /** Whether there are more values than these. */
    hasMore: boolean;
}

/**
 * Parses the result of a method, which must be a JSON object. `method` is for the error
 * message.
 */
export function parseObject(raw: string, method: string): JsonObject {
    let told: unknown;
    try {
        told = JSON.parse(raw);
    } catch (error) {
        throw new ProtocolError(`${method}: ${(error as Error).message}`);
    }
    if (!isObject(told))
        throw new ProtocolError(`${method}: the result is not an object`);
    return told;
}

/** Reads one page of a list. In each item, the `required` members must be strings. */
export function readPage(
    raw: string,
    method: string,
    member: string,
    required: readonly string[],
): { items: JsonObject[]; next: string | undefined } {
    const told = parseObject(raw, method);
    const items = told[member];
    if (!Array.isArray(items))
        throw new ProtocolError(`${method}: ${member} is not a list`);
    items.forEach((item: unknown, i) => {
        for (const name of required) {
            if (!isObject(item) || typeof item[name] !== "string") {
                throw new ProtocolError(`${method}: ${member}[${i}] has no ${name}`);
            }
        }
    });
    const next = told.nextCursor;
    if (next !== undefined && next !== null && typeof next !== "string") {
        throw new ProtocolError(`${method}: nextCursor is not a string`);
    }
    return { items, next: next ?? undefined };
}

/** Reads the answer to `resources/read`. */
export function readContents(raw: string): ReadResult {
    const told = parseObject(raw, "resources/read");
    const fits = (one: unknown): boolean =>
        isObject(one) &&
        typeof one.uri === "string" &&
        (one.text === undefined || typeof one.text === "string") &&
        (one.blob === undefined || typeof one.blob === "string");
    if (!Array.isArray(told.contents) || !told.contents.every(fits)) {
        throw new ProtocolError(
            "resources/read: contents is not a list of resource contents",
        );
    }
    return new ReadResult(told);
}

/** Reads the answer to `prompts/get`. Blocks of an unknown type are kept unchanged. */
export function readPrompt(raw: string): PromptResult {
    const told = parseObject(raw, "prompts/get");
    const fits = (one: unknown): boolean =>
        isObject(one) &&
        (one.role === "user" || one.role === "assistant") &&
        isObject(one.content) &&
        typeof one.content.type === "string";
    if (!Array.isArray(told.messages) || !told.messages.every(fits)) {
        throw new ProtocolError("prompts/get: messages is not a list of messages");
    }
    return told as unknown as PromptResult;
}

/** Reads the answer to `completion/complete`. */
export function readCompletion(raw: string): Completion {
    const told = parseObject(raw, "completion/complete").completion;
    const values = isObject(told) ? told.values : undefined;
    const isText = (one: unknown): boolean => typeof one === "string";
    if (!isObject(told) || !Array.isArray(values) || !values.every(isText)) {
        throw new ProtocolError("completion/complete: values is not a list of texts");
    }
    const made: Completion = {
        values: values as string[],
        hasMore: told.hasMore === true,
    };
    if (typeof told.total === "number") made.total = told.total;
    return made;
}
