/** Plays the vectors of tests/vectors for a client through the SDK, and those that are
 * wrong on purpose: each must fail for the reason that it names. */
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { type ConnectOptions, type JsonObject, type Session, setLogger } from "segue-mcp";
import type * as ExchangeModule from "segue-mcp/client/exchange";
import type * as FlowModule from "segue-mcp/client/flow";
import type * as LateModule from "segue-mcp/late";
import type * as Native from "segue-mcp/native";
import { RawPeer } from "./raw_peer.js";
import { internal } from "./tree.js";
import {
    DIRECTORY,
    dumps,
    loads,
    Names,
    Num,
    readAll,
    type Step,
    type Value,
    type Vector,
    Wrong,
} from "./vectors.js";

const { native } = internal<typeof Native>("native");
/** Members of the session that are not public. */
interface Within {
    reconnected(connections: number): Promise<void>;
    send(
        flow: FlowModule.Flow,
        method: string,
        params: string | null,
        options: object,
    ): void;
}
const { begin } = internal<{
    begin(
        target: object,
        options: ConnectOptions,
    ): Promise<{ session: Session & Within }>;
}>("client/opening");
const { Flow } = internal<typeof FlowModule>("client/flow");
const { readText } = internal<typeof LateModule>("late");

type Members = { [name: string]: Value };

const MS = 120_000;
const CAN = ["cut", "draft_tasks", "resumable"];
const isOurs = (vector: Vector): boolean => vector.role === "client";
const isPlayed = (vector: Vector): boolean =>
    vector.needs.every((need) => CAN.includes(need));
const OURS = readAll().filter(isOurs);
const PLAYED = OURS.filter(isPlayed);
const WRONG = readAll(path.join(DIRECTORY, "wrong")).filter(
    (vector) => isOurs(vector) && isPlayed(vector),
);
const STEPS: Record<string, readonly string[]> = {
    call: ["as", "method", "params"],
    answer: ["call", "key", "result"],
    cancel: ["call"],
    asked: ["call", "key", "method"],
    segments: ["call", "texts"],
    statuses: ["call", "texts"],
    end: ["call", "status", "code", "result"],
};

let warnings = 0;
setLogger(() => {
    warnings += 1;
}, "warning");

/** The callbacks of one request. */
class Call {
    readonly asked: { key: string; method: string }[] = [];
    readonly replies = new Map<string, (json: string) => void>();
    readonly statuses: string[] = [];
    readonly segments: string[] = [];
    readonly flow: FlowModule.Flow;

    constructor(session: Session) {
        const callbacks: ExchangeModule.Callbacks = {
            onProgress: () => undefined,
            onLog: () => undefined,
            onStatus: (status, message) =>
                this.statuses.push(`${status} ${message ?? "-"}`),
            answers: {
                isThere: true,
                capabilities: () => ({}),
                answer: (key, method) =>
                    new Promise((resolve) => {
                        this.asked.push({ key, method });
                        this.replies.set(key, resolve);
                    }),
            },
        };
        this.flow = new Flow(session, callbacks, 2 ** 30);
    }

    read(): string[] {
        while (!this.flow.isEmpty) {
            const segment = this.flow.take();
            const isVoid = segment.replaces ? " (replaces)" : "";
            this.segments.push(
                `${segment.number} ${segment.text ?? segment.data}${isVoid}`,
            );
        }
        return this.segments;
    }
}

/** Plays one vector. */
class Stage {
    readonly #vector: Vector;
    readonly #names: Names;
    readonly #peer: RawPeer;
    readonly #calls = new Map<string, Call>();
    #notified: Value | undefined;
    #session!: Session & Within;

    constructor(vector: Vector) {
        this.#vector = vector;
        this.#names = new Names(vector.let);
        this.#peer = new RawPeer({ reopen: vector.needs.includes("cut") });
    }

