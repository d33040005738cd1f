/**
 * Authorization of a client over HTTP (2026-07-28 basic/authorization).
 *
 * The library finds the authorization server and registers the client. The library also
 * asks for tokens, renews tokens and sends tokens. This file has the parts that a desktop
 * program needs. The code here opens a browser for the user's consent, listens on a local
 * socket for the browser's redirect, and stores tokens in files.
 */

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import type { OauthOptions } from "../native.js";

/**
 * Stores texts by key. The texts are secrets. The library waits while `load` or `save`
 * runs, so both functions must be quick.
 */
export interface TokenStorage {
    /**
     * Returns the value that `save` stored last under the key; null or undefined when
     * there is no value.
     */
    load(key: string): string | null | undefined;
    /** Stores the value under the key and replaces an older value. */
    save(key: string, value: string): void;
}

/** Stores each key in a file of its own. The directory is readable by its owner only
 * (mode 0700, files 0600) and is created at the first `save`. */
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

    /**
     * Stores the value in a file. The file is replaced in one step, so a reader finds
     * either the whole old text or the whole new text.
     */
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
     * program authorizes itself (client credentials). `"assertion"`: the JWT that
     * `assertion` returns names the user (RFC 7523).
     */
    grant?: "code" | "client" | "assertion" | undefined;
    /**
     * The client id of a program that was registered beforehand. Without a client id the
     * program registers itself.
     */
    clientId?: string | undefined;
    /** The secret of `clientId`. */
    clientSecret?: string | undefined;
    /**
     * A private key in PEM format. With this key the client signs instead of sending a
     * client secret.
     */
    privateKey?: string | undefined;
    /**
     * The authorization server that knows `clientId`. The client sends `clientId` to no
     * other server.
     */
    issuer?: string | undefined;
    /** An https URL of a document that describes the client. */
    clientMetadataUrl?: string | undefined;
    /** The client's name in a registration; default "segue". */
    clientName?: string | undefined;
    /** The scope to request if the server names no scope. */
    scope?: string | undefined;
    /**
     * The URI to which the browser is redirected. Default: the URI of a socket on this
     * machine, which listens while a connection is open. With a URI of your own, pass the
     * full redirect URL to `authorize`.
     */
    redirectUri?: string | undefined;
    /**
     * The port of the local socket that receives the browser's redirect; 0 = a free port.
     * With a fixed port, the program does not register again in each run.
     */
    port?: number | undefined;
    /** How long the user may take to agree, in milliseconds; default ten minutes. */
    consentTimeoutMs?: number | undefined;
    /** Stores registrations and tokens beyond the connection, e.g. in a
     * {@link FileStorage}. */
    storage?: TokenStorage | undefined;
    /** Shows a URL to the user. Default: the desktop's browser opens the URL. */
    openBrowser?: ((url: string) => unknown) | undefined;
    /**
     * For the grant `"assertion"`: returns a JWT, or nothing. The library waits while the
     * function runs, so the function must be quick.
     */
    assertion?:
        | ((issuer: string, resource: string) => string | null | undefined)
        | undefined;
    /** The authentication method at the token endpoint, e.g. `"client_secret_post"`. */
    authMethod?: string | undefined;
    /** false = the program does not register itself. */
    register?: boolean | undefined;
    /**
     * true = the server may name authorization endpoints at addresses that are not
     * public, such as 10.0.0.1. By default only the server's own address and the host of
     * `issuer` may be private.
     */
    allowPrivateAddresses?: boolean | undefined;
}

const GRANTS = { code: 0, client: 1, assertion: 2 } as const;

/**
 * Authorizes a client with OAuth 2.1. The client requests a token when the server demands
 * one.
 */
export class OAuth {
    /** @internal */
    readonly storage: TokenStorage | undefined;
    /** @internal */
    readonly assertion: OAuthOptions["assertion"];
    /** @internal */
    readonly port: number;
    /** @internal */
    readonly redirectUri: string | undefined;
    /** The grant that this client uses. */
    readonly grant: "code" | "client" | "assertion";
    readonly #openBrowser: ((url: string) => unknown) | undefined;
    // The options contain secrets. The member is private so that console.log does not
    // print the secrets.
    readonly #told: OauthOptions;

    constructor(options: OAuthOptions = {}) {
        const { grant = "code", assertion } = options;
        if (!Object.hasOwn(GRANTS, grant)) {
            const known = Object.keys(GRANTS).join(", ");
            throw new TypeError(
                `unknown grant: ${JSON.stringify(grant)}; the grants are ${known}`,
            );
        }
        if ((grant === "assertion") !== (assertion !== undefined)) {
            throw new TypeError(
                'grant "assertion" needs the option assertion; no other grant takes it',
            );
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

    /** @internal Returns the options for `segue_transport_set_oauth`. */
    told(redirectUri: string | undefined): OauthOptions {
        return { ...this.#told, redirectUri };
    }

    /** @internal Shows the URL to the user. */
    async browse(url: string): Promise<void> {
        await (this.#openBrowser ?? openBrowser)(url);
    }
}

/** Opens the URL in the desktop's browser. */
function openBrowser(url: string): Promise<void> {
    const [command, ...args] =
        process.platform === "darwin" ? ["open", url] : ["xdg-open", url];
    return new Promise((resolve, reject) => {
        const child = spawn(command as string, args, { detached: true, stdio: "ignore" });
        child.once("error", (error) => {
            reject(
                new Error(
                    `no browser can be opened (${error.message}); ` +
                        `to log in, visit ${url}`,
                ),
            );
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

/**
 * A local socket that receives the browser's redirect. The socket is bound when the
 * object is made, so its URL is known at once (RFC 8252, section 7.3). The socket does
 * not keep the process alive.
 */
export class Redirects {
    /** The URL that the browser is redirected to. */
    readonly url: string;
    private readonly server: http.Server;

    private constructor(server: http.Server) {
        const { port } = server.address() as AddressInfo;
        this.url = `http://127.0.0.1:${port}/callback`;
        this.server = server;
    }

    /**
     * Opens the local socket.
     *
     * @param taken - a function that gets the query of the redirect and returns whether a
     * connection waited for this redirect.
     * @throws the error of `listen`, for instance because the port is in use.
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
                    : "No login is waiting for this page.";
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

    /** Closes the local socket, which frees its port. */
    close(): void {
        this.server.close();
        this.server.closeAllConnections();
    }
}
