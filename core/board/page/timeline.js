// The life of a task in steps, as its log tells it.

import { duration, plural, preview } from "./parts.js";

const MOST = 300; // steps; of a longer life, the middle is left out
const PAUSE_MS = 1000; // shorter ones are not shown

const TEXTS = {
    replace: () => "Began its output anew",
    anew: () => "Was interrupted and started again",
    task: () => "Became a task",
    checkpoint: () => "Saved a checkpoint",
    presence: (entry) => (entry.data?.away ? "Its client left" : "Its client came back"),
    question: (entry) => `Asked: ${preview(entry)}`,
    answer: () => "Got an answer",
    result: (entry) => (entry.data?.isError ? "Failed" : "Completed"),
    error: (entry) => `Failed: ${preview(entry)}`,
    cancelled: () => "Was cancelled",
    expired: () => "Expired",
};

function momentOf(entry) {
    return { at: Date.parse(entry.at), seq: entry.seq };
}

function stepOf(entry) {
    const text = entry.kind === "status" && entry.data?.statusMessage
        ? entry.data.statusMessage : TEXTS[entry.kind]?.(entry);
    return text && { text, kind: entry.kind, ...momentOf(entry) };
}

export class Timeline {
    #first = [];
    #last = [];
    #left = 0; // steps between these two
    #run = null; // the run of segments that goes on

    add(entry) {
        if (entry.kind === "segment") {
            if (this.#run) this.#notePause(Date.parse(entry.at));
            if (!this.#run)
                this.#push(this.#run = { kind: "segment", ...momentOf(entry), sum: 0 });
            this.#run.text = plural(++this.#run.sum, "segment");
            this.#run.last = Date.parse(entry.at);
            return;
        }
        const step = stepOf(entry);
        if (!step) return;
        this.#run = null;
        this.#push(step);
    }

    // Parts a run of segments where it paused for much longer than between its others, as
    // while its server was gone. Two gaps at least tell what is usual.
    #notePause(at) {
        const { last, sum } = this.#run;
        if (sum < 3) return;
        const usual = (last - this.#run.at) / (sum - 1);
        if (at - last < Math.max(PAUSE_MS, 10 * usual)) return;
        this.#push({ text: `Nothing for ${duration(at - last)}`, kind: "pause", at: last });
        this.#run = null;
    }

    #push(step) {
        if (this.#first.length < MOST / 2) {
            this.#first.push(step);
            return;
        }
        this.#last.push(step);
        if (this.#last.length <= MOST / 2) return;
        this.#last.shift();
        this.#left++;
    }

    steps(summary) {
        const made = { text: "Made", kind: "made", at: Date.parse(summary.createdAt) };
        const gap = this.#left && {
            text: `${plural(this.#left, "step")} not shown`, kind: "gap",
            at: this.#last[0].at,
        };
        return [made, ...this.#first, ...(gap ? [gap] : []), ...this.#last];
    }
}
