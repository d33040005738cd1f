/**
 * The questions of a handler as JSON, and their answers as values.
 *
 * @module
 */

import type { Content, PromptMessage } from "../content.js";
import { textOf } from "../content.js";
import { fromInfo, RequestCancelledError } from "../errors.js";
import { RpcError, ToolError } from "../failures.js";
import { Status } from "../native.js";
import type { SampleRequest, SampleResult } from "../questions.js";
import {
    checked,
    type JsonSchema,
    type Schema,
    SchemaError,
    type SchemaLike,
    schemaOf,
} from "../schema.js";

/** The methods that a client may be asked. */
export const ELICIT = "elicitation/create";
export const SAMPLE = "sampling/createMessage";
export const ROOTS = "roots/list";

/**
 * A schema as a form: one flat object of simple fields. What is no object is a form of
 * one field, `value`.
 */
export class Form {
    readonly json: JsonSchema;
    readonly #schema: Schema;
    readonly #wraps: boolean;

    /**
     * @throws TypeError when it has a field that a form cannot have (2025-11-25
     *     client/elicitation, "Requested Schema").
     */
    constructor(given: SchemaLike) {
        this.#schema = schemaOf(given, "input", "a form");
        const { json } = this.#schema;
        this.#wraps = json.type !== "object";
        this.json = formOf(
            this.#wraps
                ? { type: "object", properties: { value: json }, required: ["value"] }
                : json,
        );
    }

    /** The value of an answer. @throws ToolError when it does not fit. */
    async decode(content: unknown): Promise<unknown> {
        const value = this.#wraps
            ? (content as { value?: unknown } | undefined)?.value
            : (content ?? {});
        try {
            return await checked(this.#schema, value);
        } catch (error) {
            if (!(error instanceof SchemaError)) throw error;
            throw new ToolError(`The answer does not fit: ${error.message}`);
        }
    }
}

/** The form that asks for text. */
export const TEXT: JsonSchema = { type: "string" };

const SIMPLE = new Set(["string", "number", "integer", "boolean"]);

function formOf(json: JsonSchema): JsonSchema {
    const parts = (json.$defs ?? {}) as Record<string, JsonSchema>;
    const properties = Object.entries(
        (json.properties ?? {}) as Record<string, JsonSchema>,
    );
    const form = {
        type: "object",
        properties: Object.fromEntries(
            properties.map(([name, field]) => [name, simple(name, field, parts)]),
        ),
    };
    const { required } = json;
    return Array.isArray(required) && required.length ? { ...form, required } : form;
}

function simple(
    name: string,
    given: JsonSchema,
    parts: Record<string, JsonSchema>,
): JsonSchema {
    let field: Record<string, unknown> = { ...given };
    if (Array.isArray(field.anyOf)) {
        const options = field.anyOf.filter((one) => one?.type !== "null");
        if (options.length === 1) {
            delete field.anyOf;
            field = { ...options[0], ...field };
        }
    }
    if (typeof field.$ref === "string") {
        const { $ref, ...rest } = field;
        field = { ...parts[String($ref).slice("#/$defs/".length)], ...rest };
    }
    if (Array.isArray(field.type)) {
        const types = field.type.filter((one) => one !== "null");
        if (types.length === 1) field.type = types[0];
    }
    if (field.default === null) delete field.default;
    const { enum: choices, items } = field as { enum?: unknown; items?: JsonSchema };
    if (field.type === undefined && Array.isArray(choices)) {
        if (choices.every((one) => typeof one === "string")) field.type = "string";
    }
    const isChoice =
        field.type === "array" && items && ("enum" in items || "anyOf" in items);
    if (isChoice) field.items = { type: "string", ...items };
    if (!isChoice && !SIMPLE.has(String(field.type))) {
        throw new TypeError(`a form cannot have the field "${name}": it is not simple`);
    }
    return field;
}

/** The messages of sampling/createMessage; a string is one of the user. */
export function messagesOf(
    given: string | PromptMessage | readonly (string | PromptMessage)[],
): unknown[] {
    const all = (Array.isArray(given) ? given : [given]) as (string | PromptMessage)[];
    return all.map((one) =>
        typeof one === "string"
            ? { role: "user", content: { type: "text", text: one } }
            : one,
    );
}

/** What a model said, with its text. */
export type Sampled = SampleResult & {
    /** The texts of its content, one behind the other. */
    readonly text: string;
};

/** @throws ToolError when it is no such answer. */
export function sampled(answer: unknown): Sampled {
    const made = answer as SampleResult;
    if (typeof made !== "object" || made === null || typeof made.content !== "object") {
        throw new ToolError("The client gave no answer of a model");
    }
    const text = textOf(made.content as unknown as Content | Content[]);
    return Object.defineProperty({ ...made }, "text", { value: text }) as Sampled;
}

// ---- answers

/** How a question is asked. */
export interface AskOptions {
    /**
     * Names the question: a later run that asks the same finds the answer given before.
     */
    key?: string | undefined;
}

/** A question to a model; its messages are told apart from the rest. */
export type SampleOptions = Omit<SampleRequest, "messages" | "maxTokens"> & AskOptions;

/** What a form was answered. */
export type Elicited<T> =
    | { readonly action: "accept"; readonly content: T }
    | { readonly action: "decline" | "cancel"; readonly content?: undefined };

/** A refusal, whatever the client calls it. */
export function refusedBy(action: unknown): "decline" | "cancel" {
    return action === "decline" ? "decline" : "cancel";
}

/** Why there is no answer. */
export function refusal(status: number, answer: string | null): Error {
    if (answer === null) {
        return status === Status.E_CANCELLED
            ? new RequestCancelledError()
            : fromInfo(null, status);
    }
    const told = JSON.parse(answer) as {
        code?: number;
        message?: string;
        data?: unknown;
    };
    return new RpcError(told.code ?? -32603, String(told.message ?? ""), told.data);
}
