/** Middlewares around lists and completions of a Node server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
    type Call,
    type Caller,
    connect,
    type Listed,
    middleware,
    type Proceed,
    RemoteError,
    RpcError,
    Server,
    type Session,
} from "segue-mcp";
import { z } from "zod";
import { Gate, inEachWorld, serve } from "./server_worlds.js";

const LISTS = [
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
] as const;

/** A server with an open and a secret item of each kind. */
function house(name = "house"): Server {
    const server = new Server({ name, onError: () => undefined });
    for (const word of ["open", "secret"]) {
        const complete = { part: ["one", "two"] };
        server.tool(word, {}, () => "done");
        server.resource(`data://${word}`, () => "data");
        server.resource(`data://${word}/{part}`, { complete }, ({ part }) => `${part}`);
        server.prompt(word, { input: { kind: z.enum(["red", "green"]) } }, () => "ok");
    }
    return server;
}

/** Hides the items whose names have one of the parts. Returns what was asked. */
function hide(server: Server, ...parts: string[]): string[] {
    const asked: string[] = [];
    server.use(
        async (call, proceed) => {
            asked.push(`${call.method} ${call.name}`.trim());
            assert.deepEqual(call.arguments, {});
            const items = await proceed();
            return items.filter(({ name }) => !parts.some((one) => name.includes(one)));
        },
        { methods: LISTS },
    );
    return asked;
}

async function names(session: Session): Promise<Record<string, string[]>> {
    return {
        tools: (await session.listTools()).map(({ name }) => name),
        resources: (await session.listResources()).map(({ uri }) => uri),
        templates: (await session.listResourceTemplates()).map(
            ({ uriTemplate }) => uriTemplate,
        ),
        prompts: (await session.listPrompts()).map(({ name }) => name),
    };
}

async function errorOf(promise: PromiseLike<unknown>): Promise<RemoteError> {
    let found: unknown;
    await assert.rejects(Promise.resolve(promise), (error) => {
        found = error;
        return error instanceof RemoteError;
    });
    return found as RemoteError;
}

/** Returns the errors of all requests that name the word, without the word. */
async function unknown(session: Session, word: string): Promise<string[]> {
    const uri = `data://${word}`;
    const requests = [
        () => session.call(word),
        () => session.readResource(uri),
        () => session.readResource(`${uri}/one`),
        () => session.getPrompt(word, { kind: "red" }),
        () => session.complete({ type: "ref/prompt", name: word }, "kind", ""),
        () => session.complete(`${uri}/{part}`, "part", ""),
    ];
    const found: string[] = [];
    for (const request of requests) {
        const { rpcCode, message } = await errorOf(request());
        found.push(`${rpcCode} ${message.replaceAll(word, "WORD")}`);
    }
    return found;
}

inEachWorld("hidden items are in no list, and unknown", async (world) => {
    const server = house();
    const asked = hide(server, "secret");
    await serve(world, server, async (session) => {
        assert.deepEqual(await names(session), {
            tools: ["open"],
            resources: ["data://open"],
            templates: ["data://open/{part}"],
            prompts: ["open"],
        });
        assert.deepEqual(asked, [...LISTS]);
        asked.length = 0;
        assert.equal((await session.call("open")).text, "done");
        assert.deepEqual(asked, ["tools/list open"]);
        assert.deepEqual(
            await unknown(session, "secret"),
            await unknown(session, "nothing"),
        );
    });
});

test("what is seen depends on the caller", async () => {
    let who = "guest";
    const server = new Server({ name: "callers", principal: (_: Caller) => who });
    server.tool("everybody", {}, () => "yes");
    server.tool("admin_only", {}, () => "yes");
    server.use(
        async (call, proceed) => {
            const tools = await proceed();
            if (call.context.principal === "admin") return tools;
            return tools.filter(({ name }) => !name.startsWith("admin_"));
        },
        { methods: ["tools/list"] },
    );
    const { url } = await server.listenHttp();
    const guest = await connect(url, { proxy: "" });
    assert.deepEqual(
        (await guest.listTools()).map(({ name }) => name),
        ["everybody"],
    );
    assert.match(
        (await errorOf(guest.call("admin_only"))).message,
        /Unknown tool: admin_only/,
    );
    await guest.close();
    who = "admin";
    const admin = await connect(url, { proxy: "" });
    assert.equal((await admin.listTools()).length, 2);
    assert.equal((await admin.call("admin_only")).text, "yes");
    await admin.close();
    await server.close();
});

