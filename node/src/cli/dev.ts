/**
 * `segue-mcp dev`: serves the server of a file, and serves it anew when the file or one
 * of its imports changes.
 *
 *     change --> new process loads the file --(ready)--> old process drains and ends
 *                        '--(failed)--> the old process goes on
 *
 * Both processes listen on the same port and use the same store and the same key, so a
 * client reaches one of them at any time: calls of the old process may end there, tasks
 * continue in the new one, and sessions are known to both. With `--stdio` segue-proxy
 * stands in front of the port.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { Exit, note, UsageError } from "./codes.js";
import type { Plan, Report } from "./dev_child.js";
import { Front } from "./front.js";
import type { Source } from "./loading.js";
import { addressOf, type Wish } from "./run.js";
import { Watch } from "./watching.js";

/** A process that ends by itself sooner is not started again before a change. */
const SOON_MS = 1000;
/** How long a process may take to end after its drain. */
const PATIENCE_MS = 3000;
const DRAIN_MS = 10_000;

/** One process that serves. */
class Child {
    readonly process: ChildProcess;
    readonly begun = performance.now();
    readonly ended: Promise<unknown>;
    /** Whether the process serves; it resolves when that is known. */
    readonly outcome: Promise<boolean>;
    /** Resolves when no new connection reaches the process any more. */
    readonly shut: Promise<void>;
    url = "";

    constructor(plan: Plan, watch: Watch) {
        // Of its own process group: Ctrl-C reaches only the parent. Standard output has
        // the protocol with --stdio.
        this.process = spawn(process.execPath, [path.join(__dirname, "dev_child.js")], {
            stdio: ["pipe", 2, 2, "pipe"],
            detached: true,
        });
        this.ended = once(this.process, "exit");
        this.process.stdin?.on("error", () => undefined); // it may have ended already
        this.process.stdin?.write(`${JSON.stringify(plan)}\n`);
        const input = this.process.stdio[3] as Readable;
        const lines = readline.createInterface({ input });
        let isShut: () => void = () => undefined;
        this.shut = new Promise((resolve) => {
            isShut = resolve;
        });
        this.outcome = new Promise((resolve) => {
            lines.on("line", (line) => {
                const told: Report = JSON.parse(line);
                watch.add(told.files);
                if (told.event === "files") return;
                if (told.event === "shut") return isShut();
                this.url = told.url ?? "";
                resolve(told.event === "ready");
            });
            void this.ended.then(() => {
                isShut();
                resolve(false);
            });
        });
    }

    get isRunning(): boolean {
        return this.process.exitCode === null && this.process.signalCode === null;
    }
}

type Events = { readonly [name: string]: (signal: AbortSignal) => Promise<unknown> };

/** Waits for the first of several events. @returns the name of the first that came. */
async function first(events: Events): Promise<string> {
    const controller = new AbortController();
    const { signal } = controller;
    try {
        return await Promise.race(
            Object.entries(events).map(async ([name, wait]) => {
                await wait(signal);
                return name;
            }),
        );
    } finally {
        controller.abort();
    }
}

