/**
 * The headers of the HTTP request that made a call.
 *
 * @module
 */

import { type Call, native } from "../native.js";

/** Returns the headers as the web standard has them. */
export function headersOf(call: Call): Headers {
    const made = new Headers();
    for (let i = 0; ; i++) {
        const found = native.callHeaderAt(call, i);
        if (!found) return made;
        made.append(...found);
    }
}
