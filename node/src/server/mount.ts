/**
 * Servers inside a server: the items of one appear in the other, under a prefix.
 *
 *     Server "all" -- Mount("weather") --> Server "weather"
 *       weather_today  <--- a copy ------    today
 *       data://weather/now <--- a copy --    data://now
 *
 * The copy of an item differs in its name or URI, and knows the servers that it passed.
 * An item that is added to a server or removed there is also added to or removed from the
 * servers that it is mounted in.
 *
 * @module
 */

import { Item as Sort } from "../native.js";
import type { Item } from "./item.js";
import type { Server } from "./server.js";

const PREFIX = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;
const URI = /^([A-Za-z][A-Za-z0-9+.-]*:(?:\/\/)?)\/?(.*)$/s;

/** A server inside another one. */
export class Mount {
    /**
     * @param parent - the server that clients see.
     * @param child - the server whose items appear there.
     * @param prefix - what their names begin with; "" = the names stay as they are.
     * @throws TypeError when the prefix has other characters than names have, or when a
     * server would contain itself.
     */
    constructor(
        readonly parent: Server,
        readonly child: Server,
        readonly prefix: string,
    ) {
        if (prefix && !PREFIX.test(prefix)) {
            throw new TypeError(
                "prefix has to have letters, digits, '_', '.' and '-', and to begin " +
                    `with a letter or digit, not ${JSON.stringify(prefix)}`,
            );
        }
        if (contains(child, parent)) {
            throw new TypeError(
                `the server "${parent.name}" would contain itself: "${child.name}" is ` +
                    "the same server, or contains it",
            );
        }
    }

    /**
     * Returns the name or URI of an item in the parent.
     *
     * @throws TypeError when the URI has no scheme, so that it cannot take a prefix.
     */
    key(kind: number, key: string): string {
        if (!this.prefix) return key;
        if (kind === Sort.TOOL || kind === Sort.PROMPT) return `${this.prefix}_${key}`;
        const [, scheme, rest] = URI.exec(key) ?? [];
        if (scheme === undefined) {
            throw new TypeError(`"${key}" has no scheme, so it cannot take a prefix`);
        }
        return `${scheme}${this.prefix}/${rest}`;
    }

    /** Returns the item as the parent has it. */
    copy(item: Item): Item {
        const made = item.renamed(this.key(item.kind, item.key));
        made.servers = [this.parent, ...item.servers];
        return made;
    }
}

/** Returns whether a server is another one, or contains it. */
function contains(server: Server, other: Server): boolean {
    return server === other || server.mounts.some(({ child }) => contains(child, other));
}
