/** Opens sessions. Makes a transport and a session from a target and options. */

import fs from "node:fs";
import path from "node:path";
import {
    InvalidError,
    NotFoundError,
    RequestTimeoutError,
    type SegueError,
    SpawnError,
    UnauthorizedError,
} from "../errors.js";
import {
    type Runtime as Handle,
    native,
    type SpawnOptions,
    type Transport,
} from "../native.js";
import { Runtime } from "../runtime.js";
import type { Server } from "../server/server.js";
import { clearTimeout, performance, setTimeout } from "../timers.js";
import { OAuth, Redirects } from "./auth.js";
import { type Line, milliseconds } from "./conversation.js";
import { Exchange, isOver } from "./exchange.js";
import {
    answersOf,
    type ConnectOptions,
    check,
    httpOptions,
    sessionOptions,
    validator,
} from "./options.js";
import type { Answering } from "./questions.js";
import { Session } from "./session.js";
import { eraOf, type Task } from "./task.js";

/**
 * A program that the client starts. The client and the program speak over the program's
 * standard input and output.
 */
export interface Command {
    /** The program. */
    command: string;
    /** Its arguments. */
    args?: readonly string[] | undefined;
    /** Environment variables that are added to the environment of this process. */
    env?: { readonly [name: string]: string | undefined } | undefined;
    /** The working directory of the program. */
    cwd?: string | undefined;
}

/** A target that makes its own transport. Tests use such targets. */
interface OwnTransport {
    _transport(runtime: Handle): Transport;
}

/**
 * The server to connect to: a URL (http, https, `unix:/run/x.sock:/mcp`), a command with
 * its arguments, or a `Server` of this process.
 */
export type Target = string | URL | readonly string[] | Command | Server;

const PATIENCE = 30_000;
/**
 * How long `close` waits for the last lines of a child process. A child has 2 s to end by
 * itself and 2 s after SIGTERM, and is then killed.
 */
const CHILD_END_MS = 5000;

/**
 * The time limit of the first connection. The limit does not count the time in which a
 * user decides about a login.
 */
class Limit {
    private timer: NodeJS.Timeout | undefined;
    private ends = 0;

    constructor(
        private left: number,
        private readonly pass: () => void,
    ) {
        this.goOn();
    }

    /** Stops the clock of the limit. Called when a user begins to decide. */
    hold(): void {
        if (this.timer === undefined) return;
        this.left = Math.max(0, this.ends - performance.now());
        clearTimeout(this.timer);
        this.timer = undefined;
    }

    /** Starts the clock of the limit again. Called when the user has decided. */
    goOn(): void {
        if (this.timer !== undefined) return;
        this.ends = performance.now() + this.left;
        this.timer = setTimeout(this.pass, this.left);
    }
}

/**
 * The tracks (transports of sessions) whose user is deciding about a login now. The key
 * is the OAuth `state` of the login.
 */
const deciding = new Map<string, Track>();

/**
 * Passes the browser's redirect to the library. The connection that waits for this
 * redirect then continues.
 */
function handIn(runtime: Runtime, redirect: string): void {
    native.runtimeAuthorize(runtime.handle, redirect);
    const query = (redirect.split(/\?(.*)/s, 2)[1] ?? redirect).split("#", 1)[0];
    for (const state of new URLSearchParams(query).getAll("state")) {
        deciding.get(state)?.limit?.goOn();
        deciding.delete(state);
    }
}

/** The transport of a session, and the resources that live as long as the session. */
class Track implements Line {
    readonly runtime = Runtime.current();
    /**
     * Makes `connect` fail with an error of this side. Set only while `connect` waits.
     */
    failed: ((error: unknown) => void) | undefined;
    /** The time limit of the first connection. Set only while `connect` waits. */
    limit: Limit | undefined;
    private redirects: Redirects | undefined;
    /** Resolves when the child process has ended and `onStderr` got its last line. */
    private childEnd: Promise<void> | undefined;
    private attach: (() => unknown) | undefined;
    private session: Session | undefined;

    constructor(
        private readonly target: Target,
        private readonly options: ConnectOptions,
    ) {}

    /**
     * Prepares the resources that the transport needs, such as the socket for the
     * browser's redirect.
     */
    async prepare(): Promise<void> {
        const { auth } = this.options;
        if (auth instanceof OAuth && auth.grant === "code" && !auth.redirectUri) {
            this.redirects = await Redirects.listen(auth.port, (query) =>
                this.cameBack(query),
            );
        }
    }

