/**
 * Converts the questions of a handler to JSON, and the client's answers to values.
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

/** The method names of the questions that a server can ask a client. */
export const ELICIT = "elicitation/create";
export const SAMPLE = "sampling/createMessage";
export const ROOTS = "roots/list";

/**
 * A form made from a schema. If the schema describes a flat object of simple fields, the
 * form has the same fields. For any other schema the form has one field, `value`.
 */
export class Form {
    readonly json: JsonSchema;
    readonly #schema: Schema;
    readonly #wraps: boolean;

    /**
     * @throws TypeError when a field is not allowed in a form (2025-11-25
     * client/elicitation, "Requested Schema").
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

    /**
     * Returns the value of an answer to the form.
     *
     * @throws ToolError when the answer does not fit the schema.
     */
    async decode(content: unknown): Promise<unknown> {
        const value = this.#wraps
            ? (content as { value?: unknown } | undefined)?.value
            : (content ?? {});
        try {
            return await checked(this.#schema, value);
        } catch (error) {
            if (!(error instanceof SchemaError)) throw error;
            throw new ToolError(`The answer does not fit the form: ${error.message}`);
        }
    }
}

/** The schema of a form that asks for one text. */
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
        throw new TypeError(
            `a form cannot have the field "${name}", because it is not a simple type`,
        );
    }
    return field;
}

/**
 * Makes the messages of sampling/createMessage. A string becomes a message of the user.
 */
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

/** A model's answer. The member `text` is the text of the answer. */
export type Sampled = SampleResult & {
    /** The texts of the answer's content, joined. */
    readonly text: string;
};

/**
 * Reads a model's answer.
 *
 * @throws ToolError when the answer is not a message of a model.
 */
export function sampled(answer: unknown): Sampled {
    const made = answer as SampleResult;
    if (typeof made !== "object" || made === null || typeof made.content !== "object") {
        throw new ToolError("The client's answer is not a message of a model");
    }
    const text = textOf(made.content as unknown as Content | Content[]);
    return Object.defineProperty({ ...made }, "text", { value: text }) as Sampled;
}

// ---- answers

/** The options of a question. */
export interface AskOptions {
    /**
     * The name of the question. If a later run of the task asks with the same key, the
     * run gets the stored answer.
     */
    key?: string | undefined;
}

/** The options of a question to a model. */
export type SampleOptions = Omit<SampleRequest, "messages" | "maxTokens"> & AskOptions;

/** The user's answer to a form. `content` has the values if the user accepted. */
export type Elicited<T> =
    | { readonly action: "accept"; readonly content: T }
    | { readonly action: "decline" | "cancel"; readonly content?: undefined };

/** Reads the action of a refused form. Any action other than "decline" counts as
 * "cancel". */
export function refusedBy(action: unknown): "decline" | "cancel" {
    return action === "decline" ? "decline" : "cancel";
}

/**
 * Makes the error of a question that got no answer or got an error as its answer. The
 * message says why.
 */
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
    return RpcError.from(told.code ?? -32603, String(told.message ?? ""), told.data);
}
