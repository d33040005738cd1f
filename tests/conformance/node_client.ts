#!/usr/bin/env node
/**
 * The fixture client of client.c, on the Node SDK: one program for all scenarios of the
 * suite. MCP_CONFORMANCE_SCENARIO names the scenario, MCP_CONFORMANCE_CONTEXT is JSON
 * with its data, and the last argument is the server's URL. The client goes through
 *
 *     lists, page by page --> one call after the other --> the end
 *
 * A call that asks waits until all others were made, so that the parts of one call show
 * up in no other. The status is 0 when everything succeeded.
 */
import { execFileSync } from "node:child_process";
import {
    authorize,
    type ConnectOptions,
    connect,
    type JsonObject,
    OAuth,
    type Question,
    SegueError,
    type Session,
    type Tool,
} from "segue-mcp";

/** The suite gives up after 30 s, but does not end the program that it has started. */
const LIFE_MS = 28_000;
/** The suite starts all servers and clients at once, and on a busy machine takes seconds
 * to get to all. So a silent server is not taken for an old one here. */
const PROBE_MS = 25_000;
/** The suite knows this URL; it need not be readable. */
const METADATA_URL = "https://conformance-test.local/client-metadata.json";
const DEPTH_MOST = 16;

// ---- values that fit a schema, as far as the suite's schemas need it

function asObject(value: unknown): JsonObject {
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as JsonObject) : {};
}

/** Makes the required members of an object. */
function objectFor(given: unknown, withoutDefaults = false, depth = 0): JsonObject {
    const schema = asObject(given);
    const properties = asObject(schema.properties);
    const required = Array.isArray(schema.required) ? (schema.required as string[]) : [];
    return Object.fromEntries(
        required
            .filter(
                (name) => !(withoutDefaults && "default" in asObject(properties[name])),
            )
            .map((name) => [name, valueFor(properties[name], depth + 1)]),
    );
}

function valueFor(given: unknown, depth: number): unknown {
    const schema = asObject(given);
    for (const name of ["const", "default"]) if (name in schema) return schema[name];
    if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[0];
    if (depth > DEPTH_MOST) return "text";
    switch (schema.type) {
        case "object":
            return objectFor(schema, false, depth);
        case "number":
        case "integer":
            return 2 + depth;
        case "boolean":
            return true;
        case "null":
            return null;
        case "array":
            return [];
        default:
            return "text";
    }
}

// ---- one call

/** A call in play. It answers its questions when the play lets it. */
class Call {
    readonly work: Promise<unknown>;
    private tellAsked: () => void = () => undefined;
    private mayAnswer: () => void = () => undefined;
    private readonly asks = new Promise<void>((resolve) => {
        this.tellAsked = resolve;
    });
    private readonly isLet = new Promise<void>((resolve) => {
        this.mayAnswer = resolve;
    });

    constructor(session: Session, name: string, args: JsonObject) {
        const onInput = (question: Question): Promise<object> => this.answer(question);
        this.work = session.call(name, args, { onInput });
    }

    /** Waits until the call has ended, or asks. */
    async rest(): Promise<void> {
        await Promise.race([this.work.catch(() => undefined), this.asks]);
    }

    letAnswer(): void {
        this.mayAnswer();
    }

    private async answer({ method, params }: Question): Promise<object> {
        this.tellAsked();
        await this.isLet;
        if (method === "roots/list") return { roots: [] };
        if (method === "sampling/createMessage") {
            const content = { type: "text", text: "said by a model" };
            return { role: "assistant", content, model: "none", stopReason: "endTurn" };
        }
        if (params.mode === "url") return { action: "accept" };
        // Members with a default are left to the library.
        return { action: "accept", content: objectFor(params.requestedSchema, true) };
    }
}

// ---- the play

class Play {
    failed = false;

    constructor(
        private readonly scenario: string,
        private readonly context: JsonObject,
    ) {}

    fail(what: string, why: unknown): void {
        console.error(`client: ${what}: ${why instanceof Error ? why.message : why}`);
        this.failed = true;
    }

    private async attempt<T>(what: string, work: PromiseLike<T>): Promise<T | undefined> {
        try {
            return await work;
        } catch (error) {
            if (!(error instanceof SegueError)) throw error;
            this.fail(what, error);
            return undefined;
        }
    }

    async play(session: Session): Promise<void> {
        const tools = (await this.attempt("tools/list", session.listTools())) ?? [];
        const can = session.peer.capabilities;
        if ("resources" in can) {
            const found = await this.attempt("resources/list", session.listResources());
            for (const { uri } of found ?? []) {
                await this.attempt("resources/read", session.readResource(uri));
            }
        }
        if ("prompts" in can) {
            const found = await this.attempt("prompts/list", session.listPrompts());
            for (const prompt of found ?? []) {
                const required = (prompt.arguments ?? []).filter((one) => one.required);
                const args = Object.fromEntries(
                    required.map((one) => [one.name, "text"]),
                );
                await this.attempt("prompts/get", session.getPrompt(prompt.name, args));
            }
        }
        await this.calls(session, tools);
    }