    /**
     * Makes the transport of the session. For a server in this process, `attached` serves
     * the other end later.
     */
    make(session: Session): Transport {
        this.session = session;
        const { target, runtime } = this;
        if (typeof target === "string" || target instanceof URL) {
            return this.http(String(target));
        }
        if (Array.isArray(target)) {
            const [command, ...args] = target as readonly string[];
            return this.spawn({ command: command ?? "", args });
        }
        if (typeof target === "object" && target !== null) {
            if ("command" in target) return this.spawn(target);
            if ("_attach" in target) {
                const [near, far] = native.transportPair(runtime.handle);
                this.attach = () => target._attach(far);
                return near;
            }
            if ("_transport" in target) {
                return (target as OwnTransport)._transport(runtime.handle);
            }
        }
        throw new TypeError(
            `a server is a URL, a command (an array) or a Server, not ${String(target)}`,
        );
    }

    /**
     * If the target is a server in this process, lets the server serve the other end of
     * the transport.
     */
    async attached(): Promise<void> {
        await this.attach?.();
    }

    // ---- a child process

    private spawn(command: Command): Transport {
        const { options } = this;
        const words = [command.command, ...(command.args ?? [])];
        if (command.command === undefined) throw new TypeError("the command is empty");
        if (!words.every((word) => typeof word === "string") || words[0] === "") {
            throw new TypeError("a command and its arguments have to be strings");
        }
        const cwd = command.cwd ?? options.cwd;
        if (!isProgram(command.command, cwd)) {
            const why = fs.existsSync(path.resolve(cwd ?? ".", command.command))
                ? "the file is not a program, or is not executable"
                : "the program does not exist";
            throw new SpawnError(`cannot start ${command.command}: ${why}`);
        }
        const told: SpawnOptions = { argv: words, restart: options.restart ?? true };
        // Always given: with RTLD_DEEPBIND, libsegue itself finds an empty one.
        const env = { ...process.env, ...options.env, ...command.env };
        told.env = Object.entries(env).flatMap(([k, v]) =>
            v === undefined ? [] : [`${k}=${v}`],
        );
        told.workingDir = cwd;
        const { onStderr } = options;
        if (onStderr === undefined)
            return native.transportSpawn(this.runtime.handle, told);
        let onEnd: () => void = () => undefined;
        this.childEnd = new Promise((resolve) => {
            onEnd = resolve;
        });
        return native.transportSpawn(
            this.runtime.handle,
            told,
            (_kind, line: string | undefined) => {
                if (line === undefined || line === null) onEnd();
                else this.session?.run("onStderr", onStderr, line);
            },
        );
    }

    // ---- HTTP

    private http(target: string): Transport {
        const { options } = this;
        const told = httpOptions(options);
        let url = target;
        if (target.startsWith("unix:")) {
            // A listener reports the address of a Unix socket in this form:
            // unix:/run/x.sock:/mcp.
            const end = target.lastIndexOf(":");
            told.unixSocket = target.slice(5, end);
            url = `http://localhost${target.slice(end + 1)}`;
        } else if (!/^https?:\/\/[^/]/i.test(target)) {
            throw new TypeError(
                `the URL has to begin with http:// or https://, not ` +
                    `${JSON.stringify(target)}; a command is an array of words`,
            );
        }
        const { auth } = options;
        const onHeaders =
            typeof auth === "function"
                ? this.hook("auth", tokenSetter(auth), undefined)
                : null;
        const made = native.transportHttp(this.runtime.handle, url, told, onHeaders);
        for (const [name, value] of Object.entries(options.headers ?? {})) {
            native.transportSetHeader(made, name, value);
        }
        if (typeof auth === "string") {
            native.transportSetHeader(made, "Authorization", `Bearer ${auth}`);
        } else if (auth instanceof OAuth) {
            this.setOauth(made, auth);
        }
        return made;
    }

    private setOauth(transport: Transport, oauth: OAuth): void {
        const { storage } = oauth;
        native.transportSetOauth(
            transport,
            oauth.told(oauth.redirectUri ?? this.redirects?.url),
            (_kind, url: string, state: string) => void this.browse(oauth, url, state),
            oauth.assertion && this.hook("assertion", oauth.assertion, null),
            storage &&
                this.hook("storage.load", (key: string) => storage.load(key), null),
            storage &&
                this.hook(
                    "storage.save",
                    (key: string, json: string) => storage.save(key, json),
                    undefined,
                ),
        );
    }

