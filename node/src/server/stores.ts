/**
 * The stores in which servers keep their tasks.
 *
 * @module
 */

import { asyncDispose } from "../dispose.js";
import { type Store as Handle, native } from "../native.js";
import type { StoreOptions as NativeOptions } from "../native_options.js";

/** The options of a store. Sizes are in bytes, durations in milliseconds. */
export interface StoreOptions {
    /**
     * "full" survives the loss of power. "normal" (the default) survives the loss of the
     * process; PostgreSQL then does what its server is set to.
     */
    durability?: "normal" | "full" | undefined;
    /** Memory: maximum size of all payloads; 256 MiB by default. */
    maxBytes?: number | undefined;
    /** SQLite: how long to wait for another process that locks the file; 5000 by
     * default. */
    busyTimeoutMs?: number | undefined;
    /** Redis, PostgreSQL: limit for one call, including reconnecting and repeating; 5000
     * by default. */
    timeoutMs?: number | undefined;
    /** Redis, PostgreSQL: the time of silence of a server after which other servers take
     * over its tasks; 10000 by default. */
    leaseMs?: number | undefined;
    /** Maximum number of stored operations per principal; no limit by default. */
    maxPrincipalOperations?: number | undefined;
    /** Maximum size of one principal's operations and their logs; no limit by default. */
    maxPrincipalBytes?: number | undefined;
}

/** An open store. Servers that share a store share their tasks. */
export class Store {
    /** The name of the store: "memory", the path of a file, or a URL. */
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
     * Closes the store. Servers that use it keep it open until they end. The garbage
     * collector closes a store that is no longer used.
     */
    close(): Promise<void> {
        this.#closing ??= native.storeFree(this.handle);
        return this.#closing;
    }

    /** Does the same as {@link close}. */
    [asyncDispose](): Promise<void> {
        return this.close();
    }
}

function told(options: StoreOptions | undefined): NativeOptions {
    const { durability, ...rest } = options ?? {};
    if (durability === undefined) return rest;
    if (durability !== "normal" && durability !== "full") {
        throw new TypeError('durability has to be "normal" or "full"');
    }
    return { ...rest, durability: durability === "full" ? 1 : 0 };
}

/** Functions that open stores. */
export const stores = {
    /** Opens a store in memory. The size of the store is bounded: the oldest results are
     * removed first. The data is lost with the process. */
    memory(options?: StoreOptions): Store {
        return new Store("memory", native.storeMemory(told(options)));
    },

    /**
     * Opens a store in a SQLite file, which survives a crash. Several processes on one
     * machine may share the file.
     *
     * @throws StoreError when the file cannot be used.
     */
    async sqlite(path: string, options?: StoreOptions): Promise<Store> {
        return new Store(path, await native.storeSqlite(path, told(options)));
    },

    /**
     * Opens a store on a Redis server (5 or newer, `maxmemory-policy noeviction`). Many
     * servers may share it.
     *
     * @param url - `redis://[[user]:password@]host[:port][/db]`, `rediss://` (TLS), or
     *     `unix:///path`; `?prefix=name` separates several stores on one server.
     * @throws StoreError when Redis cannot be reached, refuses, or is configured to evict
     * keys.
     */
    async redis(url: string, options?: StoreOptions): Promise<Store> {
        const handle = await native.storeRedis(url, told(options));
        return new Store(withoutSecret(url), handle);
    },

    /**
     * Opens a store in a PostgreSQL database (13 or newer). Many servers may share it.
     *
     * @param url - `postgresql://[user[:password]@][host[:port]][/database]`, with the
     *     options of libpq; `?schema=name` separates several stores in one database.
     *     `PG*` variables of the environment fill in what is missing.
     * @throws StoreError when the server cannot be reached or refuses.
     */
    async postgres(url: string, options?: StoreOptions): Promise<Store> {
        const handle = await native.storePostgres(url, told(options));
        return new Store(withoutSecret(url).replace(/\?.*/s, ""), handle);
    },
} as const;

/** Removes the user and password from a URL. */
function withoutSecret(url: string): string {
    return url.replace(/\/\/[^@/]*@/, "//");
}
