/** A server that ends in good order: a client that was cut off from a running call comes
 * back for the rest, and new calls go to the next server. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { connect, Server } from "segue-mcp";
import { Balancer } from "./balancer.js";
import { Gate } from "./server_worlds.js";

const timeout = 120_000;
const DRAIN_MS = 60_000;

/** Makes a server whose calls wait for the test. */
function gated(name: string) {
    const sealKey = Uint8Array.from({ length: 32 }, (_, at) => at);
    const server = new Server({ name, sealKey });
    const [began, go] = [new Gate(), new Gate()];
    server.tool("gate", { task: "may", pollMs: 20 }, async function* () {
        yield "first, ";
        began.open();
        await go.opened;
        yield "rest";
    });
    server.tool("where", () => name);
    return { server, began, go };
}

/** Ends what a failed test has left open; closing twice does no harm. */
function endsAfter(t: TestContext, gate: Gate, ...open: { close(): unknown }[]): void {
    t.after(async () => {
        gate.open();
        await Promise.all(open.map((one) => one.close()));
    });
}

async function until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise(setImmediate);
}

for (const era of ["auto", "legacy"] as const) {
    test(`a client comes back while the server drains: ${era}`, {
        timeout,
    }, async (t) => {
        const { server, began, go } = gated("one");
        const listener = await server.listenHttp({ drainMs: DRAIN_MS });
        const balancer = new Balancer(listener.url);
        const session = await connect(await balancer.listen(), { era, proxy: "" });
        endsAfter(t, go, session, balancer, server);
        const task = await session.start("gate");
        await began.opened;
        const closing = server.close();
        const before = balancer.count;
        balancer.cut();
        await until(() => balancer.count > before); // the client comes back,
        // and its loss was noticed
        const none = await fetch(new URL("/none", listener.url));
        assert.equal(none.status, 404);
        go.open();
        assert.equal((await task.result()).text, "first, rest");
        await session.close();
        await closing;
        balancer.close();
    });
}

test("refused calls go to the next server", { timeout }, async (t) => {
    const [one, two] = [gated("one"), gated("two")];
    const first = await one.server.listenHttp({ drainMs: DRAIN_MS });
    const second = await two.server.listenHttp();
    const keeper = await connect(first.url, { proxy: "" });
    const balancer = new Balancer(first.url, second.url);
    endsAfter(t, one.go, keeper, balancer, one.server, two.server);
    const task = await keeper.start("gate");
    await one.began.opened;
    const closing = one.server.close();
    const url = await balancer.listen();
    for (const era of ["auto", "legacy", "auto", "legacy"] as const) {
        const session = await connect(url, { era, proxy: "" });
        assert.equal((await session.call("where")).text, "two");
        await session.close();
    }
    assert.ok(balancer.count > 5); // the first server was asked, too
    one.go.open();
    assert.equal((await task.result()).text, "first, rest");
    await keeper.close();
    await closing;
    balancer.close();
    await two.server.close();
});
