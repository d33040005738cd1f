/**
 * Keeps the tokens of a program's tasks in one private file.
 *
 * Another process needs only the token (`task.token`) to use a task, so the token is
 * protected like a password. Only the owner can read the file and its directory (modes
 * 0600, 0700). A change replaces the file in one step, and a lock keeps two processes
 * from writing at the same time. The command line `segue` of the Python package uses the
 * same file.
 *
 * ```ts
 * const tokens = new TokenFile();
 * const saved = await tokens.put({ target: url, tool: "report", token: task.token });
 * ...
 * const again = await tokens.get(saved.id);
 * ```
 *
 * @module
 */

import { randomBytes, randomInt } from "node:crypto";
import fs, { type FileHandle } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { native } from "./native.js";

/**
 * The file of saved tasks cannot be used, or does not contain the requested task. A file
 * cannot be used when it is damaged, full, locked for too long, or owned by another user.
 */
export class TokenFileError extends Error {
    /** `"ERR_SEGUE_NO_TASK"`: the file has no such task. `"ERR_SEGUE_TOKENS"`: any other
     * failure. */
    readonly code: "ERR_SEGUE_TOKENS" | "ERR_SEGUE_NO_TASK";

    constructor(message: string, code: TokenFileError["code"] = "ERR_SEGUE_TOKENS") {
        super(message);
        this.name = "TokenFileError";
        this.code = code;
    }
}

/** The protocol era in which a task was made. A task of one era is unknown in the other
 * era. */
export type SavedEra = "auto" | "modern" | "legacy";

/** A saved task. */
export interface SavedTask {
    /** A short name, unique in the file. */
    readonly id: string;
    /** The token for `resume`. The token is a secret. */
    readonly token: string;
    /** The URL of the server, or the command that starts it. */
    readonly target: string | readonly string[];
    /** The name of the tool that was called. */
    readonly tool: string;
    /** When the task was saved, in seconds since 1970. */
    readonly created: number;
    /** The id that the server gave to the task; undefined = no id. */
    readonly taskId: string | undefined;
    /** The era of the protocol with which the task was made. */
    readonly era: SavedEra;
    /** The last known status: `"working"`, `"completed"`, ... */
    readonly status: string;
    /** When the entry was last changed, in seconds since 1970. */
    readonly updated: number;
}

/** The data of a task to save. */
export interface NewTask {
    /** The URL or the command of the server. */
    target: string | readonly string[];
    /** Name of the tool. */
    tool: string;
    /** The token of the task, a secret. */
    token: string;
    /** Id of the task. */
    taskId?: string | undefined;
    /** The era of the protocol with which the task was made. */
    era?: SavedEra | undefined;
    /** The state when it was saved. */
    status?: string | undefined;
}

/** A task in the form in which the file stores it. */
interface Stored {
    id: string;
    token: string;
    target: string | string[];
    tool: string;
    created: number;
    task_id?: string | null;
    era?: SavedEra;
    status?: string;
    updated?: number;
}

const MAX_BYTES = 16 * 1024 * 1024;
const LOCK_MS = 5000;
const LOCK_PAUSE_MS = 10;
const FORMAT = 1;
/** The final states of a task. */
const ENDED = new Set(["completed", "failed", "cancelled", "lost"]);
/** The characters of a task's short name: easy to read aloud and to type, without
 * letters that look like digits. */
const LETTERS = "abcdefghjkmnpqrstuvwxyz23456789";
const { O_RDONLY, O_RDWR, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_DIRECTORY } =
    fs.constants;

/**
 * Returns the default path of the file: the value of `$SEGUE_TOKENS`. If this variable is
 * not set, the path is `segue/tasks.json` in the directory `$XDG_STATE_HOME` (default
 * `~/.local/state`).
 */
export function defaultTokenPath(): string {
    const chosen = process.env.SEGUE_TOKENS;
    if (chosen) return chosen;
    const state = process.env.XDG_STATE_HOME;
    const base = state || path.join(os.homedir(), ".local", "state");
    return path.join(base, "segue", "tasks.json");
}

/** A private file of saved tasks. */
export class TokenFile {
    /** The path of the file. The file and its directory are created with the first
     * task. */
    readonly path: string;
    /** Maximum number of tasks. When the file is full, the oldest ended tasks are
     * removed. If no task has ended, `put` fails. */
    readonly limit: number;

