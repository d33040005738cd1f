/** A tool is called: results, errors, progress, log messages, time, AbortSignal. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import {
    type CallbackFailure,
    ClosedError,
    connect,
    DisconnectedError,
    InvalidError,
    type LogMessage,
    OAuth,
    type OAuthOptions,
    type Progress,
    RemoteError,
    RequestTimeoutError,
    Result,
    SegueError,
    SpawnError,
    ToolError,
} from "segue-mcp";
import { worldTest } from "./client_worlds.js";
import { program, serverCommand } from "./programs.js";
import { internal } from "./tree.js";

const NOWHERE = "http://127.0.0.1:1/mcp";

worldTest("a call and its result", async (world) => {
    await world.session({}, async (session) => {
        const result = await session.call("greet", { name: "Ada" });
        assert.ok(result instanceof Result);
        assert.equal(result.text, "Hello, Ada!");
        assert.equal(result.isError, false);
        assert.equal(result.structured, undefined);
        assert.equal((await session.call("greet")).text, "Hello, World!");
        const sum = await session.call("add", { a: 2, b: 40 });
        assert.deepEqual(sum.structured, { sum: 42 });
        const types = (await session.call("media")).content.map((one) => one.type);
        assert.ok(types.includes("image") && types.includes("audio"));
    });
});

worldTest("a session that is closed", async (world) => {
    const session = await connect(await world.target());
    assert.equal(session.connections, 1);
    await session.close();
    await session.close();
    await session.waitClosed();
    await assert.rejects(session.call("greet"), ClosedError);
    await assert.rejects(async () => session.listTools(), ClosedError);
});

worldTest("AS-41: a tool that fails", async (world) => {
    await world.session({}, async (session) => {
        await assert.rejects(session.call("fail"), (error) => {
            assert.ok(error instanceof ToolError);
            assert.equal(error.message, "failed on purpose");
            assert.equal(error.result?.isError, true);
            return true;
        });
        const result = await session.call("fail", {}, { throwOnError: false });
        assert.ok(result.isError && result.text === "failed on purpose");
    });
    await world.session({ throwOnError: false }, async (session) => {
        assert.ok((await session.call("fail")).isError);
    });
});

worldTest("errors of the server", async (world) => {
    await world.session({}, async (session) => {
        const failure = async (work: Promise<unknown>): Promise<RemoteError> => {
            const error = await work.then(
                () => assert.fail("it went well"),
                (error: unknown) => error,
            );
            assert.ok(error instanceof RemoteError, String(error));
            return error;
        };
        assert.equal((await failure(session.call("no such tool"))).rpcCode, -32602);
        const error = await failure(session.call("protocol_error_job"));
        assert.equal(error.rpcCode, -32603);
        assert.equal(error.code, "SEGUE_E_REMOTE");
        assert.deepEqual(error.data, { hint: "on purpose" });
        assert.equal((await failure(session.request("no/such/method"))).rpcCode, -32601);
        assert.equal((await session.call("greet")).text, "Hello, World!");
    });
});

worldTest("progress and log messages", async (world) => {
    const logged: LogMessage[] = [];
    const onLog = (message: LogMessage): void => void logged.push(message);
    await world.session({ onLog, logLevel: "debug" }, async (session) => {
        const told: Progress[] = [];
        await session.call("steps", { n: 3 }, { onProgress: (one) => told.push(one) });
        assert.deepEqual(
            told.map((one) => one.progress),
            [1, 2, 3],
        );
        await session.call("chatty", { n: 2 });
        assert.ok(logged.length > 0 && logged.every((one) => "data" in one));
        logged.length = 0;
        const mine: LogMessage[] = [];
        await session.call("chatty", { n: 2 }, { onLog: (one) => mine.push(one) });
        assert.ok(mine.length + logged.length > 0);
    });
});

worldTest("time is over", async (world) => {
    await world.session({}, async (session) => {
        await assert.rejects(
            session.call("hang_plain", {}, { timeoutMs: 50 }),
            (error) => {
                assert.ok(error instanceof RequestTimeoutError && error.retryable);
                return error.code === "SEGUE_E_TIMEOUT";
            },
        );
        const wrong = session.call("greet", {}, { timeoutMs: -1 });
        await assert.rejects(wrong, RangeError);
    });
    await world.session({ timeoutMs: 50 }, async (session) => {
        await assert.rejects(session.call("hang_plain"), RequestTimeoutError);
        assert.ok((await session.call("greet", {}, { timeoutMs: 0 })).text);
    });
});

worldTest("a task goes on when time is over", async (world) => {
    await world.session({}, async (session) => {
        let text: string | undefined;
        // A busy machine takes longer to start a task. Until then the client knows of no
        // task, and gives the call up. It may also notice too late that the time is over.
        for (let ms = 100; text === undefined; ms *= 2) {
            const args = { ms: 4 * ms, label: "late" };
            const error: unknown = await session
                .call("slow_compute", args, { timeoutMs: ms })
                .catch((error: unknown) => error);
            if (!(error instanceof RequestTimeoutError && error.token)) continue;
            assert.ok(!inspect(error).includes(error.token), "a secret is printed");
            text = await session
                .resume(error.token)
                .result()
                .then(
                    (result) => result.text,
                    (error: unknown) => {
                        assert.ok(error instanceof SegueError); // the call was given up
                        return undefined;
                    },
                );
        }
        assert.equal(text, "Computed: late");
    });
});

worldTest("a signal withdraws a call", async (world) => {
    await world.session({}, async (session) => {
        const reason = new Error("no longer wanted");
        for (const tool of ["hang_plain", "hang"]) {
            const stop = new AbortController();
            const hanging = session.call(tool, {}, { signal: stop.signal });
            await session.call("greet"); // the call is under way by now
            stop.abort(reason);
            await assert.rejects(hanging, (error) => error === reason);
        }
        const before = AbortSignal.abort();
        await assert.rejects(session.call("greet", {}, { signal: before }), {
            name: "AbortError",
        });
        const late = new AbortController();
        assert.ok((await session.call("greet", {}, { signal: late.signal })).text);
        late.abort(); // has no effect
        const signal = AbortSignal.timeout(50);
        const slow = session.call("hang", {}, { signal });
        await assert.rejects(slow, { name: "TimeoutError" });
        await assert.rejects(session.request("tools/list", null, { signal }));
        assert.equal((await session.call("greet")).text, "Hello, World!");
    });
});

worldTest("the session is closed under a call", async (world) => {
    let hanging: Promise<unknown> = Promise.resolve();
    await world.session({}, async (session) => {
        hanging = assert.rejects(session.call("hang_plain"), ClosedError);
        await session.call("greet");
    });
    await hanging;
});

worldTest("many calls at once", async (world) => {
    await world.session({}, async (session) => {
        const names = Array.from({ length: 500 }, (_, i) => String(i));
        const results = await Promise.all(
            names.map((name) => session.call("greet", { name })),
        );
        assert.deepEqual(
            results.map((one) => one.text),
            names.map((name) => `Hello, ${name}!`),
        );
    });
});

worldTest("a callback that fails is reported, and its call goes on", async (world) => {
    const found: string[] = [];
    const onError = (error: unknown, { callback }: CallbackFailure): void =>
        void found.push(`${callback}: ${(error as Error).message}`);
    await world.session({ onError }, async (session) => {
        const fails = (): void => {
            throw new Error("mine");
        };
        const later = async (): Promise<void> => {
            throw new Error("later");
        };
        const n = 1;
        const { text } = await session.call("steps", { n });
        for (const onProgress of [fails, later]) {
            const result = await session.call("steps", { n }, { onProgress });
            assert.equal(result.text, text);
        }
    });
    assert.deepEqual(found, ["onProgress: mine", "onProgress: later"]);
});

worldTest("AS-38a: calls of the same key run once", async (world) => {
    await world.session({}, async (session) => {
        const args = { ms: 100, label: "once" };
        const options = { idempotencyKey: "the-report-of-monday" };
        const first = await session.start("slow_compute", args, options);
        const second = await session.start("slow_compute", args, options);
        const results = await Promise.all([first.result(), second.result()]);
        assert.equal(results[0].text, results[1].text);
        if (world.era === "modern") assert.equal(first.id, second.id);
        const short = session.call("greet", {}, { idempotencyKey: "short" });
        await assert.rejects(short, RangeError);
    });
});

// ---- the target and the options

test("targets and options that are none", async () => {
    const wrong: unknown[] = ["example.com/mcp", "ftp://example.com/mcp", "", [], 7, {}];
    for (const target of wrong) {
        await assert.rejects(connect(target as string), TypeError, String(target));
    }
    const odd = { timeout: 1 } as object;
    await assert.rejects(connect(NOWHERE, odd), /no option "timeout"/);
    await assert.rejects(
        connect(NOWHERE, 3 as never),
        /options of connect\(\) have to be an object/,
    );
    const no = { onElicit: 3 } as object;
    await assert.rejects(
        connect(NOWHERE, no),
        /onElicit of connect\(\) has to be a function, not 3/,
    );
    await assert.rejects(connect(["/etc/passwd"]), /is not executable/);
    await assert.rejects(
        connect(NOWHERE, { era: "old" as "auto" }),
        /unknown era: "old"; the eras are auto, /,
    );
    await assert.rejects(connect(NOWHERE, { headers: { "a b": "c" } }), InvalidError);
    await assert.rejects(connect(["/no/such/program"]), SpawnError);
    await assert.rejects(connect({ command: "no-such-program" }), SpawnError);
});

test("options of calls that are none", async () => {
    const session = await connect(serverCommand());
    const odd = { timeout: 1 } as object;
    await assert.rejects(
        session.call("greet", {}, odd),
        /call\(\) has no option "timeout"/,
    );
    const no = { onProgress: 3 } as object;
    await assert.rejects(
        session.call("greet", {}, no),
        /onProgress has to be a function/,
    );
    assert.throws(() => session.stream("greet", {}, odd), /stream\(\) has no option/);
    await assert.rejects(session.start("greet", {}, odd), /start\(\) has no option/);
    assert.throws(() => session.resume("x", odd), /resume\(\) has no option/);
    assert.throws(() => session.task("x", odd), /task\(\) has no option/);
    assert.throws(() => session.task(""), TypeError);
    await assert.rejects(session.call("greet", [] as never), TypeError);
    const half = { name: "\ud83d \\ud83d \\\ud83d \u{1f600}" };
    const greeted = "Hello, \ufffd \\ud83d \\\ufffd \u{1f600}!";
    assert.equal((await session.call("greet", half)).text, greeted);
    await session.close();
});

test("halves of pairs are found in one pass", () => {
    const { wellFormed } = internal<typeof import("segue-mcp/wellformed")>("wellformed");
    const backslashes = "\\".repeat(1_000_000);
    const began = performance.now();
    for (const end of ["\ud83d", "\\ud83d", "\udfff\ud83d", "\u{1f600}\ud83d\u0000u"]) {
        const made = wellFormed(JSON.stringify(backslashes + end));
        assert.ok(JSON.parse(made) === backslashes + end.replace(/\p{Cs}/gu, "\ufffd"));
    }
    assert.ok(performance.now() - began < 60_000);
});

test("options of OAuth that are refused are named", async () => {
    const refused: [OAuthOptions, RegExp][] = [
        [{ authMethod: "magic" }, /authMethod is not known/],
        [{ issuer: "nowhere" }, /issuer/],
        [{ redirectUri: "http://mcp.example/" }, /redirectUri/],
        [{ grant: "client", clientId: "me" }, /clientSecret or privateKey/],
    ];
    for (const [options, named] of refused) {
        await assert.rejects(connect(NOWHERE, { auth: new OAuth(options) }), named);
    }
});

test("a server that is not there", async () => {
    await assert.rejects(connect(NOWHERE), (error) => {
        assert.ok(error instanceof DisconnectedError);
        return /Failed to connect/.test(error.message);
    });
    const patient = connect(NOWHERE, { connectTimeoutMs: 300, connectAttempts: 100 });
    await assert.rejects(patient, (error) => {
        assert.ok(error instanceof RequestTimeoutError);
        return /could not be reached/.test(error.message);
    });
    const signal = AbortSignal.timeout(50);
    const aborted = connect(NOWHERE, { signal, connectAttempts: 100 });
    await assert.rejects(aborted, { name: "TimeoutError" });
    await assert.rejects(connect(["true"]), SegueError);
    await assert.rejects(connect(["cat"], { connectTimeoutMs: 500 }), SegueError);
});

test("environment, directory and standard error of a child", async () => {
    const lines: string[] = [];
    const server = program("tools/fixture_server");
    const script = `echo "$GREETING from $PWD" >&2; exec "${server}"`;
    const command = { command: "sh", args: ["-c", script], cwd: "/" };
    const session = await connect(
        { ...command, env: { GREETING: "hello" } },
        { onStderr: (line) => lines.push(line) },
    );
    assert.ok((await session.call("greet")).text);
    await session.close();
    assert.deepEqual(lines, ["hello from /"]);
});

test("the last lines of a child come before its session is closed", async () => {
    const lines: string[] = [];
    const server = program("tools/fixture_server");
    const script = `"${server}"; sleep 0.3; seq 1000 >&2; printf unended >&2`;
    const session = await connect(["sh", "-c", script], {
        onStderr: (line) => lines.push(line),
    });
    await session.close();
    assert.equal(lines.length, 1001);
    assert.deepEqual([lines[0], lines[999], lines[1000]], ["1", "1000", "unended"]);
});

test("a child that does not end is not waited for", { timeout: 20_000 }, async () => {
    const lines: string[] = [];
    const server = program("tools/fixture_server");
    const script = `trap "echo told >&2" TERM; "${server}"; while :; do sleep 0.1; done`;
    const session = await connect(["sh", "-c", script], {
        onStderr: (line) => lines.push(line),
    });
    await session.close();
    assert.deepEqual(lines, ["told"]);
});

test("a child without an environment of its own has ours", async () => {
    const lines: string[] = [];
    const server = program("tools/fixture_server");
    process.env["INHERITED"] = "from the parent";
    const command = ["sh", "-c", `echo "$INHERITED" >&2; exec "${server}"`];
    const session = await connect(command, { onStderr: (line) => lines.push(line) });
    await session.close();
    delete process.env["INHERITED"];
    assert.deepEqual(lines, ["from the parent"]);
});

/** Node marks its descriptors close-on-exec. A child with that mark would start without a
 * standard error, and the first file that it opens would get its number. */
test("a child without onStderr has our standard error", async () => {
    const scratch = mkdtempSync(path.join(os.tmpdir(), "segue-"));
    const told = path.join(scratch, "told");
    const server = program("tools/fixture_server");
    const script = `readlink /proc/$$/fd/2 >"${told}"; exec "${server}"`;
    const session = await connect({ command: "sh", args: ["-c", script] });
    assert.ok((await session.call("greet")).text);
    await session.close();
    assert.equal(readFileSync(told, "utf8").trim(), readlinkSync("/proc/self/fd/2"));
    rmSync(scratch, { recursive: true });
});

test("two sessions of one process", async () => {
    const [one, other] = await Promise.all([
        connect(serverCommand()),
        connect(serverCommand()),
    ]);
    const [a, b] = await Promise.all([one.call("greet"), other.call("greet")]);
    assert.equal(a.text, b.text);
    await Promise.all([one.close(), other.close()]);
});
