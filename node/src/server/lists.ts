/**
 * Lists as the middlewares of a server see them: which items a caller sees.
 *
 *     tools/list --> middleware --> middleware --> the items of the server
 *     shown names <-- some of them <-- some of them --'  `--> of a mounted one: its own
 *
 *     tools/call NAME --> the same, with a list of the one item --> shown, or unknown
 *
 * A `Lister` answers the library, which asks before it answers a list and before a
 * request names an item. It is made only for a list that has middlewares.
 *
 * @module
 */

import { ListFlag } from "../constants.js";
import type { SegueError } from "../errors.js";
import {
    type Call as Handle,
    type ItemOptions,
    native,
    Item as Sort,
} from "../native.js";
import type { Context } from "./context.js";
import type { Hosting } from "./hosting.js";
import { Item, rpcError } from "./item.js";
import { Call, type ListMethod, type Middleware, runLayers, showsAll } from "./layers.js";
import type { Server } from "./server.js";

const SORTS: readonly [ListMethod, number, Listed["kind"]][] = [
    ["tools/list", Sort.TOOL, "tool"],
    ["resources/list", Sort.RESOURCE, "resource"],
    ["resources/templates/list", Sort.RESOURCE_TEMPLATE, "template"],
    ["prompts/list", Sort.PROMPT, "prompt"],
];

/** An item of a list, as a middleware around the list gets it. */
export class Listed {
    /**
     * The name of the tool or prompt, the URI of the resource, or the text of the
     * template, as clients see it.
     */
    readonly name: string;
    /** What the item is: a tool, a prompt, a resource or a template. */
    readonly kind: "tool" | "resource" | "template" | "prompt";
    /** The item as clients see it in the list. Changes have no effect. */
    readonly told: Readonly<Record<string, unknown>>;
    /** @internal */
    readonly servers: readonly Server[];

    /** @internal */
    constructor(item: Item, kind: Listed["kind"]) {
        this.name = item.key;
        this.kind = kind;
        this.told = { ...item.told };
        this.servers = item.servers;
    }
}

/** One question of the library: a list, or one item of it. */
class Asking {
    constructor(
        readonly lister: Lister,
        readonly host: Hosting,
        readonly call: Handle,
        readonly context: Context,
        /** The name of the item; "" = the whole list. */
        readonly name: string,
    ) {}

    /**
     * Runs the middlewares of a server, and inside them those of the servers that are
     * mounted in it, each for its own items.
     *
     * @param depth - how many servers are around this one.
     */
    async shown(server: Server, depth: number, listed: Listed[]): Promise<Listed[]> {
        const { lister, name } = this;
        const rest = () => this.#inside(depth, listed);
        let around = server.layers.of(lister.method);
        // Asked about one item, only a middleware that may hide the item has a say.
        if (name) around = around.filter((one) => !showsAll(one));
        if (!around.length) return rest();
        const value = await runLayers(around, new ListCall(this, rest));
        return checked(value, listed, lister.method);
    }

    /** Returns those of the items that the servers inside a server show. */
    async #inside(depth: number, listed: Listed[]): Promise<Listed[]> {
        const inner = new Map<Server, Listed[]>();
        for (const one of listed) {
            const child = one.servers[depth + 1];
            if (!child) continue;
            const own = inner.get(child);
            if (own) own.push(one);
            else inner.set(child, [one]);
        }
        const hidden = new Set<Listed>();
        for (const [child, own] of inner) {
            const shown = new Set(await this.shown(child, depth + 1, own));
            for (const one of own) if (!shown.has(one)) hidden.add(one);
        }
        return listed.filter((one) => !hidden.has(one));
    }
}

/** A list as its middlewares get it. */
class ListCall extends Call {
    readonly #rest: () => Promise<Listed[]>;

    constructor(asking: Asking, rest: () => Promise<Listed[]>) {
        const { lister, host, call, context } = asking;
        super({ item: lister, host, call, context }, "{}");
        this.#rest = rest;
    }

    override get arguments(): Record<string, unknown> {
        return {};
    }

    override set arguments(_value: Record<string, unknown>) {
        throw new TypeError("a list has no arguments");
    }

    override handle(): Promise<unknown> {
        return this.#rest();
    }
}

/** Refuses what a middleware must not return for a list. */
function checked(value: unknown, listed: readonly Listed[], method: string): Listed[] {
    const known = new Set<unknown>(listed);
    const isMany =
        typeof value === "object" && value !== null && Symbol.iterator in value;
    const shown = isMany ? [...(value as Iterable<unknown>)] : [value];
    for (const one of shown) {
        if (known.has(one)) continue;
        throw new TypeError(
            `a middleware around ${method} returns some of the items that ` +
                `\`await proceed()\` returns, not ${String(one)}`,
        );
    }
    return shown as Listed[];
}

/** Answers the library about one list of a server. */
class Lister extends Item {
    readonly kind = Sort.LIST;
    readonly what = "list";
    readonly told: object;
    readonly options: ItemOptions;
    readonly completes = false;

    constructor(
        readonly method: ListMethod,
        readonly host: Hosting,
        readonly showsAll: boolean,
    ) {
        super(method, (call: Handle, context: Context) => decide(call, context));
        this.servers = [host.server];
        this.told = { method };
        this.options = { flags: showsAll ? ListFlag.SHOWS_ALL : 0 };
    }

    /** The middlewares run inside the handler, each for the items of its server. */
    override get around(): readonly Middleware[] {
        return [];
    }

    override renamed(): Item {
        throw new TypeError("a list has no other name");
    }

    override given(call: Handle): Record<string, unknown> {
        return { call };
    }

    override check(given: Record<string, unknown>): unknown {
        return given.call;
    }

    override reply(call: Handle, value: unknown): void {
        if (!this.showsAll) {
            const names = (value as Listed[]).map(({ name }) => name);
            native.callSetField(call, "shown", JSON.stringify(names));
        }
        native.callReply(call);
    }

    override explain(error: unknown, isExposed: boolean): SegueError {
        return rpcError(error, isExposed);
    }

    override async complete(): Promise<void> {
        // A list suggests nothing.
    }
}

function decide(call: Handle, context: Context): Promise<Listed[]> {
    const lister = context.item as Lister;
    const { host, method } = lister;
    const name = native.callName(call);
    const listed: Listed[] = [];
    for (const [one, sort, kind] of SORTS) {
        if (one !== method) continue;
        for (const item of host.server.items) {
            if (item.kind === sort && (!name || item.key === name)) {
                listed.push(new Listed(item, kind));
            }
        }
    }
    const asking = new Asking(lister, host, call, context, name);
    return asking.shown(host.server, 0, listed);
}

/** Returns the middlewares around a list of a server and of those inside it. */
function allAround(server: Server, method: ListMethod): Middleware[] {
    const inner = server.mounts.flatMap(({ child }) => allAround(child, method));
    return [...server.layers.of(method), ...inner];
}

/** What a running server (hosting) tells the library about its lists. */
export class Listers {
    readonly #now = new Map<ListMethod, Lister>();

    /** Makes the lists depend on the middlewares that the server has now. */
    refresh(host: Hosting): void {
        for (const [method] of SORTS) {
            const around = allAround(host.server, method);
            const isOpen = around.every(showsAll);
            const had = this.#now.get(method);
            if (had && around.length && had.showsAll === isOpen) continue;
            if (had) {
                host.remove(had);
                this.#now.delete(method);
            }
            if (!around.length) continue;
            const made = new Lister(method, host, isOpen);
            this.#now.set(method, made);
            host.add(made);
        }
    }
}
