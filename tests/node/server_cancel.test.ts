/**
 * A handler learns that its call was cancelled before it sees the end of the call in any
 * other way.
 *
 * The event of the cancellation is withheld from the context here. So the handler meets
 * the end of the call first, as when a cancellation arrives while the handler resumes.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Context, LimitError, RemoteError, Server, type Session } from "segue-mcp";
import { Gate, inEachWorld, serve } from "./server_worlds.js";
import { internal } from "./tree.js";

type Native = typeof import("segue-mcp/native");
type Call = import("segue-mcp/native").Call;

const { native, Kind } = internal<Native>("native");

/** What a handler sees of the end of its call. */
type Seen = [aborted: boolean, reason: string, cancelled: boolean];

function seenBy(ctx: Context): Seen {
    const { aborted, reason } = ctx.signal; // first, because `cancelled` asks the library
    return [aborted, String(reason), ctx.cancelled];
}

const CANCELLED: Seen = [true, "AbortError: The call was cancelled", true];

/** Withholds the events CANCEL of calls while `work` runs. */
async function withheld(work: (calls: Call[]) => Promise<void>): Promise<void> {
    const { callWatch } = native;
    const calls: Call[] = [];
    native.callWatch = (call, handler) => {
        calls.push(call);
        callWatch(call, (kind, ...rest) => {
            if (kind !== Kind.CANCEL) handler(kind, ...rest);
        });
    };
    try {
        await work(calls);
    } finally {
        native.callWatch = callWatch;
    }
}

/** Resolves when the library knows that the call was cancelled. */
async function isKnown(call: Call | undefined): Promise<void> {
    assert.ok(call);
    while (!native.callIsCancelled(call)) await new Promise(setImmediate);
}

/** The part of a handler that runs before the cancellation. */
type Begin = () => Promise<void>;

/**
 * Calls a tool and cancels the call when `begin` runs; `begin` resolves when the library
 * knows this.
 */
async function cancelling(
    session: Session,
    calls: readonly Call[],
    make: (begin: Begin) => void,
): Promise<void> {
    const leave = new AbortController();
    make(async () => {
        leave.abort();
        await isKnown(calls.at(-1));
    });
    await assert.rejects(session.call("it", {}, { signal: leave.signal }));
}

/** Handlers that meet the end of their call in different ways, and tell what they saw. */
type Meets = (begin: Begin, tell: (ctx: Context) => void) => Tool;
type Tool = (
    args: unknown,
    ctx: Context,
) => AsyncGenerator<string | object> | Promise<void>;

const WAYS: Record<string, Meets> = {
    "an async generator": (begin, tell) =>
        async function* (_, ctx) {
            try {
                yield "one";
                await begin();
                yield "two";
            } finally {
                tell(ctx);
            }
        },
    "an async generator that used its signal": (begin, tell) =>
        async function* (_, ctx) {
            assert.ok(!ctx.signal.aborted);
            try {
                yield "one";
                await begin();
                yield { two: 2 };
            } finally {
                tell(ctx);
            }
        },
    "an async function that sends": (begin, tell) => async (_, ctx) => {
        assert.ok(!ctx.signal.aborted);
        await begin();
        await assert.rejects(ctx.send("late"), { name: "EndedError" });
        tell(ctx);
    },
    "an async function that asks": (begin, tell) => async (_, ctx) => {
        assert.ok(!ctx.signal.aborted);
        await begin();
        await assert.rejects(ctx.ask("late?"), { name: "EndedError" });
        tell(ctx);
    },
    "an async function that reports progress": (begin, tell) => async (_, ctx) => {
        const { signal } = ctx;
        await begin();
        ctx.progress(1);
        assert.ok(signal.aborted);
        tell(ctx);
    },
    "an async function that asks whether it is cancelled":
        (begin, tell) => async (_, ctx) => {
            const { signal } = ctx;
            await begin();
            assert.ok(ctx.cancelled && signal.aborted);
            tell(ctx);
        },
    "the clean-up of a value": (begin, tell) => async (_, ctx) => {
        const { signal } = ctx;
        await ctx.get(async function* () {
            try {
                yield 1;
            } finally {
                assert.ok(signal.aborted);
                tell(ctx);
            }
        });
        await begin();
        throw new Error("the handler failed by itself");
    },
};

