/** What crosses the addon: events of every kind, in order; questions that are answered at
 * once; and the errors for arguments that it cannot take. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import {
    type Call,
    errors,
    Item,
    Kind,
    native,
    nothingIsLeft,
    Pair,
    Recorder,
    Runtime,
    Status,
} from "./binding_worlds.js";

afterEach(nothingIsLeft);

const TIMEOUT = { timeout: 120_000 };
const OPTION = { task: 1, promoteAfterMs: 60_000 };

test("segments of one request come as one event, then the end", TIMEOUT, async () => {
    const world = new Pair({
        stream(call) {
            for (const text of ["one", "zwei …", "three\u0000"]) {
                assert.equal(native.callSendText(call, text), true);
            }
            native.callSendJson(call, '{"type":"image","data":"AA==","mimeType":"a/b"}');
            native.callSendJson(
                call,
                '{"type":"text","text":"n\\"oted","annotations":{}}',
            );
            native.callReply(call, "end", ['{"type":"text","text":"a\\"b\\\\"}'], "[1]");
        },
    });
    const events = world.call("stream");
    const [, status, result] = await events.until(Kind.COMPLETE);
    assert.equal(status, Status.OK);
    const parsed = JSON.parse(result);
    assert.deepEqual(parsed.structuredContent, [1]);
    const segments = events.of(Kind.SEGMENTS).flatMap((event) => event[1]);
    assert.deepEqual(
        segments.map((one) => one.content),
        parsed.content,
    );
    assert.deepEqual(
        segments.map((one) => one.number),
        [1, 2, 3, 4, 5, 6, 7],
    );
    assert.deepEqual(
        segments.map((one) => one.text),
        ["one", "zwei …", "three\u0000", undefined, 'n"oted', "end", 'a"b\\'],
    );
    assert.deepEqual(
        segments.map((one) => one.type),
        ["text", "text", "text", "image", "text", "text", "text"],
    );
    assert.equal(events.kinds.at(-1), Kind.COMPLETE);
    world.close();
});

test("progress, log, question and answer", TIMEOUT, async () => {
    const answers = new Recorder();
    const world = new Pair({
        asks(call) {
            native.callProgress(call, 0.5, 2, "half");
            native.callLog(call, "warning", '"careful"');
            const asked = JSON.stringify({
                message: "Name?",
                requestedSchema: { type: "object", properties: {} },
            });
            native.callRequireInput(
                call,
                "k",
                "elicitation/create",
                asked,
                (...event) => {
                    answers.handler(...event);
                    native.callReply(call, "done");
                },
            );
        },
    });
    const runtime = world.runtime.handle;
    const [near, far] = native.transportPair(runtime);
    native.serverAttach(world.server, far);
    const capabilities = '{"elicitation":{}}';
    const session = native.sessionOpen(runtime, near, { capabilities }, null);
    const events = new Recorder();
    const params = '{"name":"asks","arguments":{}}';
    const options = { logLevel: "info", timeoutMs: 120_000 };
    const request = native.requestStart(
        session,
        "tools/call",
        params,
        options,
        events.handler,
    );
    const [, key, method, asked] = await events.until(Kind.QUESTION);
    assert.equal(method, "elicitation/create");
    assert.equal(JSON.parse(asked).message, "Name?");
    native.requestAnswer(request, key, '{"action":"accept","content":{}}');
    const [, status] = await events.until(Kind.COMPLETE);
    assert.equal(status, Status.OK);
    assert.deepEqual(events.of(Kind.PROGRESS)[0], [Kind.PROGRESS, 0.5, 2, "half"]);
    assert.match(events.of(Kind.LOG)[0]?.[1], /careful/);
    assert.equal(answers.events[0]?.[1], Status.OK);
    assert.equal(JSON.parse(answers.events[0]?.[2]).action, "accept");
    world.close();
});

test("a task tells its id and a token; watching it goes on", TIMEOUT, async () => {
    let running: Call | undefined;
    const world = new Pair(
        {
            slow(call) {
                running = call;
                native.callSendText(call, "first");
                native.callDefer(call);
            },
        },
        OPTION,
    );
    const events = world.call("slow");
    const [, id, token] = await events.until(Kind.TASK);
    assert.ok(id.length > 0);
    assert.match(token, /^sg1\./);
    native.requestDetach(events.request);
    const [, status, , info] = await events.until(Kind.COMPLETE);
    assert.equal(status, Status.E_CLOSED);
    assert.ok(errors.fromInfo(info) instanceof errors.ClosedError);
    const task = native.taskAttachToken(world.session, token);
    assert.equal(native.taskId(task), id);
    const watched = new Recorder();
    native.taskWatch(task, { timeoutMs: 120_000 }, watched.handler);
    native.callReply(running as Call, "last");
    const [, end, result] = await watched.until(Kind.COMPLETE);
    assert.equal(end, Status.OK);
    assert.match(result, /last/);
    const asked = new Recorder();
    native.taskGet(task, asked.handler);
    assert.match((await asked.until(Kind.COMPLETE))[2], /completed/);
    assert.equal(native.taskGetState(task), 3);
    world.close();
});

test("cancel reaches the call", TIMEOUT, async () => {
    const watched = new Recorder();
    const world = new Pair({ hangs: (call) => native.callWatch(call, watched.handler) });
    const events = world.call("hangs");
    while (!native.liveHandles()["Call"]) await new Promise(setImmediate);
    native.requestCancel(events.request);
    await watched.until(Kind.CANCEL);
    assert.equal((await events.until(Kind.COMPLETE))[1], Status.E_CANCELLED);
    world.close();
});

test("a queue that is full refuses, and tells when there is room", TIMEOUT, async () => {
    const text = "x".repeat(65_536);
    const watched = new Recorder();
    const calls: Call[] = [];
    const world = new Pair({ floods: (call) => calls.push(call) }, { flags: 1, task: 1 });
    const events = world.call("floods", { discard: true, credit: 1 });
    while (calls.length === 0) await new Promise(setImmediate);
    const call = calls.pop() as Call;
    native.callWatch(call, watched.handler);
    let sent = 0;
    while (native.callSendText(call, text)) {
        sent++;
        assert.ok(sent < 10_000, "the queue has no bound");
    }
    native.requestGrant(events.request, 1_000_000);
    await watched.until(Kind.DRAIN);
    assert.equal(native.callSendText(call, text), true);
    native.callReply(call);
    assert.equal((await events.until(Kind.COMPLETE))[1], Status.OK);
    assert.equal(events.of(Kind.SEGMENTS).flatMap((event) => event[1]).length, sent + 1);
    world.close();
});

test("credit holds segments back until more is granted", TIMEOUT, async () => {
    const world = new Pair({
        stream(call) {
            for (let i = 0; i < 20; i++) native.callSendText(call, `${i}`);
            native.callReply(call);
        },
    });
    const events = world.call("stream", { credit: 3 });
    const count = () => events.of(Kind.SEGMENTS).flatMap((event) => event[1]).length;
    while (count() < 3) await new Promise(setImmediate);
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    assert.equal(count(), 3);
    native.requestGrant(events.request, 1000);
    await events.until(Kind.COMPLETE);
    assert.equal(count(), 20);
    assert.throws(() => native.requestGrant(events.request, 1), errors.EndedError);
    world.close();
});

test("hooks are asked at once, and what they throw is told", TIMEOUT, async () => {
    const runtime = new Runtime(true);
    runtime.hold();
    const seen: unknown[] = [];
    let allow = false;
    const server = native.serverNew(
        runtime.handle,
        {},
        null,
        (transport) => {
            seen.push(native.transportHeader(transport, "x-user"));
            if (!allow) throw new RangeError("nobody");
            return "alice";
        },
        (_tool, what, schema, value) => {
            seen.push(what, JSON.parse(schema).type, JSON.parse(value).bad === true);
            return JSON.parse(value).bad ? "it is bad" : null;
        },
    );
    const json = '{"name":"who","inputSchema":{"type":"object"}}';
    native.serverAdd(server, Item.TOOL, json, null, (_kind, call) =>
        native.callReply(call, native.callPrincipal(call)),
    );
    const listener = native.serverListen(server, {});
    const url = native.listenerUrl(listener);
    const transport = native.transportHttp(
        runtime.handle,
        url,
        { proxy: "" },
        (to, status) => {
            seen.push(status);
            native.transportSetHeader(to, "X-User", "me");
        },
    );
    const closed = new Recorder();
    const refused = native.sessionOpen(runtime.handle, transport, {}, closed.handler);
    const printed: string[] = [];
    const { error } = console;
    console.error = (...words) => printed.push(words.map(String).join(" "));
    const [, info] = await closed.until(Kind.CLOSED);
    console.error = error;
    assert.ok(errors.fromInfo(info) instanceof errors.SegueError);
    assert.equal(printed[0], "segue: the callback principal failed: RangeError: nobody");
    assert.ok(seen.includes("me") && seen.includes(0));
    allow = true;
    const second = native.transportHttp(runtime.handle, url, { proxy: "" });
    const session = native.sessionOpen(runtime.handle, second, {});
    const call = (bad: boolean) => {
        const events = new Recorder();
        const params = JSON.stringify({ name: "who", arguments: { bad } });
        native.requestStart(session, "tools/call", params, null, events.handler);
        return events.until(Kind.COMPLETE);
    };
    assert.match((await call(false))[2], /alice/);
    assert.match(JSON.stringify(await call(true)), /it is bad/);
    native.sessionFree(refused);
    runtime.close();
});

test("a transport of one's own carries a conversation", TIMEOUT, async () => {
    const world = new Pair({ hello: (call) => native.callReply(call, "hello") });
    const ends: { wire?: never; other?: number }[] = [{}, {}];
    const kinds = new Set<number>();
    const make = (mine: number) =>
        native.transportCustom(world.runtime.handle, (kind, a) => {
            kinds.add(kind);
            if (world.runtime.isClosed) return;
            const self = ends[mine] as { wire: never };
            const other = ends[1 - mine] as { wire: never };
            if (kind === Kind.TRANSPORT_START) self.wire = a as never;
            if (kind === Kind.TRANSPORT_SEND) {
                assert.equal(native.transportFeed(other.wire, a), true);
                native.transportTook(self.wire, a.length);
            }
            if (kind === Kind.TRANSPORT_CLOSE) {
                native.transportClosed(self.wire);
                native.transportClosed(other.wire);
            }
        });
    native.serverAttach(world.server, make(0));
    const told = new Recorder();
    const session = native.sessionOpen(world.runtime.handle, make(1), {}, told.handler);
    const events = new Recorder();
    native.requestStart(
        session,
        "tools/call",
        '{"name":"hello","arguments":{}}',
        null,
        events.handler,
    );
    assert.match((await events.until(Kind.COMPLETE))[2], /hello/);
    native.sessionClose(session);
    await told.until(Kind.CLOSED);
    world.close();
    assert.ok(kinds.has(Kind.TRANSPORT_FREE));
});

test("a server tells how it is; a store that is not there is an error", async () => {
    const world = new Pair({});
    const stats = JSON.parse(native.serverStats(world.server));
    assert.equal(stats.operations.running, 0);
    const redis = native.storeRedis("redis://127.0.0.1:1", { timeoutMs: 100 });
    await assert.rejects(redis, { code: "SEGUE_E_STORE" });
    const store = native.storeMemory({ maxBytes: 1 << 20 });
    const freed = native.storeFree(store);
    assert.throws(() => native.storeFree(store), errors.ClosedError);
    await freed;
    world.close();
});

test("arguments that are none are named", () => {
    const world = new Pair({});
    const { handle } = world.runtime;
    // biome-ignore lint/suspicious/noExplicitAny: wrong on purpose
    const any = native as any;
    const type = { name: "TypeError" };
    assert.throws(() => any.requestCancel(world.session), type);
    assert.throws(() => any.callFree({}), type);
    assert.throws(() => any.callFree(undefined), type);
    assert.throws(() => any.sessionFree(1), type);
    assert.throws(() => any.runtimeNew({}, 1), type);
    const start = (options: object) =>
        native.requestStart(world.session, "m", null, options as never, null);
    assert.throws(
        () => start({ timeoutMz: 1 }),
        /segue_request_options has no option timeoutMz/,
    );
    assert.throws(() => start({ timeoutMs: "1" }), /timeoutMs: .*number/);
    assert.throws(() => start({ timeoutMs: 1.5 }), { name: "RangeError" });
    assert.throws(() => start({ timeoutMs: Number.NaN }), { name: "RangeError" });
    assert.throws(() => start({ onTimeout: 2 ** 31 }), { name: "RangeError" });
    assert.throws(() => start({ logLevel: "a\u0000b" }), /logLevel: .*NUL/);
    assert.throws(() => any.requestStart(world.session, 1, null), type);
    assert.throws(() => any.requestStart(world.session, "m", 1), type);
    assert.throws(() => any.requestStart(world.session, "m", "{"), errors.JsonError);
    assert.throws(() => any.requestStart(world.session, "m", "1"), /not a JSON object/);
    assert.throws(
        () => native.serverNew(handle, { maxTasks: -1 }),
        / maxTasks is -1: it has to be at least 0/,
    );
    assert.throws(
        () => native.transportSpawn(handle, { argv: [""] }),
        /argv names no program/,
    );
    const content = native.contentNew(handle);
    assert.throws(
        () => native.contentAddJson(content, '{"type":"text","text":5}'),
        /needs a member "text", a string/,
    );
    native.contentFree(content);
    assert.throws(() => any.requestStart(world.session, "m", "{}", {}, "f"), type);
    assert.throws(() => native.serverAdd(world.server, 1, "{}", null, () => {}), {
        code: "SEGUE_E_INVALID",
    });
    const getter = {
        get name(): string {
            throw new Error("of a getter");
        },
    };
    assert.throws(() => native.serverNew(handle, getter), /of a getter/);
    assert.throws(() => any.storeSqlite(1), type);
    assert.throws(() => native.transportHttp(handle, "ftp://x"), errors.InvalidError);
    world.close();
});

test("handles that were freed, given away or lost their runtime are closed", () => {
    const world = new Pair({});
    const { handle } = world.runtime;
    const content = native.contentNew(handle);
    native.contentFree(content);
    assert.throws(() => native.contentFree(content), errors.ClosedError);
    assert.throws(() => native.contentAddText(content, "x"), errors.ClosedError);
    const [near, far] = native.transportPair(handle);
    native.serverAttach(world.server, near);
    assert.throws(() => native.serverAttach(world.server, near), errors.ClosedError);
    assert.throws(() => native.transportFree(near), errors.ClosedError);
    const late = native.contentNew(handle);
    const custom = native.transportCustom(handle, () => {});
    world.close();
    assert.throws(() => native.serverClose(world.server), errors.ClosedError);
    assert.throws(() => native.runtimeDispatch(handle, 0, 0), errors.ClosedError);
    native.contentFree(late); // what is left may be freed
    native.transportFree(custom);
    native.transportFree(far);
    assert.throws(() => native.transportFree(far), errors.ClosedError);
});

test("bytes are as good as text, and a detached array is none", () => {
    const world = new Pair({});
    const content = native.contentNew(world.runtime.handle);
    native.contentAddText(content, Buffer.from("bytes …"));
    native.contentAddBlob(content, "image", "image/png", new Uint8Array([1, 2, 3]));
    native.contentAddBlob(content, "audio", "audio/wav", new Uint8Array());
    const array = new Uint8Array(8);
    structuredClone(array, { transfer: [array.buffer] });
    // the array is empty by then
    native.contentAddBlob(content, "image", "image/png", array);
    // biome-ignore lint/suspicious/noExplicitAny: wrong on purpose
    const wrong = new Float64Array(2) as any;
    assert.throws(() => native.contentAddText(content, wrong), { name: "TypeError" });
    assert.throws(() => native.contentAddText(content, Buffer.from([0xff])), {
        code: "SEGUE_E_INVALID",
    });
    native.contentAddText(content, "half a pair: \ud800");
    native.contentFree(content);
    world.close();
});
