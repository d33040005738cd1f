/**
 * The questions that a server asks its client. There are three kinds: questions to the
 * user (elicitation), to a model (sampling), and for the roots.
 *
 * Questions are plain objects with the specification's member names (2026-07-28
 * client/elicitation, client/sampling, client/roots). Clients and servers use these
 * types.
 */

/** Any JSON value. */
export type JsonValue =
    | null
    | boolean
    | number
    | string
    | JsonValue[]
    | { [name: string]: JsonValue };

/** A JSON object whose members are not checked. */
export type JsonObject = { [name: string]: unknown };

/** A question to the user. */
export interface ElicitRequest {
    /** The text that the user reads. */
    message: string;
    /**
     * `"form"` (the default): the user fills in a form. `"url"`: the user opens `url`.
     */
    mode?: "form" | "url";
    /** For a form: a flat JSON Schema of an object. */
    requestedSchema?: JsonObject;
    /** For mode `"url"`: the URL to open. */
    url?: string;
    /** For mode `"url"`: the id by which a later notification names this question. */
    elicitationId?: string;
    /** Additional data, see `Meta`. */
    _meta?: JsonObject;
}

/** The user's answer. */
export interface ElicitResult<T = JsonObject> {
    /** What the user did. */
    action: "accept" | "decline" | "cancel";
    /** The filled-in form, when the user accepted. */
    content?: T;
    /** Additional data, see `Meta`. */
    _meta?: JsonObject;
}

/** A message of a conversation with a model. */
export interface SampleMessage {
    /** Who speaks. */
    role: "user" | "assistant";
    /** One content block, or an array of content blocks. */
    content: JsonObject | JsonObject[];
    /** Additional data, see `Meta`. */
    _meta?: JsonObject;
}

/** A question to a model. */
export interface SampleRequest {
    /** The conversation so far. */
    messages: SampleMessage[];
    /** Maximum length of the answer, in tokens. */
    maxTokens: number;
    /** A system prompt for the model. */
    systemPrompt?: string;
    /** The temperature for the model. */
    temperature?: number;
    /** Texts at which the model stops. */
    stopSequences?: string[];
    /** Which model the server would like. */
    modelPreferences?: JsonObject;
    /** Which context the client adds. */
    includeContext?: string;
    /** Tools that the model may use. */
    tools?: JsonObject[];
    /** Whether the model must use a tool. */
    toolChoice?: JsonObject;
    /** Data for the provider of the model. */
    metadata?: JsonObject;
    /** Additional data, see `Meta`. */
    _meta?: JsonObject;
}

/** A model's answer. */
export interface SampleResult {
    /** Who speaks. */
    role: "user" | "assistant";
    /** One content block, or an array of content blocks. */
    content: JsonObject | JsonObject[];
    /** The name of the model. */
    model: string;
    /** Why the model stopped: `"endTurn"`, `"maxTokens"`, `"stopSequence"`, `"toolUse"`
     * or another text. */
    stopReason?: string;
    /** Additional data, see `Meta`. */
    _meta?: JsonObject;
}

/** A root: a directory or file that the client works in. */
export interface Root {
    /** A `file://` URI. */
    uri: string;
    /** Name for people. */
    name?: string;
    /** Additional data, see `Meta`. */
    _meta?: JsonObject;
}
