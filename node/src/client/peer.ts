/** The description of the server at the other end of a session. */

import type { JsonObject } from "../questions.js";

const MODERN = "2026-07-28";

/** The name and version of a program, as the program itself reports them. */
export interface Implementation {
    /** Name of the program. */
    name: string;
    /** Version of the program. */
    version: string;
    /** Name for people. */
    title?: string;
    /** Text for people and models. */
    description?: string;
    /** URL of its web page. */
    websiteUrl?: string;
    /** Pictures, in several sizes. */
    icons?: JsonObject[];
}

/**
 * `"modern"`: 2026-07-28 and newer, which do not begin with `initialize`. `"legacy"`: all
 * older revisions.
 */
export type Era = "modern" | "legacy";

const BY_EXTENSION: Record<string, string> = {
    "io.modelcontextprotocol/tasks": "SEP-2663 tasks",
    "dev.segue/eventStreams": "SEP-2694 task events",
    "dev.segue/idempotency": "idempotency keys",
};

/** The server's description of itself at the last connection. */
export class Peer {
    /** The protocol revision in use, such as `"2026-07-28"`. */
    readonly protocolVersion: string;
    /** The server's name and version. */
    readonly server: Implementation;
    /** The capabilities that the server declares, as JSON. */
    readonly capabilities: JsonObject;
    /** The server's instructions for the model that uses it. */
    readonly instructions: string | undefined;

    /** @internal */
    constructor(told: JsonObject) {
        const info = isObject(told.serverInfo) ? told.serverInfo : {};
        this.protocolVersion = text(told.protocolVersion);
        this.server = { ...info, name: text(info.name), version: text(info.version) };
        this.capabilities = isObject(told.capabilities) ? told.capabilities : {};
        this.instructions =
            typeof told.instructions === "string" ? told.instructions : undefined;
    }

    /** The era of the revision in use. */
    get era(): Era {
        const version = this.protocolVersion;
        return version.startsWith("20") && version >= MODERN ? "modern" : "legacy";
    }

    /** The protocol extensions that the server offers, by name. */
    get extensions(): JsonObject {
        const told = this.capabilities.extensions;
        return isObject(told) ? told : {};
    }

    /**
     * The ways in which the server offers long-running work, by the names of their
     * proposals. Some proposals need no declaration of the server (SEP-975, SEP-2998, PR
     * 776). These proposals are not listed.
     */
    get dialects(): string[] {
        const found: string[] = [];
        const tasks = this.capabilities.tasks;
        if (isObject(tasks)) {
            const isDraft = this.protocolVersion.startsWith("DRAFT");
            found.push(isDraft ? "SEP-2557 tasks" : "SEP-1686 tasks");
            const responses = isObject(tasks.responses) ? tasks.responses : {};
            if (Array.isArray(responses.modes) && responses.modes.includes("streaming")) {
                found.push("SEP-1905 streaming");
            }
        }
        const extensions = this.extensions;
        for (const [name, dialect] of Object.entries(BY_EXTENSION)) {
            const offered = extensions[name];
            if (offered !== undefined && offered !== null && offered !== false) {
                found.push(dialect);
            }
        }
        return found;
    }
}

/** Returns whether a JSON value is an object. */
export function isObject(value: unknown): value is JsonObject {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
    return typeof value === "string" ? value : "";
}

/**
 * Parses the output of `segue_session_peer`. The server chose the values in this output,
 * so each member may have any type.
 */
export function readPeer(raw: string): Peer {
    const told: unknown = JSON.parse(raw);
    return new Peer(isObject(told) ? told : {});
}