    /** Makes a hook whose failure the session reports. */
    private hook<A extends unknown[], R, O>(
        name: string,
        callback: (...args: A) => R,
        otherwise: O,
    ): (...args: A) => R | O {
        const { session } = this;
        return session ? session.hook(name, callback, otherwise) : callback;
    }

    private async browse(oauth: OAuth, url: string, state: string): Promise<void> {
        this.limit?.hold();
        deciding.set(state, this);
        try {
            await oauth.browse(url);
        } catch (error) {
            // The URL was not shown, so the user cannot agree. The authorization that
            // waits for the user is ended.
            if (this.failed !== undefined) {
                this.failed(error);
                return;
            }
            this.session?.failed("openBrowser", error);
            const why = { error: "no_browser", error_description: String(error), state };
            this.cameBack(String(new URLSearchParams(why)));
        }
    }

    private cameBack(query: string): boolean {
        try {
            handIn(this.runtime, query);
            return true;
        } catch (error) {
            if (error instanceof NotFoundError || error instanceof InvalidError)
                return false;
            throw error;
        }
    }

    // ---- closing

    close(): void {
        this.redirects?.close();
        for (const [state, track] of deciding) {
            if (track === this) deciding.delete(state);
        }
    }

    async closed(): Promise<void> {
        if (!this.childEnd) return;
        let timer: NodeJS.Timeout | undefined;
        const late = new Promise<void>((resolve) => {
            timer = setTimeout(resolve, CHILD_END_MS); // it also keeps the process alive
        });
        await Promise.race([this.childEnd, late]);
        clearTimeout(timer);
    }
}

/** Returns whether the program exists and can be executed. */
function isProgram(name: string, cwd = "."): boolean {
    const places = name.includes("/")
        ? [path.resolve(cwd, name)]
        : (process.env.PATH ?? "").split(":").map((one) => path.resolve(cwd, one, name));
    return places.some((place) => {
        try {
            fs.accessSync(place, fs.constants.X_OK);
            return fs.statSync(place).isFile();
        } catch {
            return false;
        }
    });
}

function tokenSetter(
    ask: (status: number) => string | null | undefined,
): (transport: Transport, status: number) => void {
    return (transport, status) => {
        const token = ask(status);
        if (token !== null && token !== undefined) {
            if (typeof token !== "string") {
                throw new TypeError("auth() has to return a token, not a promise");
            }
            native.transportSetHeader(transport, "Authorization", `Bearer ${token}`);
        }
    };
}

/** A session that is connecting, and its transport. */
interface Begun {
    session: Session;
    track: Track;
}

/**
 * Makes the session answer questions of the server that belong to no request, such as
 * `roots/list`.
 */
function stand(session: Session): void {
    try {
        const exchange = new Exchange(session);
        exchange.handle = native.sessionTakeInput(
            session.handle,
            exchange.handler(),
            exchange.events(),
        );
    } catch (error) {
        // An error of isOver means that the session has ended. The wait for the opening
        // of the session reports the reason.
        if (!isOver(error)) throw error;
    }
}

/**
 * @internal Begins to open a session. `answers` replaces the callbacks for questions in
 * the options.
 */
export async function begin(
    target: Target,
    options: ConnectOptions,
    answers: Answering = answersOf(options),
): Promise<Begun> {
    check(options);
    const track = new Track(target, options);
    await track.prepare();
    try {
        const session = new Session(track.runtime, track, {
            answers,
            onLog: options.onLog,
            logLevel: options.logLevel ?? (options.onLog ? "info" : undefined),
            onNotification: options.onNotification,
            onReconnect: options.onReconnect,
            onError: options.onError,
            timeoutMs: options.timeoutMs,
            throwOnError: options.throwOnError ?? true,
        });
        session.handle = native.sessionOpen(
            track.runtime.handle,
            track.make(session),
            sessionOptions(options, answers),
            (kind, a, b, c) => session.onEvent(kind, a, b, c),
            -1,
            options.validate ? validator(session, options.validate) : null,
        );
        if (answers.isThere) stand(session);
        return { session, track };
    } catch (error) {
        track.close();
        throw error;
    }
}

