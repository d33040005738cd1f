/** Plays the vectors of tests/vectors for a server through the SDK, and those that are
 * wrong on purpose: each must fail for the reason that it names.
 */
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { attach, RawPeer } from "./raw_peer.js";
import { makeServer } from "./vector_server.js";
import {
    DIRECTORY,
    dumps,
    loads,
    Names,
    readAll,
    type Step,
    type Value,
    type Vector,
    Wrong,
} from "./vectors.js";

const CAN = ["draft_tasks", "questions_as_tasks"];
const isOurs = (vector: Vector): boolean => vector.role === "server";
const isPlayed = (vector: Vector): boolean =>
    vector.needs.every((need) => CAN.includes(need));
const OURS = readAll().filter(isOurs);
const PLAYED = OURS.filter(isPlayed);
const WRONG = readAll(path.join(DIRECTORY, "wrong")).filter(
    (vector) => isOurs(vector) && isPlayed(vector),
);
// The library hands calls over in batches. So the answer that announces a new task of
// 2026-07-28 is mostly sent before a handler in JavaScript has had its first turn. Then
// it contains nothing, or only a part, of what the handler sends at once. The rest comes
// by the later messages. On a busy machine the handler may be first.
const LATE = ["R-E-2 fields, a beginning anew and a status are events too"];
/** Turns of the loop in which a handler does everything that it can do at once. */
const TURNS = 6;

/** Plays one vector. */
class Stage {
    readonly #vector: Vector;
    readonly #names: Names;
    readonly #peer = new RawPeer();

    constructor(vector: Vector) {
        this.#vector = vector;
        this.#names = new Names(vector.let);
    }

    async play(): Promise<void> {
        const { needs, begin, steps, after } = this.#vector;
        const server = makeServer(
            needs.includes("draft_tasks"),
            needs.includes("questions_as_tasks"),
        );
        attach(server, this.#peer);
        while (!this.#peer.isStarted) await this.#peer.change();
        try {
            await this.#steps("begin", begin);
            await this.#steps("step", steps);
            await this.#steps("after", after);
            await this.#quiet();
        } finally {
            if (!this.#peer.isClosed) this.#peer.cut();
            await server.close();
        }
    }

    async #steps(where: string, steps: Step[]): Promise<void> {
        for (const [at, step] of steps.entries()) {
            try {
                const [[verb, value] = ["", ""], ...others] = Object.entries(step);
                if (others.length) throw new Wrong("a step has one member");
                await this.#step(verb, value);
            } catch (error) {
                if (!(error instanceof Wrong)) throw error;
                throw new Wrong(`${where} ${at + 1}: ${error.message}`);
            }
        }
    }

    async #step(verb: string, value: Value): Promise<void> {
        if (verb === "in") this.#peer.say(dumps(this.#names.fill(value)));
        else if (verb === "in_text") this.#peer.say(String(value));
        else if (verb === "out") await this.#out(value);
        else if (verb === "quiet") await this.#quiet();
        else throw new Wrong(`no server knows the step "${verb}"`);
    }

    async #out(pattern: Value): Promise<void> {
        for (let turn = 0; turn < TURNS; turn++) {
            if (this.#peer.lines.length || this.#peer.isClosed) break;
            await this.#settle();
        }
        const line = this.#peer.lines.shift();
        if (line === undefined) {
            throw new Wrong(`expected ${dumps(pattern)}, and nothing came`);
        }
        try {
            this.#names.match(pattern, loads(line));
        } catch (error) {
            if (!(error instanceof Wrong)) throw error;
            throw new Wrong(`${error.message}\n  in ${line}`);
        }
    }

    async #quiet(): Promise<void> {
        for (let turn = 0; turn < 2; turn++) await this.#settle();
        const [line] = this.#peer.lines;
        if (line !== undefined) throw new Wrong(`nobody expected ${line}`);
    }

    async #settle(): Promise<void> {
        if (!this.#peer.isClosed) await this.#peer.settle();
        for (let turn = 0; turn < TURNS; turn++) await new Promise(setImmediate);
    }
}

for (const vector of PLAYED) {
    test(vector.name, { timeout: 120_000 }, async () => {
        const [name = ""] = vector.name.split(" [");
        try {
            await new Stage(vector).play();
        } catch (error) {
            if (!LATE.includes(name)) throw error;
            assert.ok(error instanceof Wrong);
            assert.match(error.message, /^step 2: result/);
        }
    });
}

for (const vector of WRONG) {
    test(`found out: ${vector.name}`, { timeout: 120_000 }, async () => {
        const { fails } = vector;
        assert.ok(fails);
        await assert.rejects(new Stage(vector).play(), (error: Error) => {
            assert.ok(
                error instanceof Wrong && error.message.includes(fails),
                error.message,
            );
            return true;
        });
    });
}

test("clocks that stand still, and cuts, are not of this runner", () => {
    const left = OURS.filter((vector) => !isPlayed(vector));
    const needs = new Set(left.flatMap((vector) => vector.needs));
    for (const need of needs)
        assert.ok([...CAN, "clock", "cut", "keys"].includes(need), need);
    assert.ok(PLAYED.length > 3 * left.length, `${PLAYED.length} of ${OURS.length}`);
});
