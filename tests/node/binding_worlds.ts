/** Worlds for tests of the addon: a runtime with a server and a session that are joined
 * by a pair of transports, and recorders of their events. */
import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { internal } from "./tree.js";

export const { native, Kind, Status, Item } =
    internal<typeof import("segue-mcp/native")>("native");
export const { Runtime } = internal<typeof import("segue-mcp/runtime")>("runtime");
export const errors = internal<typeof import("segue-mcp/errors")>("errors");

type Native = typeof import("segue-mcp/native");
export type Handler = import("segue-mcp/native").Handler;
export type Call = import("segue-mcp/native").Call;
export type Server = import("segue-mcp/native").Server;
export type Session = import("segue-mcp/native").Session;
export type Transport = import("segue-mcp/native").Transport;
export type Host = InstanceType<typeof Runtime>;
export type Requests = Parameters<Native["native"]["requestStart"]>[3];

/** One event: kind, a, b, c. */
// biome-ignore lint/suspicious/noExplicitAny: what they are depends on kind
export type Event = [kind: number, a: any, b: any, c: any];

/** Keeps the events of one object, and lets tests wait for an event of a kind. */
export class Recorder {
    readonly events: Event[] = [];
    #waiting: { kind: number; found: (event: Event) => void }[] = [];

    readonly handler: Handler = (kind, a, b, c) => {
        const event: Event = [kind, a, b, c];
        this.events.push(event);
        const { length } = this.#waiting;
        this.#waiting = this.#waiting.filter(
            (one) => one.kind !== kind || one.found(event),
        );
        assert.ok(this.#waiting.length <= length);
    };

    /** Returns the first event of a kind, now or when it comes. */
    until(kind: number): Promise<Event> {
        const there = this.events.find((event) => event[0] === kind);
        if (there) return Promise.resolve(there);
        return new Promise((found) => this.#waiting.push({ kind, found }));
    }

    of(kind: number): Event[] {
        return this.events.filter((event) => event[0] === kind);
    }

    get kinds(): number[] {
        return this.events.map((event) => event[0]);
    }
}

/** What a tool of these worlds does when its call begins. */
export type Tool = (call: Call, params: string) => void;

/** A runtime whose memory is counted, with a server and a session. */
export class Pair {
    readonly runtime: Host;
    readonly server: Server;
    readonly session: Session;
    readonly told = new Recorder();

    constructor(tools: Record<string, Tool>, item: object = {}, options: object = {}) {
        this.runtime = new Runtime(true);
        this.runtime.hold();
        const { handle } = this.runtime;
        const [near, far] = native.transportPair(handle);
        this.server = native.serverNew(handle, { name: "pair", ...options });
        for (const [name, tool] of Object.entries(tools)) {
            const json = JSON.stringify({ name, inputSchema: { type: "object" } });
            native.serverAdd(this.server, Item.TOOL, json, item, (_kind, call, params) =>
                tool(call, params),
            );
        }
        native.serverAttach(this.server, far);
        this.session = native.sessionOpen(
            handle,
            near,
            { name: "test" },
            this.told.handler,
        );
    }

    /** Calls a tool; the recorder gets its events. */
    call(
        name: string,
        options: Requests = null,
        events = -1,
    ): Recorder & { request: never } {
        const recorder = new Recorder();
        const request = native.requestStart(
            this.session,
            "tools/call",
            JSON.stringify({ name, arguments: {} }),
            options,
            recorder.handler,
            events,
        );
        return Object.assign(recorder, { request: request as never });
    }

    /** Ends the runtime. The server is freed first: until then it holds its handlers,
     * which may refer to the server. */
    close(): void {
        native.serverFree(this.server);
        this.runtime.close();
    }
}

setFlagsFromString("--expose-gc");
/** Collects garbage now. */
export const collect = runInNewContext("gc") as () => void;

/** How long the library may take to free its last memory; waited for once. */
let patienceMs = 60_000;

/** Checks that nothing of a test is left: no handle, and no memory of its runtimes. For
 * afterEach, when the variables of the test are gone. */
export async function nothingIsLeft(): Promise<void> {
    const until = performance.now() + patienceMs;
    for (let round = 0; round < 50 || performance.now() < until; round++) {
        collect();
        await new Promise(setImmediate);
        if (native.allocated() === 0 && Object.keys(native.liveHandles()).length === 0)
            return;
    }
    patienceMs = 0;
    assert.deepEqual(native.liveHandles(), {});
    assert.equal(native.allocated(), 0, "the library holds memory");
}
