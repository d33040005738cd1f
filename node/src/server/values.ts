/**
 * Converts the values of handlers to blocks for the library.
 *
 * A block is either a plain text or the JSON text of another block. A plain text is
 * passed to the library as text, because the library itself makes JSON of a text.
 *
 * @module
 */

import {
    type Content,
    contentsOf,
    isBlock,
    type PromptMessage,
    type ResourceContents,
    Result,
    type TextContent,
    type WireResult,
} from "../content.js";
import { Segment } from "../segment.js";
import { wellFormed } from "../wellformed.js";

/** A block: a plain text in `text`, or the JSON text of another block in `json`. */
export type Piece =
    | { readonly text: string; readonly json?: undefined }
    | { readonly json: string; readonly text?: undefined };

/**
 * Converts a value to JSON text.
 *
 * @throws TypeError when JSON cannot represent the value.
 */
export function jsonText(value: unknown): string {
    const made = JSON.stringify(value, plain);
    if (made === undefined)
        throw new TypeError(`${nameOf(value)} cannot be encoded as JSON`);
    return wellFormed(made);
}

/**
 * Converts maps to objects and sets to arrays. JSON.stringify alone would convert maps
 * and sets to `{}`.
 */
function plain(_: string, value: unknown): unknown {
    if (typeof value === "bigint") {
        throw new TypeError("a bigint cannot be encoded as JSON: use String(value)");
    }
    if (typeof value !== "object" || value === null) return value;
    if (value instanceof Map) return Object.fromEntries(value);
    if (value instanceof Set) return [...value];
    return value;
}

/**
 * Returns whether a value is an object of a class of which JSON.stringify makes `{}`: it
 * has no enumerable members of its own, only private ones or accessors of the class.
 */
export function isHollow(value: unknown): value is object {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
    const kind = Object.getPrototypeOf(value);
    // a plain object, also one of another realm
    if (kind === null || Object.getPrototypeOf(kind) === null) return false;
    const { toJSON } = value as { toJSON?: unknown };
    return (
        Object.keys(value).length === 0 &&
        typeof toJSON !== "function" &&
        !HAVE_JSON.some((one) => value instanceof one)
    );
}

/** Classes whose objects become JSON otherwise than by their members. */
const HAVE_JSON = [Map, Set, Number, String, Boolean];

/** The name of the class of an object, or the type of another value, for messages. */
export function nameOf(value: unknown): string {
    if (typeof value === "object") return value?.constructor?.name ?? "null";
    return `a ${typeof value}`;
}

function isBytes(value: unknown): boolean {
    return ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
}

/**
 * Returns whether a value is a block without conversion to JSON: a text, a content block,
 * or a segment of another call.
 */
export function isPiece(value: unknown): value is string | Content | Segment {
    return typeof value === "string" || value instanceof Segment || isBlock(value);
}

/**
 * Converts one value to one block. A string becomes a text block, a content block stays a
 * block, a segment becomes its block, and any other value becomes a text block with the
 * value as JSON.
 *
 * @throws TypeError when the value is bytes, because the type of the bytes is unknown,
 * when the value is an Error, or when JSON cannot represent the value.
 */
export function pieceOf(value: unknown): Piece {
    if (typeof value === "string") return { text: value };
    if (value instanceof Segment) return { json: value.data };
    if (isBlock(value)) {
        if (isBareText(value)) return { text: value.text };
        return { json: jsonText(value) };
    }
    if (value instanceof Error) {
        throw new TypeError("an error is no value: throw it", { cause: value });
    }
    if (isBytes(value)) {
        throw new TypeError(
            "the type of bytes is unknown: use image(), audio() or embedded()",
        );
    }
    return { text: jsonText(value) };
}

function isBareText(block: Content): block is TextContent {
    for (const member in block) if (member !== "type" && member !== "text") return false;
    return block.type === "text" && typeof block.text === "string";
}

/** Converts values to blocks, each as JSON text. */
export function blocksOf(values: readonly unknown[]): string[] {
    return values.map((value) => {
        const piece = pieceOf(value);
        return piece.json ?? jsonText({ type: "text", text: piece.text });
    });
}

