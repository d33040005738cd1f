/** The addon matches the library: its functions core/api/api.def, the members of its
 * structs and the values of its enums the headers. Its TypeScript declarations match the
 * addon. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { errors, native } from "./binding_worlds.js";
import { internal, TREE } from "./tree.js";

const constants = internal<Record<string, Record<string, number>>>("constants");
const read = (...parts: string[]) => readFileSync(path.join(TREE, ...parts), "utf8");
const api = read("core", "api", "api.def");
const declared = (...names: string[]) =>
    names
        .map((name) => read("core", "include", "segue", name))
        .join("")
        .replaceAll(/\/\*[\s\S]*?\*\//g, "");
const header = declared("segue.h", "segue_auth.h");

/** The header whose functions are for C only. */
const easy = read("core", "include", "segue", "easy.h");

/** Functions of the library that the addon does not have, and what replaces them. */
const ELSEWHERE: Record<string, string> = {
    callHoldTurn: "the event CALL_NOW",
    callFailWith: "callFail",
    clientUpdated: "for gateways, which are written in C",
    clientLog: "for gateways",
    clientCall: "for gateways",
    timerStart: "setTimeout",
    timerCancel: "clearTimeout",
    timerFree: "clearTimeout",
    callRuntime: "the runtime of the environment",
    sessionRuntime: "the runtime of the environment",
    eventJson: "the event RUNTIME_EVENT",
    statusText: "the message of an error",
    errorNew: "an Error",
    segmentRead: "Segment.number",
    segmentText: "Segment.text",
    segmentBatchNext: "the list of the event SEGMENTS",
    requestTakeResult: "the result of the event COMPLETE",
    errorRead: "ErrorInfo",
    errorCopy: "an ErrorInfo is a copy",
    errorFree: "an ErrorInfo is a value",
    storeList: "the command segue-mcp store",
    storeExport: "the command segue-mcp store",
    storeImporterNew: "the command segue-mcp store",
    storeImporterAdd: "the command segue-mcp store",
    storeImporterClose: "the command segue-mcp store",
    storeShow: "the command segue-mcp store",
    storeEntries: "the command segue-mcp store",
    storeCommand: "the command segue-mcp store",
    storeRerun: "the command segue-mcp store",
    storeRemove: "the command segue-mcp store",
    storeReadStats: "the command segue-mcp store",
    storeCompact: "the command segue-mcp store",
    // A custom store's functions are called on a thread that waits for their answer, and
    // the thread of JavaScript may be waiting for that thread to end. The guide says so.
    storeCustom: "stores of the library: memory, SQLite, Redis",
};
/** Functions that only the addon has: its own, or two steps in one. */
const OWN = new Set([
    ...["allocated", "callReply", "callSendJson", "eventNames", "liveHandles"],
    ...["lockFile", "optionNames", "requestAgain", "runtimeHold", "setErrorFactory"],
    ...["textFree", "textRead", "transportTook"],
]);
/** Members of structs that are arguments here, or that JavaScript cannot give. */
const ARGUMENTS: Record<string, string[]> = {
    segue_runtime_options: ["allocator", "user", "log", "onWake", "hooks"],
    segue_observer_options: ["user", "onEvent"],
    segue_spawn_options: ["user", "freeUser", "onStderr"],
    segue_store_options: ["allocator"],
    segue_server_options: [
        ...["user", "freeUser", "principal", "onIdle", "onValidate"],
        ...["sealKeyLen", "sealKeyBeforeLen"],
    ],
    segue_item_options: ["user", "freeUser", "onCall", "onCompletion"],
    segue_session_options: [],
    segue_request_options: [],
    segue_http_options: ["user", "freeUser", "onHeaders"],
    segue_listen_options: ["bearer", "boardStore"],
    segue_oauth_options: [
        ...["user", "freeUser", "onAuthorize", "onAssertion", "onLoad", "onSave"],
    ],
    segue_bearer_options: ["user", "freeUser", "onBearer"],
};

