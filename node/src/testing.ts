/**
 * Helpers for tests of servers and clients, with vitest, node:test or any other runner.
 *
 *     import { withLab } from "segue-mcp/testing";
 *
 *     test("a call", withLab(async (lab) => {
 *         const session = await lab.connect(server);     // in memory
 *         const served = await lab.serve(server);        // over HTTP, with a wire to cut
 *         const other = await served.connect();
 *         served.cut();                                  // breaks all connections
 *         await served.kill();                           // ends the server like a crash
 *         await served.start();                          // the next one on the store
 *         await lab.fakeClock().advance(60_000);         // a minute passes at once
 *     }));
 *
 * @module
 */

import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { connect } from "./client/opening.js";
import type { ConnectOptions } from "./client/options.js";
import type { Session } from "./client/session.js";
import { asyncDispose } from "./dispose.js";
import type { ListenOptions } from "./server/options.js";
import type { Server } from "./server/server.js";
import type { Listener } from "./server/serving.js";
import { Clock } from "./testing_clock.js";

export { Clock };

/** A port before the port of a server. Its connections can be broken. */
class Wire {
    /** The port of the server; undefined = every connection breaks at once. */
    to: number | undefined;
    readonly #open = new Set<net.Socket>();
    readonly #listener = net.createServer((near) => this.#take(near));

    async begin(): Promise<number> {
        this.#listener.listen(0, "127.0.0.1");
        await once(this.#listener, "listening");
        return (this.#listener.address() as net.AddressInfo).port;
    }

    #take(near: net.Socket): void {
        const sockets = [near];
        if (this.to !== undefined) sockets.push(net.connect(this.to, "127.0.0.1"));
        for (const socket of sockets) {
            this.#open.add(socket);
            socket.on("close", () => this.#open.delete(socket));
            // When one side breaks, so does the other.
            socket.on("error", () => {
                for (const one of sockets) one.destroy();
            });
        }
        const far = sockets[1];
        if (far) near.pipe(far).pipe(near);
        else near.resetAndDestroy();
    }

    cut(): void {
        for (const socket of this.#open) socket.resetAndDestroy();
    }

    async end(): Promise<void> {
        this.to = undefined;
        const closed = once(this.#listener, "close");
        this.#listener.close();
        this.cut();
        await closed;
    }
}

/** A server over HTTP on this machine, behind a wire that a test can cut. */
export class Served {
    #listener: Listener | undefined;

    /** @internal */
    constructor(
        private readonly lab: Lab,
        /** The server that is tested. */
        readonly server: Server,
        /** @internal */
        readonly wire: Wire,
        /** The URL of the wire. It stays the same when the server is started again. */
        readonly url: string,
        private readonly options: ListenOptions,
    ) {}

    /** Connects a client. The session is closed with the lab. */
    connect(options: ConnectOptions = {}): Promise<Session> {
        return this.lab.opened(connect(this.url, { proxy: "", ...options }));
    }

    /** Breaks all connections, as a network does. New ones can be made at once. */
    cut(): void {
        this.wire.cut();
    }

    /**
     * Ends the server as a crash does: connections break, no call gets an answer, and the
     * signals of handlers abort. A handler that goes on can send nothing more: its sends
     * and checkpoints throw, and reach neither the store nor a client. Tasks are left in
     * the store as they are. Clients cannot reach the server until `start`. Sessions in
     * memory with this server end, too.
     */
    async kill(): Promise<void> {
        this.wire.to = undefined;
        this.wire.cut();
        if (!this.#listener) return;
        this.#listener = undefined;
        await this.server._crash();
    }

    /**
     * Starts the server again, with the same URL and the same store. Tasks of restartable
     * tools go on.
     */
    async start(): Promise<void> {
        if (this.#listener) return;
        this.#listener = await this.server.listenHttp({ ...this.options, port: 0 });
        this.wire.to = Number(new URL(this.#listener.url).port);
    }

    /** Does `kill` and `start`. */
    async restart(): Promise<void> {
        await this.kill();
        await this.start();
    }
}

/** What a test has opened. `close` ends all of it. */
export class Lab {
    readonly #sessions: Session[] = [];
    readonly #served: Served[] = [];
    #directory: string | undefined;
    #clock: Clock | undefined;

    /**
     * Connects to a server in memory, without a network. The session is closed with the
     * lab.
     */
    connect(server: Server, options: ConnectOptions = {}): Promise<Session> {
        return this.opened(connect(server, options));
    }

    /** @internal */
    async opened(connecting: PromiseLike<Session>): Promise<Session> {
        const session = await connecting;
        this.#sessions.push(session);
        return session;
    }

    /**
     * Serves over HTTP on a free port, behind a wire.
     *
     * @param options - those of `server.listenHttp`. By default tasks are in a file of
     * their own, so they survive `Served.kill`.
     */
    async serve(server: Server, options: ListenOptions = {}): Promise<Served> {
        this.#directory ??= fs.mkdtempSync(path.join(os.tmpdir(), "segue-lab-"));
        const store = path.join(this.#directory, `tasks-${this.#served.length}.db`);
        const all = server.hasStore ? options : { store, ...options };
        const wire = new Wire();
        const port = await wire.begin();
        const url = `http://127.0.0.1:${port}${options.path ?? "/mcp"}`;
        const served = new Served(this, server, wire, url, all);
        this.#served.push(served);
        await served.start();
        return served;
    }

    /** Returns the clock of this process, which stands still from the first call on. */
    fakeClock(): Clock {
        this.#clock ??= new Clock();
        return this.#clock;
    }

    /** Closes the sessions and ends the servers. */
    async close(): Promise<void> {
        this.#clock?.restore();
        await Promise.all(this.#sessions.map((session) => session.close()));
        for (const served of this.#served) {
            await served.kill();
            await served.wire.end();
        }
        if (this.#directory) fs.rmSync(this.#directory, { recursive: true });
    }

    /** Does the same as {@link close}. */
    [asyncDispose](): Promise<void> {
        return this.close();
    }
}

/** Makes a function for `test` that gets a lab, which is closed at the end. */
export function withLab(work: (lab: Lab) => unknown): () => Promise<void> {
    return async () => {
        const lab = new Lab();
        try {
            await work(lab);
        } finally {
            await lab.close();
        }
    };
}
