/** Values that a call of a Node server needs: made once, cleaned up, replaced. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Context, connect, type Provider, Server, ToolError } from "segue-mcp";
import { z } from "zod";
import { Gate, inEachWorld, serve } from "./server_worlds.js";

interface Database {
    readonly name: string;
}

/** A server whose handlers use a value of each kind, and what happened. */
class Shop {
    readonly lines: string[] = [];
    readonly reported: string[] = [];
    problem: Error | undefined;
    readonly server = new Server({
        name: "shop",
        onError: (error) => this.reported.push(String(error)),
    });

    readonly settings = async (): Promise<string> => {
        this.lines.push("settings");
        return "shop";
    };

    readonly database: (ctx: Context) => AsyncGenerator<Database, void, void>;
    readonly cursor: (ctx: Context) => Generator<Promise<string>, void, void>;

    constructor() {
        const shop = this;
        this.database = async function* (ctx) {
            const name = await ctx.get(shop.settings);
            shop.lines.push(`open ${name} for ${ctx.name}`);
            try {
                yield { name };
                shop.lines.push("commit");
                if (shop.problem) throw shop.problem;
            } catch (error) {
                shop.lines.push(`roll back: ${(error as Error).message}`);
            } finally {
                shop.lines.push("close");
            }
            if (shop.problem) throw shop.problem;
        };
        this.cursor = function* (ctx) {
            yield ctx.get(shop.database).then(({ name }) => `cursor of ${name}`);
            shop.lines.push("cursor ends");
        };
        const { server, database, cursor } = this;
        server.tool("both", { input: { a: z.number() } }, async ({ a }, ctx) => {
            const [db, at, again] = await Promise.all([
                ctx.get(database),
                ctx.get(cursor),
                ctx.get(database),
            ]);
            assert.equal(db, again);
            shop.lines.push("handler");
            return `${a} ${db.name} ${at}`;
        });
        server.tool("stream", async function* (_, ctx) {
            yield `${(await ctx.get(database)).name} `;
            yield "end";
            shop.lines.push("sent");
        });
        server.tool("fails", async (_, ctx) => {
            await ctx.get(database);
            throw new RangeError("no luck");
        });
        server.tool("late", (_, ctx) => {
            void ctx.get(database);
            return "late";
        });
        server.resource("note://{id}", async ({ id }, ctx) => {
            return `${id} ${(await ctx.get(database)).name}`;
        });
        const review = { input: { code: z.string() } };
        server.prompt("review", review, async ({ code }, ctx) => {
            return `${code} ${(await ctx.get(database)).name}`;
        });
    }

    passed(): string[] {
        return this.lines.splice(0);
    }
}

const opened = (name: string): string[] => ["settings", `open shop for ${name}`];

inEachWorld("each is made once in a call and cleaned up", async (world) => {
    const shop = new Shop();
    await serve(world, shop.server, async (session) => {
        const both = await session.call("both", { a: 1 });
        assert.equal(both.text, "1 shop cursor of shop");
        const order = ["handler", "commit", "close", "cursor ends"];
        assert.deepEqual(shop.passed().sort(), [...opened("both"), ...order].sort());
        assert.equal((await session.call("stream")).text, "shop end");
        const rest = ["sent", "commit", "close"];
        assert.deepEqual(shop.passed(), [...opened("stream"), ...rest]);
        assert.equal((await session.call("late")).text, "late");
        assert.deepEqual(shop.passed(), [...opened("late"), "commit", "close"]);
        const [note] = (await session.readResource("note://7")).contents;
        assert.equal((note as { text?: string }).text, "7 shop");
        assert.deepEqual(shop.passed(), [...opened("note://7"), "commit", "close"]);
        const prompt = await session.getPrompt("review", { code: "x" });
        assert.deepEqual(prompt.messages[0]?.content, { type: "text", text: "x shop" });
    });
    assert.deepEqual(shop.reported, []);
});

