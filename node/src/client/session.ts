/**
 * A client's session with one server. The session lasts over all reconnects to the
 * server.
 */

import { ProtocolError } from "../errors.js";
import { native } from "../native.js";
import type { JsonObject } from "../questions.js";
import { Calls } from "./calls.js";
import {
    type Change,
    Changes,
    type Interests,
    type SubscribeOptions,
} from "./changes.js";
import { checkLevel, type LogLevel, type RawRequestOptions } from "./conversation.js";
import {
    type Completion,
    type Prompt,
    type PromptResult,
    type ReadResult,
    type Resource,
    type ResourceTemplate,
    readCompletion,
    readContents,
    readPage,
    readPrompt,
    type Tool,
} from "./items.js";

const MOST_PAGES = 10_000;

/**
 * An item whose argument can be completed. The forms are: a prompt, a resource template,
 * the URI template as text (a text with a brace), the name of a prompt, or a reference
 * object of the protocol.
 */
export type Reference =
    | Prompt
    | ResourceTemplate
    | string
    | { type: "ref/prompt"; name: string }
    | { type: "ref/resource"; uri: string };

/** The options of requests that carry `_meta`. */
export interface MetaOptions extends RawRequestOptions {
    /** `_meta` of the request. */
    meta?: JsonObject | undefined;
}

/** The options of `session.complete`. */
export interface CompleteOptions extends RawRequestOptions {
    /** Values of the other arguments, by the name of the argument. */
    context?: { readonly [name: string]: string } | undefined;
}

/**
 * A list that a server sends in pages. `await` returns the whole list. `for await` reads
 * item by item and requests the next page when the loop needs the page. Each use of the
 * list sends new requests.
 */
export class Listing<T> implements Promise<T[]>, AsyncIterable<T> {
    /** The name of the class in messages. */
    readonly [Symbol.toStringTag] = "Listing";
    private readonly pages: () => AsyncGenerator<T[], void, undefined>;

    /** @internal */
    constructor(pages: () => AsyncGenerator<T[], void, undefined>) {
        this.pages = pages;
    }

    /** Yields one item after the other, page by page. */
    async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
        for await (const page of this.pages()) yield* page;
    }

    /** Returns the whole list. */
    async all(): Promise<T[]> {
        const found: T[] = [];
        for await (const page of this.pages()) found.push(...page);
        return found;
    }

    // biome-ignore lint/suspicious/noThenProperty: programs await a Listing
    then<A = T[], B = never>(
        onfulfilled?: ((value: T[]) => A | PromiseLike<A>) | null,
        onrejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
    ): Promise<A | B> {
        return this.all().then(onfulfilled, onrejected);
    }

    catch<B = never>(
        onrejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
    ): Promise<T[] | B> {
        return this.all().catch(onrejected);
    }

    finally(onfinally?: (() => void) | null): Promise<T[]> {
        return this.all().finally(onfinally);
    }
}

/**
 * A session with a server; made by `connect`.
 *
 * Many calls may run at the same time. When the connection breaks, the session makes a
 * new connection. Tasks and streams continue after the last segment that arrived. Calls
 * that the server can recognise by their idempotency key are sent again. All other calls
 * end with `DisconnectedError`.
 *
 * An open session does not keep the process alive. A pending promise of the session keeps
 * the process alive. When the process ends, the library asks the child process of a
 * session to end, too.
 */
export class Session extends Calls {
    // ---- lists

    /**
     * Lists the tools.
     *
     * @throws RemoteError: the server has no tools at all (-32601).
     * @throws ProtocolError: the answer has no valid tools.
     */
    listTools(options: RawRequestOptions = {}): Listing<Tool> {
        return this.listing("tools/list", "tools", ["name"], options);
    }

    /** Lists the resources. Throws the same errors as {@link listTools}. */
    listResources(options: RawRequestOptions = {}): Listing<Resource> {
        return this.listing("resources/list", "resources", ["name", "uri"], options);
    }

    /** Lists the templates of resources. Throws the same errors as {@link listTools}. */
    listResourceTemplates(options: RawRequestOptions = {}): Listing<ResourceTemplate> {
        const required = ["name", "uriTemplate"];
        const method = "resources/templates/list";
        return this.listing(method, "resourceTemplates", required, options);
    }

    /** Lists the prompts. Throws the same errors as {@link listTools}. */
    listPrompts(options: RawRequestOptions = {}): Listing<Prompt> {
        return this.listing("prompts/list", "prompts", ["name"], options);
    }

    private listing<T>(
        method: string,
        member: string,
        required: readonly string[],
        options: RawRequestOptions,
    ): Listing<T> {
        return new Listing(() => allPages<T>(this, method, member, required, options));
    }

    // ---- resources, prompts, completion

