/**
 * Content of results and messages, for both roles: blocks, segments, results.
 *
 * A block is the plain object of the wire (server/tools, "Tool Result"), so that what
 * comes from elsewhere needs no conversion; the functions here make them from what
 * programs have: strings and bytes.
 *
 * @module
 */

import type { inspect as format } from "node:util";
import { checked, type SchemaLike, type SchemaOutput, schemaOf } from "./schema.js";

export { Segment } from "./segment.js";

/** Who speaks, or whom a block is for. */
export type Role = "user" | "assistant";

/** What a block is for. `priority` goes from 0 to 1; times are ISO 8601. */
export interface Annotations {
    audience?: Role[] | undefined;
    priority?: number | undefined;
    lastModified?: string | undefined;
}

/** A picture of a tool, a resource, a prompt or a server. `src` is a URL. */
export interface Icon {
    src: string;
    mimeType?: string | undefined;
    sizes?: string[] | undefined;
    theme?: "light" | "dark" | undefined;
}

/** `_meta`: what is said beside; names have a prefix such as `com.example/`. */
export type Meta = Record<string, unknown>;

/** What every block may have. */
export interface BlockOptions {
    annotations?: Annotations | undefined;
    _meta?: Meta | undefined;
}

/** A block of text. */
export interface TextContent extends BlockOptions {
    type: "text";
    text: string;
}

/** A picture; `data` is base64. */
export interface ImageContent extends BlockOptions {
    type: "image";
    data: string;
    mimeType: string;
}

/** A sound; `data` is base64. */
export interface AudioContent extends BlockOptions {
    type: "audio";
    data: string;
    mimeType: string;
}

/** Names a resource, which the reader may fetch. `size` is in bytes. */
export interface ResourceLink extends BlockOptions {
    type: "resource_link";
    uri: string;
    name: string;
    title?: string | undefined;
    description?: string | undefined;
    mimeType?: string | undefined;
    size?: number | undefined;
    icons?: Icon[] | undefined;
}

/** What stands in a resource: `text`, or bytes as base64 in `blob`. */
export interface ResourceContents {
    uri: string;
    mimeType?: string | undefined;
    text?: string | undefined;
    blob?: string | undefined;
    _meta?: Meta | undefined;
}

/** Holds a resource. */
export interface EmbeddedResource extends BlockOptions {
    type: "resource";
    resource: ResourceContents;
}

/** A block that this version does not know: kept as it came. */
export interface UnknownContent {
    type: string;
    [member: string]: unknown;
}

/** The blocks that the specification names. */
export type Block =
    | TextContent
    | ImageContent
    | AudioContent
    | ResourceLink
    | EmbeddedResource;

/** Any block, also of a type that this version does not know. */
export type Content = Block | UnknownContent;

/** A message of a prompt: who says it, and one block. */
export interface PromptMessage {
    role: Role;
    content: Content;
}

/** Bytes, as Node's `Buffer` is. */
export type Bytes = Uint8Array | ArrayBuffer;

/** Bytes as base64; a string is base64 already. */
export function base64(data: Bytes | string): string {
    if (typeof data === "string") return data;
    const view = data instanceof Uint8Array ? data : new Uint8Array(data);
    return Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString("base64");
}

/** A block of text. */
export function text(value: string, options?: BlockOptions): TextContent {
    return { type: "text", text: value, ...options };
}

/** A picture of bytes, or of base64; its type is mostly `image/png`. */
export function image(
    data: Bytes | string,
    mimeType = "image/png",
    options?: BlockOptions,
): ImageContent {
    return { type: "image", data: base64(data), mimeType, ...options };
}

/** A sound of bytes, or of base64; its type is mostly `audio/wav`. */
export function audio(
    data: Bytes | string,
    mimeType = "audio/wav",
    options?: BlockOptions,
): AudioContent {
    return { type: "audio", data: base64(data), mimeType, ...options };
}

