/**
 * Content of results and messages, for client and server: blocks, segments, results.
 *
 * A block is a plain object with the protocol's member names (specification:
 * server/tools, "Tool Result"), so blocks of other programs need no conversion. The
 * functions here make blocks from strings and bytes.
 *
 * @module
 */

import type { inspect as format } from "node:util";
import type { RawText } from "./late.js";
import { checked, type SchemaLike, type SchemaOutput, schemaOf } from "./schema.js";

export { Segment } from "./segment.js";

/** The speaker of a message, or the audience of a block. */
export type Role = "user" | "assistant";

/** Hints on how to use a block. `priority` is from 0 to 1; times are ISO 8601. */
export interface Annotations {
    /** Who should see the block. */
    audience?: Role[] | undefined;
    /** How important the block is, from 0 to 1. */
    priority?: number | undefined;
    /** When the content was last changed, as ISO 8601. */
    lastModified?: string | undefined;
}

/** A picture that represents a tool, a resource, a prompt or a server. `src` is a URL. */
export interface Icon {
    /** URL of the picture. */
    src: string;
    /** MIME type, such as `image/png`. */
    mimeType?: string | undefined;
    /** Sizes in pixels, such as `48x48`, or `any`. */
    sizes?: string[] | undefined;
    /** The theme of the user interface that it was made for. */
    theme?: "light" | "dark" | undefined;
}

/**
 * `_meta`: additional data. The names of its members have a prefix such as
 * `com.example/`.
 */
export type Meta = Record<string, unknown>;

/** The members that every block may have. */
export interface BlockOptions {
    /** Hints on how to use it. */
    annotations?: Annotations | undefined;
    /** Additional data, see `Meta`. */
    _meta?: Meta | undefined;
}

/** A block of text. */
export interface TextContent extends BlockOptions {
    /** The type of the block. */
    type: "text";
    /** The text. */
    text: string;
}

/** A picture; `data` is base64. */
export interface ImageContent extends BlockOptions {
    /** The type of the block. */
    type: "image";
    /** The bytes, as base64. */
    data: string;
    /** MIME type, such as `image/png`. */
    mimeType: string;
}

/** A sound; `data` is base64. */
export interface AudioContent extends BlockOptions {
    /** The type of the block. */
    type: "audio";
    /** The bytes, as base64. */
    data: string;
    /** MIME type, such as `image/png`. */
    mimeType: string;
}

/** Names a resource that the reader may fetch. `size` is in bytes. */
export interface ResourceLink extends BlockOptions {
    /** The type of the block. */
    type: "resource_link";
    /** URI of the resource. */
    uri: string;
    /** Name, unique in its list. */
    name: string;
    /** Name for people. */
    title?: string | undefined;
    /** Text for people and models. */
    description?: string | undefined;
    /** MIME type, such as `image/png`. */
    mimeType?: string | undefined;
    /** Size in bytes. */
    size?: number | undefined;
    /** Pictures, in several sizes. */
    icons?: Icon[] | undefined;
}

/** The contents of a resource: `text`, or bytes as base64 in `blob`. */
export interface ResourceContents {
    /** URI of the resource. */
    uri: string;
    /** MIME type, such as `image/png`. */
    mimeType?: string | undefined;
    /** The text of the resource, unless it is binary. */
    text?: string | undefined;
    /** The bytes of the resource, as base64. */
    blob?: string | undefined;
    /** Additional data, see `Meta`. */
    _meta?: Meta | undefined;
}

/** A block that contains a resource. */
export interface EmbeddedResource extends BlockOptions {
    /** The type of the block. */
    type: "resource";
    /** The contents. */
    resource: ResourceContents;
}

/**
 * A block of a type that this version does not know. The members of the block are kept
 * unchanged. A server may send such blocks, although the type {@link Content} does not
 * list them. So `isBlock(block)` may be false: `const other: UnknownContent = block`.
 */
export interface UnknownContent {
    /** The type of the block. */
    type: string;
    [member: string]: unknown;
}

/** A block that a program makes, also of a type that this version does not know. */
export type GivenContent = Block | UnknownContent;

/** The blocks that the specification names. */
export type Block =
    | TextContent
    | ImageContent
    | AudioContent
    | ResourceLink
    | EmbeddedResource;

/**
 * A block of a result or message. `block.type` tells which block it is: a block whose
 * type is "text" has a `text`. See {@link UnknownContent} for blocks of other types.
 */
