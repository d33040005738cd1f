/** Servers inside a Node server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Context, connect, Server, type Session } from "segue-mcp";
import { z } from "zod";
import { inEachWorld, serve } from "./server_worlds.js";

/** A server with an item of each kind. */
function weather(): Server {
    const server = new Server({ name: "weather" });
    const city = { input: { city: z.string() } };
    server.tool("today", city, ({ city }) => `sunny in ${city}`);
    const hours = { input: { n: z.number() }, task: "may" } as const;
    server.tool("hours", hours, async function* ({ n }) {
        for (let number = 0; number < n; number++) yield `${number} `;
    });
    server.resource("data://now", () => "now");
    const complete = { name: ["Bern", "Basel"] };
    server.resource("data://city/{name}", { complete }, ({ name }) => `city ${name}`);
    server.resource("file:///notes/a", () => "a file");
    const place = { input: { place: z.string() } };
    server.prompt("ask", place, ({ place }) => `How is ${place}?`);
    return server;
}

async function names(session: Session): Promise<string[]> {
    return [
        ...(await session.listTools()).map(({ name }) => name),
        ...(await session.listResources()).map(({ uri }) => uri),
        ...(await session.listResourceTemplates()).map((one) => one.uriTemplate),
        ...(await session.listPrompts()).map(({ name }) => name),
    ];
}

async function read(session: Session, uri: string): Promise<unknown> {
    const [contents] = (await session.readResource(uri)).contents;
    assert.equal(contents?.uri, uri);
    return (contents as { text?: string }).text;
}

inEachWorld("items of all kinds", async (world) => {
    const app = new Server({ name: "app" });
    app.tool("own", () => "own");
    app.mount(weather(), { prefix: "weather" }).mount(weather());
    await serve(world, app, async (session) => {
        for (const [prefix, path] of [
            ["weather_", "weather/"],
            ["", ""],
        ]) {
            const today = await session.call(`${prefix}today`, { city: "Bern" });
            assert.equal(today.text, "sunny in Bern");
            const task = await session.start(`${prefix}hours`, { n: 3 });
            assert.equal((await task.result()).text, "0 1 2 ");
            assert.equal(await read(session, `data://${path}now`), "now");
            assert.equal(await read(session, `data://${path}city/Bern`), "city Bern");
            const uri = `data://${path}city/{name}`;
            const found = await session.complete(
                { type: "ref/resource", uri },
                "name",
                "be",
            );
            assert.deepEqual(found.values, ["Bern"]);
            const prompt = await session.getPrompt(`${prefix}ask`, { place: "Bern" });
            assert.deepEqual(prompt.messages[0]?.content, {
                type: "text",
                text: "How is Bern?",
            });
        }
        assert.equal(await read(session, "file://weather/notes/a"), "a file");
        assert.equal(await read(session, "file:///notes/a"), "a file");
        const listed = await names(session);
        const tools = ["own", "weather_today", "weather_hours", "today", "hours"];
        assert.deepEqual(listed.slice(0, 5), tools);
        const resources = await session.listResources();
        assert.equal(resources[0]?.name, "data://now");
        await assert.rejects(
            session.call("weather_today", { town: "" }),
            /Invalid arguments for tool weather_today/,
        );
    });
});

test("changes appear with their notifications", { timeout: 120_000 }, async () => {
    const [outer, app, inner] = ["outer", "app", "inner"].map(
        (name) => new Server({ name }),
    ) as [Server, Server, Server];
    inner.tool("first", () => "1");
    app.mount(inner, { prefix: "in" });
    outer.mount(app, { prefix: "app" });
    outer.tool("own", () => "");
    outer.resource("data://own", () => "");
    outer.resource("data://{own}", () => "");
    outer.prompt("own", () => "");
    const own = ["own", "data://own", "data://{own}", "own"];
    const session = await connect(outer);
    const added = async (): Promise<string[]> =>
        (await names(session)).filter((one) => !own.includes(one));
    const changes = await session.subscribe({
        ...{ tools: true, resources: true, prompts: true },
        uris: ["data://app/in/x"],
    });
    const each = changes[Symbol.asyncIterator]();
    const until = async (kind: string): Promise<unknown> => {
        for (;;) {
            const { value } = await each.next();
            assert.ok(value);
            if (value.kind === kind) return value.kind === "resource" && value.uri;
        }
    };
    assert.deepEqual(await added(), ["app_in_first"]);
    inner.tool("second", () => "2");
    await until("tools");
    assert.equal((await session.call("app_in_second")).text, "2");
    assert.equal(inner.removeTool("first"), true);
    await until("tools");
    assert.deepEqual(await added(), ["app_in_second"]);
    const resource = inner.resource("data://x", () => "x");
    await until("resources");
    assert.equal(await read(session, "data://app/in/x"), "x");
    inner.resourceUpdated("data://x");
    assert.equal(await until("resource"), "data://app/in/x");
    resource.remove();
    inner.prompt("ask", { input: { word: z.string() } }, ({ word }) => word);
    await until("prompts");
    inner.completion("ask", "word", (typed) => [`${typed}!`]);
    const ask = { type: "ref/prompt", name: "app_in_ask" } as const;
    assert.deepEqual((await session.complete(ask, "word", "a")).values, ["a!"]);
    assert.equal(app.unmount(inner), true);
    assert.equal(app.unmount(inner), false);
    inner.tool("third", () => "3");
    assert.deepEqual(await added(), []);
    await changes.close();
    await session.close();
    await outer.close();
});

