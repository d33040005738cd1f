/**
 * Checks the OAuth tokens of callers over HTTP. Either the library checks each token as a
 * JWT, or a function of the application checks each token.
 *
 * A listener with `auth` is a protected resource (2026-07-28 basic/authorization; RFC
 * 9728, RFC 6750). The library serves the resource's metadata, answers 401 and 403 with
 * the right challenges, and checks scopes. This file decides whether a token is valid.
 *
 * @module
 */

import { ClosedError, EndedError } from "../errors.js";
import { type Bearer, native, type Principal, type Transport } from "../native.js";
import type { BearerOptions } from "../native_options.js";
import type { ServerOptions } from "./options.js";

/** The rights that a valid token gives to its caller. */
export interface AccessToken {
    /**
     * A stable name of the caller, not empty. The caller's tasks and sessions belong to
     * this name.
     */
    principal: string;
    /** The scopes that the token grants. */
    scopes?: string | readonly string[] | undefined;
    /**
     * The time at which the token expires, as a Date or in milliseconds since 1970. By
     * default the token does not expire.
     */
    expiresAt?: Date | number | undefined;
}

/**
 * The answer of {@link BearerAuth.verify}. A string accepts the token and is the caller's
 * principal. null, undefined or false refuses the token.
 */
export type Verdict = AccessToken | string | null | undefined | false;

type Joined =
    | "authorizationServers"
    | "audience"
    | "requiredScopes"
    | "scopesSupported"
    | "impliedScopes"
    | "algorithms"
    | "issuer"
    | "jwks";
type Others = {
    [Name in Exclude<keyof BearerOptions, Joined>]?: Exclude<BearerOptions[Name], null>;
};

/**
 * How a listener checks tokens. Every caller needs a valid token. Without `verify`, the
 * library checks each token as a JWT (RFC 9068), with the keys in `jwks`, `jwksFile` or
 * `jwksUrl`.
 */
export interface BearerAuth extends Others {
    /**
     * The URL of the authorization server. With `verify`, several URLs are allowed.
     * Without `verify`, only one URL is allowed, because a key set belongs to one
     * authorization server.
     */
    issuer: string | readonly string[];
    /**
     * Checks a token: returns the principal or an {@link AccessToken}, or nothing to
     * refuse the token. The function must check that the token was issued for this
     * server.
     */
    verify?: ((token: string) => Verdict | PromiseLike<Verdict>) | undefined;
    /** The accepted `aud` values of a JWT. Default: the URL of the resource. */
    audience?: string | readonly string[] | undefined;
    /** The scopes that every request needs. */
    requiredScopes?: string | readonly string[] | undefined;
    /** The scopes that clients should request at first. */
    scopesSupported?: string | readonly string[] | undefined;
    /** The scopes that a scope includes, by the name of the including scope. */
    impliedScopes?: Readonly<Record<string, readonly string[]>> | undefined;
    /**
     * The accepted signature algorithms of a JWT, such as "RS256". Default: all safe
     * algorithms.
     */
    algorithms?: readonly string[] | undefined;
    /** The key set that checks JWTs, as an object or as JSON text. */
    jwks?: string | object | undefined;
}

/** The caller of a request, as the option `principal` of a server gets it. */
export interface Caller {
    /**
     * The address of the caller: "127.0.0.1:4711", "unix", or the subject of a verified
     * client certificate.
     */
    readonly address: string;
    /**
     * Returns a header of the request by its name; null = the request has no such header.
     * Only the function `principal` may call `header`, and only until `principal`
     * returns.
     */
    header(name: string): string | null;
}

/** Joins scopes or similar names with blanks. */
export function joined(
    names: string | readonly string[] | undefined,
): string | undefined {
    if (names === undefined || typeof names === "string") return names || undefined;
    return names.join(" ") || undefined;
}

/**
 * Makes the hook that the library calls to get the principal of each caller. `onError`
 * gets what the user's function throws to refuse a caller.
 */
export function principalHook(
    ask: NonNullable<ServerOptions["principal"]>,
    onError: (error: unknown) => void,
): Principal {
    if (ask === "") {
        throw new TypeError(
            "principal has to be a name that is not empty, or a function",
        );
    }
    if (typeof ask === "string") return () => ask;
    return (transport) => {
        const caller = {
            address: native.transportPeer(transport),
            header: (name: string) => native.transportHeader(transport, name),
        };
        try {
            return ask(caller);
        } catch (error) {
            onError(error);
            return false;
        }
    };
}

/**
 * Makes the library's options from the options of `auth`.
 *
 * @throws TypeError when the options name no way to check tokens.
 */
export function bearerOptions(auth: BearerAuth): BearerOptions {
    const { verify, issuer, audience, requiredScopes, scopesSupported } = auth;
    const { impliedScopes, algorithms, jwks, jwksFile, jwksUrl, ...rest } = auth;
    if (!verify && !jwks && !jwksFile && !jwksUrl) {
        throw new TypeError(
            "auth: set verify, or one of jwks, jwksFile and jwksUrl, " +
                "so that tokens can be checked",
        );
    }
    const lines = Object.entries(impliedScopes ?? {}).map(([scope, others]) =>
        [scope, ...others].join(" "),
    );
    const { verify: _, issuer: __, ...others } = rest;
    const keys = verify ? {} : { jwksFile, jwksUrl, jwks: textOf(jwks) };
    return {
        ...others,
        ...keys,
        authorizationServers: joined(issuer),
        audience: joined(audience),
        requiredScopes: joined(requiredScopes),
        scopesSupported: joined(scopesSupported),
        algorithms: joined(algorithms),
        impliedScopes: lines.join("\n") || undefined,
    };
}

function textOf(jwks: string | object | undefined): string | undefined {
    return typeof jwks === "object" ? JSON.stringify(jwks) : jwks;
}

/**
 * Makes the hook that the library calls for each token. Returns null when the library
 * checks the tokens itself.
 */
export function bearerHook(
    auth: BearerAuth,
    onError: (error: unknown) => void,
): ((bearer: Bearer, transport: Transport) => void) | null {
    const { verify } = auth;
    if (!verify) return null;
    return (bearer) => {
        // The user's function may call anything, so the function runs after the hook and
        // not inside the hook.
        queueMicrotask(() => void decide(verify, bearer, onError));
    };
}

async function decide(
    verify: NonNullable<BearerAuth["verify"]>,
    bearer: Bearer,
    onError: (error: unknown) => void,
): Promise<void> {
    try {
        tell(bearer, await verify(native.bearerToken(bearer)));
    } catch (error) {
        // ClosedError and EndedError mean that the caller has left or the server has
        // ended. These errors are not reported.
        if (!(error instanceof ClosedError || error instanceof EndedError))
            onError(error);
    } finally {
        try {
            // If no decision was made, the caller gets the HTTP status 503.
            native.bearerFree(bearer);
        } catch {
            // An error of bearerFree means that the runtime has ended and has freed the
            // bearer.
        }
    }
}

function tell(bearer: Bearer, verdict: Verdict): void {
    if (!verdict) {
        native.bearerRefuse(bearer);
        return;
    }
    const token = typeof verdict === "string" ? { principal: verdict } : verdict;
    const { principal, scopes, expiresAt } = token as AccessToken;
    if (typeof principal !== "string" || !principal) {
        throw new TypeError(
            "verify: the principal of a token has to be a string that is not empty",
        );
    }
    native.bearerAccept(
        bearer,
        principal,
        joined(scopes) ?? null,
        Number(expiresAt ?? 0),
    );
}