inEachWorld("long lists have full pages", async (world) => {
    const server = new Server({ name: "many", pageSize: 3 });
    for (let number = 0; number < 20; number++)
        server.tool(`${number % 2 ? "odd" : "even"}${number}`, {}, () => "");
    hide(server, "odd");
    await serve(world, server, async (session) => {
        const found = (await session.listTools()).map(({ name }) => name);
        assert.deepEqual(
            found,
            Array.from({ length: 10 }, (_, number) => `even${2 * number}`),
        );
    });
});

inEachWorld("an item is described", async (world) => {
    const server = new Server({ name: "described" });
    server.tool("add", { description: "Adds", _meta: { team: "blue" } }, () => "3");
    server.tool("other", {}, () => "");
    let seen: readonly Listed[] = [];
    server.use(
        async (_call, proceed) => {
            seen = await proceed();
            return new Set(
                seen.filter(
                    ({ told }) => (told._meta as { team?: string })?.team === "blue",
                ),
            );
        },
        { methods: ["tools/list"] },
    );
    await serve(world, server, async (session) => {
        const found = await session.listTools();
        assert.deepEqual(
            found.map(({ name }) => name),
            ["add"],
        );
        assert.deepEqual(
            seen.map(({ kind, name }) => `${kind} ${name}`),
            ["tool add", "tool other"],
        );
        assert.equal(seen[0]?.told.description, "Adds");
        assert.equal((await session.call("add")).text, "3");
    });
});

inEachWorld("what a middleware must not return", async (world) => {
    const reported: string[] = [];
    const server = new Server({
        name: "wrong",
        onError: (error) => reported.push(String(error)),
    });
    server.tool("open", {}, () => "done");
    let returned: unknown;
    server.use(
        async (_call, proceed) => {
            await proceed();
            return returned as Listed[];
        },
        { methods: ["tools/list"] },
    );
    await serve(world, server, async (session) => {
        for (const value of [undefined, 5, ["open"]]) {
            returned = value;
            assert.match((await errorOf(session.listTools())).message, /Internal error/);
            assert.match((await errorOf(session.call("open"))).message, /Internal error/);
        }
        const what =
            "TypeError: a middleware around tools/list returns some of the items that " +
            "`await proceed()` returns, not";
        assert.deepEqual(
            [...new Set(reported)],
            ["undefined", "5", "open"].map((one) => `${what} ${one}`),
        );
    });
});

inEachWorld("mounted servers hide their own", async (world) => {
    const [inner, outer] = [house("inner"), house("outer")];
    const middle = new Server({ name: "middle" });
    middle.tool("own", {}, () => "own");
    middle.mount(inner, { prefix: "in" });
    outer.mount(middle, { prefix: "mid" });
    const asked = hide(inner, "secret");
    await serve(world, outer, async (session) => {
        // the rule came with the servers, and sees the names of the client
        const { tools, resources } = await names(session);
        assert.deepEqual(tools, ["open", "secret", "mid_own", "mid_in_open"]);
        assert.deepEqual(resources, [
            "data://open",
            "data://secret",
            "data://mid/in/open",
        ]);
        asked.length = 0;
        assert.equal((await session.call("secret")).text, "done");
        assert.deepEqual(asked, []);
        assert.match(
            (await errorOf(session.call("mid_in_secret"))).message,
            /Unknown tool: mid_in_secret/,
        );
        assert.deepEqual(asked, ["tools/list mid_in_secret"]);
        // a rule of the outer server holds for all
        hide(outer, "mid_own", "open");
        assert.deepEqual((await session.listTools()).map(nameOf), ["secret"]);
        outer.unmount(middle);
        assert.deepEqual((await session.listTools()).map(nameOf), ["secret"]);
    });
});

function nameOf({ name }: { name: string }): string {
    return name;
}

