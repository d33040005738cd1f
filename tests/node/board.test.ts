/** The task board of a listener and of a mounted app. tests/board drives its page. */
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { connect, Server } from "segue-mcp";

const timeout = 60_000;

function simple(): Server {
    const server = new Server({ name: "board-test" });
    server.tool("hang", { task: "must" }, async (_, ctx) => {
        await once(ctx.signal, "abort");
    });
    return server;
}

test("a listener has a board", { timeout }, async () => {
    const server = simple();
    const listener = await server.listenHttp({ boardPath: "/board" });
    const url = listener.url.replace("/mcp", "/board");
    const session = await connect(listener.url);
    const task = await session.start("hang");
    const page = await fetch(url); // it is led to the folder
    assert.equal(page.url, `${url}/`);
    assert.match(await page.text(), /<segue-board>/);
    const list = await (await fetch(`${url}/api/tasks`)).text();
    assert.ok(list.includes(`["${task.id}",`), list);
    const answer = await fetch(`${url}/api/command?id=${task.id}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"cancel":1}',
    });
    assert.equal(answer.status, 200);
    await assert.rejects(task.result());
    await session.close();
    await server.close();
});

test("a mounted app has one, and it may be closed", { timeout }, async () => {
    const server = simple();
    const mcp = server.handler({
        boardPath: "/board",
        boardReadOnly: true,
        boardRedact: true,
    });
    const app = http.createServer(mcp).listen(0, "127.0.0.1");
    await once(app, "listening");
    const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}/board/api`;
    const about = await (await fetch(`${url}/about`)).text();
    assert.match(about, /"readOnly":true,"redacted":true/);
    const headers = { "content-type": "application/json" };
    const request = { method: "POST", headers, body: '{"cancel":1}' };
    assert.equal((await fetch(`${url}/command?id=x`, request)).status, 403);
    const proxied = { "x-forwarded-for": "192.0.2.1" };
    assert.equal((await fetch(`${url}/tasks`, { headers: proxied })).status, 403);
    await server.close();
    app.closeAllConnections();
    app.close();
    await once(app, "close");
});

test("it may want a token", { timeout }, async () => {
    const server = simple();
    const boardToken = "0123456789abcdef";
    const listener = await server.listenHttp({ boardPath: "/board", boardToken });
    const url = listener.url.replace("/mcp", "/board/api/about");
    assert.equal((await fetch(url)).status, 401);
    const headers = { authorization: `Bearer ${boardToken}` };
    assert.equal((await fetch(url, { headers })).status, 200);
    await server.close();
});

test("the options are checked", { timeout }, async () => {
    const server = simple();
    await assert.rejects(server.listenHttp({ boardPath: "board" }), /begin with \//);
    await assert.rejects(server.listenHttp({ boardRedact: true }), /need boardPath/);
    await server.close();
});
