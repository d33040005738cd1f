// The life of a task in steps, as its log tells it.

import { plural, preview } from "./parts.js";

const MOST = 300; // steps; of a longer life, the middle is left out

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

export function timelineOf(summary, entries) {
    const steps = [{ text: "Made", kind: "made", at: Date.parse(summary.createdAt) }];
    let run = null; // a run of segments
    for (const entry of entries) {
        if (entry.kind === "segment") {
            if (!run) steps.push(run = { kind: "segment", ...momentOf(entry), sum: 0 });
            run.sum++;
            continue;
        }
        const step = stepOf(entry);
        if (!step) continue;
        run = null;
        steps.push(step);
    }
    for (const step of steps) if (step.sum) step.text = plural(step.sum, "segment");
    if (steps.length <= MOST) return steps;
    const left = steps.length - MOST;
    steps.splice(MOST / 2, left,
        { text: `${plural(left, "step")} not shown`, kind: "gap", at: steps[MOST / 2].at });
    return steps;
}
