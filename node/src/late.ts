/**
 * Long results. A string of a long text takes many milliseconds to make, so the turn of
 * the event loop in which the result arrives makes no string. The string is made when
 * the application first uses the text.
 */

import { native, type Text } from "./native.js";

/** A text that becomes a string at its first use. */
export class LateText {
    #handle: Text | undefined;
    #text = "";

    constructor(handle: Text) {
        this.#handle = handle;
    }

    read(): string {
        if (this.#handle !== undefined) {
            this.#text = native.textRead(this.#handle);
            native.textFree(this.#handle);
            this.#handle = undefined;
        }
        return this.#text;
    }
}

/** The JSON text of a result that arrived. */
export type RawText = string | LateText;

/** Returns the text as the binding gives it (native.ts). */
export function rawOf<T extends null>(given: string | Text | T): RawText | T {
    return typeof given === "object" && given !== null ? new LateText(given) : given;
}

export function readText(raw: RawText): string {
    return typeof raw === "string" ? raw : raw.read();
}
