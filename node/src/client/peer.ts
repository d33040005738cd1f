/** Who is at the other end of a session. */

import type { JsonObject } from "../questions.js";

const MODERN = "2026-07-28";

/** The name and version that a program gives itself. */
export interface Implementation {
    name: string;
    version: string;
    title?: string;
    description?: string;
    websiteUrl?: string;
    icons?: JsonObject[];
}

/** `"modern"` is 2026-07-28 and newer, without a handshake; `"legacy"` what was
 * before. */
export type Era = "modern" | "legacy";

const BY_EXTENSION: Record<string, string> = {
    "io.modelcontextprotocol/tasks": "SEP-2663 tasks",
    "dev.segue/eventStreams": "SEP-2694 task events",
    "dev.segue/idempotency": "idempotency keys",
};

/** The server as it introduced itself, at the last connection. */
export class Peer {
    /** The revision that is spoken, such as `"2026-07-28"`. */
    readonly protocolVersion: string;
    /** Its name and version. */
    readonly server: Implementation;
    /** What it can do, as JSON has it. */
    readonly capabilities: JsonObject;
    /** For the model that uses the server. */
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

    /** In which way the protocol is spoken. */
    get era(): Era {
        const version = this.protocolVersion;
        return version.startsWith("20") && version >= MODERN ? "modern" : "legacy";
    }

    /** The extensions of the protocol that it offers, by name. */
    get extensions(): JsonObject {
        const told = this.capabilities.extensions;
        return isObject(told) ? told : {};
    }

    /**
     * In which ways it offers work that takes long, by the number of the proposal. What a
     * client asks for without the server's word (SEP-975, SEP-2998, PR 776) is not there.
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

/** Whether a value of JSON is an object. */
export function isObject(value: unknown): value is JsonObject {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
    return typeof value === "string" ? value : "";
}

/** What `segue_session_peer` tells. A server may call itself what it likes. */
export function readPeer(raw: string): Peer {
    const told: unknown = JSON.parse(raw);
    return new Peer(isObject(told) ? told : {});
}
