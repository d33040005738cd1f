/** Tasks: ids, tokens, states; resuming them; servers and connections that die. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
    ClosedError,
    connect,
    DisconnectedError,
    InvalidError,
    NotResumableError,
    type Reconnect,
    RemoteError,
    RequestCancelledError,
    resume,
    type Segment,
    SegueError,
    StateError,
    ToolError,
} from "segue-mcp";
import {
    all,
    isCancelled,
    serverTest,
    story,
    World,
    worldTest,
} from "./client_worlds.js";
import { CuttingProxy, serverCommand } from "./programs.js";
import { RawPeer } from "./raw_peer.js";

const numbersTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);

worldTest("a task from its start to its result", async (world) => {
    await world.session({}, async (session) => {
        const task = await session.start("slow_compute", { ms: 200, label: "x" });
        assert.ok(task.id && task.token && !task.done);
        const status = await task.status();
        assert.equal(status.id, task.id);
        assert.equal(status.status, "working");
        assert.ok(status.raw.taskId === task.id && status.ttlMs && !status.isFinal);
        const [one, other] = await Promise.all([task.result(), task.result()]);
        assert.equal(one.text, "Computed: x");
        assert.equal(one, other);
        const after = await task.status();
        assert.ok(after.status === "completed" && after.isFinal);
    });
});

worldTest("a call that became no task", async (world) => {
    await world.session({}, async (session) => {
        const task = await session.start("greet", { name: "Ada" });
        assert.equal(task.id, undefined);
        assert.deepEqual((await all<Segment>(task)).map(String), ["Hello, Ada!"]);
        assert.equal((await task.result()).text, "Hello, Ada!");
        // With a slow server the call could have been resumed, and has ended by now.
        const said = await task.status().catch((error: unknown) => error as Error);
        if (said instanceof Error) {
            assert.ok(said instanceof StateError || said instanceof RemoteError);
        } else {
            assert.ok(said.isFinal);
        }
        await assert.rejects(session.start("no such tool"), RemoteError);
    });
});

worldTest("R-975-21: the status of a call that can be resumed", async (world) => {
    if (world.era === "modern") return;
    await world.session({ tasks: false }, async (session) => {
        const args = { n: 9000, delayMs: 20 };
        const stream = session.stream("story", args, { onLeave: "detach" });
        await stream.next();
        const { token } = stream;
        assert.ok(token);
        await stream.close();
        for (const task of [session.task(token), session.resume(token)]) {
            const status = await task.status();
            assert.ok(status.id === undefined && task.id === undefined);
            assert.ok(status.status === "working" && !status.isFinal);
            assert.equal(status.raw.hasInputRequest, false);
            await task.close();
        }
    });
});

worldTest("a task is read, and break is no end of it", async (world) => {
    await world.session({}, async (session) => {
        const task = await session.start("story", { n: 5, delayMs: 5 });
        for await (const segment of task) if (segment.number === 2) break;
        const rest = (await all<Segment>(task)).map((one) => one.number);
        assert.deepEqual(rest, [3, 4, 5]);
        assert.equal((await task.result()).text, story(1, 5).join(""));
        const unread = await session.start("story", { n: 200 }, { window: 2 });
        assert.equal((await unread.result()).text, story(1, 200).join(""));
    });
});

worldTest("AS-41: a task that fails", async (world) => {
    await world.session({}, async (session) => {
        const task = await session.start("failing_job", { ms: 50 });
        await assert.rejects(task.result(), ToolError);
        const wrong = async (): Promise<unknown> =>
            (await session.start("protocol_error_job")).result();
        await assert.rejects(wrong, (error) => {
            assert.ok(error instanceof RemoteError);
            return error.rpcCode === -32603;
        });
    });
});

worldTest("AS-54: a task is cancelled", async (world) => {
    await world.session({}, async (session) => {
        const task = await session.start("hang");
        await task.cancel();
        await assert.rejects(task.result(), RequestCancelledError);
        assert.ok(await isCancelled(task));
        const other = await session.start("hang");
        assert.ok(other.id);
        await session.task(other.id).cancel();
        await assert.rejects(other.result(), SegueError);
        const stop = new AbortController();
        const last = await session.start("hang", {}, { signal: stop.signal });
        stop.abort(new Error("mine"));
        await assert.rejects(last.result(), /mine/);
        assert.ok(await isCancelled(last));
    });
});

for (const tool of ["hang", "hang_plain"]) {
    worldTest(`AS-54: the second cancel is quiet (${tool})`, async (world) => {
        await world.session({}, async (session) => {
            const stream = session.stream(tool);
            const begun = stream.started();
            if (tool === "hang") await begun;
            await stream.cancel();
            await stream.cancel();
            await begun;
            if (tool === "hang_plain") return;
            const task = await session.start(tool);
            assert.ok(task.id);
            const others = [session.task(task.id), session.task(task.id)];
            await task.cancel();
            for (const one of [task, ...others, ...others]) await one.cancel();
        });
    });
}

worldTest("waiting is given up, but not the task", async (world) => {
    await world.session({}, async (session) => {
        const hanging = await session.start("hang");
        const signal = AbortSignal.timeout(30);
        await assert.rejects(hanging.result({ signal }), { name: "TimeoutError" });
        assert.equal((await hanging.status()).status, "working");
        await assert.rejects(hanging.status({ signal }), { name: "TimeoutError" });
        await hanging.cancel();
        const task = await session.start("slow_compute", { ms: 50, label: "x" });
        await assert.rejects(task.result({ signal }), { name: "TimeoutError" });
        assert.equal((await task.result()).text, "Computed: x");
    });
});

worldTest("a task is found by its id", async (world) => {
    await world.session({}, async (session) => {
        const task = await session.start("story", { n: 5, delayMs: 1 });
        await task.result();
        assert.ok(task.id);
        const again = session.task(task.id);
        const numbers = (await all<Segment>(again)).map((one) => one.number);
        assert.deepEqual(numbers, [1, 2, 3, 4, 5]);
        assert.equal((await again.result()).text, story(1, 5).join(""));
        await assert.rejects(session.task("no-such-task").result(), SegueError);
    });
});

test("AS-71: detached, and resumed in another session", async () => {
    const world = new World("stdio", "modern");
    const command = (await world.target()) as string[];
    const session = await connect(command);
    const task = await session.start("story", { n: 8, delayMs: 10 });
    for await (const segment of task) if (segment.number === 3) break;
    const token = task.detach();
    assert.equal(task.detach(), token);
    assert.equal(task.token, token);
    await session.close();
    const again = await resume(token, command);
    assert.ok(again.id === task.id && again.id);
    const numbers = (await all<Segment>(again)).map((one) => one.number);
    assert.deepEqual(numbers, [4, 5, 6, 7, 8]);
    assert.equal((await again.result()).text, story(1, 8).join(""));
    // the task's session has ended with it, and its status is kept
    assert.equal((await again.status()).status, "completed");
    await again.close();
    assert.equal((await again.status()).status, "completed");
    await assert.rejects(resume(`${token.slice(0, -1)}?`, command), InvalidError);
    await world.end();
});

interface Heard {
    id: number;
    method: string;
    params: { _meta: Record<string, unknown> };
}

/** The call is found by its key: the answer that would name a task has not come. */
test("a call that is no task yet is left and resumed", { timeout: 120_000 }, async () => {
    const peer = new RawPeer();
    const target = { _transport: () => peer.transport() } as unknown as string;
    const hear = async (method: string): Promise<Heard> => {
        const heard = JSON.parse(await peer.hear()) as Heard;
        assert.equal(heard.method, method);
        return heard;
    };
    const say = ({ id }: Heard, result: object): void =>
        peer.say(JSON.stringify({ jsonrpc: "2.0", id, result }));
    const connecting = connect(target);
    say(await hear("server/discover"), {
        resultType: "complete",
        supportedVersions: ["2026-07-28"],
        capabilities: { tools: {}, extensions: { "dev.segue/idempotency": {} } },
        ttlMs: 0,
        cacheScope: "private",
    });
    const session = await connecting;
    const stream = session.stream("t");
    const reading = stream.next();
    const first = await hear("tools/call");
    const token = stream.detach();
    assert.ok((await reading).done);
    const result = session.resume(token).result();
    const again = await hear("tools/call");
    const key = "dev.segue/idempotencyKey";
    assert.equal(typeof first.params._meta[key], "string");
    assert.equal(again.params._meta[key], first.params._meta[key]);
    say(again, { content: [{ type: "text", text: "a" }] });
    assert.equal((await result).text, "a");
    await session.close();
});