export type Content = Block;

/** A message of a prompt. `role` is the speaker. */
export interface PromptMessage {
    /** Who speaks. */
    role: Role;
    /** The block. */
    content: Content;
}

/** Bytes, such as a `Buffer`. */
export type Bytes = Uint8Array | ArrayBuffer;

/**
 * Encodes bytes as base64. Returns a string unchanged, because a string must be base64
 * already.
 */
export function base64(data: Bytes | string): string {
    if (typeof data === "string") return data;
    const view = data instanceof Uint8Array ? data : new Uint8Array(data);
    return Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString("base64");
}

/** Makes a block of text. */
export function text(value: string, options?: BlockOptions): TextContent {
    return { type: "text", text: value, ...options };
}

/** Makes a block with a picture, from bytes or base64. */
export function image(
    data: Bytes | string,
    mimeType = "image/png",
    options?: BlockOptions,
): ImageContent {
    return { type: "image", data: base64(data), mimeType, ...options };
}

/** Makes a block with a sound, from bytes or base64. */
export function audio(
    data: Bytes | string,
    mimeType = "audio/wav",
    options?: BlockOptions,
): AudioContent {
    return { type: "audio", data: base64(data), mimeType, ...options };
}

/** Makes a block that names a resource. */
export function resourceLink(
    uri: string,
    name: string,
    options?: Omit<ResourceLink, "type" | "uri" | "name">,
): ResourceLink {
    return { type: "resource_link", uri, name, ...options };
}

/**
 * Makes a block that contains a resource. A string becomes text, and bytes become a blob.
 */
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

/** Makes the contents of a resource. A string becomes text, and bytes become a blob. */
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

/** Makes a prompt message of the user. A string becomes a block of text. */
export function user(content: string | GivenContent): PromptMessage {
    return { role: "user", content: asBlock(content) };
}

/** Makes a prompt message of the model. A string becomes a block of text. */
export function assistant(content: string | GivenContent): PromptMessage {
    return { role: "assistant", content: asBlock(content) };
}

function asBlock(content: string | GivenContent): Content {
    return typeof content === "string" ? text(content) : (content as Content);
}

/** The member that a block must have, by the type of the block. */
const NEEDS: Record<string, string> = {
    text: "text",
    image: "data",
    audio: "data",
    resource: "resource",
    resource_link: "uri",
};

/** Returns whether a value is a block of a type that the specification names. */
export function isBlock(value: unknown): value is Block {
    if (typeof value !== "object" || value === null) return false;
    const type = (value as { type?: unknown }).type;
    const needs = typeof type === "string" ? NEEDS[type] : undefined;
    return needs !== undefined && needs in value;
}

