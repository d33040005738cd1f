/**
 * The surroundings of tests of the client: the fixture server over stdio and over HTTP,
 * as a server of 2026-07-28 and of 2025-11-25.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { type ConnectOptions, connect, type Session, type Task } from "segue-mcp";
import { HttpServer, serverCommand } from "./programs.js";
import { internal } from "./tree.js";

const { native } = internal<typeof import("segue-mcp/native")>("native");

const MS = 120_000;

/** One transport and one era of the server. */
export class World {
    private server: HttpServer | undefined;
    readonly directory: string;

    constructor(
        readonly transport: "stdio" | "http",
        readonly era: "modern" | "legacy",
    ) {
        this.directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
    }

    private get store(): string {
        return path.join(this.directory, "tasks.db");
    }

    /** The target for `connect`. */
    async target(): Promise<string | string[]> {
        if (this.transport === "stdio") return serverCommand("--store", this.store);
        return (await this.http()).url;
    }

    /** The server over HTTP; it starts when it is first needed. */
    async http(): Promise<HttpServer> {
        this.server ??= await HttpServer.start("--store", this.store);
        return this.server;
    }

    /** The value of the option `era` of `connect`. */
    get option(): "legacy" | "auto" {
        return this.era === "legacy" ? "legacy" : "auto";
    }

    /** Opens a session of the world's era, and closes it at the end. */
    async session(
        options: ConnectOptions,
        use: (session: Session) => Promise<void>,
    ): Promise<void> {
        const session = await connect(await this.target(), {
            era: this.option,
            ...options,
        });
        try {
            assert.equal(session.peer.era, this.era);
            await use(session);
        } finally {
            await session.close();
        }
    }

    async end(): Promise<void> {
        await this.server?.kill();
        rmSync(this.directory, { recursive: true, force: true });
    }
}

/** Returns the number of live handles of each kind. */
function handles(): Record<string, number> {
    return { ...native.liveHandles() };
}

/** Defines a test with a server over HTTP whose tasks outlive it. */
export function serverTest(
    name: string,
    work: (server: HttpServer, world: World) => Promise<void>,
): void {
    test(name, { timeout: MS }, async () => {
        const world = new World("http", "modern");
        try {
            await work(await world.http(), world);
        } finally {
            await world.end();
        }
    });
}

/** Defines a test in all worlds; no world may leave a session behind. */
export function worldTest(name: string, work: (world: World) => Promise<void>): void {
    for (const transport of ["stdio", "http"] as const) {
        for (const era of ["modern", "legacy"] as const) {
            test(`${name} [${transport} ${era}]`, { timeout: MS }, async () => {
                const world = new World(transport, era);
                const before = handles();
                try {
                    await work(world);
                } finally {
                    await world.end();
                }
                assert.equal(
                    handles().Session ?? 0,
                    before.Session ?? 0,
                    "sessions are left",
                );
            });
        }
    }
}

/** Returns whether the server has cancelled the task. In 2026-07-28 that may take
 * time. */
export async function isCancelled(task: Task): Promise<boolean> {
    let status = await task.status();
    while (status.status === "working") status = await task.status();
    return status.status === "cancelled" && status.isFinal;
}

/** Returns all items of an async iterable. */
export async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
    const found: T[] = [];
    for await (const one of source) found.push(one);
    return found;
}

/** Returns the texts of some segments of the fixture's story. */
export function story(first: number, last: number): string[] {
    return Array.from(
        { length: last - first + 1 },
        (_, i) => `segment ${first + i} of the story`,
    );
}
