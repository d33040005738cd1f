/**
 * Who may call over HTTP: tokens of OAuth, as JWT or by a function.
 *
 * A listener with `auth` is a protected resource (2026-07-28 basic/authorization; RFC
 * 9728, RFC 6750): the library serves its metadata, answers 401 and 403 with the right
 * challenges and checks scopes. What is decided here is whether a token is good.
 *
 * @module
 */

import { ClosedError, EndedError } from "../errors.js";
import { type Bearer, native, type Principal, type Transport } from "../native.js";
import type { BearerOptions } from "../native_options.js";
import type { ServerOptions } from "./options.js";

/** What a token is worth. */
export interface AccessToken {
    /** Who the caller is: a stable name, not empty. Tasks and sessions belong to it. */
    principal: string;
    /** What the token grants. */
    scopes?: string | readonly string[] | undefined;
    /** When it ends; it does not by default. */
    expiresAt?: Date | number | undefined;
}

/** What a {@link BearerAuth.verify} says; nothing refuses the token. */
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
 * Every caller needs a token. Without `verify` tokens are checked as JWT (RFC 9068), with
 * the keys in one of `jwks`, `jwksFile` and `jwksUrl`.
 */
export interface BearerAuth extends Others {
    /** URL of the authorization server. With `verify` there may be several; a key set is
     * that of one. */
    issuer: string | readonly string[];
    /**
     * Decides about a token: the principal, or all that it is worth, or nothing to refuse
     * it. See that it was issued for you.
     */
    verify?: ((token: string) => Verdict | PromiseLike<Verdict>) | undefined;
    /** What `aud` of a JWT may be, if it is not the resource. */
    audience?: string | readonly string[] | undefined;
    /** What every request needs. */
    requiredScopes?: string | readonly string[] | undefined;
    /** What clients ask for at first. */
    scopesSupported?: string | readonly string[] | undefined;
    /** A scope, and those that it stands for too. */
    impliedScopes?: Readonly<Record<string, readonly string[]>> | undefined;
    /** Of JWT, such as "RS256"; by default all that are safe. */
    algorithms?: readonly string[] | undefined;
    /** The key set. */
    jwks?: string | object | undefined;
}

/** The caller of a request, as `principal` of a server sees it. */
export interface Caller {
    /** "127.0.0.1:4711", "unix", or the subject of a verified certificate. */
    readonly address: string;
    /** A header by its name; null when it is missing. Only until the function returns. */
    header(name: string): string | null;
}

/** Scopes and the like as one string. */
export function joined(
    names: string | readonly string[] | undefined,
): string | undefined {
    if (names === undefined || typeof names === "string") return names || undefined;
    return names.join(" ") || undefined;
}

/** The function that the library asks who is at the other end. */
export function principalHook(ask: NonNullable<ServerOptions["principal"]>): Principal {
    return (transport) =>
        ask({
            address: native.transportPeer(transport),
            header: (name) => native.transportHeader(transport, name),
        });
}

/** @throws TypeError when there is nothing to check tokens with. */
export function bearerOptions(auth: BearerAuth): BearerOptions {
    const { verify, issuer, audience, requiredScopes, scopesSupported } = auth;
    const { impliedScopes, algorithms, jwks, jwksFile, jwksUrl, ...rest } = auth;
    if (!verify && !jwks && !jwksFile && !jwksUrl) {
        throw new TypeError(
            "auth: tokens are checked by verify, or with the keys in one of jwks, " +
                "jwksFile and jwksUrl",
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

/** What the library asks about each token; null when it checks them itself. */
export function bearerHook(
    auth: BearerAuth,
    onError: (error: unknown) => void,
): ((bearer: Bearer, transport: Transport) => void) | null {
    const { verify } = auth;
    if (!verify) return null;
    return (bearer) => {
        // Not inside of the hook: the function is the user's, and may do anything.
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
        // That the caller has left, or all has ended, is nobody's mistake.
        if (!(error instanceof ClosedError || error instanceof EndedError))
            onError(error);
    } finally {
        try {
            native.bearerFree(bearer); // who was not decided about gets 503
        } catch {
            // The runtime has ended meanwhile.
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
        throw new TypeError("verify: the principal of a token is a string, not empty");
    }
    native.bearerAccept(
        bearer,
        principal,
        joined(scopes) ?? null,
        Number(expiresAt ?? 0),
    );
}
