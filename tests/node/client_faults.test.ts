/**
 * Servers that misbehave in one way, over stdio and HTTP: tests/tools/misled_server.py
 * plays them. tests/python/test_client_faults.py has the same scenes.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import readline from "node:readline";
import { test } from "node:test";
import {
    type ConnectOptions,
    connect,
    DisconnectedError,
    LimitError,
    ProtocolError,
    RefusedError,
    RemoteError,
    type SegueError,
    type Session,
} from "segue-mcp";
import { TREE } from "./tree.js";

const player = ["-B", path.join(TREE, "tests/tools/misled_server.py")];
const both = ["stdio", "http"];

/** Runs `work` with a session whose server plays the scene. */
async function played(
    scene: string,
    transport: string,
    work: (session: Session) => Promise<void>,
    options: ConnectOptions = {},
): Promise<void> {
    if (transport === "stdio") {
        const session = await connect(["python3", ...player, scene], options);
        await work(session).finally(() => session.close());
        return;
    }
    const child = spawn("python3", [...player, scene, "http"], {
        stdio: ["pipe", "pipe", "inherit"],
    });
    const ended = once(child, "exit");
    try {
        const lines = readline.createInterface({ input: child.stdout });
        const [url] = (await once(lines, "line")) as [string];
        const session = await connect(url, options);
        await work(session).finally(() => session.close());
    } finally {
        child.stdin.end();
        await ended;
    }
}

type Heard = { after: (number | null)[] } & Record<string, number>;

/** Returns how often the server received each method. */
async function heard(session: Session): Promise<Heard> {
    return JSON.parse((await session.call("heard")).text) as Heard;
}

/** Reads a stream and drops what is replaced. */
async function shown(stream: ReturnType<Session["stream"]>): Promise<string[]> {
    const kept: string[] = [];
    for await (const segment of stream) {
        if (segment.replaces) kept.length = 0;
        kept.push(segment.text ?? "");
    }
    return kept;
}

function partialText(error: SegueError): string | undefined {
    return (error.partial as { text: string } | undefined)?.text;
}

interface Failure {
    error: SegueError;
    told: Heard;
}

/** Returns the error of a stream, and what the server received. */
async function failure(
    scene: string,
    transport: string,
    options: ConnectOptions = {},
): Promise<Failure> {
    const seen: Failure[] = [];
    await played(
        scene,
        transport,
        async (session) => {
            const error = await shown(session.stream("t")).then(
                () => assert.fail("it did not fail"),
                (reason: unknown) => reason as SegueError,
            );
            seen.push({ error, told: await heard(session) });
        },
        options,
    );
    return seen[0] as Failure;
}

for (const transport of both) {
    for (const scene of ["empty_pieces", "empty_notes"]) {
        test(`pieces without content have a bound: ${scene}, ${transport}`, async () => {
            const { error } = await failure(scene, transport);
            assert.ok(error instanceof LimitError, String(error));
            assert.match(error.message, /no content: at most 10000/);
            assert.equal(partialText(error), "a");
        });
    }

    test(`a call of pieces without content ends too: ${transport}`, async () => {
        await played("empty_pieces", transport, async (session) => {
            await assert.rejects(session.call("t"), (error) => {
                assert.ok(error instanceof LimitError, String(error));
                assert.match(error.message, /at most 10000/);
                assert.equal(partialText(error), "a");
                return true;
            });
        });
    });

    test(`pieces that are notified stay with the error: ${transport}`, async () => {
        const cut = (await failure("pieces_then_cut", transport)).error;
        assert.ok(cut instanceof DisconnectedError, String(cut));
        assert.equal(partialText(cut), "ab");
        const { error } = await failure("pieces_then_error", transport);
        assert.ok(error instanceof RemoteError, String(error));
        assert.equal(error.rpcCode, -32603);
        assert.equal(partialText(error), "ab");
    });

    test(`a refused answer is sent again within bounds: ${transport}`, async () => {
        const onElicit = () => ({ action: "accept" as const, content: {} });
        const options = { maxReconnects: 2, onElicit };
        const { error, told } = await failure("refused_update", transport, options);
        assert.ok(error instanceof RemoteError, String(error));
        assert.equal(error.rpcCode, -32603);
        assert.match(error.message, /tasks\/update failed 3 times in a row/);
        assert.equal(told["tasks/update"], 3);
    });

    test(`a question whose answer does not fit is asked anew: ${transport}`, async () => {
        let asked = 0;
        const onElicit = () => {
            asked++;
            return { action: "accept" as const, content: {} };
        };
        const work = async (session: Session) => {
            assert.equal((await session.call("t")).text, "asked anew");
            assert.equal((await heard(session))["tasks/update"], 2);
        };
        await played("misfit_update", transport, work, { onElicit });
        assert.equal(asked, 2);
    });

    for (const scene of ["staying_gap", "event_without_payload"]) {
        const title = `behind a hole the result is shown whole: ${scene}, ${transport}`;
        test(title, async () => {
            await played(scene, transport, async (session) => {
                const stream = session.stream("t");
                const kept = await shown(stream);
                assert.equal(kept.join(""), stream.result.text);
                assert.equal(kept.length, stream.result.content.length);
                const told = await heard(session);
                assert.equal(told.after.length, scene === "staying_gap" ? 2 : 1);
                assert.equal(told["tasks/get"], 1);
            });
        });
    }

    test(`a method that the server has not keeps its code: ${transport}`, async () => {
        const scenes = { no_method: -32601, no_capability: -32021 };
        for (const [scene, code] of Object.entries(scenes)) {
            const { error, told } = await failure(scene, transport);
            assert.ok(error instanceof ProtocolError, String(error));
            assert.equal(error.rpcCode, code);
            assert.equal(told["tasks/get"], 1);
        }
    });
}