    /**
     * Reads a resource.
     *
     * @throws RemoteError: the resource does not exist (-32002, -32602) or cannot be
     * read.
     */
    async readResource(uri: string, options: MetaOptions = {}): Promise<ReadResult> {
        const params = { uri, _meta: options.meta };
        return readContents(await this.requestRaw("resources/read", params, options));
    }

    /**
     * Gets the messages of a prompt. The arguments of a prompt are strings.
     *
     * @throws RemoteError: the prompt does not exist, or an argument is missing (-32602).
     */
    async getPrompt(
        name: string,
        args?: { readonly [name: string]: string },
        options: MetaOptions = {},
    ): Promise<PromptResult> {
        const params = { name, arguments: args, _meta: options.meta };
        return readPrompt(await this.requestRaw("prompts/get", params, options));
    }

    /**
     * Suggests values for an argument of a prompt or of a template.
     *
     * @param of - the prompt or template; see {@link Reference}.
     * @param argument - the argument's name.
     * @param value - what the user has typed so far.
     * @throws RemoteError: the prompt or template does not exist (-32602), or the server
     * offers no completion (-32601).
     */
    async complete(
        of: Reference,
        argument: string,
        value = "",
        options: CompleteOptions = {},
    ): Promise<Completion> {
        const { context, ...rest } = options;
        const params = {
            ref: referenceOf(of),
            argument: { name: argument, value },
            context: context === undefined ? undefined : { arguments: context },
        };
        return readCompletion(await this.requestRaw("completion/complete", params, rest));
    }

    // ---- changes

    /**
     * Subscribes to changes of resources or lists; see {@link Changes}.
     *
     * @param to - a URI, an array of URIs, or {@link Interests}.
     * @param options - a function here is the same as `{ onChange }`.
     * @throws UnsupportedError: the server does not support the subscription.
     * @throws RemoteError: the server refuses the subscription.
     */
    async subscribe(
        to: string | readonly string[] | Interests,
        options: SubscribeOptions | ((change: Change) => unknown) = {},
    ): Promise<Changes> {
        const told = typeof options === "function" ? { onChange: options } : options;
        const changes = new Changes(this, interestsOf(to), told);
        await changes.open(told.signal);
        return changes;
    }

    // ---- the rest

    /**
     * Sends a ping to the server and waits for the answer. Revision 2026-07-28 has no
     * `ping`, so a client of this revision sends `server/discover` instead.
     */
    async ping(options: RawRequestOptions = {}): Promise<void> {
        const method = this.peer.era === "modern" ? "server/discover" : "ping";
        await this.requestRaw(method, null, { ...options, noCache: true });
    }

    /**
     * Sends a notification, for example `notifications/roots/list_changed`. The server
     * may miss it when the connection breaks.
     *
     * @throws StateError: the connection is lost at present.
     */
    notify(method: string, params: Record<string, unknown> | null = null): void {
        native.sessionNotify(this.handle, method, params && JSON.stringify(params));
    }

    /**
     * Asks the server for log messages from this level on. `onLog` receives the messages.
     *
     * @throws RemoteError: a server of a revision before 2026-07-28 does not log.
     */
    async setLogLevel(level: LogLevel, options: RawRequestOptions = {}): Promise<void> {
        checkLevel(level);
        if (this.peer.era === "legacy") {
            await this.requestRaw("logging/setLevel", { level }, options);
        }
        this.logLevel = level;
    }
}

async function* allPages<T>(
    session: Session,
    method: string,
    member: string,
    required: readonly string[],
    options: RawRequestOptions,
): AsyncGenerator<T[], void, undefined> {
    const seen = new Set<string>();
    let cursor: string | undefined;
    for (let count = 0; count < MOST_PAGES; count += 1) {
        const params = cursor === undefined ? null : { cursor };
        const raw = await session.requestRaw(method, params, options);
        const page = readPage(raw, method, member, required);
        yield page.items as T[];
        cursor = page.next;
        if (cursor === undefined) return;
        if (seen.has(cursor)) break;
        seen.add(cursor);
    }
    throw new ProtocolError(
        `${method}: the server sent more pages than the limit, or sent one page twice`,
    );
}

function interestsOf(to: string | readonly string[] | Interests): Interests {
    if (typeof to === "string") return { uris: [to] };
    return Array.isArray(to) ? { uris: to } : (to as Interests);
}

function referenceOf(of: Reference): object {
    if (typeof of === "string") {
        return of.includes("{")
            ? { type: "ref/resource", uri: of }
            : { type: "ref/prompt", name: of };
    }
    if ("type" in of) return of;
    if ("uriTemplate" in of) return { type: "ref/resource", uri: of.uriTemplate };
    return { type: "ref/prompt", name: of.name };
}
