// The log of one task, which grows while the task runs. After a break of the connection
// the next request asks for the entries behind the last one.
//
// The log is read once from its beginning to its end, and what the page always shows is
// folded out of it: counts, the time line, the result. The entries themselves may be too
// many to keep. They are in chunks, of which those that were shown last stay; the entries
// of the others are dropped, and fetched again when they are shown.

import { api, Loop } from "./api.js";
import { Timeline } from "./timeline.js";

const PAUSE_MS = 300;
const AGAIN_MS = 1000;
// A chunk ends before one of these is exceeded.
const CHUNK_ENTRIES = 500;
const CHUNK_SIZE = 200_000; // characters
// What is kept; the last chunk, and those that are shown, always are.
const KEPT_ENTRIES = 4000;
const KEPT_SIZE = 4_000_000;
const ENDS = new Set(["result", "error", "cancelled", "expired"]);

function sizeOf(entry) {
    return JSON.stringify(entry.data ?? entry.base64 ?? "").length;
}

class Chunk {
    entries = []; // null = dropped
    segments = [];
    size = 0;
    used = 0; // when it was shown last

    // after: number of the entry before it; first: how many entries, and how many
    // segments, are before it
    constructor(after, first) {
        this.after = after;
        this.last = after;
        this.first = first;
        this.count = { entries: 0, segments: 0 };
    }

    hasRoom(size) {
        return !this.count.entries || (this.count.entries < CHUNK_ENTRIES &&
            this.size + size <= CHUNK_SIZE);
    }

    add(entry, size) {
        this.entries.push(entry);
        if (entry.kind === "segment") this.segments.push(entry);
        this.last = entry.seq;
        this.size += size;
        this.count = { entries: this.entries.length, segments: this.segments.length };
    }

    drop() {
        this.entries = this.segments = null;
    }

    get next() {
        const { first, count } = this;
        return new Chunk(this.last, {
            entries: first.entries + count.entries,
            segments: first.segments + count.segments,
        });
    }
}

// Returns the last chunk for which `isBefore` holds; it holds for the first ones.
function lastOf(chunks, isBefore) {
    let low = 0, high = chunks.length;
    while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (isBefore(chunks[middle])) low = middle;
        else high = middle;
    }
    return chunks[low];
}

export class Log extends EventTarget {
    summary = null;
    ended = false;
    lost = null;
    resumedAt = 0; // number of the entry behind which the log went on after a break
    isGone = false;
    last = 0; // number of the last entry
    lastSegment = 0;
    lastAt = null; // when the last entry was made
    voidBefore = 0; // number of the entry that made the segments before it void
    end = null; // the entry that ended the task
    fields = {}; // members of the result besides its list
    timeline = new Timeline();
    #chunks = [new Chunk(0, { entries: 0, segments: 0 })];
    #clock = 0;
    #shown = null; // the first and the last chunk on the screen
    #stale = true;
    #isClosed = false;

    constructor(id) {
        super();
        this.id = id;
    }

    begin() {
        this.loop = new Loop(() => this.#turn(), (error) => this.#fail(error));
    }

    close() {
        this.#isClosed = true;
        this.loop?.stop();
    }

    #tell() {
        this.dispatchEvent(new Event("change"));
    }

