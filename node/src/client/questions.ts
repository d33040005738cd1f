/**
 * The client's answers to the questions of a server.
 *
 * During a request a server may ask three kinds of questions: for input of the user
 * (`elicitation/create`), for the answer of a model (`sampling/createMessage`), and for
 * the roots of the client (`roots/list`). Each kind has a callback, plain or async. The
 * client declares a kind as a capability only if the kind has a callback. A server that
 * asks a question of another kind gets an error.
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

export const ELICIT = "elicitation/create";
const ACTIONS: readonly unknown[] = ["accept", "decline", "cancel"];
const SAMPLE = "sampling/createMessage";
const ROOTS = "roots/list";

const CALLBACKS: { readonly [method: string]: string } = {
    [ELICIT]: "onElicit",
    [SAMPLE]: "onSample",
    [ROOTS]: "roots",
};

/** Returns the name of the callback that answers the questions of a method. */
export function nameOf(method: string): string {
    return Object.hasOwn(CALLBACKS, method) ? (CALLBACKS[method] as string) : "onInput";
}

/** Codes of JSON-RPC errors. */
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;

/**
 * A callback throws `Refused` to refuse a question. The server gets `code` and the
 * message.
 *
 * A client of revision 2026-07-28 cannot answer a question with an error. Such a client
 * answers a refused form with "cancel". Any other refused question cancels the whole
 * request. Only a question whose method the library does not know gets the error.
 */
export class Refused extends Error {
    /** The JSON-RPC code. */
    readonly code: number;

    constructor(message = "The user refused", code = -1) {
        super(message);
        this.name = "Refused";
        this.code = code;
    }
}

/** The information that a callback gets together with a question. */
export interface QuestionContext {
    /** The question's name within its request. */
    key: string;
    /** The signal is aborted when the server no longer waits for the answer. */
    signal: AbortSignal;
}

/** The argument of `onInput`: any question, with its params as the server sent them. */
export interface Question extends QuestionContext {
    /** The method, such as `"elicitation/create"`. */
    method: string;
    /** The params of the question. */
    params: JsonObject;
}

type MaybePromise<T> = T | PromiseLike<T>;

/**
 * Answers a question to the user. If the callback returns nothing, the answer is
 * "decline".
 */
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
/**
 * The client's roots as `file://` URIs or `Root`s, or a function that returns the roots.
 */
export type Roots =
    | Iterable<Root | string>
    | (() => MaybePromise<Iterable<Root | string>>);
/** Answers any question. The function must return the object that the protocol defines as
 * the answer. */
export type OnInput = (question: Question) => MaybePromise<object | null | undefined>;

/**
 * The callbacks for questions. `onInput` gets each question that has no callback of its
 * own.
 */
export interface AnswerOptions {
    /** Answers a question to the user. */
    onElicit?: OnElicit | undefined;
    /** Answers with the model of this client. */
    onSample?: OnSample | undefined;
    /** The directories of this client, or a function that returns them. */
    roots?: Roots | undefined;
    /** Answers any other question. */
    onInput?: OnInput | undefined;
}

/** An object that answers the server's questions for the requests of a session. */
export interface Answering {
    /** Whether a callback exists for any kind of question. */
    readonly isThere: boolean;
    /** The capabilities that the session declares. */
    capabilities(): JsonObject;
    /**
     * Answers a question. Returns the answer as JSON text. Throws `Refused` when the
     * question gets no answer.
     */
    answer(
        key: string,
        method: string,
        params: string | null,
        signal: AbortSignal,
    ): Promise<string>;
}

/** Answers the server's questions with the user's callbacks. */
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
            throw new Refused(
                `the client has no callback that answers ${method}`,
                METHOD_NOT_FOUND,
            );
        }
        return encode(method, reply);
    }
}

/**
 * Checks the members of a question that callbacks rely on. Throws `Refused` when a member
 * is missing or has the wrong type.
 */
function check(method: string, given: JsonObject): void {
    const isForm = given.mode === undefined || given.mode === "form";
    const fits =
        method === ELICIT
            ? typeof given.message === "string" &&
              (isForm ? isObject(given.requestedSchema) : typeof given.url === "string")
            : method === SAMPLE
              ? Array.isArray(given.messages) && typeof given.maxTokens === "number"
              : true;
    if (!fits)
        throw new Refused(
            `${method}: the params of the question are invalid`,
            INVALID_PARAMS,
        );
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
        throw new TypeError(`the answer to ${method} is not an object: ${String(reply)}`);
    }
    const json = wellFormed(JSON.stringify(reply));
    if (method === ELICIT && !ACTIONS.includes(JSON.parse(json).action)) {
        throw new TypeError(
            'the answer to a question has to be { action: "accept", content: {...} }, ' +
                `or to have the action "decline" or "cancel"; it was ${json}`,
        );
    }
    return json;
}