    async play(): Promise<void> {
        const {
            capabilities,
            needs,
            revision,
            begin: first,
            steps,
            after,
        } = this.#vector;
        const options: ConnectOptions = {
            era: revision === "2026-07-28" ? "auto" : "legacy",
            draftTasks: needs.includes("draft_tasks"),
            resumable: needs.includes("resumable"),
            onNotification: (method, params) => {
                this.#notified = loads(JSON.stringify({ method, params }));
            },
        };
        if (capabilities !== undefined) {
            options.capabilities = JSON.parse(dumps(capabilities)) as JsonObject;
        }
        const target = { _transport: () => this.#peer.transport() };
        ({ session: this.#session } = await begin(target, options));
        warnings = 0;
        try {
            await this.#steps("begin", first);
            await this.#steps("step", steps);
            await this.#steps("after", after);
            await this.#quiet();
        } finally {
            await this.#session.close();
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
        else if (verb === "cut") await this.#cut();
        else if (verb === "notified") await this.#heard(value);
        else if (verb === "warned") await this.#warned();
        else if (STEPS[verb] === undefined) {
            throw new Wrong(`no client knows the step "${verb}"`);
        } else await this.#act(verb, value as Members, STEPS[verb] ?? []);
    }

    async #act(verb: string, value: Members, known: readonly string[]): Promise<void> {
        for (const name of Object.keys(value)) {
            if (!known.includes(name)) throw new Wrong(`nobody knows "${name}"`);
        }
        if (verb === "call") {
            this.#call(value);
            return;
        }
        const call = this.#calls.get(String(value.call));
        if (call === undefined) throw new Wrong(`there is no call ${String(value.call)}`);
        await this.#settle();
        if (verb === "answer") await this.#answer(call, value);
        else if (verb === "cancel") call.flow.cancel();
        else if (verb === "asked") this.#asked(call, value);
        else if (verb === "segments") this.#names.match(value.texts ?? [], call.read());
        else if (verb === "statuses") {
            this.#names.match(value.texts ?? [], [...call.statuses]);
        } else this.#end(call, value);
    }

    // ---- the line

    async #out(pattern: Value): Promise<void> {
        for (let turn = 0; turn < 3 && !this.#peer.lines.length; turn++) {
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
        await this.#settle();
        const [line] = this.#peer.lines;
        if (line !== undefined) throw new Wrong(`nobody expected ${line}`);
    }

    async #cut(): Promise<void> {
        await this.#settle();
        const { reopens } = this.#peer;
        this.#peer.cut();
        while (this.#peer.reopens === reopens) await this.#peer.change();
    }

    async #heard(pattern: Value): Promise<void> {
        await this.#settle();
        const told = this.#notified;
        if (told === undefined) throw new Wrong("no notification came");
        this.#notified = undefined;
        this.#names.match(pattern, told);
    }

    async #warned(): Promise<void> {
        await this.#settle();
        if (warnings === 0) throw new Wrong("no warning came");
        warnings = 0;
    }

    /** Waits until all lines are handled, or the session is over. */
    async #settle(): Promise<void> {
        const settled = this.#peer.settle();
        if (!this.#session.isClosed) {
            await Promise.race([settled, this.#session.reconnected(2 ** 40)]);
        }
        settled.catch(() => undefined); // the peer may have left
    }

    // ---- the application

    #call(value: Members): void {
        const call = new Call(this.#session);
        const { params } = value;
        const raw = params === undefined ? null : dumps(this.#names.fill(params));
        this.#session.send(call.flow, String(value.method), raw, {});
        this.#calls.set(String(value.as), call);
    }

    async #answer(call: Call, value: Members): Promise<void> {
        const key = value.key === undefined ? call.asked.at(-1)?.key : String(value.key);
        const reply = call.replies.get(key ?? "");
        if (reply === undefined) throw new Wrong(`nobody asked for ${key ?? "nothing"}`);
        call.replies.delete(key ?? "");
        reply(dumps(this.#names.fill(value.result ?? null)));
        await new Promise(setImmediate);
    }

    #asked(call: Call, value: Members): void {
        const key = value.key === undefined ? call.asked.at(-1)?.key : String(value.key);
        const isThere = call.asked.some(
            (one) => one.key === key && one.method === value.method,
        );
        if (!isThere) {
            throw new Wrong(`was not asked: input ${key ?? ""} ${String(value.method)}`);
        }
    }

    #end(call: Call, value: Members): void {
        const { outcome } = call.flow;
        if (outcome === null) throw new Wrong("the call has not ended");
        const [status, raw, info] = outcome;
        const name = native.statusName(status);
        if (name.replace(/^SEGUE_(E_)?/, "").toLowerCase() !== value.status) {
            throw new Wrong(`it ended with ${name}: ${info?.[1] ?? ""}`);
        }
        const { code } = value;
        if (code instanceof Num && info?.[2] !== Number(code.text)) {
            throw new Wrong(`its code is ${info?.[2] ?? 0}`);
        }
        if (value.result !== undefined) {
            this.#names.match(
                value.result,
                raw === null ? undefined : loads(readText(raw)),
            );
        }
    }
}

for (const vector of PLAYED) {
    test(vector.name, { timeout: MS }, () => new Stage(vector).play());
}

for (const vector of WRONG) {
    test(`found out: ${vector.name}`, { timeout: MS }, async () => {
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

test("a clock that stands still, and a host, are not of this runner", () => {
    const left = OURS.filter((vector) => !isPlayed(vector));
    const needs = new Set(left.flatMap((vector) => vector.needs));
    for (const need of needs) assert.ok([...CAN, "clock", "host"].includes(need), need);
    assert.ok(PLAYED.length > 3 * left.length, `${PLAYED.length} of ${OURS.length}`);
});
