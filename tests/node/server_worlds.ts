/**
 * The surroundings of tests of the server: in the process of its client, and over HTTP,
 * for clients of 2026-07-28 and of 2025-11-25.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { type ConnectOptions, connect, type Server, type Session } from "segue-mcp";
import { internal } from "./tree.js";

const { native } = internal<typeof import("segue-mcp/native")>("native");

/** One transport and one era for a server of the test. */
export interface World {
    readonly way: "pair" | "http";
    readonly era: "modern" | "legacy";
}

/** The fourth combination, HTTP with legacy clients, is covered by the conformance
 * suite. */
export const WORLDS: readonly World[] = [
    { way: "pair", era: "modern" },
    { way: "pair", era: "legacy" },
    { way: "http", era: "modern" },
];

/** Defines a test in each world. */
export function inEachWorld(name: string, work: (world: World) => Promise<void>): void {
    for (const world of WORLDS) {
        test(`${name} [${world.way}, ${world.era}]`, { timeout: 120_000 }, () =>
            work(world),
        );
    }
}

/** Counts the handles that were not freed. */
function handles(): Record<string, number> {
    const { Call = 0, Server = 0, Listener = 0, Session = 0 } = native.liveHandles();
    return { Call, Server, Listener, Session };
}

/** Serves, runs `work` with a session, ends both, and checks that no handle is left. */
export async function serve(
    world: World,
    server: Server,
    work: (session: Session) => Promise<void>,
    options: ConnectOptions = {},
): Promise<void> {
    const before = handles();
    const told = { ...options, era: world.era } as ConnectOptions;
    if (world.way === "http") {
        const { url } = await server.listenHttp({ drainMs: 2000 });
        await using_(await connect(url, { proxy: "", ...told }), work);
    } else await using_(await connect(server, told), work);
    await server.close({ drainMs: 2000 });
    const until = performance.now() + 60_000;
    while (!isDeepStrictEqual(handles(), before) && performance.now() < until)
        await new Promise(setImmediate);
    assert.deepEqual(handles(), before);
}

async function using_(
    session: Session,
    work: (session: Session) => Promise<void>,
): Promise<void> {
    try {
        await work(session);
    } finally {
        await session.close();
    }
}

/** A promise that other code resolves. */
export class Gate {
    open: () => void = () => undefined;
    readonly opened = new Promise<void>((resolve) => {
        this.open = resolve;
    });
}