/**
 * @internal Opens a session as {@link connect} does. `answers` replaces the callbacks for
 * questions in the options.
 */
export async function openSession(
    target: Target,
    options: ConnectOptions,
    answers?: Answering,
): Promise<Session> {
    const { signal, connectTimeoutMs: patience = PATIENCE } = options;
    milliseconds(patience);
    signal?.throwIfAborted();
    const { session, track } = await begin(target, options, answers);
    const giveUp = new AbortController();
    const onAbort = (): void => giveUp.abort(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    track.failed = (error) => giveUp.abort(error);
    const limit =
        patience > 0
            ? new Limit(patience, () =>
                  giveUp.abort(late(target, patience, session.lostBy)),
              )
            : undefined;
    track.limit = limit;
    try {
        await track.attached();
        await session.opened(giveUp.signal);
        if (options.onLog && session.peer.era === "legacy") {
            if ("logging" in session.peer.capabilities) {
                await session.setLogLevel(options.logLevel ?? "info", {
                    signal: giveUp.signal,
                });
            }
        }
        return session;
    } catch (error) {
        await session.close();
        throw options.auth === undefined ? explained(error) : error;
    } finally {
        track.failed = track.limit = undefined;
        limit?.hold();
        signal?.removeEventListener("abort", onAbort);
    }
}

/** Adds advice for the user to an UnauthorizedError. Other errors stay unchanged. */
function explained(error: unknown): unknown {
    if (!(error instanceof UnauthorizedError)) return error;
    const told = "set the option auth to a token, or to new OAuth() to log in";
    return new UnauthorizedError(`${error.message}; ${told}`, { cause: error });
}

function late(target: Target, patience: number, lostBy: string): SegueError {
    const isText = typeof target === "string" || target instanceof URL;
    const name = isText ? target : Array.isArray(target) ? target[0] : "the server";
    const why = lostBy && `: ${lostBy}`;
    return new RequestTimeoutError(
        `${name} could not be reached within ${patience} ms${why}`,
    );
}

/**
 * Connects to a server:
 *
 * ```ts
 * const session = await connect("http://127.0.0.1:8000/mcp");
 * console.log((await session.call("greet", { name: "Ada" })).text);
 * await session.close();
 * ```
 *
 * With `await using session = await connect(...)` the session closes at the end of its
 * block. The client finds out which protocol revision the server speaks.
 *
 * @param target - a URL (http, https, `unix:/run/x.sock:/mcp`); a command with its
 * arguments, as an array or a {@link Command}; or a `Server` of this process. The client
 * starts a command and speaks to it over its standard input and output.
 * @throws TypeError: the target or an option is invalid.
 * @throws SpawnError: the command cannot be started.
 * @throws UnauthorizedError: the server requires an authorization that the client could
 * not get.
 * @throws NegotiationError: the server speaks no protocol revision that the client knows.
 * @throws RequestTimeoutError: no connection was made within `connectTimeoutMs`.
 */
export async function connect(
    target: Target,
    options: ConnectOptions = {},
): Promise<Session> {
    return openSession(target, options);
}

/**
 * Connects to a server and resumes a request of an earlier connection or process. The
 * token chooses `era`, unless the options have it: a task of 2025-11-25 can only be
 * resumed by that revision.
 *
 * ```ts
 * const task = await resume(token, url);
 * for await (const segment of task) ...
 * ```
 *
 * The session closes when the task has ended, or when the program calls `task.close()`. A
 * task that still runs at `task.close()` continues on the server.
 */
export async function resume(
    token: string,
    target: Target,
    options: ConnectOptions = {},
): Promise<Task> {
    check(options);
    const era = options.era ?? eraOf(Runtime.current(), token);
    const session = await openSession(target, { ...options, era });
    try {
        const task = session.resume(token);
        task.own(session);
        return task;
    } catch (error) {
        await session.close();
        throw error;
    }
}

/**
 * Passes the redirect URL of a browser to the connection that waits for this URL. A
 * program with its own `redirectUri` in `OAuth` must call this function.
 *
 * @throws NotFoundError: no connection waits for this URL, or the connection no longer
 * waits.
 * @throws InvalidError: the text is not a redirect URL.
 */
export function authorize(redirectUrl: string | URL): void {
    handIn(Runtime.current(), String(redirectUrl));
}
