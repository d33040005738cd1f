/**
 * The client of the Node SDK on a server that it starts.
 *
 *     segue_client.js calls WINDOW MILLISECONDS COMMAND...
 *     segue_client.js stream SEGMENTS BYTES COMMAND...
 *
 * calls: echo, WINDOW in flight. stream: one call; each segment reaches a `for await`,
 * which reads its number and its text. It prints the longest time between two turns of
 * the event loop, with the result collected as well and without.
 */
import { connect, type Session } from "segue-mcp";

const WARM = 3000;
// the best run counts: other work on the machine can only lengthen a turn
const TURN_RUNS = 3;
const text = "The quick brown fox";

function say(name: string, value: number): void {
    console.log(JSON.stringify({ name, value }));
}

/** Makes calls, `inFlight` at once, while `goes` returns true; returns how many there
 * were. */
async function callWhile(
    session: Session,
    inFlight: number,
    goes: (done: number) => boolean,
): Promise<number> {
    let done = 0;
    const caller = async (): Promise<void> => {
        for (; goes(done); done++) {
            const result = await session.call("echo", { text });
            if (result.text !== text) throw new Error("another text");
        }
    };
    await Promise.all(Array.from({ length: inFlight }, caller));
    return done;
}

async function calls(session: Session, window: number, runMs: number): Promise<void> {
    await callWhile(session, window, (done) => done < WARM);
    const begin = performance.now();
    const cpu = process.cpuUsage();
    const end = begin + runMs;
    const done = await callWhile(session, window, () => performance.now() < end);
    const { user, system } = process.cpuUsage(cpu);
    say("calls_per_s", (done / (performance.now() - begin)) * 1000);
    say("client_cpu_us", (user + system) / done);
}

/** Measures the longest time that something due in the event loop had to wait. Other work
 * on the machine must not count, so for a turn that was interrupted the processor time
 * counts. It is that of the whole process: the least upper bound that Node 20 reports. */
class Turns {
    longest = 0;
    private last = performance.now();
    private lastCpu = process.cpuUsage();
    private ends = false;

    constructor() {
        setImmediate(this.turn);
    }

    private turn = (): void => {
        const now = performance.now();
        const { user, system } = process.cpuUsage(this.lastCpu);
        const took = Math.min(now - this.last, (user + system) / 1000);
        this.longest = Math.max(this.longest, took);
        this.last = now;
        this.lastCpu = process.cpuUsage();
        if (!this.ends) setImmediate(this.turn);
    };

    end(): number {
        this.ends = true;
        return this.longest;
    }
}

async function read(
    session: Session,
    n: number,
    bytes: number,
    collect: boolean,
): Promise<void> {
    let number = 0;
    for await (const segment of session.stream("stream", { n, bytes }, { collect })) {
        number++;
        if (segment.number !== number || segment.text?.length !== bytes) {
            throw new Error(`segment ${segment.number} after ${number - 1}`);
        }
    }
    if (number !== n) throw new Error(`${number} segments`);
}

async function longestTurn(run: () => Promise<void>): Promise<number> {
    let best = Number.POSITIVE_INFINITY;
    for (let i = 0; i < TURN_RUNS; i++) {
        const turns = new Turns();
        await run();
        best = Math.min(best, turns.end());
    }
    return best;
}

async function stream(session: Session, segments: number, bytes: number): Promise<void> {
    await read(session, Math.trunc(segments / 4), bytes, true);
    const begin = performance.now();
    const cpu = process.cpuUsage();
    await read(session, segments, bytes, true);
    const { user, system } = process.cpuUsage(cpu);
    say("segments_per_s", (segments / (performance.now() - begin)) * 1000);
    say("client_cpu_us", (user + system) / segments);
    const uncollected = () => read(session, segments, bytes, false);
    say("longest_turn_ms", await longestTurn(uncollected));
    const collected = () => read(session, segments, bytes, true);
    say("longest_turn_collecting_ms", await longestTurn(collected));
}

const [kind, first, second, ...command] = process.argv.slice(2);
const session = await connect(command, { maxResultBytes: 2 ** 30 });
await (kind === "calls" ? calls : stream)(session, Number(first), Number(second));
await session.close();