serverTest("leaving the session leaves the task", async (server) => {
    const session = await connect(server.url);
    const task = await session.start("slow_compute", { ms: 300, label: "x" });
    const { token } = task;
    await session.close();
    assert.ok(token);
    await assert.rejects(task.result(), ClosedError);
    const again = await resume(token, server.url);
    assert.equal((await again.result()).text, "Computed: x");
    await again.close();
});

serverTest("a token chooses its era, and a session names it", async (server) => {
    for (const era of ["modern", "legacy"] as const) {
        const other = era === "modern" ? "legacy" : "modern";
        const session = await connect(server.url, { era });
        const task = await session.start("slow_compute", { ms: 300, label: "x" });
        const { token } = task;
        await session.close();
        assert.ok(token);
        const second = await connect(server.url, { era: other });
        await assert.rejects(second.resume(token).result(), (error: Error) => {
            assert.ok(error instanceof NotResumableError);
            const told = `does not speak: connect with the era "${era}"`;
            assert.ok(error.message.endsWith(told), error.message);
            return true;
        });
        await assert.rejects(second.task(token).status(), NotResumableError);
        await second.close();
        await assert.rejects(
            resume(token, server.url, { era: other }).then((one) => one.result()),
            NotResumableError,
        );
        const again = await resume(token, server.url);
        assert.equal((await again.result()).text, "Computed: x");
        await again.close();
    }
    await assert.rejects(resume(7 as never, server.url), /a token has to be a string/);
    await assert.rejects(resume("sg1.no", server.url), InvalidError);
});