    constructor(file: string = defaultTokenPath(), options: { limit?: number } = {}) {
        this.path = path.resolve(file);
        this.limit = options.limit ?? 1000;
    }

    /**
     * Returns all saved tasks, oldest first.
     *
     * @throws TokenFileError: the file is damaged or belongs to another user.
     */
    async all(): Promise<SavedTask[]> {
        return (await this.read()).map(told);
    }

    /**
     * Finds one saved task by `name`: the task's id, the server's id of the task, or the
     * beginning of the task's id.
     *
     * @throws TokenFileError: no task matches, or several match; the message names them.
     */
    async get(name: string): Promise<SavedTask> {
        return told(find(await this.read(), name));
    }

    /**
     * Saves a task under a new id.
     *
     * @throws TokenFileError: the file is full, damaged, or locked for 5 seconds.
     */
    async put(task: NewTask): Promise<SavedTask> {
        if (typeof task.token !== "string" || task.token === "") {
            throw new TypeError("a task without a token cannot be resumed");
        }
        const now = Date.now() / 1000;
        return this.change((tasks) => {
            let id = newId();
            while (tasks.some((one) => one.id === id)) id = newId();
            const saved: Stored = {
                id,
                token: task.token,
                target: typeof task.target === "string" ? task.target : [...task.target],
                tool: task.tool,
                created: now,
                status: task.status ?? "working",
                updated: now,
            };
            if (task.taskId !== undefined) saved.task_id = task.taskId;
            if (task.era !== undefined) saved.era = task.era;
            this.makeRoom(tasks);
            tasks.push(saved);
            return saved;
        });
    }

    /**
     * Updates a saved task.
     *
     * @throws TokenFileError: no saved task matches `name`, or the file is damaged or
     * locked for 5 seconds.
     */
    async update(
        name: string,
        news: {
            token?: string | undefined;
            taskId?: string | undefined;
            status?: string | undefined;
        },
    ): Promise<SavedTask> {
        return this.change((tasks) => {
            const task = find(tasks, name);
            if (news.token !== undefined) task.token = news.token;
            if (news.taskId !== undefined) task.task_id = news.taskId;
            if (news.status !== undefined) task.status = news.status;
            task.updated = Date.now() / 1000;
            return task;
        });
    }

    /**
     * Removes a task from the file. The task itself continues on the server.
     *
     * @throws TokenFileError: no saved task matches `name`, or the file is damaged or
     * locked for 5 seconds.
     */
    async remove(name: string): Promise<SavedTask> {
        return this.change((tasks) => {
            const task = find(tasks, name);
            tasks.splice(tasks.indexOf(task), 1);
            return task;
        });
    }

    private makeRoom(tasks: Stored[]): void {
        while (tasks.length >= this.limit) {
            const ended = tasks.findIndex((one) => ENDED.has(one.status ?? ""));
            if (ended < 0) {
                throw new TokenFileError(
                    `${this.path} is full: none of its ${this.limit} tasks has ended`,
                );
            }
            tasks.splice(ended, 1);
        }
    }

    // ---- the file

    private async read(): Promise<Stored[]> {
        let file: FileHandle;
        try {
            // Symbolic links are not followed, because a link could point to a file of
            // another user.
            file = await fs.open(this.path, O_RDONLY | O_NOFOLLOW);
        } catch (error) {
            if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
            throw new TokenFileError(`${this.path}: ${(error as Error).message}`);
        }
        try {
            return this.parse(await this.contents(file));
        } finally {
            await file.close();
        }
    }

    private async contents(file: FileHandle): Promise<Buffer> {
        const status = await file.stat();
        if (!status.isFile()) throw new TokenFileError(`${this.path} is not a file`);
        if (status.uid !== process.geteuid?.()) {
            throw new TokenFileError(`${this.path} belongs to another user`);
        }
        if (status.size > MAX_BYTES) {
            throw new TokenFileError(`${this.path} is larger than ${MAX_BYTES} bytes`);
        }
        if ((status.mode & 0o077) !== 0) await file.chmod(0o600);
        return file.readFile();
    }