    #fail(error) {
        this.lost = error;
        this.isGone = error.status === 404;
        if (this.isGone) this.loop.stop();
        this.#tell();
    }

    async #turn() {
        if (this.#stale) this.summary = await api.task(this.id);
        this.#stale = false;
        const page = await api.entries(this.id, this.last);
        if (this.lost) this.resumedAt = this.last;
        this.lost = null;
        for (const entry of page.entries) this.#take(entry);
        this.#dropFar();
        const isOver = page.ended && !page.more;
        if (isOver && !this.ended) this.summary = await api.task(this.id);
        this.ended = isOver;
        this.#tell();
        return page.more ? 0 : isOver ? -1 : PAUSE_MS;
    }

    // ---- folding ----

    #take(entry) {
        this.last = entry.seq;
        this.lastAt = Date.parse(entry.at);
        this.timeline.add(entry);
        if (entry.kind === "segment") this.lastSegment = entry.segment;
        else this.#stale = true;
        if (entry.kind === "replace") this.#replace(entry);
        if (entry.kind === "fields") Object.assign(this.fields, entry.data);
        if (ENDS.has(entry.kind)) this.end ??= entry;
        this.#append(entry, sizeOf(entry));
    }

    #replace(entry) {
        this.voidBefore = entry.seq;
        this.fields = {};
    }

    isVoid(entry) {
        return entry.kind === "segment" && entry.seq < this.voidBefore;
    }

    // ---- chunks ----

    #append(entry, size) {
        let tail = this.#chunks.at(-1);
        if (!tail.hasRoom(size)) {
            tail.used = ++this.#clock;
            tail = tail.next;
            this.#chunks.push(tail);
        }
        tail.add(entry, size);
    }

    // Notes which rows are on the screen.
    keep(mode, first, last) {
        const at = (index) => lastOf(this.#chunks, (one) => one.first[mode] <= index);
        this.#shown = [at(first).after, at(last).after];
    }

    // Drops the chunks that were not shown for the longest time.
    #dropFar() {
        const [from, to] = this.#shown ?? [-1, -1];
        const far = this.#chunks.slice(0, -1)
            .filter((one) => one.entries && (one.after < from || one.after > to))
            .sort((a, b) => b.used - a.used);
        let { entries, size } = this.kept;
        while (far.length && (entries > KEPT_ENTRIES || size > KEPT_SIZE)) {
            const chunk = far.pop();
            entries -= chunk.entries.length;
            size -= chunk.size;
            chunk.drop();
        }
    }

    // What is in memory.
    get kept() {
        const loaded = this.#chunks.filter((chunk) => chunk.entries);
        const sum = (number) => loaded.reduce((all, one) => all + number(one), 0);
        return {
            entries: sum((one) => one.entries.length), size: sum((one) => one.size),
        };
    }

    // The number of entries, or of segments.
    count(mode) {
        const tail = this.#chunks.at(-1);
        return tail.first[mode] + tail.count[mode];
    }

    // Returns an entry, or a segment; null = it is being fetched, or it is gone.
    item(mode, index) {
        const chunk = lastOf(this.#chunks, (one) => one.first[mode] <= index);
        chunk.used = ++this.#clock;
        if (!chunk.entries) this.#fetch(chunk);
        return chunk[mode]?.[index - chunk.first[mode]] ?? null;
    }

    // Returns the first entry whose number is at least `seq`, and its index in a mode;
    // null = the store has dropped it, or the page is left.
    async find(seq) {
        let chunk = lastOf(this.#chunks, (one) => one.after < seq);
        if (chunk.last < seq) chunk = this.#chunks[this.#chunks.indexOf(chunk) + 1];
        while (!chunk.entries && !this.#isClosed) await this.#fetch(chunk);
        const entry = chunk.entries?.find((one) => one.seq >= seq);
        const index = (mode) => chunk.first[mode] + chunk[mode].indexOf(entry);
        return entry ? { entry, index } : null;
    }

    #fetch(chunk) {
        chunk.fetching ??= this.#read(chunk).catch(() => this.#readLater(chunk));
        return chunk.fetching;
    }

    async #read(chunk) {
        const entries = [];
        for (let after = chunk.after, more = true; more && after < chunk.last;) {
            const page = await api.entries(this.id, after);
            entries.push(...page.entries.filter((one) => one.seq <= chunk.last));
            after = page.entries.at(-1)?.seq ?? chunk.last;
            more = page.more;
        }
        chunk.entries = entries;
        chunk.segments = entries.filter((one) => one.kind === "segment");
        chunk.fetching = null;
        chunk.used = ++this.#clock;
        this.#dropFar();
        this.#tell();
    }

    async #readLater(chunk) {
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        chunk.fetching = null;
        if (!this.#isClosed) this.#tell();
    }
}
