/**
 * Authorization of a client over HTTP (2026-07-28 basic/authorization).
 *
 * The library finds the authorization server, registers, asks for tokens, renews them and
 * sends them. What is here is the part of a desktop program: a browser for the user's
 * consent, a socket on this machine where the browser comes back to, a file for what
 * shall be kept.
 */

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import type { OauthOptions } from "../native.js";

/** Keeps texts by their key. They hold secrets. Both functions are called while the
 * library waits, and must be quick. */
export interface TokenStorage {
    /** What `save` was given last under the key. */
    load(key: string): string | null | undefined;
    /** Keeps the value instead of what was kept under the key. */
    save(key: string, value: string): void;
}

/** One file for each key in a directory of its owner's (0700; the files 0600), which is
 * made when something is saved. */
export class FileStorage implements TokenStorage {
    private readonly directory: string;

    constructor(directory: string) {
        this.directory = directory.startsWith("~/")
            ? path.join(os.homedir(), directory.slice(2))
            : path.resolve(directory);
    }

    private file(key: string): string {
        return path.join(this.directory, `${encodeURIComponent(key)}.json`);
    }

    load(key: string): string | undefined {
        try {
            return fs.readFileSync(this.file(key), "utf8");
        } catch (error) {
            if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
            throw error;
        }
    }

    /** Replaces the file in one step: who reads it finds the old or the new text. */
    save(key: string, value: string): void {
        fs.mkdirSync(this.directory, { recursive: true, mode: 0o700 });
        const beside = path.join(this.directory, `.${randomBytes(8).toString("hex")}`);
        const file = fs.openSync(beside, "wx", 0o600);
        try {
            try {
                fs.writeFileSync(file, value);
                fs.fsyncSync(file);
            } finally {
                fs.closeSync(file);
            }
            fs.renameSync(beside, this.file(key));
        } catch (error) {
            fs.rmSync(beside, { force: true });
            throw error;
        }
    }
}

/** The options of {@link OAuth}. */
export interface OAuthOptions {
    /**
     * `"code"`: a user agrees in a browser, with PKCE; the default. `"client"`: the
     * program itself (client credentials). `"assertion"`: whom `assertion` names (RFC
     * 7523).
     */
    grant?: "code" | "client" | "assertion" | undefined;
    /** When the program was registered beforehand; else it registers itself. */
    clientId?: string | undefined;
    clientSecret?: string | undefined;
    /** PEM; the client signs instead of telling a secret. */
    privateKey?: string | undefined;
    /** The authorization server that knows `clientId`; no other gets it. */
    issuer?: string | undefined;
    /** https; what stands there describes the client. */
    clientMetadataUrl?: string | undefined;
    /** In a registration; default "segue". */
    clientName?: string | undefined;
    /** Asked for where the server names none. */
    scope?: string | undefined;
    /**
     * Where the browser comes back to. Default: a socket on this machine, which listens
     * while a connection is open. With one of your own, hand the URL that came back to
     * `authorize`.
     */
    redirectUri?: string | undefined;
    /** Of that socket; 0 = one that is free. A fixed one spares a new registration in
     * each run. */
    port?: number | undefined;
    /** How long a user has, in milliseconds; default ten minutes. */
    consentTimeoutMs?: number | undefined;
    /** Keeps registrations and tokens beyond the connection: {@link FileStorage}. */
    storage?: TokenStorage | undefined;
    /** Shows the URL to the user; default: the browser of the desktop. */
    openBrowser?: ((url: string) => unknown) | undefined;
    /** Of grant `"assertion"`: gives a JWT, or nothing. Is called while the library
     * waits, and must be quick. */
    assertion?:
        | ((issuer: string, resource: string) => string | null | undefined)
        | undefined;
    /** Of the token endpoint, e.g. `"client_secret_post"`. */
    authMethod?: string | undefined;
    /** false = no dynamic registration. */
    register?: boolean | undefined;
    /**
     * true = what a server names for authorization may be at addresses that are not
     * public, such as 10.0.0.1. Without it that is refused, but for the server's own
     * address and the host of `issuer`.
     */
    allowPrivateAddresses?: boolean | undefined;
}

const GRANTS = { code: 0, client: 1, assertion: 2 } as const;

