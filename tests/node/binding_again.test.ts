/** Handles of requests that are used again, and output that is held back: a sequence of
 * calls costs no more than necessary. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import {
    type Call,
    collect,
    errors,
    Kind,
    native,
    nothingIsLeft,
    Pair,
    Recorder,
    Status,
} from "./binding_worlds.js";

type Request = ReturnType<typeof native.requestStart>;

afterEach(nothingIsLeft);

/** Starts requests whose handles are kept. */
class Line extends Recorder {
    readonly #world: Pair;
    request!: Request;

    constructor(world: Pair) {
        super();
        this.#world = world;
    }

    start(name: string): this {
        const { session } = this.#world;
        const params = JSON.stringify({ name });
        const { handler } = this;
        const method = "tools/call";
        const all = [session, method, params, null, handler, -1, true] as const;
        this.request = native.requestStart(...all);
        return this;
    }

    again(name: string, session = this.#world.session): void {
        this.events.length = 0;
        const params = JSON.stringify({ name });
        native.requestAgain(this.request, session, "tools/call", params, null);
    }
}

/** Runs a test with a pair, which is closed at its end. */
function pairTest(name: string, work: (world: Pair) => Promise<void>): void {
    test(name, { timeout: 120_000 }, async () => {
        const world = new Pair(TOOLS);
        try {
            await work(world);
        } finally {
            if (!world.runtime.isClosed) world.close();
        }
    });
}

const TOOLS = {
    hello: (call: Call): void => native.callReply(call, "hello"),
};

pairTest("a request that was kept serves again, by its handler", async (world) => {
    const line = new Line(world).start("hello");
    for (let i = 0; i < 3; i++) {
        const [, status, json] = await line.until(Kind.COMPLETE);
        assert.equal(status, Status.OK);
        assert.match(json, /"hello"/);
        line.again("hello");
    }
    await line.until(Kind.COMPLETE);
    assert.equal(native.liveHandles()["Request"], undefined, "it was freed");
    assert.throws(() => native.requestFree(line.request), errors.ClosedError);
});

pairTest("one that fails is freed by whoever asked, and serves again", async (world) => {
    const line = new Line(world).start("no such tool");
    assert.equal((await line.until(Kind.COMPLETE))[1], Status.E_REMOTE);
    assert.equal(native.liveHandles()["Request"], 1);
    assert.throws(() => line.again("hello"), errors.StateError);
    native.requestFree(line.request);
    line.again("hello");
    assert.equal((await line.until(Kind.COMPLETE))[1], Status.OK);
});

pairTest("one that is under way, or was not kept, does not", async (world) => {
    const other = new Pair(TOOLS);
    const closed = new Line(other).start("hello");
    await closed.until(Kind.COMPLETE);
    const line = new Line(world).start("hello");
    assert.throws(() => line.again("hello"), errors.StateError);
    native.requestFree(line.request); // the request goes on
    assert.throws(() => line.again("hello"), errors.StateError);
    await line.until(Kind.COMPLETE);
    assert.throws(() => line.again("hello", other.session), errors.StateError);
    line.again("hello");
    await line.until(Kind.COMPLETE);
    const plain = world.call("hello");
    await plain.until(Kind.COMPLETE);
    const { request } = plain;
    const params = '{"name":"hello"}';
    const again = () =>
        native.requestAgain(request, world.session, "tools/call", params, null);
    assert.throws(again, errors.StateError);
    native.requestFree(request);
    assert.throws(again, errors.StateError);
    const { session } = world;
    assert.throws(
        () => native.requestAgain(session as never, session, "a/b", null, null),
        TypeError,
    );
    other.close();
    assert.throws(() => closed.again("hello"), errors.ClosedError);
});

pairTest("what is refused leaves it as it was", async (world) => {
    const line = new Line(world).start("hello");
    await line.until(Kind.COMPLETE);
    const { request } = line;
    const bad = () =>
        native.requestAgain(request, world.session, "tools/call", "{", null);
    assert.throws(bad, errors.SegueError);
    line.again("hello");
    assert.equal((await line.until(Kind.COMPLETE))[1], Status.OK);
});

pairTest("it holds its handler only while it is under way", async (world) => {
    let line: Line | null = new Line(world).start("hello");
    const held = new WeakRef(line);
    line = null;
    await new Promise(setImmediate);
    collect();
    await held.deref()?.until(Kind.COMPLETE);
    for (let round = 0; round < 50 && held.deref(); round++) {
        await new Promise(setImmediate);
        collect();
    }
    assert.equal(held.deref(), undefined);
});

pairTest("output is held back until the last uncork", async (world) => {
    const { handle } = world.runtime;
    native.runtimeCork(handle);
    native.runtimeCork(handle);
    native.runtimeUncork(handle);
    const line = new Line(world).start("hello");
    native.runtimeUncork(handle);
    await line.until(Kind.COMPLETE);
    assert.throws(() => native.runtimeUncork(handle), errors.StateError);
});

/** Runs `work` with a clock that stands still, because a slow turn holds nothing back. */
function inNoTime<T>(work: () => T): T {
    const at = performance.now();
    performance.now = () => at;
    try {
        return work();
    } finally {
        Reflect.deleteProperty(performance, "now");
    }
}

pairTest(
    "what a turn sends after the first is held back by one cork, that ends",
    async (world) => {
        const { runtime } = world;
        const line = inNoTime(() => {
            runtime.cork();
            assert.throws(() => native.runtimeUncork(runtime.handle), errors.StateError);
            for (let i = 0; i < 20; i++) runtime.cork();
            return new Line(world).start("hello");
        });
        // the cork of the turn, which is the only one
        native.runtimeUncork(runtime.handle);
        assert.throws(() => native.runtimeUncork(runtime.handle), errors.StateError);
        native.runtimeCork(runtime.handle);
        await line.until(Kind.COMPLETE);
        assert.throws(() => native.runtimeUncork(runtime.handle), errors.StateError);
        runtime.cork();
        runtime.close();
        runtime.cork(); // no error
    },
);

pairTest(
    "a turn that takes its time between messages holds nothing back",
    async (world) => {
        const { runtime } = world;
        const wait = (): void => {
            for (const until = performance.now() + 5; performance.now() < until; );
        };
        runtime.cork();
        wait();
        runtime.cork();
        assert.throws(() => native.runtimeUncork(runtime.handle), errors.StateError);
        await new Promise(setImmediate);
        runtime.cork();
        runtime.cork();
        wait();
        runtime.cork(); // the output that was held back has been sent
        assert.throws(() => native.runtimeUncork(runtime.handle), errors.StateError);
    },
);
