/** One piece of a streamed result, as it comes from the addon. */

/** One piece of a streamed result: a content block, or the beginning or the next part of
 * one. A value that never changes. */
export class Segment {
    /** 1, 2, 3, ... without holes. */
    readonly number: number;
    /** Place in the content of the result, from 0: several segments may have one, the
     * text of the later ones goes on where that of the first ends. */
    readonly index: number;
    /** What came before it is void. */
    readonly replaces: boolean;
    /** Of a text block, decoded; else null. */
    readonly text: string | undefined;
    readonly #json: string | null;

    /** @internal json null: a block of nothing but type and text. */
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

    /** The block, decoded: anew each time. */
    // biome-ignore lint/suspicious/noExplicitAny: any JSON object
    get content(): any {
        if (this.#json === null) return { type: "text", text: this.text };
        return JSON.parse(this.#json);
    }

    /** Type of the block, such as "text"; "" when it has none. */
    get type(): string {
        if (this.#json === null) return "text";
        const { type } = this.content;
        return typeof type === "string" ? type : "";
    }

    toString(): string {
        return this.text ?? "";
    }
}

/** @internal Makes the segments of a raw event (bindings/node/events.c): a text is a
 *     plain text block whose number and index follow those of the one before; null
 *     begins any other. */
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
