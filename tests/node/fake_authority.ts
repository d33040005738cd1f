/** A server that requires a token and its authorization server, in one: a small HTTP
 * server on this machine for tests of a client. Its user always agrees. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

type Fields = Record<string, string>;
interface Answer {
    status: number;
    headers?: Record<string, string>;
    body?: unknown;
}

const TASKS = "io.modelcontextprotocol/tasks";
const TASK = {
    taskId: "T",
    status: "working",
    createdAt: "2026-01-01T00:00:00Z",
    lastUpdatedAt: "2026-01-01T00:00:00Z",
    ttlMs: null,
    pollIntervalMs: 10,
};

/** Both servers; `url` is the endpoint of the first. */
export class Authority {
    /** The access tokens that are accepted. */
    readonly tokens = new Set<string>();
    /** Headers of the last request to the endpoint. */
    headers: http.IncomingHttpHeaders = {};
    /** The grants that tokens were requested with, in order. */
    readonly grants: string[] = [];
    /** How many token requests get an error first. */
    busy = 0;
    /** The task that a tool of the server makes has ended. */
    isDone = false;
    issuer = "";
    private readonly codes = new Map<string, Fields>();
    private readonly server = http.createServer((request, response) => {
        let body = "";
        request.on("data", (part) => {
            body += String(part);
        });
        request.on("end", () => {
            const made = this.answer(request, body);
            const headers = { "Content-Type": "application/json", ...made.headers };
            response.writeHead(made.status, headers);
            response.end(made.body === undefined ? "" : JSON.stringify(made.body));
        });
    });

    static async start(): Promise<Authority> {
        const authority = new Authority();
        await new Promise<void>((resolve) => {
            authority.server.listen(0, "127.0.0.1", resolve);
        });
        const { port } = authority.server.address() as AddressInfo;
        authority.issuer = `http://127.0.0.1:${port}`;
        return authority;
    }

    get url(): string {
        return `${this.issuer}/mcp`;
    }

    async stop(): Promise<void> {
        this.server.closeAllConnections();
        await new Promise((resolve) => this.server.close(resolve));
    }

    private answer(request: http.IncomingMessage, body: string): Answer {
        const { pathname, search } = new URL(request.url ?? "", this.issuer);
        const fields = Object.fromEntries(new URLSearchParams(search || body)) as Fields;
        if (pathname === "/mcp") return this.endpoint(request, body);
        if (pathname.startsWith("/.well-known/oauth-protected-resource")) {
            const told = { resource: this.url, authorization_servers: [this.issuer] };
            return { status: 200, body: told };
        }
        if (pathname === "/.well-known/oauth-authorization-server") {
            return { status: 200, body: this.metadata() };
        }
        if (pathname === "/register") {
            const told = { ...(JSON.parse(body) as object), client_id: "registered" };
            return { status: 201, body: told };
        }
        if (pathname === "/authorize") {
            const code = randomBytes(8).toString("hex");
            this.codes.set(code, fields);
            const back = { code, state: fields.state ?? "", iss: this.issuer };
            const location = `${fields.redirect_uri}?${new URLSearchParams(back)}`;
            return { status: 302, headers: { Location: location } };
        }
        if (pathname === "/token" && this.busy > 0) {
            this.busy--;
            return { status: 503 };
        }
        return pathname === "/token" ? this.token(fields) : { status: 404 };
    }

    private metadata(): object {
        return {
            issuer: this.issuer,
            authorization_endpoint: `${this.issuer}/authorize`,
            token_endpoint: `${this.issuer}/token`,
            registration_endpoint: `${this.issuer}/register`,
            response_types_supported: ["code"],
            grant_types_supported: ["authorization_code", "client_credentials"],
            code_challenge_methods_supported: ["S256"],
            token_endpoint_auth_methods_supported: ["none", "client_secret_post"],
            authorization_response_iss_parameter_supported: true,
        };
    }

    private token(fields: Fields): Answer {
        this.grants.push(fields.grant_type ?? "");
        if (fields.grant_type === "authorization_code") {
            const asked = this.codes.get(fields.code ?? "");
            const hash = createHash("sha256").update(fields.code_verifier ?? "");
            assert.equal(hash.digest("base64url"), asked?.code_challenge);
            assert.equal(fields.redirect_uri, asked?.redirect_uri);
        } else {
            assert.equal(fields.client_secret, "secret-of-me");
        }
        const token = randomBytes(8).toString("hex");
        this.tokens.add(token);
        const told = { access_token: token, token_type: "Bearer", expires_in: 600 };
        return { status: 200, body: told };
    }

    private endpoint(request: http.IncomingMessage, body: string): Answer {
        this.headers = request.headers;
        const token = (request.headers.authorization ?? "").replace("Bearer ", "");
        if (!this.tokens.has(token)) {
            const where = `${this.issuer}/.well-known/oauth-protected-resource/mcp`;
            const why = 'error="invalid_token", error_description="It has expired"';
            const challenge = `Bearer ${why}, resource_metadata="${where}"`;
            return { status: 401, headers: { "WWW-Authenticate": challenge } };
        }
        if (request.method !== "POST") return { status: 405 };
        const asked = JSON.parse(body) as { id?: unknown; method?: string };
        const info = { name: "guarded", version: "1" };
        const result = {
            resultType: "complete",
            supportedVersions: ["2026-07-28"],
            capabilities: { tools: {}, extensions: { [TASKS]: {} } },
            serverInfo: info,
            ttlMs: 0,
            cacheScope: "private",
            _meta: { "io.modelcontextprotocol/serverInfo": info },
        };
        const end = this.isDone ? { status: "completed", result: { content: [] } } : {};
        const results: Record<string, object> = {
            "tools/call": { ...TASK, resultType: "task" },
            "tasks/get": { ...TASK, resultType: "complete", ...end },
        };
        const told = results[asked.method ?? ""] ?? result;
        return { status: 200, body: { jsonrpc: "2.0", id: asked.id, result: told } };
    }
}

/** Sends one request as a browser, on a connection of its own. With `fetch`, a test that
 * stops the clock would leave timers behind, which fail later. */
export async function browse(
    url: string,
    method = "GET",
): Promise<{ status: number; location: string | undefined; page: string }> {
    const request = http.request(url, { method, agent: false }).end();
    const [answer] = (await once(request, "response")) as [http.IncomingMessage];
    const page = await text(answer);
    return { status: answer.statusCode ?? 0, location: answer.headers.location, page };
}

/** Agrees as the user at this URL; returns the URL of the redirect. */
export async function agree(url: string): Promise<string> {
    const { location } = await browse(url);
    assert.ok(location, "nobody was sent back");
    return location;
}
