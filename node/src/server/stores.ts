/**
 * Where servers keep their tasks.
 *
 * @module
 */

import { type Store as Handle, native } from "../native.js";
import type { StoreOptions as NativeOptions } from "../native_options.js";

/** What a store is made with. Sizes are bytes, durations milliseconds. */
export interface StoreOptions {
    /**
     * "full" survives the loss of power, "normal" (the default) the loss of the
     * process.
     */
    durability?: "normal" | "full" | undefined;
    /** What is kept at most. */
    maxBytes?: number | undefined;
    /** How long another process may hold the file. */
    busyTimeoutMs?: number | undefined;
}

/** A store that is open. Servers may share it, and with it their tasks. */
export class Store {
    /** What it is: "memory", or the path of a file. */
    readonly name: string;
    /** @internal */
    readonly handle: Handle;
    #isClosed = false;

    /** @internal */
    constructor(name: string, handle: Handle) {
        this.name = name;
        this.handle = handle;
    }

    /**
     * Gives it up; servers that use it keep it until they end. One that nobody refers to
     * any more is given up by itself.
     */
    close(): void {
        if (this.#isClosed) return;
        this.#isClosed = true;
        native.storeFree(this.handle);
    }
}

function told(options: StoreOptions | undefined): NativeOptions {
    const { durability, ...rest } = options ?? {};
    if (durability === undefined) return rest;
    if (durability !== "normal" && durability !== "full") {
        throw new TypeError('durability is "normal" or "full"');
    }
    return { ...rest, durability: durability === "full" ? 1 : 0 };
}

/** The stores there are. */
export const stores = {
    /** In memory: bounded, the oldest results go first; gone with the process. */
    memory(options?: StoreOptions): Store {
        return new Store("memory", native.storeMemory(told(options)));
    },

    /**
     * In a SQLite file, which survives a crash. One process at a time serves it.
     *
     * @throws StoreError when the file cannot be used.
     */
    sqlite(path: string, options?: StoreOptions): Store {
        return new Store(path, native.storeSqlite(path, told(options)));
    },
} as const;
