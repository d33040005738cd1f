/**
 * Who answers what a server asks its client.
 *
 * A server may ask during a request: for input of the user (`elicitation/create`), for
 * what a model says (`sampling/createMessage`), for the roots it may work in
 * (`roots/list`). For each there is a callback, plain or async. What has no callback is
 * not declared as a capability, and a server that asks it all the same gets an error.
 */

import type {
    ElicitRequest,
    ElicitResult,
    JsonObject,
    Root,
    SampleRequest,
    SampleResult,
} from "../questions.js";
import { wellFormed } from "../wellformed.js";
import { isObject } from "./peer.js";

const ELICIT = "elicitation/create";
const ACTIONS: readonly unknown[] = ["accept", "decline", "cancel"];
const SAMPLE = "sampling/createMessage";
const ROOTS = "roots/list";

/** JSON-RPC codes of answers that are none. */
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;

/**
 * Thrown by a callback that does not answer: the server gets `code` and the message.
 *
 * Where the revision has no errors as answers (2026-07-28), a form is cancelled, and for
 * a model or the roots the request is. A question of an unknown method gets the error.
 */
export class Refused extends Error {
    /** The JSON-RPC code. */
    readonly code: number;

    constructor(message = "the user refused", code = -1) {
        super(message);
        this.name = "Refused";
        this.code = code;
    }
}

/** What goes along with each question. */
export interface QuestionContext {
    /** Names the question in its request. */
    key: string;
    /** Aborted when nobody waits for the answer any more. */
    signal: AbortSignal;
}

/** What `onInput` gets: any question, as it came. */
export interface Question extends QuestionContext {
    /** Such as `"elicitation/create"`. */
    method: string;
    params: JsonObject;
}

type MaybePromise<T> = T | PromiseLike<T>;

/** Answers a question to a person. Nothing = the person declines. */
export type OnElicit = (
    request: ElicitRequest,
    context: QuestionContext,
    // biome-ignore lint/suspicious/noConfusingVoidType: a callback need not return
) => MaybePromise<ElicitResult | null | undefined | void>;
/** Answers a question to a model. */
export type OnSample = (
    request: SampleRequest,
    context: QuestionContext,
) => MaybePromise<SampleResult>;
/** `file://` URIs or `Root`s, or what gives them. */
export type Roots =
    | Iterable<Root | string>
    | (() => MaybePromise<Iterable<Root | string>>);
/** Answers any question with the object that the protocol wants. */
export type OnInput = (question: Question) => MaybePromise<object | null | undefined>;

/** Who answers what. `onInput` is asked what no other callback is for. */
export interface AnswerOptions {
    onElicit?: OnElicit | undefined;
    onSample?: OnSample | undefined;
    roots?: Roots | undefined;
    onInput?: OnInput | undefined;
}

/** Who answers, as requests see it. */
export interface Answering {
    /** Whether there is anybody to ask. */
    readonly isThere: boolean;
    /** What the session declares. */
    capabilities(): JsonObject;
    /** The answer as JSON; `Refused` when there is none. */
    answer(
        key: string,
        method: string,
        params: string | null,
        signal: AbortSignal,
    ): Promise<string>;
}

/** The callbacks of the user. */
export class Answers implements Answering {
    private readonly options: AnswerOptions;

    constructor(options: AnswerOptions) {
        this.options = options;
    }

    get isThere(): boolean {
        const { onElicit, onSample, roots, onInput } = this.options;
        return Boolean(onElicit || onSample || roots || onInput);
    }

    capabilities(): JsonObject {
        const { onElicit, onSample, roots, onInput } = this.options;
        const told: JsonObject = {};
        if (onElicit || onInput) told.elicitation = { form: {}, url: {} };
        if (onSample || onInput) told.sampling = {};
        if (roots || onInput) told.roots = {};
        return told;
    }

    async answer(
        key: string,
        method: string,
        params: string | null,
        signal: AbortSignal,
    ): Promise<string> {
        const told: unknown = JSON.parse(params || "{}");
        const given = isObject(told) ? told : {};
        check(method, given);
        const { onElicit, onSample, roots, onInput } = this.options;
        const context = { key, signal };
        let reply: unknown;
        if (method === ELICIT && onElicit) {
            reply = await onElicit(given as unknown as ElicitRequest, context);
        } else if (method === SAMPLE && onSample) {
            reply = await onSample(given as unknown as SampleRequest, context);
        } else if (method === ROOTS && roots) {
            const found = typeof roots === "function" ? await roots() : roots;
            reply = { roots: Array.from(found, asRoot) };
        } else if (onInput) {
            reply = await onInput({ method, params: given, ...context });
        } else {
            throw new Refused(`nobody answers ${method}`, METHOD_NOT_FOUND);
        }
        return encode(method, reply);
    }
}

/** What callbacks rely on. */
function check(method: string, given: JsonObject): void {
    const isForm = given.mode === undefined || given.mode === "form";
    const fits =
        method === ELICIT
            ? typeof given.message === "string" &&
              (isForm ? isObject(given.requestedSchema) : typeof given.url === "string")
            : method === SAMPLE
              ? Array.isArray(given.messages) && typeof given.maxTokens === "number"
              : true;
    if (!fits) throw new Refused(`${method}: wrong params`, INVALID_PARAMS);
}

function asRoot(root: Root | string): Root {
    return typeof root === "string" ? { uri: root } : root;
}

function encode(method: string, reply: unknown): string {
    if (reply === null || reply === undefined) {
        if (method !== ELICIT) throw new Refused();
        reply = { action: "decline" } satisfies ElicitResult;
    }
    if (!isObject(reply)) {
        throw new TypeError(`the answer to ${method} is no object: ${String(reply)}`);
    }
    const json = wellFormed(JSON.stringify(reply));
    if (method === ELICIT && !ACTIONS.includes(JSON.parse(json).action)) {
        throw new TypeError(
            'the answer to a question is { action: "accept", content: { ... } }, or ' +
                `has the action "decline" or "cancel"; it was ${json}`,
        );
    }
    return json;
}
