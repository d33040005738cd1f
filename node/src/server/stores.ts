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
     * "normal" (the default) survives the end of the process, "full" also survives a loss
     * of power. With "normal", PostgreSQL uses the setting of its server.
     */
    durability?: "normal" | "full" | undefined;
    /**
     * For a store in memory: maximum size of all payloads, in bytes; 256 MiB by default.
     */
    maxBytes?: number | undefined;
    /**
     * For SQLite: how long to wait while another process locks the file, in milliseconds;
     * 5000 by default.
     */
    busyTimeoutMs?: number | undefined;
    /**
     * For Redis and PostgreSQL: time limit for one call, including reconnects and
     * repeats, in milliseconds; 5000 by default.
     */
    timeoutMs?: number | undefined;
    /**
     * For Redis and PostgreSQL: the time in milliseconds after which other servers take
     * over the tasks of a silent server; 10000 by default.
     */
    leaseMs?: number | undefined;
    /** Maximum number of stored operations of one principal; no limit by default. */
    maxPrincipalOperations?: number | undefined;
    /**
     * Maximum size of the stored operations of one principal, including their logs, in
     * bytes; no limit by default.
     */
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
     * Closes the store. A server that uses the store keeps the store open until the
     * server ends. The garbage collector closes a store that is no longer used.
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
    /**
     * Opens a store in memory. When the store is full, the oldest results are removed.
     * The data is lost with the process.
     */
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
     * servers may share the store.
     *
     * @param url - `redis://[[user]:password@]host[:port][/db]`, `rediss://` (TLS), or
     * `unix:///path`. `?prefix=name` separates several stores on one Redis server.
     * @throws StoreError when Redis cannot be reached, refuses the connection, or is
     * configured to evict keys.
     */
    async redis(url: string, options?: StoreOptions): Promise<Store> {
        const handle = await native.storeRedis(url, told(options));
        return new Store(withoutSecret(url), handle);
    },

    /**
     * Opens a store in a PostgreSQL database (13 or newer). Many servers may share the
     * store.
     *
     * @param url - `postgresql://[user[:password]@][host[:port]][/database]`, with the
     * options of libpq. `?schema=name` separates several stores in one database.
     * Environment variables `PG*` give the parts that are missing in the URL.
     * @throws StoreError when the server cannot be reached or refuses the connection.
     * @throws UnsupportedError when the server is too old, or is a pooler in transaction
     * mode.
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
