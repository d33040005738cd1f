/**
 * Resources, templates of resources, and prompts.
 *
 * @module
 */

import type { SegueError } from "../errors.js";
import { RpcError } from "../failures.js";
import { type Call, type ItemOptions, native, Item as Sort } from "../native.js";
import type { JsonSchema, Schema } from "../schema.js";
import { reasonOf } from "../schema.js";
import { argumentsOf } from "./arguments.js";
import { joined } from "./auth.js";
import { checkOptions } from "./checks.js";
import { limited, Suggestions, typedArguments } from "./completion.js";
import { Context } from "./context.js";
import type { Run as CallRun } from "./drain.js";
import type { Hosting } from "./hosting.js";
import {
    BadArguments,
    compact,
    INTERNAL,
    Item,
    isGenerator,
    isMissing,
    NOT_FOUND,
    type Run,
    rpcError,
} from "./item.js";
import { Call as LayersCall, type Middleware, runLayers } from "./layers.js";
import type { PromptOptions, ResourceOptions } from "./options.js";
import { contentsPieceOf, jsonText, messagesOf, type Piece, readOf } from "./values.js";

/** An item that can suggest values for its arguments. */
export abstract class Completing extends Item {
    abstract readonly suggestions: Suggestions;

    override get completes(): boolean {
        return this.suggestions.size > 0;
    }

    override async complete(host: Hosting, call: Call, params: string): Promise<void> {
        const around = this.aroundOf("completion/complete");
        if (around.length) {
            await this.#completeIn(around, host, call, params);
            return;
        }
        try {
            const { values, total, hasMore } = await this.suggestions.answer(params);
            native.callSetCompletion(call, values, total, hasMore);
            native.callComplete(call);
        } catch (error) {
            this.#failed(host, call, error);
        } finally {
            attempt(() => native.callFree(call));
        }
    }

    #failed(host: Hosting, call: Call, error: unknown): void {
        const { key, owner } = this;
        if (!this.expects(error)) host.report(error, { what: "completion", key, owner });
        const { rpcCode, message, dataJson } = this.explain(error, owner.exposesErrors);
        attempt(() => native.callFail(call, rpcCode || INTERNAL, message, dataJson));
    }

    /** Answers a completion inside middlewares. */
    async #completeIn(
        around: readonly Middleware[],
        host: Hosting,
        call: Call,
        params: string,
    ): Promise<void> {
        const context = new Context(call, host, this);
        const inner = new CompletionCall(this, { host, call, context }, params);
        host.began(context);
        try {
            const found = (await runLayers(around, inner)) as Iterable<unknown>;
            await context.takeProvided()?.clean();
            const { values, total, hasMore } = limited(Array.from(found, String));
            native.callSetCompletion(call, values, total, hasMore);
            native.callComplete(call);
        } catch (error) {
            await context.takeProvided()?.abandon(error);
            this.#failed(host, call, error);
        } finally {
            host.ended(context);
            attempt(() => native.callFree(call));
        }
    }
}

/** A completion as its middlewares get it. */
class CompletionCall extends LayersCall {
    readonly #suggestions: Suggestions;
    readonly #params: string;

    constructor(item: Completing, run: Omit<CallRun, "item">, params: string) {
        super({ item, ...run }, params, "completion/complete");
        this.#suggestions = item.suggestions;
        this.#params = params;
    }

