/** Segments: the pieces of a streamed result. */

/** A piece of a streamed result: a content block, or the beginning or next part of a
 * block. A segment is immutable. */
export class Segment {
    /** The number of the segment: 1, 2, 3, ... without gaps. */
    readonly number: number;
    /**
     * The index of the segment's block in the result's content, from 0. Several segments
     * may belong to one block. Their texts together are the text of the block.
     */
    readonly index: number;
    /** true = this segment discards all earlier segments. */
    readonly replaces: boolean;
    /** The decoded text of a text block; undefined for other blocks. */
    readonly text: string | undefined;
    readonly #json: string | null;

    /** @internal If json is null, the block has only the members type and text. */
    constructor(
        number: number,
        index: number,
        replaces: boolean,
        text: string | undefined,
        json: string | null,
    ) {
        this.number = number;
        this.index = index;
        this.replaces = replaces;
        this.text = text;
        this.#json = json;
    }

    /** The block as JSON text. */
    get data(): string {
        return this.#json ?? JSON.stringify({ type: "text", text: this.text });
    }

    /** The block as an object. Each use decodes the block anew. */
    // biome-ignore lint/suspicious/noExplicitAny: any JSON object
    get content(): any {
        if (this.#json === null) return { type: "text", text: this.text };
        return JSON.parse(this.#json);
    }

    /** The type of the block, such as "text"; "" when the block has no type. */
    get type(): string {
        if (this.#json === null) return "text";
        const { type } = this.content;
        return typeof type === "string" ? type : "";
    }

    /** Returns the text of the segment. */
    toString(): string {
        return this.text ?? "";
    }
}

/**
 * @internal Makes the segments of a raw event (bindings/node/events.c). A string in `raw`
 * is the text of a plain text block whose number and index follow those of the preceding
 * segment. A null begins a segment of any other kind, and the five values of the segment
 * follow: number, index, replaces, text, JSON.
 */
export function readSegments(raw: unknown[]): Segment[] {
    const segments: Segment[] = [];
    let number = 0;
    let index = 0;
    for (let at = 0; at < raw.length; at++) {
        const item = raw[at];
        if (typeof item === "string") {
            segments.push(new Segment(++number, ++index, false, item, null));
            continue;
        }
        number = raw[at + 1] as number;
        index = raw[at + 2] as number;
        const text = (raw[at + 4] as string | null) ?? undefined;
        const replaces = raw[at + 3] as boolean;
        segments.push(new Segment(number, index, replaces, text, raw[at + 5] as string));
        at += 5;
    }
    return segments;
}
