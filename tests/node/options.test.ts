/** Options that are wrong are refused where they are written, with their names. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClosedError, type Context, connect, InvalidError, Server } from "segue-mcp";

const NOWHERE = "http://127.0.0.1:9/mcp";

/** Returns a server that has the tool "t", with these options. */
function serverWith(options: object = {}): Server {
    const server = new Server({ name: "s", ...options });
    server.tool("t", () => "t");
    return server;
}

const OF_SERVERS: [object, RegExp][] = [
    [{ vresion: "1" }, /^Server has no option "vresion", did you mean "version"\?$/],
    [{ zzz: 1 }, /^Server has no option "zzz"$/],
    [{ maxTasks: "5" }, /^the option maxTasks of Server has to be a number, not "5"$/],
    [{ onError: 5 }, /^the option onError of Server has to be a function, not 5$/],
    [{ instructions: 5 }, /^the option instructions of Server has to be a string/],
    [{ exposeErrors: "x" }, /^the option exposeErrors of Server has to be a boolean/],
    [{ listScope: "pubic" }, /^listScope has to be "private" or "public"$/],
    [{ store: 5 }, /^store has to be a path, a URL or a store, not 5$/],
];
for (const [options, message] of OF_SERVERS) {
    test(`new Server(${JSON.stringify(options)})`, () => {
        assert.throws(() => serverWith(options), { name: "TypeError", message });
    });
}

test("a limit of a server that is out of range, by the name of the option", () => {
    assert.throws(
        () => serverWith({ maxTasks: -5 }),
        (error: Error) => {
            assert.ok(error instanceof InvalidError);
            assert.match(error.message, /maxTasks is -5: it has to be at least 0/);
            return true;
        },
    );
    assert.throws(() => serverWith({ sealKey: new Uint8Array(3) }), /sealKey/);
    assert.throws(() => new Server(7 as never), /a server needs a name/);
});

test("a handler has no option of a socket", () => {
    const server = serverWith();
    const wrong: [object | null, RegExp][] = [
        [{ port: 1 }, /^handler\(\) has no option "port": it belongs to the socket/],
        [{ certFile: "a" }, /^handler\(\) has no option "certFile": it belongs to/],
        [{ paht: "/" }, /^handler\(\) has no option "paht", did you mean "path"\?$/],
        [{ path: 5 }, /^the option path of handler\(\) has to be a string, not 5$/],
        [{ store: 5 }, /^store has to be a path/],
        [{ principal: "ada" }, /^the option principal of handler\(\) has to be a funct/],
        [null, /^the options of handler\(\) have to be an object, not null$/],
    ];
    for (const [options, message] of wrong) {
        const make = () => server.handler(options as object);
        assert.throws(make, { name: "TypeError", message });
    }
});

test("a listener and standard input and output", async () => {
    const server = serverWith();
    const wrong: [object, RegExp][] = [
        [{ prot: 1 }, /^listenHttp\(\) has no option "prot", did you mean "port"\?$/],
        [{ port: "80" }, /^the option port of listenHttp\(\) has to be a number/],
        [{ store: {} }, /^store has to be a path/],
    ];
    for (const [options, message] of wrong)
        await assert.rejects(server.listenHttp(options), { name: "TypeError", message });
    const drain = { drainMS: 5 } as object;
    const message = /^serveStdio\(\) has no option "drainMS", did you mean "drainMs"\?$/;
    await assert.rejects(server.serveStdio(drain), { message });
});

test("connect and calls", async () => {
    const wrong: [object, RegExp][] = [
        [
            { onElict: () => 1 },
            /^connect\(\) has no option "onElict", did you .*onElicit/,
        ],
        [
            { maxReconnects: "a" },
            /^the option maxReconnects of connect\(\) has to be a n/,
        ],
        [
            { tls: { caFlie: "a" } },
            /^tls of connect\(\) has no option "caFlie", did .*caF/,
        ],
    ];
    for (const [options, message] of wrong)
        await assert.rejects(connect(NOWHERE, options), { name: "TypeError", message });
    const session = await connect(serverWith());
    const odd = { onProgres: () => 1 } as object;
    const call = /call\(\) has no option "onProgres", did you mean "onProgress"\?$/;
    await assert.rejects(session.call("t", {}, odd), call);
    await session.close();
});

test("what is used after its end is named", async () => {
    const server = serverWith();
    let kept: Context | undefined;
    server.tool("keep", (_, ctx) => {
        kept = ctx;
        return "";
    });
    const session = await connect(server);
    await session.call("keep");
    await assert.rejects(async () => kept?.send("a"), {
        code: "SEGUE_E_CLOSED",
        message: "the call has ended, so its context cannot be used any more",
    });
    const task = session.task("t");
    await session.close();
    for (const use of [
        async () => session.call("t"),
        async () => session.listTools(),
        async () => session.stream("t").next(),
        async () => session.notify("x"),
        async () => task.status(),
    ]) {
        await assert.rejects(use, (error: Error) => {
            assert.ok(error instanceof ClosedError);
            assert.equal(error.message, "the session is closed");
            return true;
        });
    }
});
