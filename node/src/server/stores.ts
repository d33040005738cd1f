/**
 * Where servers keep their tasks.
 *
 * @module
 */

import { asyncDispose } from "../dispose.js";
import { type Store as Handle, native } from "../native.js";
import type { StoreOptions as NativeOptions } from "../native_options.js";

/** What a store is made with. Sizes are bytes, durations milliseconds. */
export interface StoreOptions {
    /**
     * "full" survives the loss of power, "normal" (the default) the loss of the
     * process.
     */
    durability?: "normal" | "full" | undefined;
    /** Memory: payloads that are kept at most; 256 MiB by default. */
    maxBytes?: number | undefined;
    /** SQLite: how long another process may hold the file; 5000 by default. */
    busyTimeoutMs?: number | undefined;
    /** Redis: of a call, connecting and repeating in it; 5000 by default. */
    timeoutMs?: number | undefined;
    /** Redis: after so long a silence others take over; 10000 by default. */
    leaseMs?: number | undefined;
    /** Kept of one principal at most; no bound by default. */
    maxPrincipalOperations?: number | undefined;
    /** ... with their logs. */
    maxPrincipalBytes?: number | undefined;
}

/** A store that is open. Servers may share it, and with it their tasks. */
export class Store {
    /** What it is: "memory", the path of a file, or a URL. */
    readonly name: string;
    /** @internal */
    readonly handle: Handle;
    #closing: Promise<void> | undefined;

    /** @internal */
    constructor(name: string, handle: Handle) {
        this.name = name;
        this.handle = handle;
    }

    /**
     * Gives it up; servers that use it keep it until they end. One that nobody refers to
     * any more is given up by itself.
     */
    close(): Promise<void> {
        this.#closing ??= native.storeFree(this.handle);
        return this.#closing;
    }

    /** As {@link close}. */
    [asyncDispose](): Promise<void> {
        return this.close();
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
     * In a SQLite file, which survives a crash. Several processes of one machine may
     * share it.
     *
     * @throws StoreError when the file cannot be used.
     */
    async sqlite(path: string, options?: StoreOptions): Promise<Store> {
        return new Store(path, await native.storeSqlite(path, told(options)));
    },

    /**
     * On a Redis server (5 or newer, `maxmemory-policy noeviction`), which many servers
     * may share.
     *
     * @param url - `redis://[[user]:password@]host[:port][/db]`, `rediss://` (TLS), or
     *     `unix:///path`; `?prefix=name` for a store of its own.
     * @throws StoreError when it cannot be reached, refuses or would evict.
     */
    async redis(url: string, options?: StoreOptions): Promise<Store> {
        const handle = await native.storeRedis(url, told(options));
        return new Store(withoutSecret(url), handle);
    },
} as const;

/** A URL without what nobody shall read. */
function withoutSecret(url: string): string {
    return url.replace(/\/\/[^@/]*@/, "//");
}
