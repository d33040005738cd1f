/** The metrics of a Node server: as text, at a path of a listener, and at a path of an
 * app. tests/python/test_metrics.py reads the text with the parser of Prometheus. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { connect, Server, StateError } from "segue-mcp";

const timeout = 120_000;

function simple(): Server {
    const server = new Server({ name: "counted", onError: () => undefined });
    server.tool("add", () => "3");
    server.tool("broken", () => {
        throw new Error("on purpose");
    });
    return server;
}

const CALL = 'segue_calls_total{mcp_method_name="tools/call",gen_ai_tool_name="add"';

function expectLine(text: string, line: string): void {
    assert.ok(text.includes(`\n${line}\n`), `${line} is not in ${text}`);
}

test("they tell what happened", { timeout }, async () => {
    const server = simple();
    assert.equal(server.metrics(), "");
    const listener = await server.listenHttp({ metricsPath: "/metrics" });
    const session = await connect(listener.url);
    await session.call("add");
    await session.call("add");
    await assert.rejects(session.call("broken"));
    await session.close();
    const text = server.metrics();
    expectLine(text, `${CALL},era="modern"} 2`);
    expectLine(text, "segue_operations_calls_total 3");
    const answer = await fetch(listener.url.replace("/mcp", "/metrics"));
    assert.equal(answer.status, 200);
    assert.equal(
        answer.headers.get("content-type"),
        "text/plain; version=0.0.4; charset=utf-8",
    );
    expectLine(
        await answer.text(),
        `${CALL.replace("{", '{endpoint="/mcp",')},era="modern"} 2`,
    );
    await server.close();
    assert.equal(server.metrics(), "");
});

test("an app has them for callers on this machine", { timeout }, async () => {
    const server = simple();
    const mcp = server.handler({ metricsPath: "/metrics" });
    const app = http.createServer(mcp).listen(0, "127.0.0.1");
    await once(app, "listening");
    const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
    const session = await connect(`${url}/mcp`);
    await session.call("add");
    await session.close();
    const answer = await fetch(`${url}/metrics`);
    assert.equal(answer.status, 200);
    expectLine(
        await answer.text(),
        `${CALL.replace("{", '{endpoint="/",')},era="modern"} 1`,
    );
    const headers = { "x-forwarded-for": "192.0.2.1" };
    assert.equal((await fetch(`${url}/metrics`, { headers })).status, 403);
    // nobody says from where a Request comes
    assert.equal((await mcp.fetch(new Request(`${url}/metrics`))).status, 403);
    await server.close();
    app.closeAllConnections();
    app.close();
    await once(app, "close");
});

test("each store that is served has metrics of its own", { timeout }, async () => {
    const directory = mkdtempSync(path.join(os.tmpdir(), "segue-node-"));
    const server = simple();
    await server.listenHttp();
    await server.listenHttp({ store: path.join(directory, "tasks.db") });
    assert.throws(() => server.metrics(), StateError);
    await server.close();
    rmSync(directory, { recursive: true });
});

test("the path is checked", { timeout }, async () => {
    const server = simple();
    await assert.rejects(server.listenHttp({ metricsPath: "metrics" }), /begin with \//);
    await assert.rejects(
        server.listenHttp({ path: "/metrics", metricsPath: "/metrics" }),
        /have to be different/,
    );
    await server.close();
});
