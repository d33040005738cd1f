/** The response modes of SEP-1905: how a call that may be a task is answered. */

import { ResponseMode as Bit } from "../constants.js";

/** By the names of SEP-1905. */
export type ResponseMode = "task" | "immediate" | "streaming";

const MODES: { readonly [name: string]: number } = {
    task: Bit.TASK,
    immediate: Bit.IMMEDIATE,
    streaming: Bit.STREAMING,
};

/**
 * As the library has them; undefined = 0, its default.
 *
 * @throws TypeError: it is no array of the names of modes, or an empty one.
 */
export function modesOf(names: readonly ResponseMode[] | undefined): number {
    if (names === undefined) return 0;
    if (!Array.isArray(names)) {
        throw new TypeError(
            `responseModes is an array of names, not ${JSON.stringify(names)}`,
        );
    }
    if (names.length === 0) {
        throw new TypeError("responseModes is empty: name one mode at least, or omit it");
    }
    let modes = 0;
    for (const name of names) {
        if (!Object.hasOwn(MODES, name)) {
            const known = Object.keys(MODES).map((one) => JSON.stringify(one));
            throw new TypeError(
                `no such response mode: ${JSON.stringify(name)}; ` +
                    `there are ${known.join(", ")}`,
            );
        }
        modes |= MODES[name] as number;
    }
    return modes;
}
