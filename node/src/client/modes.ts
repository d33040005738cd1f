/** The response modes of SEP-1905: how a server may answer a call that can be a task. */

import { ResponseMode as Bit } from "../constants.js";

/** A response mode, by its name in SEP-1905. */
export type ResponseMode = "task" | "immediate" | "streaming";

const MODES: { readonly [name: string]: number } = {
    task: Bit.TASK,
    immediate: Bit.IMMEDIATE,
    streaming: Bit.STREAMING,
};

/**
 * Converts the names of response modes to the library's bit mask. Returns 0, the
 * library's default, when `names` is undefined.
 *
 * @throws TypeError: the value is not an array of mode names, or the array is empty.
 */
export function modesOf(names: readonly ResponseMode[] | undefined): number {
    if (names === undefined) return 0;
    if (!Array.isArray(names)) {
        throw new TypeError(
            `responseModes has to be an array of names, not ${JSON.stringify(names)}`,
        );
    }
    if (names.length === 0) {
        throw new TypeError("responseModes is empty: name at least one mode, or omit it");
    }
    let modes = 0;
    for (const name of names) {
        if (!Object.hasOwn(MODES, name)) {
            const known = Object.keys(MODES).map((one) => JSON.stringify(one));
            throw new TypeError(
                `unknown response mode: ${JSON.stringify(name)}; ` +
                    `the modes are ${known.join(", ")}`,
            );
        }
        modes |= MODES[name] as number;
    }
    return modes;
}
