/** Which errors of a handler reach the client, and which it only hears of. */
import assert from "node:assert/strict";
import * as segue from "segue-mcp";
import { middleware, Server, type ServerOptions, type Session } from "segue-mcp";
import { z } from "zod";
import { inEachWorld, serve } from "./server_worlds.js";

const SECRET = "user-db.internal";

/** What sessions of the handler throw, and what the library says to the handler. */
const PRIVATE: Record<string, () => Error> = {
    RemoteError: () =>
        new segue.RemoteError(`no table in ${SECRET}`, {
            rpcCode: -32602,
            dataJson: '{"at":1}',
        }),
    DisconnectedError: () => new segue.DisconnectedError(`cannot resolve ${SECRET}`),
    SpawnError: () => new segue.SpawnError(`cannot start /${SECRET}`),
    RequestTimeoutError: () => new segue.RequestTimeoutError(`${SECRET} is slow`),
    ClosedError: () => new segue.ClosedError(`the session with ${SECRET} is closed`),
    EndedError: () => new segue.EndedError(`the operation of ${SECRET} has ended`),
    RequestCancelledError: () => new segue.RequestCancelledError(`not by ${SECRET}`),
    UnsupportedError: () => new segue.UnsupportedError(`${SECRET} cannot do this`),
    InvalidError: () => new segue.InvalidError(`${SECRET} is no URL`),
    StoreFullError: () => new segue.StoreFullError(`the store at ${SECRET} is full`),
};

function leaky(
    errorOf: (kind: string) => Error,
    options: Partial<ServerOptions>,
): Server {
    const server = new Server({ name: "leaky", ...options });
    const input = { kind: z.string() };
    const fail = (kind: string): never => {
        throw errorOf(kind);
    };
    server.tool("later", { input, task: "may" }, async ({ kind }) => fail(kind));
    server.tool("plain", { input }, ({ kind }) => fail(kind));
    server.tool("sends", { input }, async function* ({ kind }) {
        yield "begun";
        fail(kind);
    });
    server.resource("note://{kind}", async ({ kind }) => fail(String(kind)));
    server.prompt("write", { input, complete: { kind: fail } }, ({ kind }) => fail(kind));
    return server;
}

/** Returns what the client gets when each kind of item fails. */
async function failuresOf(session: Session, kind: string): Promise<segue.SegueError[]> {
    const task = async (): Promise<unknown> => {
        const started = await session.start("later", { kind });
        return started.result();
    };
    const calls: (() => Promise<unknown>)[] = [
        () => session.call("later", { kind }),
        () => session.call("plain", { kind }),
        () => session.call("sends", { kind }),
        () => session.readResource(`note://${kind}`),
        () => session.getPrompt("write", { kind }),
        () => session.complete({ type: "ref/prompt", name: "write" }, "kind", kind),
        task,
    ];
    const failed: segue.SegueError[] = [];
    for (const call of calls) {
        await call().then(
            () => assert.fail("the call did not fail"),
            (error: unknown) => {
                assert(error instanceof segue.SegueError);
                failed.push(error);
            },
        );
    }
    return failed;
}

for (const isWrapped of [false, true]) {
    const name = isWrapped ? "inside maskErrors" : "by default";
    inEachWorld(`errors of inner sessions are masked ${name}`, async (world) => {
        const reported: unknown[] = [];
        const onError = (error: unknown): void => void reported.push(error);
        const server = leaky((kind) => PRIVATE[kind]?.() ?? new Error(kind), { onError });
        if (isWrapped) server.use(middleware.maskErrors("It failed"));
        await serve(world, server, async (session) => {
            for (const kind of Object.keys(PRIVATE)) {
                reported.length = 0;
                const failed = await failuresOf(session, kind);
                for (const error of failed) {
                    const seen = `${error.message} ${error.dataJson}`;
                    assert(!seen.includes(SECRET), `${kind}: ${seen}`);
                    assert(
                        error instanceof segue.ToolError ||
                            error instanceof segue.RemoteError,
                    );
                }
                assert.equal(reported.length, failed.length, kind);
                for (const error of reported) assert(String(error).includes(SECRET));
            }
        });
    });
}

inEachWorld("errors of inner sessions are shown on request", async (world) => {
    const options = { exposeErrors: true, onError: () => {} };
    const server = leaky((kind) => PRIVATE[kind]?.() ?? new Error(kind), options);
    await serve(world, server, async (session) => {
        for (const kind of Object.keys(PRIVATE))
            for (const error of await failuresOf(session, kind))
                assert(error.message.includes(SECRET), `${kind}: ${error.message}`);
    });
});

inEachWorld("what the library says to a handler is masked", async (world) => {
    const reported: unknown[] = [];
    const onError = (error: unknown): void => void reported.push(error);
    const server = new Server({ name: "fields", onError });
    server.tool("sets", async (_, ctx) => {
        await ctx.setField("isError", true);
    });
    server.tool("misses", async () => {
        throw Object.assign(new Error("no /secret/path"), { code: "ENOENT" });
    });
    await serve(world, server, async (session) => {
        for (const name of ["sets", "misses"])
            await assert.rejects(session.call(name), {
                name: "ToolError",
                message: `The tool ${name} failed`,
            });
    });
    assert.match(String(reported[0]), /the library sets this member/);
    assert.match(String(reported[1]), /secret/);
    assert.equal(reported.length, 2);
});

inEachWorld("the errors for clients pass", async (world) => {
    const reported: unknown[] = [];
    const onError = (error: unknown): void => void reported.push(error);
    const server = leaky(
        (kind) =>
            kind === "tool"
                ? new segue.ToolError("for the model")
                : new segue.RpcError(17, "for the client", { at: 1 }),
        { onError },
    );
    server.tool("asks", (_, ctx) => ctx.ask("Who?"));
    await serve(world, server, async (session) => {
        for (const error of await failuresOf(session, "tool"))
            assert.equal(error.message, "for the model");
        for (const error of await failuresOf(session, "rpc")) {
            assert.equal(error.message, "for the client");
            assert(error instanceof segue.RemoteError);
            assert.equal(error.rpcCode, 17);
            assert.deepEqual(error.data, { at: 1 });
        }
        await assert.rejects(session.call("asks"), /has not declared that it answers/);
    });
    assert.deepEqual(reported, []);
});