function camel(name: string): string {
    return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

const sorted = (names: Iterable<string>) => [...names].sort();

test("every function of the library is there", () => {
    const wanted = [...api.matchAll(/^SGI_API\(segue_(\w+),/gm)]
        .map((row) => row[1] as string)
        .filter((name) => !easy.includes(`segue_${name}(`))
        .map(camel);
    for (const name of Object.keys(ELSEWHERE)) assert.ok(wanted.includes(name), name);
    const functions = Object.keys(native).filter((name) => !OWN.has(name));
    assert.deepEqual(
        sorted(functions),
        sorted(wanted.filter((name) => !(name in ELSEWHERE))),
    );
});

test("native.ts names what the addon has", () => {
    const [, body = ""] = read("node", "src", "native.ts").split(
        "export interface Native {",
    );
    const names = [...body.matchAll(/^ {4}(\w+)\(/gm)].map((row) => row[1] as string);
    assert.deepEqual(sorted(names), sorted(Object.keys(native)));
});

test("objects can set every member of every struct", () => {
    const tables = native.optionNames();
    const structs = [
        ...(header + declared("segue_ext.h")).matchAll(
            /^(?:typedef )?struct (segue_\w+_options) \{([\s\S]*?)^\}/gm,
        ),
    ];
    assert.deepEqual(
        sorted(structs.map((row) => row[1] as string)),
        sorted(Object.keys(tables)),
    );
    for (const [, name = "", text = ""] of structs) {
        const members = [...text.matchAll(/(\w+)\s*;/g)].map((row) =>
            camel(row[1] as string),
        );
        const taken = new Set([...(ARGUMENTS[name] ?? []), "structSize"]);
        for (const member of taken) assert.ok(members.includes(member), member);
        assert.deepEqual(
            sorted(tables[name] ?? []),
            sorted(members.filter((member) => !taken.has(member))),
            name,
        );
    }
});

test("native_options.ts types every option", () => {
    const text = read("node", "src", "native_options.ts").replaceAll(
        /\/\*\*.*?\*\//gs,
        "",
    );
    const types = [...text.matchAll(/^export type (\w+) = Members<\{([\s\S]*?)^\}>/gm)];
    const typed = new Map(
        types.map((row) => [
            row[1] as string,
            [...(row[2] ?? "").matchAll(/(\w+):/g)].map((member) => member[1] as string),
        ]),
    );
    for (const [struct, members] of Object.entries(native.optionNames())) {
        const name = camel(struct.replace("segue", ""));
        assert.deepEqual(sorted(typed.get(name) ?? []), sorted(members), struct);
    }
});

test("an option sets each limit that an error text names as one", () => {
    const tables = native.optionNames();
    const structs = ["runtime", "server", "listen", "session"] as const;
    const known = structs.flatMap((name) => tables[`segue_${name}_options`] ?? []);
    const table = read("core", "base", "limits.def");
    const rows = [...table.matchAll(/^LIMIT\(\w+, (\w+), (OPTION|FIXED)\)$/gm)];
    assert.ok(rows.length > 20);
    for (const [, name = "", kind] of rows)
        assert.equal(known.includes(camel(name)), kind === "OPTION", name);
});

test("each option of a listener has a text, with its unit and its default", () => {
    const text = read("node", "src", "native_options.ts");
    const [, body = ""] = text.match(/ListenOptions = Members<\{\n([\s\S]*?)^\}>/m) ?? [];
    const rows = [...body.matchAll(/ {4}(?:\/\*\*([\s\S]*?)\*\/\s+)?(\w+): \w+;\n/g)].map(
        (row) => [row[2] ?? "", (row[1] ?? "").replaceAll(/[\s*]+/g, " ")] as const,
    );
    assert.deepEqual(
        sorted(rows.map(([name]) => name)),
        sorted(native.optionNames().segue_listen_options ?? []),
    );
    for (const [name, told] of rows) {
        assert.match(told, /default|Excludes/i, name);
        if (name.endsWith("Ms")) assert.match(told, /in milliseconds/, name);
        if (name.endsWith("Bytes")) assert.match(told, /bytes/, name);
    }
});

/** Enums of the header that have another name in constants.ts. */
const ENUMS: Record<string, [name: string, prefix: string]> = {
    status_value: ["Status", "SEGUE_"],
    log_level: ["LogLevel", "SEGUE_LOG_"],
    oauth_grant: ["OauthGrant", "SEGUE_OAUTH_"],
    durability: ["Durability", "SEGUE_DURABILITY_"],
    validation: ["Validation", "SEGUE_VALIDATE_"],
    cache_scope: ["CacheScope", "SEGUE_CACHE_"],
    dialect: ["Dialect", "SEGUE_DIALECT_"],
    draft_way: ["DraftWay", "SEGUE_WAY_"],
    item: ["Item", "SEGUE_ITEM_"],
    list_flag: ["ListFlag", "SEGUE_LIST_"],
    tool_flag: ["ToolFlag", "SEGUE_TOOL_"],
    task_policy: ["TaskPolicy", "SEGUE_TASK_"],
    visibility: ["Visibility", "SEGUE_"],
    era: ["Era", "SEGUE_ERA_"],
    http_sse: ["HttpSse", "SEGUE_HTTP_SSE_"],
    response_mode: ["ResponseMode", "SEGUE_RESPONSE_"],
    task_state: ["TaskState", "SEGUE_TASK_"],
};

test("constants.ts has the enums of the header", () => {
    const seen: string[] = [];
    for (const [, name = "", text = ""] of header.matchAll(
        /^enum segue_(\w+) \{([\s\S]*?)\}/gm,
    )) {
        seen.push(name);
        const place = ENUMS[name];
        assert.ok(place, `enum segue_${name} is not in constants.ts`);
        const values = [...text.matchAll(/(SEGUE_\w+) = (-?\d+)/g)].map((row) => [
            (row[1] as string).replace(place[1], ""),
            Number(row[2]),
        ]);
        assert.deepEqual(constants[place[0]], Object.fromEntries(values), name);
    }
    assert.deepEqual(sorted(seen), sorted(Object.keys(ENUMS)));
});

test("constants.ts has the kinds of events of the addon", () => {
    const named = native.eventNames().map((name, kind) => [name, kind]);
    assert.deepEqual(constants["Kind"], Object.fromEntries(named));
});

test("errors are those of the table", () => {
    const maker = path.join(TREE, "bindings", "node", "make_errors.py");
    execFileSync("python3", ["-B", maker, "--check"], { stdio: "inherit" });
    for (const [status, kind] of errors.byStatus) {
        const error = new kind();
        assert.equal(error.code, native.statusName(status));
        assert.equal(error.status, status);
        assert.equal(error.name, kind.name);
        assert.ok(error.message.length > 0);
    }
    assert.equal(errors.byStatus.size, Object.keys(constants["Status"] ?? {}).length - 1);
    for (const [reason, kind] of errors.byReason) {
        const data = JSON.stringify({ reason });
        const error = errors.fromInfo([-300, "no", -32603, data, false]);
        assert.ok(error instanceof kind && error instanceof errors.ServerStoreError);
        assert.ok(error instanceof errors.RemoteError);
        assert.equal(error.name, kind.name);
        assert.equal(error.code, "SEGUE_E_REMOTE");
        assert.deepEqual(error.data, { reason });
    }
    for (const data of ['{"reason":"limit"}', '{"reason":1}', '["reason"]', null])
        assert.equal(
            errors.fromInfo([-300, "no", -32603, data, false]).constructor,
            errors.RemoteError,
        );
});
