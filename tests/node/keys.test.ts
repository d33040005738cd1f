/** Calls with an idempotency key that another server, or an earlier one, has run. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { connect, Server, type Session, type Stream } from "segue-mcp";

const timeout = 120_000;
const KEYED = { idempotencyKey: "the-report-of-monday" };

/** Servers on one file, with a tool that is never a task and waits in the middle. */
class Teller {
    runs = 0;
    open: () => void = () => undefined;
    private readonly gate = new Promise<void>((resolve) => {
        this.open = resolve;
    });

    constructor(readonly store: string) {}

    server(): Server {
        const server = new Server({ name: "teller", store: this.store });
        server.tool("tell", async (_args, ctx) => {
            this.runs++;
            await ctx.send("1 ");
            await ctx.send("2 ");
            await this.gate;
            await ctx.send("3 ");
        });
        return server;
    }
}

async function inDirectory(work: (teller: Teller) => Promise<void>): Promise<void> {
    const directory = mkdtempSync(path.join(os.tmpdir(), "segue-keys-"));
    try {
        await work(new Teller(path.join(directory, "tasks.db")));
    } finally {
        rmSync(directory, { recursive: true, force: true });
    }
}

/** Reads the next segments of a stream; the rest is still to come. */
async function some(stream: Stream, count: number): Promise<unknown[]> {
    const texts: unknown[] = [];
    const segments = stream[Symbol.asyncIterator]();
    while (texts.length < count) {
        const { value, done } = await segments.next();
        assert.ok(!done);
        texts.push(value.text);
    }
    return texts;
}

async function textOf(session: Session): Promise<string> {
    let text = "";
    const stream = session.stream("tell", {}, KEYED);
    for await (const segment of stream) text += segment.text;
    assert.equal(stream.result.text, text);
    assert.equal((await session.call("tell", {}, KEYED)).text, text);
    return text;
}

for (const era of ["modern", "legacy"] as const) {
    test(`AS-38a: a key finds its call elsewhere [${era}]`, { timeout }, () =>
        inDirectory(async (teller) => {
            const servers = [teller.server(), teller.server()] as const;
            const here = await servers[0].listenHttp();
            const there = await servers[1].listenHttp();
            const first = await connect(here.url, { era });
            const second = await connect(there.url, { era });
            const begun = first.stream("tell", {}, KEYED);
            assert.deepEqual(await some(begun, 2), ["1 ", "2 "]);
            const joined = second.stream("tell", {}, KEYED);
            const whole = second.call("tell", {}, KEYED);
            assert.deepEqual(await some(joined, 2), ["1 ", "2 "]);
            teller.open();
            assert.deepEqual(await some(joined, 1), ["3 "]);
            assert.deepEqual(await some(begun, 1), ["3 "]);
            assert.equal((await whole).text, "1 2 3 ");
            assert.equal(await textOf(second), "1 2 3 ");
            assert.equal(teller.runs, 1);
            await Promise.all([first.close(), second.close()]);
            await Promise.all(servers.map((server) => server.close()));
        }),
    );

    test(`AS-38a: a key finds its call after a restart [${era}]`, { timeout }, () =>
        inDirectory(async (teller) => {
            teller.open();
            for (let i = 0; i < 3; i++) {
                const server = teller.server();
                const { url } = await server.listenHttp();
                const session = await connect(url, { era });
                assert.equal(await textOf(session), "1 2 3 ");
                await session.close();
                await server.close();
            }
            assert.equal(teller.runs, 1);
        }),
    );
}