for (const [way, meets] of Object.entries(WAYS)) {
    inEachWorld(`${way} sees that its call was cancelled`, async (world) => {
        const failures: unknown[] = [];
        const server = new Server({
            name: "cancel",
            onError: (error) => failures.push(error),
        });
        await withheld((calls) =>
            serve(world, server, async (session) => {
                const seen = await new Promise<Seen>((resolve, reject) => {
                    cancelling(session, calls, (begin) => {
                        const tell = (ctx: Context): void => resolve(seenBy(ctx));
                        server.tool("it", meets(begin, tell));
                    }).catch(reject);
                });
                assert.deepEqual(seen, CANCELLED);
            }),
        );
        assert.deepEqual(failures, []);
    });
}

/** Ways in which a call ends from outside. Each returns when the end is under way. */
const ENDS: Record<string, (session: Session, leave: AbortController) => unknown> = {
    "whose session closes": (session) => session.close(),
    "that its client cancels": (_, leave) => leave.abort(),
    "that takes longer than its client waits": () => undefined,
};

for (const [way, end] of Object.entries(ENDS)) {
    inEachWorld(`a generator of a call ${way} sees the end`, async (world) => {
        const server = new Server({ name: "ends" });
        let tell: (seen: Seen) => void = () => undefined;
        const told = new Promise<Seen>((resolve) => {
            tell = resolve;
        });
        await withheld((calls) =>
            serve(world, server, async (session) => {
                const leave = new AbortController();
                const timeoutMs = way.includes("waits") ? 20 : 60_000;
                server.tool("it", async function* (_, ctx) {
                    try {
                        yield "one";
                        void end(session, leave);
                        await isKnown(calls.at(-1));
                        yield "two";
                    } finally {
                        tell(seenBy(ctx));
                    }
                });
                const { signal } = leave;
                await assert.rejects(session.call("it", {}, { signal, timeoutMs }));
                assert.deepEqual(await told, CANCELLED);
            }),
        );
    });
}

inEachWorld("a generator of a task that is cancelled sees the end", async (world) => {
    const server = new Server({ name: "tasks" });
    let tell: (seen: Seen) => void = () => undefined;
    const told = new Promise<Seen>((resolve) => {
        tell = resolve;
    });
    const began = new Gate();
    await withheld((calls) =>
        serve(world, server, async (session) => {
            server.tool("it", { task: "must" }, async function* (_, ctx) {
                try {
                    yield "one";
                    began.open();
                    await isKnown(calls.at(-1));
                    yield "two";
                } finally {
                    tell(seenBy(ctx));
                }
            });
            const task = await session.start("it");
            await began.opened;
            await task.cancel();
            assert.deepEqual(await told, CANCELLED);
        }),
    );
});

test("a generator whose value cannot be sent sees its signal abort", async () => {
    const seen: unknown[] = [];
    const server = new Server({ name: "unsent", onError: () => undefined });
    server.tool("it", async function* (_, ctx) {
        const { signal } = ctx;
        try {
            yield 10n as never;
        } finally {
            seen.push(signal.aborted, signal.reason instanceof TypeError, ctx.cancelled);
        }
    });
    await serve({ way: "pair", era: "modern" }, server, async (session) => {
        const result = await session.call("it", {}, { throwOnError: false });
        assert.deepEqual([result.isError, result.text], [true, "The tool it failed"]);
    });
    assert.deepEqual(seen, [true, true, true]);
});

inEachWorld("a result that is too large aborts the signal", async (world) => {
    const seen: unknown[] = [];
    const server = new Server({ name: "large", maxResultBytes: 1000 });
    server.tool("sends", async (_, ctx) => {
        const { signal } = ctx;
        await assert.rejects(ctx.send("x".repeat(2000)), LimitError);
        seen.push(signal.aborted, signal.reason instanceof LimitError, ctx.cancelled);
    });
    server.tool("yields", function* (_, ctx) {
        const { signal } = ctx;
        try {
            yield "x".repeat(2000);
        } finally {
            seen.push(signal.aborted, signal.reason instanceof LimitError, ctx.cancelled);
        }
    });
    await serve(world, server, async (session) => {
        for (const name of ["sends", "yields"]) {
            await assert.rejects(session.call(name), (error) => {
                assert.ok(error instanceof RemoteError);
                assert.match(JSON.stringify(error.data), /max_result_bytes/);
                return true;
            });
        }
    });
    assert.deepEqual(seen, [true, true, true, true, true, true]);
});
