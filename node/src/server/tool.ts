/**
 * Tools: functions that a model calls.
 *
 * @module
 */

import { Result } from "../content.js";
import type { SegueError } from "../errors.js";
import { isPublic, RpcError, ToolError } from "../failures.js";
import {
    type Call,
    type ItemOptions,
    native,
    Item as Sort,
    ToolFlag,
} from "../native.js";
import { reasonOf, type Schema, SchemaError, schemaOf } from "../schema.js";
import { argumentsOf } from "./arguments.js";
import { joined } from "./auth.js";
import { checkOptions } from "./checks.js";
import {
    BadArguments,
    compact,
    INTERNAL,
    Item,
    isGenerator,
    type Run,
    safeText,
} from "./item.js";
import type { ToolOptions } from "./options.js";
import {
    blocksOf,
    isHollow,
    isPiece,
    jsonText,
    nameOf,
    pieceOf,
    resultOf,
} from "./values.js";

const { callReply } = native;
const POLICIES = { never: 0, may: 1, must: 2 } as const;

/** The result of a tool does not fit its output schema. The message is not meant for the
 * caller. */
class Unfit extends Error {}

/**
 * A tool of a server. `Server.tool` makes tools, and its comment explains the options.
 */
export class Tool extends Item {
    readonly kind = Sort.TOOL;
    readonly what = "tool";
    readonly method = "tools/call";
    readonly completes = false;
    readonly told: object;
    readonly options: ItemOptions;
    readonly #input: Schema;
    readonly #output: Schema | undefined;
    readonly #streams: boolean;
    readonly #given: ToolOptions;