    private async calls(session: Session, tools: Tool[]): Promise<void> {
        const running: Call[] = [];
        for (const [name, args] of this.planned(tools)) {
            const call = new Call(session, name, args);
            running.push(call);
            await call.rest();
        }
        for (const call of running) {
            call.letAnswer();
            await this.attempt("tools/call", call.work);
        }
    }

    /** The calls that the suite wants, or one call of each tool. */
    private planned(tools: Tool[]): [string, JsonObject][] {
        // the tool is only listed
        if (this.scenario === "json-schema-ref-no-deref") return [];
        const wanted = this.context.toolCalls;
        if (Array.isArray(wanted)) {
            return wanted
                .map(asObject)
                .map((one) => [String(one.name), asObject(one.arguments)]);
        }
        const seen = tools.find((one) => one.name === "json_schema_2020_12_tool");
        return tools.map((tool) => {
            const args = objectFor(tool.inputSchema);
            // The tool wants its schema as the client received it.
            if (tool.name === "json_schema_echo" && seen) args.schema = seen.inputSchema;
            return [tool.name, args];
        });
    }
}

// ---- the identity of the client for an authorization server

/** Opens a URL as the browser; returns where it is redirected to. */
async function browse(url: string): Promise<void> {
    const answer = await fetch(url, { redirect: "manual" });
    const location = answer.headers.get("location");
    if (location === null) throw new Error("the server did not send it back");
    authorize(location);
}

const EXCHANGE = `
    const [url, body] = process.argv.slice(1);
    fetch(url, { method: "POST", body: new URLSearchParams(JSON.parse(body)) })
        .then((answer) => answer.json())
        .then((told) => process.stdout.write(told.access_token));`;

/** Token exchange (RFC 8693): exchanges the user's ID token for an assertion that this
 * authorization server accepts. Another process sends the request, because the client
 * waits here and does nothing else meanwhile. */
function assertionOf(context: JsonObject, issuer: string, resource: string): string {
    if ("valid_jwt" in context) return String(context.valid_jwt);
    const form = {
        grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
        requested_token_type: "urn:ietf:params:oauth:token-type:id-jag",
        subject_token: context.idp_id_token ?? "",
        subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
        client_id: context.idp_client_id ?? "",
        audience: issuer,
        resource,
    };
    const endpoint = String(context.idp_token_endpoint);
    const command = ["-e", EXCHANGE, endpoint, JSON.stringify(form)];
    return execFileSync(process.execPath, command, { encoding: "utf8", timeout: 10_000 });
}

function oauthOf(scenario: string, context: JsonObject): OAuth | undefined {
    if (!scenario.startsWith("auth/")) return undefined;
    const name = scenario.slice("auth/".length);
    const text = (member: string): string | undefined =>
        member in context ? String(context[member]) : undefined;
    const byAssertion = /^(wif|enterprise|cross-app)/.test(name);
    const isClient = name.startsWith("client-credentials");
    return new OAuth({
        grant: byAssertion ? "assertion" : isClient ? "client" : "code",
        clientName: "segue-conformance",
        redirectUri: "http://localhost:3000/callback",
        clientMetadataUrl: METADATA_URL,
        clientId: text("client_id"),
        clientSecret: text("client_secret"),
        privateKey: text("private_key_pem"),
        openBrowser: browse,
        assertion: byAssertion
            ? (issuer, resource) => assertionOf(context, issuer, resource)
            : undefined,
    });
}

async function main(): Promise<number> {
    setTimeout(() => process.exit(1), LIFE_MS).unref();
    const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
    const told: unknown = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || "{}");
    const context = asObject(told);
    const play = new Play(scenario, context);
    const options: ConnectOptions = {
        name: "segue-conformance",
        version: "1.0.0",
        auth: oauthOf(scenario, context),
        capabilities: { elicitation: {}, sampling: {}, roots: {} },
        fillDefaults: true,
        probeTimeoutMs: PROBE_MS,
        connectTimeoutMs: LIFE_MS,
        connectAttempts: 20,
    };
    try {
        const session = await connect(process.argv.at(-1) ?? "", options);
        try {
            await play.play(session);
        } finally {
            await session.close();
        }
    } catch (error) {
        if (!(error instanceof SegueError)) throw error;
        play.fail("session", error);
    }
    return Number(play.failed);
}

process.exitCode = await main();