/** Returns whether a value has the form that the result of a tool has in the protocol. */
export function isWireResult(value: object): value is WireResult {
    const { content } = value as { content?: unknown };
    return (
        Array.isArray(content) &&
        content.every((one) => typeof (one as Content | null)?.type === "string") &&
        Object.keys(value).every((member) => RESULT_MEMBERS.has(member))
    );
}

const RESULT_MEMBERS = new Set(["content", "structuredContent", "isError", "_meta"]);

/**
 * Converts a value to a Result if the value is a Result or has the form of a result in
 * the protocol. Returns undefined for any other value.
 */
export function resultOf(value: unknown): Result | undefined {
    if (value instanceof Result) return value;
    if (typeof value !== "object" || value === null || !isWireResult(value)) {
        return undefined;
    }
    return Result.of(value);
}

// ---- resources

function isContents(value: unknown): value is ResourceContents {
    return (
        typeof value === "object" &&
        value !== null &&
        typeof (value as ResourceContents).uri === "string" &&
        ("text" in value || "blob" in value)
    );
}

function contents(value: unknown, uri: string, mimeType?: string): ResourceContents {
    if (isContents(value)) return value;
    if (typeof value === "string" || isBytes(value)) {
        return contentsOf(uri, bytesOf(value), mimeType);
    }
    if (isBlock(value) && value.type === "resource") return value.resource;
    return contentsOf(uri, jsonText(value), mimeType ?? "application/json");
}

function bytesOf(value: unknown): string | Uint8Array {
    if (typeof value === "string" || value instanceof Uint8Array) return value;
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    const { buffer, byteOffset, byteLength } = value as ArrayBufferView;
    return new Uint8Array(buffer, byteOffset, byteLength);
}

/**
 * Converts the value that a resource returned to the items of `contents`, each as JSON
 * text. Text stays text, bytes become a blob, and any other value becomes JSON. A list of
 * contents, or a result with `contents`, gives several items.
 */
export function readOf(value: unknown, uri: string, mimeType?: string): string[] {
    let values = [value];
    if (Array.isArray(value) && value.length && value.every(isContents)) values = value;
    else if (typeof value === "object" && value !== null && "contents" in value) {
        const { contents: given } = value;
        if (Array.isArray(given) && given.every(isContents)) values = given;
    }
    return values.map((one) => jsonText(contents(one, uri, mimeType)));
}

/**
 * Converts a value that a resource sends or yields to one piece of the resource. A string
 * continues the text of the resource.
 *
 * @throws TypeError when the value is neither a string nor contents.
 */
export function contentsPieceOf(value: unknown): Piece {
    if (typeof value === "string") return { text: value };
    if (isContents(value)) return { json: jsonText(value) };
    if (isBlock(value) && value.type === "resource") {
        return { json: jsonText(value.resource) };
    }
    throw new TypeError(
        `a resource can send only text and contents, not ${nameOf(value)}: ` +
            "return the value from the handler instead of sending it",
    );
}

// ---- prompts

function isMessage(value: unknown): value is PromptMessage {
    return typeof value === "object" && value !== null && "role" in value;
}

function message(value: unknown): string {
    if (!isMessage(value)) {
        const piece = pieceOf(value);
        if (piece.json === undefined) {
            return jsonText({
                role: "user",
                content: { type: "text", text: piece.text },
            });
        }
        return `{"role":"user","content":${piece.json}}`;
    }
    const { role, content } = value as { role: string; content: unknown };
    if (role !== "user" && role !== "assistant") {
        throw new TypeError(
            `the role of a message has to be "user" or "assistant", not "${role}"`,
        );
    }
    if (typeof content === "string") {
        return jsonText({ ...value, role, content: { type: "text", text: content } });
    }
    if (typeof content !== "object" || content === null || Array.isArray(content)) {
        throw new TypeError("the content of a message has to be a string or one block");
    }
    return jsonText(value);
}

/**
 * Converts the value that a prompt returned to messages, each as JSON text. A string or a
 * block becomes a message of the user.
 *
 * @throws TypeError for a message with another role, or that has no content, or a list of
 * blocks as content.
 */
export function messagesOf(value: unknown): string[] {
    if (Array.isArray(value)) return value.map(message);
    if (typeof value === "object" && value !== null && "messages" in value) {
        const { messages } = value;
        if (Array.isArray(messages)) return messages.map(message);
    }
    return [message(value)];
}
