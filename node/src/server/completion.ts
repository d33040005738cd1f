/**
 * Suggestions for the arguments of prompts and templates (completion/complete).
 *
 * @module
 */

import type { JsonSchema } from "../schema.js";
import type { Completer } from "./options.js";

/** Maximum number of values in one answer (2025-11-25 server/utilities/completion). */
const MAX_VALUES = 100;

interface Params {
    argument: { name: string; value?: string };
    context?: { arguments?: Record<string, string> };
}

/** The suggestions that answer a request completion/complete. */
export interface Suggested {
    values: string[];
    /** The number of all suggestions, including those that are not in `values`. */
    total: number;
    hasMore: boolean;
}

/** The completers of an item, by the name of the argument. */
export class Suggestions {
    readonly #of: string;
    readonly #names: readonly string[];
    readonly #byName = new Map<string, Completer>();

    /**
     * @throws TypeError when a completer is given for an argument that the item does not
     * have.
     */
    constructor(
        of: string,
        names: readonly string[],
        given: Readonly<Record<string, Completer>> = {},
    ) {
        this.#of = of;
        this.#names = names;
        for (const [name, completer] of Object.entries(given)) this.set(name, completer);
    }

    get size(): number {
        return this.#byName.size;
    }

    /**
     * Sets the completer of an argument. @throws TypeError when the item does not have
     * the argument.
     */
    set(name: string, completer: Completer): void {
        if (!this.#names.includes(name)) {
            throw new TypeError(`"${this.#of}" has no argument "${name}"`);
        }
        this.#byName.set(name, completer);
    }

    /**
     * For each argument that has an enum and no completer, suggests the values of the
     * enum.
     */
    addChoices(properties: Record<string, JsonSchema>): void {
        for (const [name, { enum: choices }] of Object.entries(properties)) {
            if (!Array.isArray(choices) || this.#byName.has(name)) continue;
            this.#byName.set(name, choices.map(String));
        }
    }

    /** Answers a completion request. */
    async answer(params: string): Promise<Suggested> {
        return limited(await this.suggest(params));
    }

    /** Returns all values for the argument that the params name. */
    async suggest(params: string): Promise<string[]> {
        const { argument, context } = JSON.parse(params) as Params;
        const completer = this.#byName.get(argument.name);
        const typed = argument.value ?? "";
        return completer ? suggest(completer, typed, context?.arguments ?? {}) : [];
    }
}

/** Returns the other arguments, and the text that was typed as the argument. */
export function typedArguments(params: string): Record<string, unknown> {
    const { argument, context } = JSON.parse(params) as Params;
    return { ...context?.arguments, [argument.name]: argument.value ?? "" };
}

/** Returns as many values as an answer may have, and how many there are. */
export function limited(found: readonly string[]): Suggested {
    return {
        values: found.slice(0, MAX_VALUES),
        total: found.length,
        hasMore: found.length > MAX_VALUES,
    };
}

async function suggest(
    completer: Completer,
    typed: string,
    others: Readonly<Record<string, string>>,
): Promise<string[]> {
    if (typeof completer === "function") {
        return Array.from(await completer(typed, others), String);
    }
    const begin = typed.toLocaleLowerCase();
    return completer.filter((one) => one.toLocaleLowerCase().startsWith(begin));
}
