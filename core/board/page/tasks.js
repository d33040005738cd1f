// The tasks of a store: the list, which one request brings, and the summaries, which are
// fetched in portions: those that are visible first. The summary of a task that has ended
// does not change and is fetched once.

import { api, Loop } from "./api.js";
import { isLive, statusOf } from "./parts.js";

const PORTION = 64;
const PAUSE_MS = 1000;
const PORTIONS_A_TURN = 16;

export class Tasks extends EventTarget {
    rows = []; // { id, created, ended, tool, by }
    total = 0;
    summaries = new Map();
    visible = []; // ids
    isLoaded = false;
    lost = null; // why the list is not up to date; null = it is
    #tag = "";
    #at = 0; // where the next look at invisible live tasks begins

    begin() {
        this.loop = new Loop(() => this.#turn(), (error) => {
            this.lost = error;
            this.#tell();
        });
    }

    end() {
        this.loop?.stop();
    }

    #tell() {
        this.dispatchEvent(new Event("change"));
    }

    async #turn() {
        const list = await api.tasks(this.#tag);
        this.lost = null;
        this.isLoaded = true;
        this.total = list.total;
        if (list.tasks) this.#take(list);
        this.#tell();
        await this.#fetch(this.#stale().slice(0, PORTION));
        for (let i = 0; i < PORTIONS_A_TURN; i++) {
            const missing = this.#missing();
            if (!missing.length) break;
            await this.#fetch(missing);
        }
        return this.#missing().length ? 0 : PAUSE_MS;
    }

    #take(list) {
        this.#tag = list.tag;
        this.rows = list.tasks.map(([id, created, ended, tool, by]) =>
            ({ id, created, ended: Boolean(ended), tool: tool ?? "", by: by ?? "" }));
        const ids = new Set(this.rows.map((row) => row.id));
        for (const id of this.summaries.keys()) if (!ids.has(id)) this.summaries.delete(id);
    }

    // Live tasks: those that are visible, and then some of the others.
    #stale() {
        const live = this.rows.filter((row) => {
            const summary = this.summaries.get(row.id);
            return summary && isLive(summary.status);
        }).map((row) => row.id);
        const seen = new Set(this.visible);
        const first = live.filter((id) => seen.has(id));
        const others = live.filter((id) => !seen.has(id));
        this.#at = this.#at >= others.length ? 0 : this.#at;
        const next = others.slice(this.#at, this.#at + PORTION - first.length);
        this.#at += next.length;
        return [...first, ...next];
    }

    #missing() {
        const wanted = this.visible.filter((id) => !this.summaries.has(id));
        for (const row of this.rows) {
            if (wanted.length >= PORTION) break;
            if (!this.summaries.has(row.id)) wanted.push(row.id);
        }
        return [...new Set(wanted)].slice(0, PORTION);
    }

    async #fetch(ids) {
        for (let left = ids; left.length;) {
            const { tasks, more } = await api.summaries(left);
            for (const task of tasks) this.summaries.set(task.taskId, task);
            this.#tell();
            const known = new Set(tasks.map((task) => task.taskId));
            const rest = left.filter((id) => !known.has(id));
            if (!more || rest.length === left.length) break;
            left = rest;
        }
    }

    status(row) {
        const summary = this.summaries.get(row.id);
        if (!summary) return row.ended ? "ended" : "working";
        return statusOf(summary);
    }
}
