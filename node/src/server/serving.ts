/**
 * One way to serve: a listener, or standard input and output.
 *
 * A serving ends in two steps. First, new calls are refused, and running calls may end
 * within `drainMs`. During this time, clients that lost their connection may connect
 * again for the rest of an answer. Then the remaining connections are closed.
 *
 * @module
 */

import { asyncDispose } from "../dispose.js";
import { type Listener as Handle, native } from "../native.js";
import type { ListenOptions as NativeListenOptions } from "../native_options.js";
import { clearTimeout, performance, setTimeout } from "../timers.js";
import { type BearerAuth, bearerHook, bearerOptions } from "./auth.js";
import type { Hosting } from "./hosting.js";
import type { ListenOptions, ServeOptions } from "./options.js";

/**
 * How long answers that are already queued may still be written after the end of the
 * serving, in milliseconds.
 */
const GRACE_MS = 1000;
const DRAIN_MS = 10_000;

/** The options of `close`. */
export interface CloseOptions {
    /**
     * How long running calls may continue, in milliseconds. Default: `drainMs` of the
     * serving.
     */
    drainMs?: number | undefined;
}

/**
 * A function that is called when the last transport (serving) of a native server
 * (hosting) has ended.
 */
type Leave = (host: Hosting) => Promise<void>;

/** One transport on which a server serves, such as a listener. */
export abstract class Serving {
    /** Resolves when the serving has ended for any reason. */
    readonly closed: Promise<void>;
    /** @internal The end of the use of the lifespans; set by the server. */
    lives: Promise<void> | undefined;
    /** @internal */
    readonly host: Hosting;
    /** @internal */
    protected readonly drainMs: number;
    /**
     * @internal true = the last connection has ended, and no new connection can be made.
     */
    protected isIdle = false;
    /**
     * @internal Whether clients that lost their connection may connect again while this
     * serving closes. Then the transport itself refuses new calls.
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

    /**
     * @internal Begins the serving. If `start` throws, everything is as before the call.
     */
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

    /** @internal Called when the last connection has ended. */
    protected idle(): void {}

    /** @internal Stops accepting new connections. */
    protected stop(): void {}

    /**
     * @internal Frees the resources of the serving. Called after the end of the serving.
     */
    protected ended(): void {}

    /**
     * Makes this serving keep the process alive. A new serving already keeps the process
     * alive.
     */
    ref(): this {
        if (!this.#isHeld && !this.#closing) {
            this.#isHeld = true;
            this.host.runtime.hold();
        }
        return this;
    }

    /** Stops this serving from keeping the process alive. */
    unref(): this {
        if (this.#isHeld) {
            this.#isHeld = false;
            this.host.runtime.release();
        }
        return this;
    }

    /**
     * Ends the serving. New calls are refused, and running calls may continue for
     * `drainMs`. During this time, clients over HTTP may connect again for their answers;
     * clients that have gone are not waited for. Tasks that still run after `drainMs`
     * continue. The promise resolves when the serving has ended, and its lifespan,
     * unless tasks still use it.
     */
    close(options: CloseOptions = {}): Promise<void> {
        this.#closing ??= this.#close(options.drainMs ?? this.drainMs).then(() => {
            // Tasks that still run need the lifespan, and closing does not wait for them.
            return this.host.running.size ? undefined : this.lives;
        });
        return this.#closing;
    }

    /** Does the same as {@link close}. */
    [asyncDispose](): Promise<void> {
        return this.close();
    }

    async #close(patienceMs: number): Promise<void> {
        const { host } = this;
        this.#signal?.removeEventListener("abort", this.#onAbort);
        // Keeps the process alive until the serving has ended, even after `unref`.
        host.runtime.hold();
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
        await host.drain(patienceMs, !this.returns);
        // Clients that lost their connection may still connect again and fetch the
        // answers of ended calls. A call that was accepted earlier may still begin.
        const left = until - performance.now();
        if (!this.returns || this.isIdle || left <= 0) return;
        await this.#idleWithin(left);
        await host.drain(until - performance.now(), false);
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
     * Reads the files of certificates, keys and tokens again.
     *
     * @throws InputOutputError when a file cannot be used; the old contents stay in use.
     * StateError when the listener has no such files.
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
     * @internal Ends the serving at once: the client has left, so no call is left to wait
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

/** @internal */
export function listenOptions(
    given: ListenOptions,
    drainMs: number,
): NativeListenOptions {
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
