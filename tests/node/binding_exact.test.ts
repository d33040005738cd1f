/** Text that crosses the addon keeps its length, and two different names never become
 * equal. NUL and half a surrogate pair are refused in names and accepted in payloads. */
import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import { connect, RpcError, Server } from "segue-mcp";
import { Item, Kind, native, Pair } from "./binding_worlds.js";

const TIMEOUT = { timeout: 120_000 };

test("names with NUL or half a surrogate pair are refused", TIMEOUT, () => {
    const world = new Pair({});
    const { handle } = world.runtime;
    const { server, session } = world;
    const way = () => native.transportHttp(handle, "http://[::1]/", null, null);
    const start = (method: string, key?: string) =>
        native.requestStart(session, method, null, { idempotencyKey: key }, null);
    const names: Record<string, (bad: string) => unknown> = {
        "name of a server": (bad) => native.serverNew(handle, { name: bad }),
        instructions: (bad) => native.serverNew(handle, { instructions: bad }),
        argv: (bad) => native.transportSpawn(handle, { argv: ["true", bad] }),
        env: (bad) =>
            native.transportSpawn(handle, { argv: ["true"], env: [`A=${bad}`] }),
        URL: (bad) => native.transportHttp(handle, `http://[::1]/${bad}`, null, null),
        proxy: (bad) =>
            native.transportHttp(handle, "http://[::1]/", { proxy: bad }, null),
        "name of a header": (bad) => native.transportSetHeader(way(), bad, "x"),
        header: (bad) => native.transportSetHeader(way(), "X-Name", bad),
        method: (bad) => start(bad),
        key: (bad) => start("tools/call", bad),
        token: (bad) => native.requestResume(session, bad, null, null),
        "id of a task": (bad) => native.taskAttach(session, bad),
        "item that goes": (bad) => native.serverRemove(server, Item.TOOL, bad),
        URI: (bad) => native.serverResourceUpdated(server, bad),
        "file of a store": (bad) => native.storeSqlite(bad),
        "URL of a store": (bad) => native.storeRedis(`redis://${bad}`),
    };
    for (const [what, cross] of Object.entries(names)) {
        for (const [bad, message] of [
            ["a\0b", /without NUL/],
            ["a\ud800", /without half a surrogate pair/],
            ["\udc01b", /without half a surrogate pair/],
            [`${"x".repeat(2000)}\ud800\ufffd`, /without half a surrogate pair/],
        ] as const) {
            assert.throws(() => cross(bad), { name: "TypeError", message }, what);
        }
    }
    // Valid text that looks similar: U+FFFD itself, and whole pairs.
    native.serverFree(native.serverNew(handle, { name: "a\ufffd\u{1f600}" }));
    world.close();
});

/** Makes one call of `who` without the SDK: node:http sends each unit of a header as one
 * byte. */
function ask(url: string, user: string): Promise<string | number> {
    const body = JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: {
            name: "who",
            arguments: {},
            _meta: {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    const headers = {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "who",
        "x-user": user,
        connection: "close",
    };
    return new Promise((told, failed) => {
        const request = http.request(url, { method: "POST", headers }, (reply) => {
            let text = "";
            reply.setEncoding("utf8");
            reply.on("data", (chunk) => {
                text += chunk;
            });
            reply.on("end", () => {
                if (reply.statusCode !== 200) told(reply.statusCode ?? 0);
                // On a busy machine the answer may come as an event.
                else
                    told(
                        JSON.parse(text.slice(text.indexOf("{"))).result.content[0].text,
                    );
            });
        });
        request.on("error", failed);
        request.end(Buffer.from(body)); // a string would make the head UTF-8
    });
}

test("a principal is who the hook names", TIMEOUT, async () => {
    const names: Record<string, string> = {
        nul: "alice\0mallory",
        half: "a\ud800",
        other: "a\udc01",
        ok: "alice",
    };
    const failures: string[] = [];
    const server = new Server({
        name: "web",
        onError: (error) => failures.push((error as Error).message),
        principal: ({ header }) => {
            const user = header("X-User") ?? "";
            return names[user] ?? user;
        },
    });
    server.tool("who", (_, ctx) => ctx.principal);
    const { url } = await server.listenHttp();
    const latin = (text: string) => Buffer.from(text).toString("latin1");
    assert.equal(await ask(url, "ok"), "alice");
    assert.equal(await ask(url, latin("ä")), "ä");
    const { error: print } = console;
    console.error = (_what, error) => failures.push(error.message);
    try {
        for (const user of ["nul", "half", "other", "a\xff", "a\xfe"]) {
            assert.equal(await ask(url, user), 401, user);
        }
    } finally {
        console.error = print;
    }
    await server.close();
    assert.deepEqual(failures, [
        "the string must not have a NUL character",
        "the string must not have half a surrogate pair",
        "the string must not have half a surrogate pair",
        "X-User: UTF-8 is required",
        "X-User: UTF-8 is required",
    ]);
});

test("payloads and errors are whole", TIMEOUT, async () => {
    const world = new Pair({
        told(call) {
            native.callSendText(call, "a\0b");
            native.callReply(call, "c\0d", null, '"e\\u0000f"');
        },
    });
    const [, , result] = await world.call("told").until(Kind.COMPLETE);
    const parsed = JSON.parse(result);
    assert.deepEqual(
        parsed.content.map((one: { text: string }) => one.text),
        ["a\0b", "c\0d"],
    );
    assert.equal(parsed.structuredContent, "e\0f");
    world.close();
    const server = new Server({ name: "failures" });
    server.tool("fails", () => {
        throw new RpcError(4711, "a\0b\ud800");
    });
    const session = await connect(server);
    await assert.rejects(session.call("fails"), { message: "a\ufffdb\ufffd" });
    await session.close();
    await server.close();
});

test("what goes on is whole", TIMEOUT, async () => {
    const server = new Server({ name: "extends" });
    server.tool("extends", async (_, ctx) => {
        await ctx.send("a\0b");
        await ctx.extend(0, "c\0d");
    });
    server.resource("note://long", function* () {
        yield "e\0f";
        yield "\0g";
    });
    const session = await connect(server);
    assert.equal((await session.call("extends")).text, "a\0bc\0d");
    const { contents } = await session.readResource("note://long");
    assert.deepEqual(
        contents.map((one) => one.text),
        ["e\0f\0g"],
    );
    await session.close();
    await server.close();
});
