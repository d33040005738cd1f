/**
 * One way to serve: a listener, or standard input and output.
 *
 * A serving ends in this order. First, new calls are refused, running calls may end
 * within `drainMs`, and clients that lost their connection may come back for the rest of
 * an answer. Then the remaining connections are closed.
 *
 * @module
 */

import { asyncDispose } from "../dispose.js";
import { type Listener as Handle, native } from "../native.js";
import type { ListenOptions as NativeListenOptions } from "../native_options.js";
import { type BearerAuth, bearerHook, bearerOptions } from "./auth.js";
import type { Hosting } from "./hosting.js";
import type { ListenOptions, ServeOptions } from "./options.js";

/**
 * The time in ms for which sent answers may still be written after the end of the
 * serving.
 */
const GRACE_MS = 1000;
const DRAIN_MS = 10_000;

/** The options of `close`. */
export interface CloseOptions {
    /** How long running calls may continue; by default the serving's own `drainMs`. */
    drainMs?: number | undefined;
}

/** A function that is called when a hosting has no serving any more. */
type Leave = (host: Hosting) => Promise<void>;

/** One way in which a server is reached, such as a listener. */
export abstract class Serving {
    /** Resolves when the serving has ended, for whatever reason. */
    readonly closed: Promise<void>;
    /** @internal */
    protected readonly host: Hosting;
    /** @internal */
    protected readonly drainMs: number;
    /** @internal true = the last connection has ended, and no new one can be made. */
    protected isIdle = false;
    /**
     * @internal Whether a client that lost its connection may come back while this
     * serving closes.
     */
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

    /** @internal Begins the serving. If `start` fails, nothing has changed. */
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

    /** @internal Reacts to the end of the last connection. */
    protected idle(): void {}

    /** @internal Stops new connections. */
    protected stop(): void {}

    /** @internal Frees the resources of the serving. Called after its end. */
    protected ended(): void {}

    /** Makes this serving keep the process alive, as it does from its start. */
    ref(): this {
        if (!this.#isHeld && !this.#closing) {
            this.#isHeld = true;
            this.host.runtime.hold();
        }
        return this;
    }

    /** Lets the process end although this serving is open. */
    unref(): this {
        if (this.#isHeld) {
            this.#isHeld = false;
            this.host.runtime.release();
        }
        return this;
    }

    /**
     * Ends the serving. New calls are refused, and running calls may continue for
     * `drainMs`. During this time clients over HTTP may come back for their answers.
     * Tasks continue. The promise resolves when the serving has ended.
     */
    close(options: CloseOptions = {}): Promise<void> {
        this.#closing ??= this.#close(options.drainMs ?? this.drainMs);
        return this.#closing;
    }

    /** Does the same as {@link close}. */
    [asyncDispose](): Promise<void> {
        return this.close();
    }

    async #close(patienceMs: number): Promise<void> {
        const { host } = this;
        this.#signal?.removeEventListener("abort", this.#onAbort);
        host.runtime.hold(); // keeps the process alive until the end, even after unref
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
        // Clients that lost their connection may fetch the answers of ended calls.
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

/** A listener over HTTP; {@link Server.listenHttp} makes it. */
export class Listener extends Serving {
    /** The URL of the endpoint, such as "http://127.0.0.1:8080/mcp". */
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
     * @throws InputOutputError when a file cannot be used: the old certificates stay in
     * use; StateError when the listener has no certificates.
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

/** A serving of standard input and output; {@link Server.serveStdio} makes it. */
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
     * @internal Ends the serving, because the client has left and no call is left to wait
     * for.
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