    override get arguments(): Record<string, unknown> {
        return typedArguments(this.#params);
    }

    override set arguments(_value: Record<string, unknown>) {
        throw new TypeError("the arguments of a completion cannot be changed");
    }

    override handle(): Promise<unknown> {
        return this.#suggestions.suggest(this.#params);
    }
}

/**
 * Runs a function and ignores its error. An error means that the call or the whole server
 * has ended.
 */
function attempt(deed: () => void): void {
    try {
        deed();
    } catch {
        // The caller is gone, so nothing could receive the error.
    }
}

// ---- resources

const VARIABLE = /\{\+?([^{}]*)\}/g;
/** The letters of the name of a variable (core/wire/uri_template.c). */
const NAME = /^[A-Za-z0-9_.%]+$/;

/**
 * Returns the variables of a URI template.
 *
 * @throws TypeError when the template has another expression than {name} and {+name}.
 */
function variablesOf(uri: string): string[] {
    return [...uri.matchAll(VARIABLE)].map(([whole, name = ""]) => {
        if (NAME.test(name)) return name;
        throw new TypeError(
            `resource "${uri}": a template cannot have ${whole}, only {name} and ` +
                `{+name}, whose value may have slashes${instead(uri, whole)}`,
        );
    });
}

/** Returns a way to write the variables of a query, if the expression has a query. */
function instead(uri: string, expression: string): string {
    const [, sign, names = ""] = expression.match(/^\{([?&])([\w,]+)\}$/) ?? [];
    if (!sign) return "";
    const parts = names.split(",").map((name) => `${name}={${name}}`);
    const before = uri.slice(0, uri.indexOf(expression));
    return `: write a query as text, as in ${before}${sign}${parts.join("&")}`;
}

/** A resource, or a template of resources if its URI has variables. */
export class Resource extends Completing {
    readonly kind: number;
    readonly what = "resource";
    readonly method = "resources/read";
    readonly told: object;
    readonly options: ItemOptions;
    readonly suggestions: Suggestions;
    readonly #variables: readonly string[];
    readonly #mimeType: string | undefined;
    readonly #given: ResourceOptions;