inEachWorld("a rule that comes later changes the list", async (world) => {
    const server = house();
    await serve(world, server, async (session) => {
        assert.equal((await session.listTools()).length, 2);
        const changes = await session.subscribe({ tools: true });
        hide(server, "secret");
        for await (const change of changes) {
            assert.equal(change.kind, "tools");
            break;
        }
        assert.deepEqual((await session.listTools()).map(nameOf), ["open"]);
    });
});

inEachWorld("completions pass a middleware", async (world) => {
    const server = house();
    const lines: string[] = [];
    server.use(
        async (call, proceed) => {
            lines.push(`${call.method} ${call.name} ${JSON.stringify(call.arguments)}`);
            return (await proceed()).map((one) => one.toUpperCase());
        },
        { methods: ["completion/complete"] },
    );
    await serve(world, server, async (session) => {
        const red = await session.complete("open", "kind", "g");
        assert.deepEqual(red.values, ["GREEN"]);
        assert.deepEqual(lines, ['completion/complete open {"kind":"g"}']);
        const both = await session.complete("data://open/{part}", "part", "");
        assert.deepEqual(both.values, ["ONE", "TWO"]);
    });
});

inEachWorld("a completion can be refused", async (world) => {
    const server = house();
    const refusing = () => {
        throw new RpcError(-32603, "not now", { reason: "night" });
    };
    server.use(refusing, { methods: ["completion/complete"] });
    await serve(world, server, async (session) => {
        const error = await errorOf(session.complete("open", "kind", "g"));
        assert.match(error.message, /not now/);
        assert.deepEqual(error.data, { reason: "night" });
    });
});

inEachWorld("the ready ones see lists and completions", async (world) => {
    const server = house();
    const lines: string[] = [];
    const methods: string[] = [];
    let fails = true;
    server.use(middleware.logCalls({ log: (line) => lines.push(line), clock: () => 0 }));
    server.use(middleware.timeCalls(({ method }) => methods.push(method)));
    const rate = { burst: 6, key: () => "all", clock: () => 0 };
    server.use(middleware.limitRate(1, rate), {
        methods: ["tools/call", "completion/complete", ...LISTS],
    });
    server.use(middleware.maskErrors("Ask the operator"));
    server.use(middleware.retry(1, { delayMs: 0, on: [RangeError] }));
    const failing = async (call: Call, proceed: Proceed) => {
        if (call.name) return proceed(); // a question about one item
        fails = !fails;
        if (!fails) throw new RangeError();
        if (methods.includes("prompts/list") && call.method === "resources/list")
            throw new Error("internal");
        return proceed();
    };
    server.use(failing, { methods: ["prompts/list", "resources/list"] });
    await serve(world, server, async (session) => {
        await session.listTools();
        await session.complete("open", "kind", "");
        await session.call("open");
        await session.listPrompts();
        assert.match(
            (await errorOf(session.listResources())).message,
            /Ask the operator/,
        );
        await session.listTools();
        assert.match(
            (await errorOf(session.listResourceTemplates())).message,
            /Too many calls/,
        );
        assert.deepEqual(lines, [
            "tools/list ended after 0.000 s",
            "completion/complete open ended after 0.000 s",
            "tools/call open ended after 0.000 s",
            "prompts/list ended after 0.000 s",
            "resources/list failed (ToolError) after 0.000 s",
            "tools/list ended after 0.000 s",
            "resources/templates/list failed (RpcError) after 0.000 s",
        ]);
        assert.equal(methods.length, 7);
    });
});

inEachWorld("a list is cancelled with its request", async (world) => {
    const server = house();
    const begun = new Gate();
    const ended = new Gate();
    server.use(
        async (call, proceed) => {
            call.context.signal.addEventListener("abort", () => ended.open());
            begun.open();
            await ended.opened;
            return proceed();
        },
        { methods: ["prompts/list"] },
    );
    await serve(world, server, async (session) => {
        const stop = new AbortController();
        const asking = Promise.resolve(session.listPrompts({ signal: stop.signal }));
        asking.catch(() => undefined); // it is awaited below
        await begun.opened;
        stop.abort();
        await assert.rejects(asking);
        await ended.opened;
    });
});