test("a stream goes on behind events that are gone", async () => {
    await played("events_gone", "http", async (session) => {
        assert.deepEqual(await shown(session.stream("t")), ["a", "b", "f"]);
        // The task is polled as well, because a lost event may have been a question. A
        // poll may bring the result before the stream is opened again.
        const { after } = await heard(session);
        assert.deepEqual(after, [null, 0, 4].slice(0, after.length));
        assert.ok(after.length >= 2);
    });
});

test("a stream that breaks is helped by polls and comes back", async () => {
    await played("breaking_stream", "http", async (session) => {
        assert.equal((await session.call("t")).text, "a");
        const told = await heard(session);
        assert.equal(told["tasks/stream"], 5);
        assert.ok((told["tasks/get"] ?? 0) > 0);
    });
    await played("broken_stream", "http", async (session) => {
        assert.equal((await session.call("t")).text, "polled");
        assert.ok(((await heard(session))["tasks/stream"] ?? 0) >= 3);
    });
});

test("a look that fails is made again", async () => {
    await played("failing_look", "http", async (session) => {
        assert.equal((await session.call("t")).text, "looked again");
        assert.equal((await heard(session))["tasks/get"], 5);
    });
});

for (const [scene, kind, why] of [
    ["always_500", RefusedError, "HTTP status 500"],
    ["always_404", RefusedError, "HTTP status 404"],
    ["always_text", RefusedError, "neither JSON nor an event stream"],
    ["always_broken", ProtocolError, "not a JSON-RPC response"],
] as const) {
    test(`a look that stays refused says why: ${scene}`, async () => {
        const { error, told } = await failure(scene, "http", { maxReconnects: 2 });
        assert.ok(error instanceof kind, String(error));
        assert.match(error.message, /tasks\/get failed 3 times in a row/);
        assert.ok(error.message.includes(why), error.message);
        assert.equal(told["tasks/get"], 3);
    });
}

/** The result is fetched at once, without a poll. */
test("an end that overtakes the creation is kept", () =>
    played(
        "early_end",
        "http",
        async (session) => {
            assert.equal((await session.call("t")).text, "early");
            const told = await heard(session);
            assert.equal(told["tasks/result"], 1);
            assert.equal(told["tasks/get"], undefined);
        },
        { era: "legacy" },
    ));

for (const transport of both) {
    /** tasks/result brings the end before the next poll is due. */
    test(`R-1905-33: a result is waited for beside long polls: ${transport}`, () =>
        played(
            "slow_poll",
            transport,
            async (session) => {
                assert.equal((await session.call("t")).text, "waited");
                assert.equal((await heard(session))["tasks/result"], 1);
            },
            { era: "legacy" },
        ));
}

/** The call was cancelled before its task had an id. */
test("R-2557-38: a task that is created after its cancel is cancelled", () =>
    played("late_task", "stdio", async (session) => {
        const controller = new AbortController();
        const onProgress = () => controller.abort();
        const call = session.call("t", {}, { onProgress, signal: controller.signal });
        await assert.rejects(call, { name: "AbortError" });
        while (!(await heard(session))["tasks/cancel"]);
        assert.equal((await heard(session))["tasks/cancel"], 1);
    }));
