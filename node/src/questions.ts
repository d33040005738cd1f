/**
 * What a server asks its client: people (elicitation), models (sampling), roots.
 *
 * Plain objects with the names of the specification (2026-07-28 client/elicitation,
 * client/sampling, client/roots). Both roles use them.
 */

/** Whatever JSON has. */
export type JsonValue =
    | null
    | boolean
    | number
    | string
    | JsonValue[]
    | { [name: string]: JsonValue };

/** An object of JSON whose members nobody here looks at. */
export type JsonObject = { [name: string]: unknown };

/** A question to a person. */
export interface ElicitRequest {
    /** What the person reads. */
    message: string;
    /** `"form"` (also when it is missing), or `"url"`: the person is sent to `url`. */
    mode?: "form" | "url";
    /** Of the form: a flat JSON Schema of an object. */
    requestedSchema?: JsonObject;
    /** Of mode `"url"`: where to go. */
    url?: string;
    /** Of mode `"url"`: what a later notification names it by. */
    elicitationId?: string;
    _meta?: JsonObject;
}

/** What a person answered. */
export interface ElicitResult<T = JsonObject> {
    action: "accept" | "decline" | "cancel";
    /** The form, when it was accepted. */
    content?: T;
    _meta?: JsonObject;
}

/** A message of a conversation with a model. */
export interface SampleMessage {
    role: "user" | "assistant";
    /** One block, or several. */
    content: JsonObject | JsonObject[];
    _meta?: JsonObject;
}

/** A question to a model. */
export interface SampleRequest {
    messages: SampleMessage[];
    /** Bounds the answer, in tokens. */
    maxTokens: number;
    systemPrompt?: string;
    temperature?: number;
    stopSequences?: string[];
    modelPreferences?: JsonObject;
    includeContext?: string;
    tools?: JsonObject[];
    toolChoice?: JsonObject;
    metadata?: JsonObject;
    _meta?: JsonObject;
}

/** What a model said. */
export interface SampleResult {
    role: "user" | "assistant";
    /** One block, or several. */
    content: JsonObject | JsonObject[];
    /** Which model it was. */
    model: string;
    /** `"endTurn"`, `"maxTokens"`, `"stopSequence"`, `"toolUse"` or another. */
    stopReason?: string;
    _meta?: JsonObject;
}

/** A place that the client works in. */
export interface Root {
    /** A `file://` URI. */
    uri: string;
    name?: string;
    _meta?: JsonObject;
}
