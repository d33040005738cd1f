/** The client of a chaos run in Node; its arguments are those of client.c. */
import { createHash } from "node:crypto";
import { openSync, writeSync } from "node:fs";
import { connect } from "segue-mcp";

const MODES = {
    E: { era: "modern" },
    S: { era: "legacy" },
    P: { era: "legacy", tasks: false, resumable: false },
    PN: { era: "modern", tasks: false },
    D: { era: "legacy", draftTasks: true },
    Z: { era: "legacy", tasks: false },
    K: { era: "modern", tasks: false },
};
const [url, parent, name, seed, mode, calls, count, size, paceUs] = process.argv.slice(2);
const file = openSync(process.env.SEGUE_HISTORY, "a", 0o600);
let begun = 0;
let stopping = false;
let chance = BigInt(seed);

/** splitmix64 */
function draw(below) {
    const mask = (1n << 64n) - 1n;
    chance = (chance + 0x9e3779b97f4a7c15n) & mask;
    let x = chance;
    x = ((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    x = ((x ^ (x >> 27n)) * 0x94d049bb133111ebn) & mask;
    return Number((x ^ (x >> 31n)) % BigInt(below));
}

/** Each line is one write. */
function write(...words) {
    writeSync(file, `${words.join(" ").replaceAll("\n", " ").slice(0, 1000)}\n`);
}

function sumOf(text) {
    return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function writeEnd(call, result) {
    const sums = result.content.map((block) => sumOf(block.text));
    write("end", call, "ok", sums.length, sumOf(sums.join("")));
}

/** Returns a token when the reader goes on by it. */
async function read(call, stream, moveAt) {
    for await (const segment of stream) {
        write("see", call, segment.number, sumOf(segment.text));
        if (moveAt && segment.number >= moveAt) {
            moveAt = 0;
            try {
                return stream.detach();
            } catch {
                // it has ended, or cannot be resumed
            }
        }
    }
    return undefined;
}

async function ask(session) {
    const call = `${name}.${begun++}`;
    const once = mode === "K";
    const given = { call, count: Number(count), size: Number(size), paceUs: Number(paceUs) };
    write("ask", call, mode, once ? 1 : count);
    try {
        if (once) {
            writeEnd(call, await session.call("effect", given));
            return;
        }
        const stream = session.stream("weave", given);
        const token = await read(call, stream, draw(2) ? 1 + draw(count) : 0);
        if (token === undefined) {
            writeEnd(call, stream.result);
            return;
        }
        write("move", call);
        const task = session.resume(token);
        await read(call, task, 0);
        writeEnd(call, await task.result());
    } catch (error) {
        write("end", call, "error", error.name, error.message);
    }
}

async function askOn(session) {
    while (!stopping) await ask(session);
}

process.on("SIGTERM", () => (stopping = true));
setInterval(() => process.ppid === Number(parent) || process.exit(1), 500).unref();
const session = await connect(url, {
    proxy: "",
    connectAttempts: 10000,
    connectTimeoutMs: 300_000,
    maxReconnects: 10000,
    ...MODES[mode],
});
await Promise.all(Array.from({ length: Number(calls) }, () => askOn(session)));
await session.close();
write("done", name);
process.exit(0);