/** Tokens by OAuth 2.1, got when the server asks for one. */
export class OAuth {
    /** @internal */
    readonly storage: TokenStorage | undefined;
    /** @internal */
    readonly assertion: OAuthOptions["assertion"];
    /** @internal */
    readonly port: number;
    /** @internal */
    readonly redirectUri: string | undefined;
    /** Which grant. */
    readonly grant: "code" | "client" | "assertion";
    readonly #openBrowser: ((url: string) => unknown) | undefined;
    readonly #told: OauthOptions; // has secrets: not for console.log

    constructor(options: OAuthOptions = {}) {
        const { grant = "code", assertion } = options;
        if (!Object.hasOwn(GRANTS, grant)) {
            throw new TypeError(`no such grant: ${JSON.stringify(grant)}`);
        }
        if ((grant === "assertion") !== (assertion !== undefined)) {
            throw new TypeError('grant "assertion" and the option assertion go together');
        }
        this.grant = grant;
        this.assertion = assertion;
        this.storage = options.storage;
        this.port = options.port ?? 0;
        this.redirectUri = options.redirectUri;
        this.#openBrowser = options.openBrowser;
        this.#told = {
            grant: GRANTS[grant],
            clientId: options.clientId,
            clientSecret: options.clientSecret,
            privateKey: options.privateKey,
            issuer: options.issuer,
            clientMetadataUrl: options.clientMetadataUrl,
            clientName: options.clientName,
            scope: options.scope,
            authMethod: options.authMethod,
            noRegistration: options.register === false,
            allowPrivateAddresses: options.allowPrivateAddresses === true,
            consentTimeoutMs: options.consentTimeoutMs,
        };
    }

    /** @internal Of `segue_transport_set_oauth`. */
    told(redirectUri: string | undefined): OauthOptions {
        return { ...this.#told, redirectUri };
    }

    /** @internal Shows the URL to the user. */
    async browse(url: string): Promise<void> {
        await (this.#openBrowser ?? openBrowser)(url);
    }
}

/** The browser of the desktop. */
function openBrowser(url: string): Promise<void> {
    const [command, ...args] =
        process.platform === "darwin" ? ["open", url] : ["xdg-open", url];
    return new Promise((resolve, reject) => {
        const child = spawn(command as string, args, { detached: true, stdio: "ignore" });
        child.once("error", (error) => {
            reject(new Error(`no browser can be opened (${error.message}): ${url}`));
        });
        child.once("spawn", () => {
            child.unref();
            resolve();
        });
    });
}

const PAGE =
    "<!doctype html><meta charset=utf-8><title>Authorization</title>" +
    "<body style='font-family:sans-serif;margin:4em'><p>";
const HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    Connection: "close",
};

/** A socket on this machine, bound at once so that its URL is known (RFC 8252, section
 * 7.3). It keeps no process alive. */
export class Redirects {
    /** Where the browser comes back to. */
    readonly url: string;
    private readonly server: http.Server;

    private constructor(server: http.Server) {
        const { port } = server.address() as AddressInfo;
        this.url = `http://127.0.0.1:${port}/callback`;
        this.server = server;
    }

    /**
     * @param taken - gets the query; returns whether somebody waited for it.
     * @throws what listening throws: the port is taken.
     */
    static async listen(
        port: number,
        taken: (query: string) => boolean,
    ): Promise<Redirects> {
        const server = http.createServer(
            { maxHeaderSize: 16384 },
            (request, response) => {
                const [place, query = ""] = (request.url ?? "").split(/\?(.*)/s, 2);
                const isOurs = request.method === "GET" && place === "/callback";
                const isDone = isOurs && taken(query);
                response.writeHead(isDone ? 200 : 404, HEADERS);
                const text = isDone
                    ? "Done. You can close this window."
                    : "Nobody waits for this.";
                response.end(`${PAGE}${text}`);
            },
        );
        server.headersTimeout = 10_000;
        server.requestTimeout = 10_000;
        await new Promise<void>((resolve, reject) => {
            server.once("error", reject);
            server.listen(port, "127.0.0.1", resolve);
        });
        server.unref();
        return new Redirects(server);
    }

    /** Frees the port. */
    close(): void {
        this.server.close();
        this.server.closeAllConnections();
    }
}