inEachWorld("a failure reaches them, and they cannot hide it", async (world) => {
    const shop = new Shop();
    await serve(world, shop.server, async (session) => {
        await assert.rejects(session.call("fails"), /^ToolError: The tool fails failed/);
        const rolled = ["roll back: no luck", "close"];
        assert.deepEqual(shop.passed(), [...opened("fails"), ...rolled]);
        assert.deepEqual(shop.reported.splice(0), ["RangeError: no luck"]);
        shop.problem = new ToolError("cannot commit");
        await assert.rejects(session.call("late"), /^ToolError: cannot commit/);
        const failed = ["commit", "roll back: cannot commit", "close"];
        assert.deepEqual(shop.passed(), [...opened("late"), ...failed]);
        await assert.rejects(session.call("stream"), /^ToolError: cannot commit/);
    });
    assert.deepEqual(shop.reported, []);
});

inEachWorld(
    "tests replace them; a middleware that runs again gets new ones",
    async (world) => {
        const shop = new Shop();
        const fake = (ctx: Context): Database => ({ name: `fake for ${ctx.name}` });
        await serve(world, shop.server, async (session) => {
            shop.server.dependencyOverrides.set(shop.database, fake);
            const both = await session.call("both", { a: 1 });
            assert.equal(both.text, "1 fake for both cursor of fake for both");
            shop.server.dependencyOverrides.delete(shop.database);
            shop.passed();
            shop.server.use(async (_call, proceed) => {
                await proceed();
                return proceed();
            });
            assert.equal((await session.call("late")).text, "late");
            const one = [...opened("late"), "commit", "close"];
            assert.deepEqual(shop.passed(), [...one, ...one]);
            await assert.rejects(session.call("fails"), /The tool fails failed/);
            assert.equal(shop.passed().at(-1), "close");
        });
    },
);

inEachWorld("one that fails, and one that needs itself, end the call", async (world) => {
    const server = new Server({ name: "broken", exposeErrors: true, onError: () => {} });
    const broken = (): never => {
        throw new ToolError("not today");
    };
    const first: Provider<string> = async (ctx: Context) => `${await ctx.get(second)}`;
    const second: Provider<string> = async (ctx: Context) => `${await ctx.get(first)}`;
    const nothing = async function* (): AsyncGenerator<string, void, void> {};
    const several = async function* (): AsyncGenerator<string, void, void> {
        yield "one";
        yield "two";
    };
    for (const [name, one] of Object.entries({ broken, first, nothing, several }))
        server.tool(name, async (_, ctx) => String(await ctx.get(one as () => string)));
    server.tool("both", async (_, ctx) => {
        await Promise.all([ctx.get(first), ctx.get(second)]);
    });
    await serve(world, server, async (session) => {
        await assert.rejects(session.call("broken"), /not today/);
        for (const tool of ["first", "both"])
            await assert.rejects(session.call(tool), /needs its own value/);
        await assert.rejects(session.call("nothing"), /nothing has to yield a value/);
        await assert.rejects(session.call("several"), /one value, not several/);
    });
});

test("a call that is cancelled cleans up", { timeout: 120_000 }, async () => {
    const server = new Server({ name: "cancelled", onError: () => undefined });
    const [begun, cleaned] = [new Gate(), new Gate()];
    async function* guarded(): AsyncGenerator<string, void, void> {
        try {
            yield "value";
        } finally {
            cleaned.open();
        }
    }
    server.tool("waits", async (_, ctx) => {
        await ctx.get(guarded);
        begun.open();
        await new Promise((_resolve, reject) => {
            ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason));
        });
    });
    const session = await connect(server);
    const abort = new AbortController();
    const call = session.call("waits", {}, { signal: abort.signal });
    await begun.opened;
    abort.abort();
    await assert.rejects(call);
    await cleaned.opened;
    await session.close();
    await server.close();
});