    private parse(data: Buffer): Stored[] {
        let content: { format?: unknown; tasks?: unknown };
        try {
            const text = new TextDecoder("utf-8", { fatal: true }).decode(data);
            content = Object(JSON.parse(text)) as typeof content;
        } catch (error) {
            throw this.damaged((error as Error).message);
        }
        if (typeof content.format !== "number" || !Array.isArray(content.tasks)) {
            throw this.damaged("it has no list of tasks");
        }
        if (content.format !== FORMAT) {
            throw new TokenFileError(
                `${this.path} was written by a newer version of segue: ` +
                    "update segue-mcp",
            );
        }
        if (!content.tasks.every(isStored)) throw this.damaged("a task lacks a member");
        return content.tasks;
    }

    private damaged(why: string): TokenFileError {
        return new TokenFileError(
            `${this.path} is damaged (${why}); move it away to start with an empty file`,
        );
    }

    private async change(change: (tasks: Stored[]) => Stored): Promise<SavedTask> {
        const lock = await this.lock();
        try {
            const tasks = await this.read();
            const changed = change(tasks);
            await this.write(tasks);
            return told(changed);
        } finally {
            await lock.close();
        }
    }

    /**
     * Locks the file `<path>.lock`. The token file itself cannot be the lock, because
     * each change replaces the token file.
     */
    private async lock(): Promise<FileHandle> {
        await fs.mkdir(path.dirname(this.path), { recursive: true, mode: 0o700 });
        const flags = O_RDWR | O_CREAT | O_NOFOLLOW;
        const lock = await fs.open(`${this.path}.lock`, flags, 0o600);
        const deadline = performance.now() + LOCK_MS;
        try {
            while (!native.lockFile(lock.fd)) {
                if (performance.now() >= deadline) {
                    throw new TokenFileError(`${this.path} is locked by another process`);
                }
                await new Promise((resolve) => setTimeout(resolve, LOCK_PAUSE_MS));
            }
        } catch (error) {
            await lock.close();
            throw error;
        }
        return lock;
    }

    private async write(tasks: Stored[]): Promise<void> {
        const directory = path.dirname(this.path);
        const name = `.${path.basename(this.path)}.${randomBytes(6).toString("hex")}`;
        const beside = path.join(directory, name);
        try {
            const file = await fs.open(beside, O_WRONLY | O_CREAT | O_EXCL, 0o600);
            try {
                const content = JSON.stringify({ format: FORMAT, tasks }, null, 1);
                await file.writeFile(`${content}\n`);
                await file.sync();
            } finally {
                await file.close();
            }
            await fs.rename(beside, this.path);
        } catch (error) {
            await fs.rm(beside, { force: true });
            throw error;
        }
        const place = await fs.open(directory, O_RDONLY | O_DIRECTORY);
        await place.sync().finally(() => place.close());
    }
}

function told(task: Stored): SavedTask {
    const { task_id: taskId, era = "auto", status = "working", updated = 0 } = task;
    const { id, token, target, tool, created } = task;
    const made = { id, target, tool, created, taskId: taskId ?? undefined, era, status };
    // The token is a secret, so the property is not enumerable and is not printed.
    return Object.defineProperty({ ...made, updated }, "token", {
        value: token,
    }) as SavedTask;
}

function isStored(one: unknown): one is Stored {
    const task = Object(one) as Partial<Stored>;
    const texts = [task.id, task.token, task.tool];
    const { target } = task;
    const isTarget =
        typeof target === "string" ||
        (Array.isArray(target) && target.every((word) => typeof word === "string"));
    return (
        isTarget &&
        typeof task.created === "number" &&
        texts.every((text) => typeof text === "string")
    );
}

function newId(): string {
    return Array.from({ length: 6 }, () => LETTERS[randomInt(LETTERS.length)]).join("");
}

function find(tasks: readonly Stored[], name: string): Stored {
    const exact = tasks.find((one) => one.id === name || one.task_id === name);
    if (exact !== undefined) return exact;
    const near = name === "" ? [] : tasks.filter((one) => one.id.startsWith(name));
    const [first] = near;
    if (near.length === 1 && first !== undefined) return first;
    const ids = near.map((one) => one.id).join(", ");
    const why =
        near.length > 0
            ? `${JSON.stringify(name)} is ambiguous: ${ids}`
            : `no saved task ${JSON.stringify(name)}`;
    throw new TokenFileError(why, "ERR_SEGUE_NO_TASK");
}