    constructor(name: string, given: ToolOptions, run: Run) {
        super(name, run);
        this.#given = given;
        checkOptions("tool", name, given);
        const { input, output, task = "never", ...rest } = given;
        if (!Object.hasOwn(POLICIES, task)) {
            throw new TypeError(`tool ${name}: task has to be "never", "may" or "must"`);
        }
        this.#input = argumentsOf(input, rest.forbidExtra, `tool ${name}, input`);
        this.#output = output && schemaOf(output, "output", `tool ${name}, output`);
        this.#streams = isGenerator(run);
        const flags =
            ((rest.incremental ?? this.#streams) ? ToolFlag.INCREMENTAL : 0) |
            (rest.restartable ? ToolFlag.RESTARTABLE : 0) |
            (rest.unstoppable ? ToolFlag.UNSTOPPABLE : 0) |
            (rest.resumable ? ToolFlag.RESUMABLE : 0) |
            (rest.stored ? ToolFlag.STORED : 0);
        const { ttlMs, pollMs, promoteAfterMs, resumeMinWaitMs, resumeMaxWaitMs } = rest;
        this.options = {
            ...{ ttlMs, pollMs, promoteAfterMs, resumeMinWaitMs, resumeMaxWaitMs },
            flags,
            task: POLICIES[task],
            scopes: joined(rest.scopes),
        };
        const { title, description, annotations, icons, _meta } = rest;
        this.told = compact({
            ...{ name, title, description, annotations, icons, _meta },
            inputSchema: this.#input.json,
            outputSchema: this.#output?.json,
        });
    }

    override renamed(key: string): Tool {
        return new Tool(key, this.#given, this.run);
    }

    override prepare(): void {
        this.#input.prepare?.();
        this.#output?.prepare?.();
    }

    // ---- a call

    override check(given: Record<string, unknown>): unknown {
        const verdict = this.#input.check(given);
        if (verdict instanceof Promise) return verdict.then((one) => this.#checked(one));
        return this.#checked(verdict);
    }

    #checked(verdict: Awaited<ReturnType<Schema["check"]>>): unknown {
        if (!verdict.issues) return verdict.value;
        const why = reasonOf(verdict.issues);
        throw new BadArguments(`Invalid arguments for tool ${this.key}: ${why}`);
    }

    override reply(call: Call, value: unknown): void | Promise<void> {
        if (this.#output) {
            if (value === undefined && this.#streams) callReply(call);
            else return this.#replyChecked(call, value);
        } else if (typeof value === "string") callReply(call, value);
        else if (value === undefined || value === null) callReply(call);
        else if (isPiece(value)) {
            const { text, json } = pieceOf(value);
            if (json === undefined) callReply(call, text);
            else callReply(call, null, [json]);
        } else if (Array.isArray(value) && value.every(isPiece)) {
            callReply(call, null, blocksOf(value));
        } else {
            const result = resultOf(value);
            if (result) this.#replyResult(call, result, result.structured);
            else this.#replyJson(call, value);
        }
    }

    #replyJson(call: Call, value: unknown): void {
        this.#refuseHollow(value);
        const { text } = pieceOf(value);
        const isObject = text?.startsWith("{") === true;
        callReply(call, text ?? null, null, isObject ? text : null);
    }

    /**
     * Sends the result of a tool that has an output schema. The schema checks the
     * structured value first.
     */
    #replyChecked(call: Call, value: unknown): void | Promise<void> {
        const given = resultOf(value);
        const result = given ?? new Result([], { structured: value });
        // A generator has sent the blocks of a Result that it has yielded.
        const isBare = !result.content.length && (!given || !this.#streams);
        const send = (structured: unknown): void => {
            this.#refuseHollow(structured);
            this.#replyResult(call, result, structured, isBare);
        };
        if (result.isError && result.structured === undefined) {
            send(undefined);
            return;
        }
        const verdict = (this.#output as Schema).check(result.structured);
        if (verdict instanceof Promise) {
            return verdict.then((one) => send(this.#fitting(one)));
        }
        send(this.#fitting(verdict));
    }

    /** Refuses an object of a class whose members JSON.stringify does not see. */
    #refuseHollow(value: unknown): void {
        if (!isHollow(value)) return;
        throw new TypeError(
            `The tool ${this.key} returned an object of the class ` +
                `${nameOf(value)} that has no members in JSON: give the class ` +
                "a method toJSON, or return a plain object",
        );
    }

    #fitting(verdict: Awaited<ReturnType<Schema["check"]>>): unknown {
        if (!verdict.issues) return verdict.value;
        const why = reasonOf(verdict.issues);
        throw new Unfit(`${this.#misfit}: ${why}`);
    }

    get #misfit(): string {
        return `The result of the tool ${this.key} does not fit its output schema`;
    }

    /** @param isBare - true = the structured value is sent as text, too. */
    #replyResult(
        call: Call,
        result: Result,
        structured: unknown,
        isBare = !result.content.length && !this.#streams,
    ): void {
        const { content, isError, meta } = result;
        if (meta !== undefined) native.callSetField(call, "_meta", jsonText(meta));
        const json = structured === undefined ? null : jsonText(structured);
        callReply(call, isBare ? json : null, blocksOf(content), json, isError);
    }

    /**
     * Returns what the end of the call must still send of a yielded Result: its
     * structured content, `isError` and `_meta`. The blocks of the Result are sent at
     * once.
     */
    override lastWord(value: unknown, last: unknown): unknown {
        const result = typeof value === "object" ? resultOf(value) : undefined;
        if (!result) return last;
        const before = last instanceof Result ? last : new Result();
        const meta = { ...before.meta, ...result.meta };
        return new Result([], {
            structured: result.structured ?? before.structured,
            isError: result.isError || before.isError,
            meta: Object.keys(meta).length ? meta : undefined,
        });
    }

    override explain(error: unknown, isExposed: boolean): SegueError {
        if (error instanceof BadArguments) return new ToolError(error.message);
        if (isPublic(error)) return error;
        if (error instanceof Unfit) {
            const masked = this.#misfit;
            return new RpcError(INTERNAL, safeText(error, isExposed, masked));
        }
        const instead = `The tool ${this.key} failed`;
        const isWritten = error instanceof SchemaError;
        return new ToolError(safeText(error, isExposed || isWritten, instead));
    }

    override async complete(): Promise<void> {}
}
