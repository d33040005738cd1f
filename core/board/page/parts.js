// Small parts that all views use: elements, texts for numbers and times, notices.

// Makes an element. A property that begins with "on" is a listener; the others are
// attributes. Children are elements and texts; null is left out.
export function el(name, properties = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
        if (value === null || value === undefined || value === false) continue;
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null));
    return element;
}

export const STATUSES = ["working", "input_required", "completed", "failed", "cancelled"];
const NAMES = {
    working: "Working",
    input_required: "Needs input",
    completed: "Completed",
    failed: "Failed",
    cancelled: "Cancelled",
    ended: "Ended",
};

export function statusName(status) {
    return NAMES[status] ?? status;
}

// A task that has completed with an error of its tool is shown as failed.
export function statusOf(summary) {
    return summary.status === "completed" && summary.isError ? "failed" : summary.status;
}

export function isLive(status) {
    return status === "working" || status === "input_required";
}

export function badge(status) {
    return el("span", { class: `badge ${status}` }, statusName(status));
}

// Making a formatter takes long, so each one is made once.
const NUMBERS = new Intl.NumberFormat("en");
const TIMES = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });

export function count(number) {
    return NUMBERS.format(number);
}

export function time(at) {
    return TIMES.format(at);
}

export function bytes(number) {
    if (number < 1000) return `${number} B`;
    if (number < 1e6) return `${(number / 1e3).toFixed(1)} kB`;
    return `${(number / 1e6).toFixed(1)} MB`;
}

export function plural(number, word) {
    return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

// The length of a time in its two largest units, such as "3 min 12 s".
export function duration(ms) {
    const s = Math.max(0, ms) / 1000;
    if (s < 10) return `${s.toFixed(1)} s`;
    if (s < 60) return `${Math.floor(s)} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
    if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function age(at) {
    const s = Math.max(0, Date.now() - at) / 1000;
    if (s < 60) return `${Math.floor(s)} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min`;
    if (s < 86400) return `${Math.floor(s / 3600)} h`;
    return `${Math.floor(s / 86400)} d`;
}

export function clock(at) {
    const date = new Date(at);
    const pad = (number, digits = 2) => String(number).padStart(digits, "0");
    return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}` +
        `.${pad(date.getMilliseconds(), 3)}`;
}

// One line that says what an entry of a log has.
export function preview(entry) {
    // a segment of some dialects is [index, block]
    const data = Array.isArray(entry.data) ? entry.data[1] : entry.data;
    if (data === undefined) return entry.base64 === undefined ? "hidden" : "binary data";
    if (typeof data?.text === "string") return data.text;
    if (typeof data?.statusMessage === "string") return data.statusMessage;
    if (typeof data?.params?.message === "string") return data.params.message;
    if (typeof data?.message === "string") return data.message;
    if (data?.params?.progress !== undefined)
        return `progress ${data.params.progress}` +
            `${data.params.total === undefined ? "" : ` of ${data.params.total}`}`;
    if (data?.type) return `${data.type} ${data.mimeType ?? data.uri ?? ""}`;
    return JSON.stringify(data);
}

let noticeTimer = 0;

export function notice(text) {
    const place = document.querySelector("#notice");
    place.textContent = text;
    place.classList.add("shown");
    clearTimeout(noticeTimer);
    noticeTimer = setTimeout(() => place.classList.remove("shown"), 4000);
}

export async function copy(text, what) {
    try {
        await navigator.clipboard.writeText(text);
        notice(`Copied ${what}.`);
    } catch {
        notice("The browser does not allow copying here.");
    }
}

// Asks before something that cannot be undone. Resolves to true or false.
export function confirmed(question, action, kind = "danger") {
    return new Promise((resolve) => {
        const answer = (value) => () => dialog.close(value);
        const dialog = el("dialog", { "aria-labelledby": "dialog-text" },
            el("p", { id: "dialog-text" }, question),
            el("div", { class: "actions" },
                el("button", { onclick: answer("") }, "Back"),
                el("button", { class: kind, onclick: answer("yes") }, action)));
        dialog.addEventListener("close", () => {
            dialog.remove();
            resolve(dialog.returnValue === "yes");
        });
        document.body.append(dialog);
        dialog.showModal();
    });
}