class Dev {
    readonly #source: Source;
    readonly #drainMs: number;
    readonly #front: Front | undefined;
    readonly #watch = new Watch();
    readonly #ending = new Set<Promise<void>>();
    #child: Child | undefined;
    #isTold = false;
    #isAsked = false;
    #ask: () => void = () => undefined;
    readonly #asked = new Promise<void>((resolve) => {
        this.#ask = resolve;
    });

    constructor(source: Source, drainMs: number, front: Front | undefined) {
        this.#source = source;
        this.#drainMs = drainMs;
        this.#front = front;
        this.#watch.add([source.file]);
    }

    async run(plan: Plan): Promise<number> {
        // The first signal asks the processes to end, the second ends them at once.
        const onSignal = (): void => {
            if (this.#isAsked) this.#child?.process.kill("SIGTERM");
            this.#isAsked = true;
            this.#ask();
        };
        process.on("SIGINT", onSignal);
        process.on("SIGTERM", onSignal);
        try {
            if (!(await this.#reload(plan))) return Exit.CONNECTION;
            while (!this.#isAsked) await this.#next(plan);
            return Exit.OK;
        } finally {
            await this.#end();
        }
    }

    /** Waits for a change or another event, and acts on it. */
    async #next(plan: Plan): Promise<void> {
        const child = this.#child;
        const front = this.#front;
        const what = await first({
            asked: () => this.#asked,
            change: (signal) => this.#watch.wait(signal),
            ...(child && { ended: () => child.ended }),
            ...(front && { left: () => front.wait() }),
        });
        if (what === "left") this.#isAsked = true;
        if (what === "change") {
            const names = this.#watch.take().map((file) => path.relative(".", file));
            say(`${names.slice(0, 3).join(", ")} changed`);
            await this.#reload(plan);
        }
        if (what !== "ended" || !child || this.#isAsked) return;
        this.#child = undefined;
        const lastedMs = performance.now() - child.begun;
        const { exitCode, signalCode } = child.process;
        say(`the server has ended (${signalCode ?? `exit code ${exitCode}`})`);
        if (lastedMs > SOON_MS) await this.#reload(plan);
        else say("waiting for a change");
    }

    /**
     * Starts a process, and ends the one before it when the new one is ready. A change
     * meanwhile starts another one.
     *
     * @returns false = the address cannot be used; the reason has been shown.
     */
    async #reload(plan: Plan): Promise<boolean> {
        let child: Child;
        let begun: number;
        for (;;) {
            begun = performance.now();
            child = new Child(plan, this.#watch);
            const one = child;
            const what = await first({
                outcome: () => one.outcome,
                asked: () => this.#asked,
                change: (signal) => this.#watch.wait(signal),
            });
            if (what === "outcome") break;
            child.process.kill("SIGKILL");
            await child.ended;
            if (what === "asked") return true;
            this.#watch.take();
        }
        if (await child.outcome) {
            await this.#replace(child, performance.now() - begun);
            return true;
        }
        await child.ended;
        return this.#failed(child);
    }

    async #replace(child: Child, ms: number): Promise<void> {
        const before = this.#child;
        this.#child = child;
        if (before) {
            this.#let(before);
            // From then on all new connections reach the new process.
            await first({
                shut: () => before.shut,
                late: (signal) => pause(PATIENCE_MS, undefined, { signal }),
            });
        }
        if (this.#isTold) {
            say(`reloaded in ${(ms / 1000).toFixed(1)} s`);
        } else {
            this.#isTold = true;
            const where = this.#front ? "standard input and output" : child.url;
            say(`${where} (watching ${this.#watch.size} files; Ctrl-C ends it)`);
        }
        this.#front?.renew(child.url);
    }

    #failed(child: Child): boolean {
        const code = child.process.exitCode;
        if (code === Exit.CONNECTION && !this.#child && !this.#isTold) return false;
        // The missing module may be a file that does not exist yet.
        this.#watch.add([path.dirname(this.#source.file)]);
        const goesOn = this.#child ? "the server before the change goes on; " : "";
        say(`${goesOn}waiting for a change`);
        return true;
    }

    /** Asks a process to end, and ends it by force when it takes too long. */
    #let(child: Child): void {
        const end = async (): Promise<void> => {
            child.process.kill("SIGTERM");
            const what = await first({
                ended: () => child.ended,
                late: (signal) =>
                    pause(this.#drainMs + PATIENCE_MS, undefined, { signal }),
            });
            if (what === "late") child.process.kill("SIGKILL");
            await child.ended;
        };
        const ending = child.isRunning ? end() : Promise.resolve();
        this.#ending.add(ending);
        void ending.then(() => this.#ending.delete(ending));
    }

    async #end(): Promise<void> {
        await this.#front?.end();
        if (this.#child) this.#let(this.#child);
        await Promise.all(this.#ending);
    }
}

function say(text: string): void {
    note(`segue-mcp dev: ${text}`);
}

/**
 * Chooses the port.
 *
 * @throws UsageError: the address is not a host and a port. Error: it is in use.
 */
async function choose(http: string): Promise<string> {
    const { host = "127.0.0.1", port } = addressOf(http);
    if (port === undefined) {
        throw new UsageError(`${http}: segue-mcp dev listens on host:port only`);
    }
    const probe = net.createServer();
    probe.listen({ host, port, exclusive: true });
    try {
        await once(probe, "listening");
    } catch (error) {
        const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
        throw isTaken ? new Error(`${host}:${port}: Address already in use`) : error;
    }
    const chosen = (probe.address() as net.AddressInfo).port;
    probe.close();
    await once(probe, "close");
    return `${host.includes(":") ? `[${host}]` : host}:${chosen}`;
}

/**
 * Serves until Ctrl-C, or until the client at standard input leaves.
 *
 * @returns the exit code.
 */
export async function dev(
    source: Source,
    words: readonly string[],
    wish: Wish,
    isStdio: boolean,
): Promise<number> {
    const http = await choose(wish.http ?? "127.0.0.1:0");
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "segue-dev-"));
    try {
        const front = isStdio ? new Front(directory) : undefined;
        return await new Dev(source, wish.options.drainMs ?? DRAIN_MS, front).run({
            source,
            words,
            http,
            options: wish.options,
            store: path.join(directory, "tasks.db"),
            sealKey: randomBytes(32).toString("hex"),
            tokensFile: front?.tokensFile,
        });
    } finally {
        fs.rmSync(directory, { recursive: true, force: true });
    }
}