serverTest("AS-93b: a server that dies and comes back", async (server) => {
    const session = await connect(server.url);
    const task = await session.start("story", { n: 40, delayMs: 20 });
    const numbers: number[] = [];
    for await (const segment of task) {
        numbers.push(segment.number);
        if (segment.number === 5) {
            await server.kill();
            await server.start();
        }
    }
    assert.deepEqual(numbers, numbersTo(40));
    assert.equal((await task.result()).text, story(1, 40).join(""));
    await session.close();
});

// The store keeps the key of the server, so the session of 2025-11-25 goes on.
serverTest("a session lists its tasks after a crash", async (server) => {
    const session = await connect(server.url, { era: "legacy" });
    const task = await session.start("slow_compute", { ms: 50, label: "x" });
    assert.equal((await task.result()).text, "Computed: x");
    await server.kill();
    await server.start();
    const { tasks } = JSON.parse(await session.requestRaw("tasks/list", {})) as {
        tasks: { taskId: string }[];
    };
    assert.deepEqual(
        tasks.map((one) => one.taskId),
        [task.id],
    );
    await session.close();
});

for (const era of ["modern", "legacy"] as const) {
    serverTest(`a server that stays away is given up (${era})`, async (server) => {
        const told: Reconnect[] = [];
        const session = await connect(server.url, {
            era,
            reconnectTimeoutMs: 1000,
            onReconnect: (reconnect) => told.push(reconnect),
        });
        const task = await session.start("story", { n: 40, delayMs: 20 });
        await assert.rejects(
            async () => {
                for await (const segment of task) {
                    if (segment.number === 5) await server.kill();
                }
            },
            (error: unknown) =>
                error instanceof DisconnectedError &&
                error.retryable &&
                typeof error.token === "string" &&
                error.message.includes("1000 ms (reconnectTimeoutMs)"),
        );
        assert.ok((told.at(-1)?.attempt ?? 0) > 0); // an idle machine makes more attempts
        assert.ok(told.every((one) => one.delayMs <= 1100 && one.reason !== ""));
        await session.close();
    });
}

for (const how of ["fin", "rst"]) {
    serverTest(`AS-28: connections that are cut (${how})`, async (server) => {
        const proxy = await CuttingProxy.start(server);
        const session = await connect(proxy.url);
        const stream = session.stream("story", { n: 30, delayMs: 10 });
        const numbers: number[] = [];
        for await (const segment of stream) {
            numbers.push(segment.number);
            if (segment.number % 7 === 0) {
                assert.match(await proxy.say(`cut ${how}`), /^cut/);
            }
        }
        assert.deepEqual(numbers, numbersTo(30));
        assert.equal(stream.result.text, story(1, 30).join(""));
        await session.close();
        await proxy.stop();
    });
}

