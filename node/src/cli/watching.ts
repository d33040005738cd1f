/**
 * Watches files for `segue-mcp dev`: tells when some of them have changed and no more
 * changes follow.
 */

import fs from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

/** Milliseconds between two looks at the files. */
const POLL_MS = 100;
/** Looks without a change after which the changes count as complete. */
const QUIET = 2;

/** A set of files and directories. Of a directory only its list of names counts. */
export class Watch {
    /** The names of changed files; empty while nothing has changed. */
    readonly changed = new Set<string>();
    readonly #stamps = new Map<string, string>();

    get size(): number {
        return this.#stamps.size;
    }

    /**
     * Watches more files. A file that is watched already keeps the stamp with which it
     * was seen first, so a change since then is not missed.
     */
    add(files: Iterable<string>): void {
        for (const file of files) {
            if (!this.#stamps.has(file)) this.#stamps.set(file, stampOf(file));
        }
    }

    /** Looks at all files. @returns whether one has changed since the last look. */
    look(): boolean {
        let found = false;
        for (const [file, before] of this.#stamps) {
            const now = stampOf(file);
            if (now === before) continue;
            this.#stamps.set(file, now);
            this.changed.add(file);
            found = true;
        }
        return found;
    }

    /**
     * Waits until files have changed, and then until no more changes follow: an editor
     * writes a file in several steps, and a switch of branches many files.
     */
    async wait(signal: AbortSignal): Promise<void> {
        while (!this.changed.size) {
            await pause(POLL_MS, undefined, { signal });
            this.look();
        }
        for (let quiet = 0; quiet < QUIET; ) {
            await pause(POLL_MS, undefined, { signal });
            quiet = this.look() ? 0 : quiet + 1;
        }
    }

    /** Returns the changed files, and forgets that they have changed. */
    take(): string[] {
        const files = [...this.changed].sort();
        this.changed.clear();
        return files;
    }
}

function stampOf(file: string): string {
    const found = fs.statSync(file, { bigint: true, throwIfNoEntry: false });
    return found ? `${found.mtimeNs} ${found.size} ${found.ino}` : "";
}
