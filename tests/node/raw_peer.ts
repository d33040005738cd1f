/**
 * The other end of a conversation, played by the test, message by message and without a
 * network.
 *
 * `hear` returns what the library wrote, line by line; `say` gives the library a line to
 * read. `settle` returns when the library has done everything that it can do without time
 * passing: it has answered a ping, and so has handled all earlier lines.
 */
import type { Server } from "segue-mcp";
import type * as Native from "segue-mcp/native";
import type * as Glue from "segue-mcp/runtime";
import { internal } from "./tree.js";

const { native, Kind } = internal<typeof Native>("native");
const { Runtime } = internal<typeof Glue>("runtime");

const SECONDS = 60;

/** Makes a server serve the peer. */
export function attach(server: Server, peer: RawPeer): void {
    const { _attach } = server as unknown as { _attach(transport: unknown): void };
    _attach.call(server, peer.transport());
}

/** See the top of the file. With `reopen` the library may connect again after a cut. */
export class RawPeer {
    /** Received lines that were not read yet. */
    readonly lines: string[] = [];
    reopens = 0;
    isClosed = false;
    readonly #reopen: boolean;
    #rest = "";
    #waiters: (() => void)[] = [];
    #pings = 0;
    #wire: Native.Wire | null = null;

    constructor(options: { reopen?: boolean } = {}) {
        this.#reopen = options.reopen ?? false;
    }

    /** Makes a transport for `server._attach`, or for a session. */
    transport(): Native.Transport {
        const { handle } = Runtime.current();
        return native.transportCustom(handle, this.#onEvent, this.#reopen);
    }

    /** Whether the library has begun to use the line. */
    get isStarted(): boolean {
        return this.#wire !== null;
    }

    readonly #onEvent = (kind: number, a: unknown): void => {
        if (kind === Kind.TRANSPORT_START) this.#wire = a as Native.Wire;
        else if (kind === Kind.TRANSPORT_SEND) this.#heard(a as Buffer);
        else if (kind === Kind.TRANSPORT_CLOSE) {
            if (this.#wire) native.transportClosed(this.#wire);
            this.isClosed = true;
        } else if (kind === Kind.TRANSPORT_REOPEN) {
            this.#rest = "";
            this.reopens++;
        } else if (kind === Kind.TRANSPORT_FREE) {
            this.isClosed = true;
            this.#wire = null;
        }
        for (const wake of this.#waiters.splice(0)) wake();
    };

    #heard(data: Buffer): void {
        if (this.#wire) native.transportTook(this.#wire, data.length);
        const lines = (this.#rest + data.toString()).split("\n");
        this.#rest = lines.pop() ?? "";
        this.lines.push(...lines);
    }

    /** Waits until something happens on the line. */
    async change(): Promise<void> {
        await new Promise<void>((resolve, reject) => {
            const timer = setTimeout(
                () => reject(new Error("nothing happens")),
                SECONDS * 1000,
            );
            this.#waiters.push(() => {
                clearTimeout(timer);
                resolve();
            });
        });
    }

    /** Sends one line to the library; after the library has left it is dropped. */
    say(line: string): void {
        if (this.isClosed) return;
        if (!this.#wire) throw new Error("nobody has begun to listen");
        if (!native.transportFeed(this.#wire, Buffer.from(`${line}\n`))) {
            throw new Error("the library takes no more");
        }
    }

    /** Waits for the next line of the library. */
    async hear(): Promise<string> {
        while (!this.lines.length) await this.change();
        return this.lines.shift() as string;
    }

    /** Waits until the library has handled all lines. */
    async settle(): Promise<void> {
        while (!this.#wire && !this.isClosed) await this.change();
        const id = `ping-${++this.#pings}`;
        this.say(`{"jsonrpc":"2.0","id":"${id}","method":"ping"}`);
        for (;;) {
            // The library may have answered and left in one turn.
            const at = this.lines.findIndex((line) => line.includes(`"${id}"`));
            if (at >= 0) this.lines.splice(at, 1);
            if (at >= 0 || this.isClosed) break;
            await this.change();
        }
        for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    }

    /** Breaks the connection; lines that were not read are lost. */
    cut(): void {
        this.lines.length = 0;
        this.#rest = "";
        if (this.#wire) native.transportClosed(this.#wire);
    }
}