test("a child that dies is started again", async () => {
    const world = new World("stdio", "modern");
    const session = await connect(await world.target());
    const task = await session.start("story", { n: 30, delayMs: 10 });
    const numbers: number[] = [];
    for await (const segment of task) {
        numbers.push(segment.number);
        if (segment.number === 5) await assert.rejects(session.call("die"), SegueError);
    }
    assert.deepEqual(numbers, numbersTo(30));
    assert.equal((await session.call("greet")).text, "Hello, World!");
    assert.equal(session.connections, 2);
    await session.close();
    await world.end();
});

test("a child that is not to be started again", async () => {
    const session = await connect(serverCommand(), { restart: false });
    await assert.rejects(session.call("die"), SegueError);
    await assert.rejects(session.waitClosed(), SegueError);
    assert.ok(session.isClosed);
    await session.close();
});

type Asked = { id: unknown; method: string; params: { taskId?: string } };

/** Returns the next request of this method and skips the client's other messages. */
async function asked(peer: RawPeer, method: string): Promise<Asked> {
    for (;;) {
        const told = JSON.parse(await peer.hear()) as Asked;
        if (told.method === method) return told;
    }
}

test("R-E-7: events of a stream that was left are none of the next one", async () => {
    const peer = new RawPeer();
    const target = { _transport: () => peer.transport() } as unknown as string;
    const say = (message: object): void =>
        peer.say(JSON.stringify({ jsonrpc: "2.0", ...message }));
    const event = (number: number): void => {
        const content = [{ type: "text", text: `${number} ` }];
        const payload = { content, segment: number };
        const params = { taskId: "T", seq: number - 1, payload };
        const type = "dev.segue.content.partial";
        say({ method: "notifications/tasks/event", params: { ...params, type } });
    };
    const connecting = connect(target);
    const extensions = {
        "io.modelcontextprotocol/tasks": {},
        "dev.segue/eventStreams": {},
    };
    const serverInfo = { name: "x", version: "1" };
    const { id } = await asked(peer, "server/discover");
    const discovered = {
        resultType: "complete",
        supportedVersions: ["2026-07-28"],
        capabilities: { tools: {}, extensions },
        serverInfo,
        ttlMs: 0,
        cacheScope: "private",
        _meta: { "io.modelcontextprotocol/serverInfo": serverInfo },
    };
    say({ id, result: discovered });
    const session = await connecting;
    const starting = session.start("t");
    const now = "2026-01-01T00:00:00Z";
    const task = { taskId: "T", status: "working", createdAt: now, lastUpdatedAt: now };
    const call = await asked(peer, "tools/call");
    say({ id: call.id, result: { resultType: "task", ttlMs: null, ...task } });
    const first = await starting;
    await asked(peer, "tasks/stream");
    for (const number of [1, 2, 3]) event(number);
    for await (const segment of first) if (segment.number === 2) break;
    const second = session.resume(first.detach());
    const stream = await asked(peer, "tasks/stream");
    event(4); // an event of the first stream, which was on its way
    for (const number of [1, 2, 3, 4, 5]) event(number);
    const final = { status: "completed", isError: false };
    const _meta = { "dev.segue/final": final };
    say({ id: stream.id, result: { resultType: "complete", _meta } });
    // When nothing follows the token, the client asks for the whole result; 3 had not
    // been delivered yet.
    const whole = { content: [{ type: "text", text: "1 2 3 4 5 " }] };
    const ended = { ...task, status: "completed", ttlMs: null, result: whole };
    const looking = setInterval(() => {
        for (const line of peer.lines.splice(0)) {
            const { id, method } = JSON.parse(line) as Asked;
            if (method === "tasks/get")
                say({ id, result: { resultType: "complete", ...ended } });
        }
    }, 1);
    const numbers = (await all<Segment>(second)).map((one) => one.number);
    assert.deepEqual(numbers, [3, 4, 5]);
    assert.equal((await second.result()).text, "1 2 3 4 5 ");
    clearInterval(looking);
    await session.close();
});

serverTest("a resumed task that has ended tells its status", async (server) => {
    const first = await connect(server.url);
    const { token } = await first.start("slow_compute", { ms: 50, label: "x" });
    await first.close();
    assert.ok(token);
    const again = await resume(token, server.url);
    assert.equal((await again.result()).text, "Computed: x");
    const told = await again.status();
    assert.deepEqual([told.status, told.isFinal], ["completed", true]);
    assert.equal(told.id, again.id);
    await again.close();
    assert.deepEqual(await again.status(), told);
});