/** Names a resource. */
export function resourceLink(
    uri: string,
    name: string,
    options?: Omit<ResourceLink, "type" | "uri" | "name">,
): ResourceLink {
    return { type: "resource_link", uri, name, ...options };
}

/** Holds a resource: text as a string, bytes as a blob. */
export function embedded(
    uri: string,
    contents: string | Bytes,
    mimeType?: string,
    options?: BlockOptions,
): EmbeddedResource {
    return {
        type: "resource",
        resource: contentsOf(uri, contents, mimeType),
        ...options,
    };
}

/** What stands in a resource: text as a string, bytes as a blob. */
export function contentsOf(
    uri: string,
    contents: string | Bytes,
    mimeType?: string,
): ResourceContents {
    const made: ResourceContents = { uri };
    if (typeof contents === "string") {
        made.mimeType = mimeType ?? "text/plain";
        made.text = contents;
    } else {
        made.mimeType = mimeType ?? "application/octet-stream";
        made.blob = base64(contents);
    }
    return made;
}

/** A message of a prompt that the user says; a string is a block of text. */
export function user(content: string | Content): PromptMessage {
    return { role: "user", content: asBlock(content) };
}

/** A message of a prompt that the model says; a string is a block of text. */
export function assistant(content: string | Content): PromptMessage {
    return { role: "assistant", content: asBlock(content) };
}

function asBlock(content: string | Content): Content {
    return typeof content === "string" ? text(content) : content;
}

/** The members that a block of a known type cannot be without. */
const NEEDS: Record<string, string> = {
    text: "text",
    image: "data",
    audio: "data",
    resource: "resource",
    resource_link: "uri",
};

/** Whether a value is a block of a type that the specification names. */
export function isBlock(value: unknown): value is Block {
    if (typeof value !== "object" || value === null) return false;
    const type = (value as { type?: unknown }).type;
    const needs = typeof type === "string" ? NEEDS[type] : undefined;
    return needs !== undefined && needs in value;
}

/** The texts of blocks, one behind the other. */
export function textOf(content: Content | readonly Content[] | string): string {
    if (typeof content === "string") return content;
    let made = "";
    for (const block of Array.isArray(content) ? content : [content]) {
        if (block.type === "text" && typeof block.text === "string") made += block.text;
    }
    return made;
}

function partsOf<T>(wire: Partial<WireResult>): Parts<T> {
    const { content, structuredContent, isError, _meta } = wire;
    return {
        content: Array.isArray(content) ? content.map(asBlock) : [],
        structured: structuredContent as T | undefined,
        isError: isError === true,
        meta: _meta,
    };
}

/** The result of a tool as it is on the wire (`CallToolResult`). */
export interface WireResult {
    content: Content[];
    structuredContent?: unknown;
    isError?: boolean | undefined;
    _meta?: Meta | undefined;
}

/** What a {@link Result} has beside its content. */
export interface ResultOptions<T = unknown> {
    /** `structuredContent`. */
    structured?: T | undefined;
    /** The tool says that it failed, and the blocks say why. */
    isError?: boolean | undefined;
    /** `_meta`. */
    meta?: Meta | undefined;
}

/** What a result has, decoded. */
interface Parts<T> {
    content: Content[];
    structured: T | undefined;
    isError: boolean;
    meta: Meta | undefined;
}

/** How most results begin that are one text. */
const HEAD = '{"content":[{"type":"text","text":"';
const HEAD_MODERN = '{"resultType":"complete","content":[{"type":"text","text":"';
/** A letter of a name that is written as an escape: legal, though nobody does. */
const ESCAPED = /\\u00[467]/;

/** Whether `isError` may be there; looking for it costs less than decoding. */
function mayBeError(raw: string): boolean {
    return raw.includes('"isError"') || (raw.includes("\\u00") && ESCAPED.test(raw));
}

/** The text of a result whose content is one plain block of text; `undefined` when it is
 * another, or when that cannot be told without decoding it. */