/** Joins the texts of all text blocks. Other blocks are ignored. */
export function textOf(content: GivenContent | readonly GivenContent[] | string): string {
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

/** The result of a tool, as the protocol sends it (`CallToolResult`). */
export interface WireResult {
    /** The blocks. */
    content: Content[];
    /** The structured result. */
    structuredContent?: unknown;
    /** Whether the tool reports an error. */
    isError?: boolean | undefined;
    /** Additional data, see `Meta`. */
    _meta?: Meta | undefined;
}

/** Returns the block of a new result. Refuses what has no type, such as the options. */
function blockOf(content: string | GivenContent): Content {
    const type = (content as { type?: unknown } | null)?.type;
    if (typeof content !== "string" && typeof type !== "string")
        throw new TypeError(
            "the content of a Result has texts and blocks with a type; structured, " +
                "isError and meta belong in its second argument",
        );
    return asBlock(content);
}

/** The parts of a {@link Result}, except its content. */
export interface ResultOptions<T = unknown> {
    /** The value of `structuredContent`. */
    structured?: T | undefined;
    /** true = the tool failed, and the blocks say why. */
    isError?: boolean | undefined;
    /** The value of `_meta`. */
    meta?: Meta | undefined;
}

/** The decoded parts of a result. */
interface Parts<T> {
    content: Content[];
    structured: T | undefined;
    isError: boolean;
    meta: Meta | undefined;
}

/**
 * The first characters of the JSON of most results that have one text block; see
 * `plainText`.
 */
const HEAD = '{"content":[{"type":"text","text":"';
const HEAD_MODERN = '{"resultType":"complete","content":[{"type":"text","text":"';
/**
 * Returns the text of a result that has one plain text block, without decoding the JSON
 * of the result. Returns `undefined` when the JSON must be decoded.
 */
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

/**
 * The result of a tool. A result that arrived as JSON text is decoded at its first use.
 */
export class Result<T = unknown> {
    /**
     * The JSON text of a result that arrived; `undefined` for a result that this program
     * made.
     */
    readonly raw: string | undefined;
    #parts: Parts<T> | undefined;
    /** Whether the result is an error, if this is known before the text is decoded. */
    #saysError: boolean | undefined;

    /**
     * Makes a result.
     *
     * @throws TypeError when a part of the content is neither a text nor a block.
     */
    constructor(
        content: string | GivenContent | readonly (string | GivenContent)[] = [],
        options: ResultOptions<T> = {},
    ) {
        this.raw = (options as { raw?: string }).raw;
        if (this.raw !== undefined) return;
        const { structured, isError = false, meta } = options;
        const all = (Array.isArray(content) ? content : [content]) as (
            | string
            | GivenContent
        )[];
        this.#parts = { content: all.map(blockOf), structured, isError, meta };
    }

    /** Makes a result from an object with the protocol's member names. */
    static of(wire: Partial<WireResult>): Result {
        const made = new Result();
        made.#parts = partsOf(wire);
        return made;
    }

    /**
     * Reads the JSON text of a result of `tools/call`.
     *
     * @throws SyntaxError when the text is not JSON, TypeError when the JSON is not an
     * object.
     */
    static fromJson(raw: string): Result {
        const wire = JSON.parse(raw) as Partial<WireResult> | null;
        if (typeof wire !== "object" || wire === null || Array.isArray(wire)) {
            throw new TypeError("the result of a tool has to be an object");
        }
        const made = new Result([], { raw } as ResultOptions);
        made.#parts = partsOf(wire);
        return made;
    }

    /**
     * @internal Makes a result from text that is known to be a JSON object. The text is
     * decoded at the first use of the result.
     */
    static fromObject(raw: RawText, saysError: boolean): Result {
        if (typeof raw === "string") {
            const made = new Result([], { raw } as ResultOptions);
            made.#saysError = saysError;
            return made;
        }
        const made = new Result();
        made.#parts = undefined;
        made.#saysError = saysError;
        Object.defineProperty(made, "raw", { enumerable: true, get: () => raw.read() });
        return made;
    }

    #decoded(): Parts<T> {
        this.#parts ??= partsOf<T>(JSON.parse(this.raw as string));
        return this.#parts;
    }

    /** The blocks of the result. */
    get content(): Content[] {
        return this.#decoded().content;
    }

    /** The value of `structuredContent`; `undefined` when it is missing. */
    get structured(): T | undefined {
        return this.#decoded().structured;
    }

    /** Whether the tool failed. The blocks of a failed tool say why. */
    get isError(): boolean {
        return this.#saysError ?? this.#decoded().isError;
    }

    /** The value of `_meta`. */
    get meta(): Meta | undefined {
        return this.#decoded().meta;
    }

    /** The texts of all blocks, joined. */
    get text(): string {
        const plain = this.#parts === undefined && plainText(this.raw as string);
        return typeof plain === "string" ? plain : textOf(this.content);
    }

    /**
     * Returns the structured content, checked by a schema. A result without structured
     * content gives its text instead, read as JSON.
     *
     * @throws TypeError when the value does not fit the schema.
     */
    async as<S extends SchemaLike>(schema: S): Promise<SchemaOutput<S>> {
        const value = this.structured ?? (JSON.parse(this.text) as unknown);
        const found = await checked(schemaOf(schema, "output", "this schema"), value);
        return found as SchemaOutput<S>;
    }

    /**
     * @internal Makes the text that `console.log` and other functions of Node print for a
     * result.
     */
    [inspect](_depth: number, options: object, print: typeof format): string {
        const { content, structured, isError, meta, raw } = this;
        return `Result ${print({ content, structured, isError, meta, raw }, options)}`;
    }

    /** Returns the result with the protocol's member names. */
    toJSON(): WireResult {
        const made: WireResult = { content: this.content };
        if (this.structured !== undefined) made.structuredContent = this.structured;
        if (this.isError) made.isError = true;
        if (this.meta !== undefined) made._meta = this.meta;
        return made;
    }
}