    /** @param shared - the suggestions of the item that this one is a copy of. */
    constructor(uri: string, given: ResourceOptions, run: Run, shared?: Suggestions) {
        super(uri, run);
        this.#given = given;
        checkOptions("resource", uri, given);
        this.#variables = variablesOf(uri);
        const isTemplate = this.#variables.length > 0;
        this.kind = isTemplate ? Sort.RESOURCE_TEMPLATE : Sort.RESOURCE;
        this.#mimeType = given.mimeType;
        this.suggestions =
            shared ?? new Suggestions(uri, this.#variables, given.complete);
        this.options = {
            readTtlMs: given.readTtlMs,
            readScope: given.readScope === "public" ? 1 : 0,
            scopes: joined(given.scopes),
        };
        const { title, description, mimeType, size, annotations, icons, _meta } = given;
        this.told = compact({
            [isTemplate ? "uriTemplate" : "uri"]: uri,
            name: given.name ?? uri,
            ...{ title, description, mimeType, size, annotations, icons, _meta },
        });
    }

    override renamed(key: string): Resource {
        const given = { ...this.#given, name: this.#given.name ?? this.key };
        return new Resource(key, given, this.run, this.suggestions);
    }

    override given(call: Call): Record<string, string> {
        const given: Record<string, string> = {};
        for (const name of this.#variables) {
            given[name] = native.callArgumentText(call, name) ?? "";
        }
        return given;
    }

    override check(given: Record<string, unknown>): unknown {
        return given;
    }

    override piece(value: unknown): Piece {
        return contentsPieceOf(value);
    }

    override reply(call: Call, value: unknown, context: Context): void {
        const isNothing = value === undefined || value === null;
        if (context.hasSent || (context.isStream && isNothing)) {
            if (!isNothing) {
                const why =
                    "has sent contents, and then returned a value: send that value " +
                    "too, and return nothing";
                throw new TypeError(`resource "${this.key}" ${why}`);
            }
            native.callReply(call);
            return;
        }
        if (isNothing) {
            throw new RpcError(NOT_FOUND, "Resource not found");
        }
        const uri = native.callName(call);
        native.callReply(call, null, readOf(value, uri, this.#mimeType));
    }

    override explain(error: unknown, isExposed: boolean): SegueError {
        if (isMissing(error)) return new RpcError(NOT_FOUND, "Resource not found");
        return rpcError(error, isExposed);
    }

    override expects(error: unknown): boolean {
        return isMissing(error) || super.expects(error);
    }
}

// ---- prompts

interface Argument {
    name: string;
    title?: string | undefined;
    description?: string | undefined;
    required?: boolean | undefined;
}

/** A prompt. */
export class Prompt extends Completing {
    readonly kind = Sort.PROMPT;
    readonly what = "prompt";
    readonly method = "prompts/get";
    readonly told: object;
    readonly options: ItemOptions;
    readonly suggestions: Suggestions;
    readonly #input: Schema;
    readonly #given: PromptOptions;

    /** @param shared - the suggestions of the item that this one is a copy of. */
    constructor(name: string, given: PromptOptions, run: Run, shared?: Suggestions) {
        super(name, run);
        this.#given = given;
        if (isGenerator(run)) {
            throw new TypeError(
                `"${name}": a prompt cannot be a generator: return its messages`,
            );
        }
        checkOptions("prompt", name, given);
        const { input, complete, forbidExtra, scopes, title, description, icons, _meta } =
            given;
        this.#input = argumentsOf(input, forbidExtra, `prompt ${name}, input`, "prompt");
        checkStrings(this.#input, `prompt ${name}, input`);
        const properties = (this.#input.json.properties ?? {}) as Record<
            string,
            JsonSchema
        >;
        this.suggestions =
            shared ?? new Suggestions(name, Object.keys(properties), complete);
        if (!shared) this.suggestions.addChoices(properties);
        this.options = { scopes: joined(scopes) };
        this.told = compact({
            ...{ name, title, description, icons, _meta },
            arguments: input && toldOf(this.#input.json, properties),
        });
    }

    override renamed(key: string): Prompt {
        return new Prompt(key, this.#given, this.run, this.suggestions);
    }

    override prepare(): void {
        this.#input.prepare?.();
    }

    override check(given: Record<string, unknown>): unknown {
        const verdict = this.#input.check(given);
        if (verdict instanceof Promise) return verdict.then((one) => this.#checked(one));
        return this.#checked(verdict);
    }

    #checked(verdict: Awaited<ReturnType<Schema["check"]>>): unknown {
        if (!verdict.issues) return verdict.value;
        const why = reasonOf(verdict.issues);
        throw new BadArguments(`Invalid arguments for prompt ${this.key}: ${why}`);
    }

    override reply(call: Call, value: unknown): void {
        const messages = messagesOf(value);
        if (typeof value === "object" && value !== null && "messages" in value) {
            const { description } = value as { description?: unknown };
            if (description !== undefined) {
                native.callSetField(call, "description", jsonText(description));
            }
        }
        native.callReply(call, null, messages);
    }

    override explain(error: unknown, isExposed: boolean): SegueError {
        return rpcError(error, isExposed);
    }
}

/** Texts of which an argument of a prompt has to take one. */
const SAMPLES = ["1", "", "true", "null", "{}", "[]", "2026-01-31", "https://a.example/"];

/**
 * Refuses an argument that no text fits: clients send the arguments of prompts as
 * strings.
 *
 * @throws TypeError: the JSON Schema of the argument allows no string, and its check
 * takes none.
 */
function checkStrings(input: Schema, what: string): void {
    for (const [name, { type }] of Object.entries(input.json.properties ?? {})) {
        const types = [type ?? "string"].flat();
        if (types.includes("string") || SAMPLES.some((one) => takes(input, name, one)))
            continue;
        throw new TypeError(
            `${what}, ${name}: the arguments of a prompt are strings, and no string ` +
                `fits a schema of type ${types.join(", ")}: convert a string, as ` +
                `${converterOf(types)} does`,
        );
    }
}

/** Names what makes a value of one of the types of a string. */
function converterOf(types: readonly unknown[]): string {
    if (types.includes("boolean")) return "z.stringbool()";
    if (types.includes("object") || types.includes("array"))
        return "a z.codec() with JSON.parse";
    return "z.coerce.number()";
}

function takes(input: Schema, name: string, value: string): boolean {
    try {
        const verdict = input.check({ [name]: value });
        if (verdict instanceof Promise) {
            verdict.catch(() => undefined);
            return true; // the first call tells
        }
        return !verdict.issues?.some(({ path: [step] = [] }) => {
            return (typeof step === "object" ? step.key : step) === name;
        });
    } catch {
        return true;
    }
}

/** Describes the arguments of a prompt, as clients see them in a list. */
function toldOf(json: JsonSchema, properties: Record<string, JsonSchema>): Argument[] {
    const required = Array.isArray(json.required) ? json.required : [];
    return Object.entries(properties).map(([name, { title, description }]) =>
        compact({
            name,
            title: title === undefined ? undefined : String(title),
            description: description === undefined ? undefined : String(description),
            required: required.includes(name) || undefined,
        }),
    );
}
