/** Events: `observe` and `logEvents`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { connect, type Event, logEvents, observe, Server } from "segue-mcp";

const SECRET = "s3cret";

async function call(secret = SECRET): Promise<void> {
    const server = new Server({ name: "greeter" });
    const input = { type: "object", properties: { name: { type: "string" } } } as const;
    server.tool("greet", { input }, async ({ name }) => `Hello, ${String(name)}!`);
    await using session = await connect(server);
    await session.call("greet", { name: secret });
}

async function until(found: () => unknown): Promise<void> {
    while (!found()) await setImmediate();
}

function sees(events: readonly Event[], name: string): Event {
    const found = events.find((event) => event.name === name);
    assert.ok(found, name);
    return found;
}

test("a call is observed", async () => {
    const events: Event[] = [];
    const stop = observe((event) => events.push(event));
    await call();
    await until(() => events.some(({ name }) => name === "call_ended"));
    stop();
    const ended = sees(events, "call_ended");
    assert.equal(ended.level, "info");
    assert.match(ended.time, /Z$/);
    const { server, item, status, duration_us: duration } = ended.fields;
    assert.deepEqual(
        { server, item, status },
        {
            server: "greeter",
            item: "greet",
            status: "ok",
        },
    );
    assert.equal(typeof duration, "number");
    sees(events, "request_sent");
    assert.ok(!JSON.stringify(events).includes(SECRET));
    const before = events.length;
    await call();
    assert.equal(events.length, before);
});

test("arguments are there when they are wanted", async () => {
    const events: Event[] = [];
    const stop = observe((event) => events.push(event), { maxArgumentBytes: 12 });
    await call();
    await until(() => events.some(({ name }) => name === "call_started"));
    stop();
    assert.equal(sees(events, "call_started").fields.arguments, '{"name":"s3c');
});

test("each observer gets the arguments that it asked for", async () => {
    const wide: Event[] = [];
    const cut: Event[] = [];
    const lines: string[] = [];
    const stops = [
        observe((event) => wide.push(event), { maxArgumentBytes: 1000 }),
        observe((event) => cut.push(event), { maxArgumentBytes: 10 }),
        logEvents("debug", (line) => lines.push(line)),
    ];
    await call(`\u00e9${SECRET}`);
    await until(() => lines.some((line) => line.includes("call_started")));
    for (const stop of stops) stop();
    const whole = sees(wide, "call_started").fields.arguments;
    assert.equal(whole, `{"name":"\u00e9${SECRET}"}`);
    // the tenth byte is the first one of the letter
    assert.equal(sees(cut, "call_started").fields.arguments, '{"name":"');
    const started = lines
        .map((line) => JSON.parse(line))
        .find(({ event }) => event === "call_started");
    assert.equal(started.item, "greet");
    assert.ok(!("arguments" in started));
    assert.ok(!lines.join().includes(SECRET));
});

test("events become lines", async () => {
    const lines: string[] = [];
    const stop = logEvents("info", (line) => lines.push(line));
    await call();
    await until(() => lines.some((line) => line.includes("call_ended")));
    stop();
    const levels = new Set(lines.map((line) => JSON.parse(line).level));
    assert.ok(!levels.has("debug"));
    assert.ok(!lines.join().includes(SECRET));
});

test("wrong arguments are refused", () => {
    assert.throws(() => observe(() => undefined, { level: "loud" as "info" }), TypeError);
    assert.throws(() => observe(() => undefined, { maxArgumentBytes: -1 }), RangeError);
});
