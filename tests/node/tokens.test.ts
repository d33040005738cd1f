/** The file of tokens: private, replaced in one step, shared by processes, bounded. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { inspect, promisify } from "node:util";
import { defaultTokenPath, type SavedTask, TokenFile, TokenFileError } from "segue-mcp";
import { PACKAGE } from "./tree.js";

const URL = "http://127.0.0.1:1/mcp";
const run = promisify(execFile);
const directory = fs.mkdtempSync(path.join(os.tmpdir(), "segue-tokens-"));
after(() => fs.rmSync(directory, { recursive: true }));

let count = 0;
/** Makes a token file whose path does not exist yet. */
function fresh(limit?: number): TokenFile {
    count += 1;
    const file = path.join(directory, String(count), "tasks.json");
    return new TokenFile(file, limit === undefined ? {} : { limit });
}

const put = (file: TokenFile, token = "secret", taskId?: string): Promise<SavedTask> =>
    file.put({ target: URL, tool: "report", token, taskId });
const modeOf = (file: string): number => fs.statSync(file).mode & 0o777;

test("what was put is found again", async () => {
    const file = fresh();
    assert.deepEqual(await file.all(), []);
    const saved = await put(file, "secret", "task-1");
    const again = new TokenFile(file.path);
    assert.deepEqual(await again.all(), [saved]);
    for (const name of [saved.id, "task-1", saved.id.slice(0, 4)]) {
        assert.deepEqual(await again.get(name), saved);
    }
    const { token, target, status, era } = await again.get(saved.id);
    assert.deepEqual([token, target, status, era], ["secret", URL, "working", "auto"]);
    const command = ["server", "--store", "x"];
    const other = await file.put({
        target: command,
        tool: "t",
        token: "u",
        era: "legacy",
    });
    assert.deepEqual((await file.get(other.id)).target, command);
    await assert.rejects(put(file, ""), TypeError);
});

test("file and directory are private", async () => {
    const before = process.umask(0);
    const file = fresh();
    try {
        await put(file);
    } finally {
        process.umask(before);
    }
    assert.equal(modeOf(file.path), 0o600);
    assert.equal(modeOf(path.dirname(file.path)), 0o700);
    assert.equal(modeOf(`${file.path}.lock`), 0o600);
    const names = fs.readdirSync(path.dirname(file.path)).sort();
    assert.deepEqual(names, ["tasks.json", "tasks.json.lock"]);
    fs.chmodSync(file.path, 0o644);
    assert.equal((await file.all()).length, 1);
    assert.equal(modeOf(file.path), 0o600);
});

test("a token is not printed with its task", async () => {
    const saved = await put(fresh(), "hush");
    assert.equal(saved.token, "hush");
    assert.doesNotMatch(inspect([saved]) + JSON.stringify(saved), /hush/);
});

test("update changes what is said, and remove forgets", async () => {
    const file = fresh();
    const other = await put(file);
    const saved = await put(file);
    const news = { token: "secret+7", status: "completed" };
    const changed = await file.update(saved.id, news);
    assert.deepEqual(
        [changed.token, changed.status, changed.tool],
        ["secret+7", "completed", "report"],
    );
    assert.deepEqual(await file.all(), [other, changed]);
    assert.ok(changed.updated >= saved.updated);
    assert.deepEqual(await file.remove(saved.id), changed);
    assert.deepEqual(await file.all(), [other]);
    const acts = [
        () => file.get(saved.id),
        () => file.remove(saved.id),
        () => file.update(saved.id, {}),
    ];
    for (const act of acts) {
        await assert.rejects(act, { code: "ERR_SEGUE_NO_TASK", name: "TokenFileError" });
    }
});

test("an ambiguous name is refused", async () => {
    const file = fresh();
    const saved = await put(file);
    const content = JSON.parse(fs.readFileSync(file.path, "utf8"));
    content.tasks.push({ ...content.tasks[0], id: `${saved.id.slice(0, 5)}0` });
    fs.writeFileSync(file.path, JSON.stringify(content));
    await assert.rejects(file.get(saved.id.slice(0, 5)), /ambiguous/);
    await assert.rejects(file.get(""), /no saved task/);
});

test("a full file gives up what has ended, and nothing else", async () => {
    const file = fresh(3);
    const [first, second, third] = [await put(file), await put(file), await put(file)];
    await assert.rejects(put(file), /full: none of its 3 tasks/);
    assert.deepEqual(await file.all(), [first, second, third]);
    await file.update(second.id, { status: "completed" });
    const fourth = await put(file);
    const left = (await file.all()).map((one) => one.id);
    assert.deepEqual(left, [first.id, third.id, fourth.id]);
});

const NO_TASK = '{"format":1,"tasks":[{}]}';
for (const content of ["", "{", "[]", "null", '{"format":1}', NO_TASK, "\xff"]) {
    test(`a damaged file is reported and kept: ${JSON.stringify(content)}`, async () => {
        const file = fresh();
        fs.mkdirSync(path.dirname(file.path));
        fs.writeFileSync(file.path, content, "latin1");
        await assert.rejects(file.all(), /damaged/);
        await assert.rejects(put(file), TokenFileError);
        assert.equal(fs.readFileSync(file.path, "latin1"), content);
    });
}

test("a file of a newer version, or a link, is left alone", async () => {
    const file = fresh();
    fs.mkdirSync(path.dirname(file.path));
    fs.writeFileSync(file.path, '{"format":2,"tasks":[]}');
    await assert.rejects(put(file), /newer version/);
    const other = fresh();
    fs.mkdirSync(path.dirname(other.path));
    fs.symlinkSync(file.path, other.path);
    await assert.rejects(put(other), TokenFileError);
});

test("changes at once, of several processes, lose nothing", async () => {
    const file = fresh();
    const code = `
        const { TokenFile } = require(${JSON.stringify(PACKAGE)});
        const [path, tool] = process.argv.slice(1);
        // On a busy machine the others may have the lock longer than one waits for it.
        const put = (task) => new TokenFile(path).put(task).catch((error) => {
            if (!/is locked by/.test(error.message)) throw error;
            return put(task);
        });
        const puts = Array.from({ length: 20 }, (_, i) =>
            put({ target: "u", tool, token: tool + i }));
        Promise.all(puts);`;
    const tools = ["a", "b", "c"];
    await Promise.all(
        tools.map((tool) => run(process.execPath, ["-e", code, file.path, tool])),
    );
    const tasks = await file.all();
    const expected = tools.flatMap((tool) =>
        Array.from({ length: 20 }, (_, i) => `${tool}${i}`),
    );
    assert.deepEqual(tasks.map((one) => one.token).sort(), expected.sort());
    assert.equal(new Set(tasks.map((one) => one.id)).size, 60);
});

test("where the file is", () => {
    const { SEGUE_TOKENS, XDG_STATE_HOME } = process.env;
    const set = (name: string, value: string | undefined): void => {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
    };
    try {
        set("SEGUE_TOKENS", "/mine.json");
        assert.equal(defaultTokenPath(), "/mine.json");
        set("SEGUE_TOKENS", undefined);
        set("XDG_STATE_HOME", "/state");
        assert.equal(defaultTokenPath(), "/state/segue/tasks.json");
        set("XDG_STATE_HOME", undefined);
        const home = path.join(os.homedir(), ".local", "state", "segue", "tasks.json");
        assert.equal(defaultTokenPath(), home);
    } finally {
        set("SEGUE_TOKENS", SEGUE_TOKENS);
        set("XDG_STATE_HOME", XDG_STATE_HOME);
    }
});