function plainText(raw: string): string | undefined {
    let head = HEAD;
    if (!raw.startsWith(head)) {
        head = HEAD_MODERN;
        if (!raw.startsWith(head)) return undefined;
    }
    const end = raw.indexOf('"', head.length);
    if (!raw.startsWith('"}]', end) || raw.includes("\\")) return undefined;
    return raw.includes('"content"', end) ? undefined : raw.slice(head.length, end);
}

const inspect = Symbol.for("nodejs.util.inspect.custom");

/** The result of a tool. One that came over the wire is decoded when somebody looks. */
export class Result<T = unknown> {
    /** The JSON that it came as; `undefined` of one that was made here. */
    readonly raw: string | undefined;
    #parts: Parts<T> | undefined;

    constructor(
        content: string | Content | readonly (string | Content)[] = [],
        options: ResultOptions<T> = {},
    ) {
        this.raw = (options as { raw?: string }).raw;
        if (this.raw !== undefined) return;
        const { structured, isError = false, meta } = options;
        const all = (Array.isArray(content) ? content : [content]) as (
            | string
            | Content
        )[];
        this.#parts = { content: all.map(asBlock), structured, isError, meta };
    }

    /** Makes one of an object as it is on the wire. */
    static of(wire: Partial<WireResult>): Result {
        const made = new Result();
        made.#parts = partsOf(wire);
        return made;
    }

    /**
     * Reads the result of `tools/call` as it came over the wire.
     *
     * @throws SyntaxError when it is not JSON, TypeError when it is no such result.
     */
    static fromJson(raw: string): Result {
        const wire = JSON.parse(raw) as Partial<WireResult> | null;
        if (typeof wire !== "object" || wire === null || Array.isArray(wire)) {
            throw new TypeError("the result of a tool is an object");
        }
        const made = new Result([], { raw } as ResultOptions);
        made.#parts = partsOf(wire);
        return made;
    }

    /** @internal The same, of what the library has found to be the JSON of an object. */
    static fromObject(raw: string): Result {
        return new Result([], { raw } as ResultOptions);
    }

    #decoded(): Parts<T> {
        this.#parts ??= partsOf<T>(JSON.parse(this.raw as string));
        return this.#parts;
    }

    /** The blocks. */
    get content(): Content[] {
        return this.#decoded().content;
    }

    /** `structuredContent`; `undefined` when there is none. */
    get structured(): T | undefined {
        return this.#decoded().structured;
    }

    /** The tool says that it failed, and the blocks say why. */
    get isError(): boolean {
        if (this.#parts === undefined && !mayBeError(this.raw as string)) return false;
        return this.#decoded().isError;
    }

    /** `_meta`. */
    get meta(): Meta | undefined {
        return this.#decoded().meta;
    }

    /** The texts of all blocks, one behind the other. */
    get text(): string {
        const plain = this.#parts === undefined && plainText(this.raw as string);
        return typeof plain === "string" ? plain : textOf(this.content);
    }

    /**
     * The structured content, or else the text read as JSON, checked by a schema.
     *
     * @throws TypeError when it does not fit.
     */
    async as<S extends SchemaLike>(schema: S): Promise<SchemaOutput<S>> {
        const value = this.structured ?? (JSON.parse(this.text) as unknown);
        const found = await checked(schemaOf(schema, "output", "this schema"), value);
        return found as SchemaOutput<S>;
    }

    /** @internal As Node prints it. */
    [inspect](_depth: number, options: object, print: typeof format): string {
        const { content, structured, isError, meta, raw } = this;
        return `Result ${print({ content, structured, isError, meta, raw }, options)}`;
    }

    /** The result as it is on the wire. */
    toJSON(): WireResult {
        const made: WireResult = { content: this.content };
        if (this.structured !== undefined) made.structuredContent = this.structured;
        if (this.isError) made.isError = true;
        if (this.meta !== undefined) made._meta = this.meta;
        return made;
    }
}