test("what collides is refused, and nothing is added", () => {
    const [outer, app] = [new Server({ name: "outer" }), new Server({ name: "app" })];
    const inner = weather();
    outer.mount(app, { prefix: "app" });
    app.tool("today", () => "");
    outer.tool("app_hours", () => "");
    const keys = (server: Server): string[] =>
        [...(server as unknown as { items: { key: string }[] }).items].map(
            ({ key }) => key,
        );
    assert.throws(() => app.mount(inner), /"app" already has a tool "today"$/);
    assert.throws(
        () => outer.mount(inner, { prefix: "app" }),
        /"outer" already has a tool "app_today", of the server "app"/,
    );
    app.removeTool("today");
    assert.throws(() => app.mount(inner), /"outer" already has a tool "app_hours"$/);
    assert.deepEqual(keys(app), []);
    app.mount(inner, { prefix: "w" });
    assert.throws(
        () => app.mount(inner, { prefix: "w" }),
        /already has a tool "w_today", of the server "weather"/,
    );
    outer.tool("app_w_more", () => "");
    assert.throws(() => inner.tool("more", () => ""), /"outer" already has a tool/);
    assert.ok(!keys(inner).includes("more"));
    assert.throws(() => outer.removeTool("app_w_today"), /belongs to the server "wea/);
    assert.throws(() => app.completion("w_ask", "place", []), /belongs to the server/);
});

test("circles and bad prefixes are refused", () => {
    const [a, b, c] = ["a", "b", "c"].map((name) => new Server({ name })) as [
        Server,
        Server,
        Server,
    ];
    a.mount(b, { prefix: "b" });
    b.mount(c, { prefix: "c" });
    for (const [parent, child] of [
        [a, a],
        [b, a],
        [c, a],
        [c, b],
    ] as const) {
        const why = new RegExp(`"${parent.name}" would contain itself`);
        assert.throws(() => parent.mount(child, { prefix: "x" }), why);
    }
    for (const prefix of ["a b", "_a", "a/b", "ä"]) {
        const mount = (): unknown => a.mount(new Server({ name: "d" }), { prefix });
        assert.throws(mount, /prefix has to have/);
    }
    assert.throws(() => a.mount("server" as never), /takes a Server/);
    const odd = new Server({ name: "odd" });
    odd.resource("{any}://x", ({ any }) => any);
    assert.throws(() => a.mount(odd, { prefix: "odd" }), /has no scheme/);
    a.mount(odd);
});

inEachWorld("what belongs to the inner server holds", async (world) => {
    const lines: string[] = [];
    const database = (): string => "real";
    const app = new Server({ name: "app" });
    const inner = new Server({
        name: "inner",
        exposeErrors: true,
        onError: (error, { name }) => lines.push(`${name}: ${error}`),
    });
    inner.dependencyOverrides.set(database, () => "fake");
    app.use(async (_call, proceed) => `(${await proceed()})`);
    inner.use(async (call, proceed) => {
        lines.push(call.name);
        return `[${await proceed()}]`;
    });
    const value = async (_: unknown, ctx: Context): Promise<string> =>
        `${await ctx.get(database)} ${ctx.name}`;
    inner.tool("value", value);
    inner.tool("fails", () => {
        throw new Error("the reason");
    });
    app.tool("own", value);
    app.mount(inner, { prefix: "in" }).mount(inner, { prefix: "again" });
    await serve(world, app, async (session) => {
        assert.equal((await session.call("own")).text, "(real own)");
        assert.equal((await session.call("in_value")).text, "([fake in_value])");
        await assert.rejects(session.call("again_fails"), /the reason/);
    });
    assert.deepEqual(lines, [
        "in_value",
        "again_fails",
        "again_fails: Error: the reason",
    ]);
});
