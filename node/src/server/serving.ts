/**
 * One way into a server: a listener, or standard input and output.
 *
 * The end has an order: no new calls, those that run end within `drainMs`, and who was
 * cut off from one of them may come back for the rest. Then what is left of the
 * connections is cut.
 *
 * @module
 */

import { asyncDispose } from "../dispose.js";
import { type Listener as Handle, native } from "../native.js";
import type { ListenOptions as NativeListenOptions } from "../native_options.js";
import { type BearerAuth, bearerHook, bearerOptions } from "./auth.js";
import type { Hosting } from "./hosting.js";
import type { ListenOptions, ServeOptions } from "./options.js";

/** For what was answered to leave, when all has ended. */
const GRACE_MS = 1000;
const DRAIN_MS = 10_000;

/** What ends a serving. */
export interface CloseOptions {
    /** Calls that run may end so long; what the serving was made with by default. */
    drainMs?: number | undefined;
}

/** What is told that a host has no serving any more. */
type Leave = (host: Hosting) => Promise<void>;

/** A server that is reached in one way, while it is. */
export abstract class Serving {
    /** Resolves when it has ended, for whatever reason. */
    readonly closed: Promise<void>;
    /** @internal */
    protected readonly host: Hosting;
    /** @internal */
    protected readonly drainMs: number;
    /** @internal The last conversation has ended, and nobody can come any more. */
    protected isIdle = false;
    /** @internal Who was cut off may come back, while this closes. */
    protected readonly returns: boolean = false;
    readonly #leave: Leave;
    readonly #signal: AbortSignal | undefined;
    #resolve: () => void = () => undefined;
    #closing: Promise<void> | undefined;
    #isHeld = false;
    #wakeIdle: (() => void) | undefined;

    /** @internal */
    constructor(host: Hosting, options: ServeOptions, leave: Leave) {
        this.host = host;
        this.drainMs = options.drainMs ?? DRAIN_MS;
        this.#leave = leave;
        this.#signal = options.signal;
        this.closed = new Promise((resolve) => {
            this.#resolve = resolve;
        });
    }

    /** @internal Begins; when that fails, all is as it was. */
    protected begin(start: () => void): void {
        const { host } = this;
        host.users++;
        host.onIdle.add(this.#onIdle);
        try {
            this.#signal?.throwIfAborted();
            start();
        } catch (error) {
            host.onIdle.delete(this.#onIdle);
            void this.#let();
            throw error;
        }
        this.ref();
        this.#signal?.addEventListener("abort", this.#onAbort);
    }

    readonly #onAbort = (): void => void this.close();

    readonly #onIdle = (): void => {
        this.isIdle = true;
        this.#wakeIdle?.();
        this.idle();
    };

    /** @internal The last conversation has ended. */
    protected idle(): void {}

    /** @internal No new connections. */
    protected stop(): void {}

    /** @internal After the end. */
    protected ended(): void {}

    /** Keeps the process alive, as it does from the start. */
    ref(): this {
        if (!this.#isHeld && !this.#closing) {
            this.#isHeld = true;
            this.host.runtime.hold();
        }
        return this;
    }

    /** Lets the process end although this serves. */
    unref(): this {
        if (this.#isHeld) {
            this.#isHeld = false;
            this.host.runtime.release();
        }
        return this;
    }

    /**
     * Stops: no new calls, those that run may end; over HTTP clients may come back for
     * them meanwhile. Tasks go on. Resolves when all is over.
     */
    close(options: CloseOptions = {}): Promise<void> {
        this.#closing ??= this.#close(options.drainMs ?? this.drainMs);
        return this.#closing;
    }

    /** As {@link close}. */
    [asyncDispose](): Promise<void> {
        return this.close();
    }

    async #close(patienceMs: number): Promise<void> {
        const { host } = this;
        this.#signal?.removeEventListener("abort", this.#onAbort);
        host.runtime.hold(); // also of one that was unref'd: the end is waited for
        try {
            this.stop();
            if (host.users === 1) await this.#drain(patienceMs);
            await this.#let();
            if (host.isClosed && !this.isIdle) await this.#idleWithin(GRACE_MS);
        } finally {
            host.onIdle.delete(this.#onIdle);
            this.ended();
            this.unref();
            host.runtime.release();
            this.#resolve();
        }
    }

    async #drain(patienceMs: number): Promise<void> {
        const { host } = this;
        const until = performance.now() + patienceMs;
        await host.drain(patienceMs);
        // Who was cut off fetches what has ended meanwhile.
        const left = until - performance.now();
        if (this.returns && !this.isIdle && left > 0) await this.#idleWithin(left);
    }

    async #idleWithin(patienceMs: number): Promise<void> {
        let timer: NodeJS.Timeout | undefined;
        await new Promise<void>((resolve) => {
            this.#wakeIdle = resolve;
            timer = setTimeout(resolve, patienceMs);
        });
        clearTimeout(timer);
    }

    async #let(): Promise<void> {
        this.host.users--;
        if (!this.host.users) await this.#leave(this.host);
    }
}

/** A server that listens; {@link Server.listenHttp} makes it. */
export class Listener extends Serving {
    /** Of the endpoint, such as "http://127.0.0.1:8080/mcp". */
    readonly url: string = "";
    /** @internal */
    protected override readonly returns = true;
    #handle: Handle | undefined;

    /** @internal */
    constructor(host: Hosting, options: ListenOptions, leave: Leave) {
        super(host, options, leave);
        const { auth } = options;
        const listen = listenOptions(options, this.drainMs);
        this.begin(() => {
            this.#handle = native.serverListen(
                host.handle,
                listen,
                auth ? bearerOptions(auth) : null,
                auth ? this.#hook(auth) : null,
            );
            (this as { url: string }).url = native.listenerUrl(this.#handle);
        });
    }

    #hook(auth: BearerAuth): ReturnType<typeof bearerHook> {
        return bearerHook(auth, (error) =>
            this.host.report(error, { what: "auth", key: "verify" }),
        );
    }

    /**
     * Reads the files of certificates and keys again.
     *
     * @throws InputOutputError when they cannot be used: the ones before stay in force;
     *     StateError when there are none.
     */
    reload(): void {
        if (this.#handle) native.listenerReload(this.#handle);
    }

    /** @internal */
    protected override stop(): void {
        if (this.#handle) native.listenerClose(this.#handle);
    }

    /** @internal */
    protected override ended(): void {
        if (this.#handle) native.listenerFree(this.#handle);
        this.#handle = undefined;
    }
}

/** Standard input and output; {@link Server.serveStdio} makes it. */
export class Stdio extends Serving {
    /** @internal */
    constructor(host: Hosting, options: ServeOptions, leave: Leave) {
        super(host, options, leave);
        this.begin(() => {
            const transport = native.transportStdio(host.runtime.handle);
            native.serverAttach(host.handle, transport);
        });
    }

    /**
     * @internal Nobody is there who could hear of an end: there is nothing to wait for.
     */
    protected override idle(): void {
        void this.close({ drainMs: 0 });
    }
}

function commas(names: string | readonly string[] | undefined): string | undefined {
    return names === undefined || typeof names === "string" ? names : names.join(",");
}

const LOCAL = "127.0.0.1";

function listenOptions(given: ListenOptions, drainMs: number): NativeListenOptions {
    const { host, store: _, signal: __, auth: ___, hosts, origins, ...rest } = given;
    const address = rest.address ?? (host === "localhost" ? LOCAL : host);
    return {
        ...rest,
        address,
        drainMs,
        hosts: commas(hosts),
        origins: commas(origins),
    };
}
