/**
 * The task board in a browser: each view, each action, a cut of the page's connection,
 * long lists, the keyboard, and what axe-core says of contrast and labels. The page must
 * print no error, except those of connections that the tests cut.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import readline from "node:readline";
import { Chromium } from "./chromium.mjs";
import { Cutter, fill, openBoard, Place, Program, program, startTask } from "./programs.mjs";

const AXE = readFileSync("build/deps/node-sdk/node_modules/axe-core/axe.min.js", "utf8");
const ROWS = "document.querySelectorAll('.row').length";
const ROW_NUMBER = (number) => `document.querySelector("[aria-posinset='${number}'] button")`;
const TEXT = "document.querySelector('main').innerText";

const place = new Place();
const errors = [];
let isCut = false;
let browser, server, endpoint, board;

before(async () => {
    const store = place.file("live.db");
    server = new Program("tests/tools/fixture_server",
        ["--store", store, "--http", "127.0.0.1"]);
    endpoint = await server.line();
    browser = await Chromium.open();
    browser.on("Runtime.exceptionThrown", ({ exceptionDetails: one }) =>
        errors.push(one.exception?.description ?? one.text));
    browser.on("Runtime.consoleAPICalled", ({ type, args }) => {
        if (type === "error" || type === "warning") errors.push(JSON.stringify(args));
    });
    browser.on("Log.entryAdded", ({ entry }) => {
        if (entry.level === "error" && !(isCut && entry.source === "network"))
            errors.push(`${entry.text} ${entry.url}`);
    });
    await browser.size(1280, 800);
    board = await begin(store);
});

after(async () => {
    await browser?.close();
    await board?.end();
    await server?.end();
    place.remove();
});

function quoted(text) {
    return JSON.stringify(text);
}

/** Opens a view anew. */
async function show(url) {
    await browser.go("about:blank");
    await browser.go(url);
}

/** Gives the page of an address the token of a board. */
async function enter(url, token) {
    await show(`${url}#token=${token}`);
    await browser.until("location.hash === '#/' && sessionStorage.length");
}

async function begin(store, ...options) {
    const one = await openBoard(store, ...options);
    await enter(one.url, one.token);
    return one;
}

/** Ends a program, after the page has left it. */
async function leave(one) {
    await browser.go("about:blank");
    await browser.until("location.href === 'about:blank'");
    await one.end();
}

async function click(text, within = "document") {
    await browser.until(`[...${within}.querySelectorAll("button, a")].find((one) =>
        one.offsetParent && one.innerText.trim().startsWith(${quoted(text)}))?.click()
        ?? true`);
}

async function badgeIs(name) {
    await browser.until(`document.querySelector(".title .badge")?.innerText === ${
        quoted(name)}`);
}

async function check(what) {
    await browser.evaluate(`${AXE}; true`);
    const found = await browser.evaluate(`axe.run({ resultTypes: ["violations"] })
        .then(({ violations }) => violations.flatMap(({ id, nodes }) =>
            nodes.map((node) => id + ": " + node.html.slice(0, 160) + " " +
                node.failureSummary)))`);
    assert.deepEqual(found, [], what);
}

test("a new task appears in the list, and the counts follow", async () => {
    await show(board.url);
    await browser.until(`${TEXT}.includes("No tasks yet")`);
    const id = await startTask(endpoint, "hang", {});
    await browser.until(`${ROWS} === 1`);
    await browser.until(`document.querySelector(".chip.working .number").innerText === "1"`);
    await click("Completed");
    await browser.until(`${TEXT}.includes("No task passes the filter")`);
    assert.match(await browser.evaluate("location.hash"), /status=completed/);
    await click("All");
    await browser.until(`${ROWS} === 1`);
    await show(`${board.url}#/?tool=nothing`);
    await browser.until(`${TEXT}.includes("No task passes the filter")`);
    await show(`${board.url}#/task/${id}`);
    await badgeIs("Working");
});

test("a task is cancelled, and then removed", async () => {
    const id = await startTask(endpoint, "hang", { n: 7 });
    await show(`${board.url}#/task/${id}`);
    await badgeIs("Working");
    await click("Cancel task");
    await click("Back", "document.querySelector('dialog')");
    await browser.until("!document.querySelector('dialog')");
    await badgeIs("Working");
    await click("Cancel task");
    await click("Cancel task", "document.querySelector('dialog')");
    await badgeIs("Cancelled");
    await browser.until(`document.querySelector(".timeline .cancelled")`);
    await click("Remove");
    await click("Remove", "document.querySelector('dialog')");
    await browser.until("location.hash === '#/'");
    await browser.until(`${ROWS} === 1`);
    await show(`${board.url}#/task/${id}`);
    isCut = true; // the request for the task gets 404, which the browser reports
    await browser.until(`${TEXT}.includes("The store has no such task")`);
    isCut = false;
});

test("a question is answered in its form", async () => {
    const id = await startTask(endpoint, "confirm_delete", { path: "/tmp/x" });
    await show(`${board.url}#/task/${id}`);
    await browser.until("document.querySelector('segue-question')");
    await badgeIs("Needs input");
    await check("a question");
    await browser.evaluate("document.querySelector('segue-question input').click()");
    await click("Send answer");
    await badgeIs("Completed");
    await browser.until("!document.querySelector('segue-question')");
    await browser.until(`document.querySelector(".timeline .answer")`);
    const headers = quoted({ Authorization: `Bearer ${board.token}` });
    const log = await browser.evaluate(
        `fetch("api/entries?id=${id}", { headers: ${headers} }).then((a) => a.json())`);
    const answer = log.entries.find((entry) => entry.kind === "answer");
    assert.deepEqual(answer.data.response, { action: "accept", content: { confirm: true } });
});

test("a question is declined", async () => {
    const id = await startTask(endpoint, "confirm_delete", { path: "/tmp/y" });
    await show(`${board.url}#/task/${id}`);
    await browser.until("document.querySelector('segue-question')");
    await click("Decline");
    await badgeIs("Completed");
});

test("a form has a field for each kind of value", async () => {
    const [, id] = fill(place.file("asks.db"), 4, 4);
    const asks = await begin(place.file("asks.db"));
    await show(`${asks.url}#/task/${id}`);
    await browser.until("document.querySelector('segue-question')");
    await browser.evaluate(`document.querySelector("segue-question button").click()`);
    assert.equal(await browser.evaluate(
        "document.querySelector('segue-question form').checkValidity()"), false);
    await browser.evaluate(`(() => {
        const form = document.querySelector("segue-question");
        form.querySelector("select").value = "1";
        form.querySelector("input[type=number]").value = "9";
        form.querySelector("input[type=checkbox]").click();
        form.querySelector("button").click();
    })()`);
    await browser.until(`document.querySelector("#notice").innerText.includes("was sent")`);
    await leave(asks);
});

test("segments arrive live, and a cut of the page's connection loses none", async () => {
    const cutter = new Cutter(board.url);
    await cutter.open();
    await enter(cutter.url, board.token);
    const id = await startTask(endpoint, "story", { n: 60, delayMs: 50 });
    await show(`${cutter.url}#/task/${id}`);
    const number = "Number(document.querySelector('[data-mode=segments] .number').innerText)";
    await browser.until(`${number} >= 3`);
    isCut = true;
    await cutter.cut();
    await browser.until(`document.querySelector(".banner.lost")?.innerText
        .includes("Connection lost behind segment")`);
    await browser.until(`document.querySelector("header .state").innerText
        .includes("Connection lost")`);
    await check("a lost connection");
    await cutter.mend();
    await browser.until(`document.querySelector(".banner").innerText
        .includes("Nothing is missing")`);
    await badgeIs("Completed");
    isCut = false;
    await browser.until(`${number} === 60`);
    const seen = await browser.evaluate(`Array.from({ length: 60 }, (_, i) =>
        document.querySelector("segue-task").log.item("segments", i).segment)`);
    assert.deepEqual(seen, Array.from({ length: 60 }, (_, i) => i + 1));
    await cutter.cut();
});

test("a link leads to a moment", async () => {
    const id = await startTask(endpoint, "story", { n: 200 });
    await show(`${board.url}#/task/${id}/at/150`);
    await browser.until(`document.querySelector(".detail:not([hidden])")?.innerText
        .includes("segment 150 of the story")`);
    await browser.until(`document.querySelector(".entry[aria-pressed=true]")`);
    await browser.call("Browser.grantPermissions",
        { permissions: ["clipboardReadWrite", "clipboardSanitizedWrite"] });
    await browser.evaluate(`navigator.clipboard.writeText =
        async (text) => { window.copied = text; }`);
    await click("Copy link");
    assert.equal(await browser.until("window.copied"), `${board.url}#/task/${id}/at/150`);
    await click("Copy curl");
    assert.match(await browser.until("window.copied.startsWith('curl') && window.copied"),
        /^curl -sS -H 'Authorization: Bearer TOKEN' 'http:.*api\/entries\?source=0&id=.*&after=201'$/);
    await click("Whole log");
    await browser.until(`document.querySelector("[data-mode=entries] .number").innerText
        === "201"`);
});

test("the keyboard is enough", async () => {
    await show(board.url);
    await browser.until(`${ROWS} > 3`);
    await browser.key("/");
    await browser.until("document.activeElement.type === 'search'");
    for (const letter of "story") await browser.key(letter);
    await browser.until(`${ROWS} === 2`);
    await browser.key("Escape");
    await browser.until(`${ROWS} > 3`);
    await browser.key("j");
    await browser.key("j");
    await browser.until("document.activeElement.closest('.row')?.dataset.index === '1'");
    await browser.key("k");
    await browser.until("document.activeElement.closest('.row')?.dataset.index === '0'");
    await browser.key("Enter");
    await browser.until("document.querySelector('segue-task h1')?.innerText === 'story'");
    await browser.key("Escape");
    await browser.until("document.querySelector('segue-list')");
});

test("a task runs again behind a segment", async () => {
    const id = await startTask(endpoint, "story", { n: 40 });
    await show(`${board.url}#/task/${id}`);
    await badgeIs("Completed");
    await browser.evaluate(`${ROW_NUMBER(30)}.click()`);
    await click("Run again behind segment 30");
    await check("the question before it runs again");
    await click("Run again", "document.querySelector('dialog')");
    await browser.until(`location.hash.startsWith("#/task/") && !location.hash.includes("${
        id}")`);
    await badgeIs("Completed");
    await browser.until(`document.querySelector("[data-mode=segments] .number").innerText
        === "40"`);
    const hangs = await startTask(endpoint, "hang", {});
    await show(`${board.url}#/task/${hangs}`);
    await badgeIs("Working");
    isCut = true; // the refusal is reported
    await click("Run again");
    await click("Run again", "document.querySelector('dialog')");
    await browser.until(`document.querySelector("#notice").innerText
        .includes("not known to be restartable")`);
    isCut = false;
});

test("ten thousand tasks and fifty thousand segments stay few elements", async () => {
    const [id] = fill(place.file("big.db"), 10_000, 50_000);
    const big = await begin(place.file("big.db"));
    await show(big.url);
    await browser.until(`document.querySelector(".chip .number").innerText === "10,000"`);
    await browser.until(`[...document.querySelectorAll(".chip .number")].slice(1)
        .reduce((sum, one) => sum + Number(one.innerText.replace(",", "")), 0) === 10000`);
    const list = "document.querySelector('segue-rows')";
    await browser.evaluate(`${list}.scrollTop = ${list}.scrollHeight; ${list}.draw()`);
    await browser.until(`document.querySelector("[aria-posinset='10000']")`);
    assert.ok(await browser.evaluate(ROWS) < 60);
    await show(`${big.url}#/task/${id}`);
    await browser.until(`document.querySelector("[data-mode=segments] .number").innerText
        === "50,000"`);
    await browser.evaluate(`${list}.scrollTop = ${list}.scrollHeight; ${list}.draw()`);
    await browser.until(`document.querySelector("[aria-posinset='50000']")`);
    assert.ok(await browser.evaluate(ROWS) < 60);
    // entries far from those on the screen are not kept, and come again when they are shown
    const kept = "document.querySelector('segue-task').log.kept.entries";
    assert.ok(await browser.evaluate(kept) <= 5000);
    for (const at of [0, 20_000, 35_000, 7, 49_990]) {
        await browser.evaluate(`${list}.scrollTop = ${at} * ${list}.height; ${list}.draw()`);
        await browser.until(`document.querySelector("[aria-posinset='${at + 1}'] .number")
            .innerText === "${at + 1}"`);
        assert.ok(await browser.evaluate(kept) <= 5000);
    }
    await leave(big);
});

const STREAMS = 30, SEGMENTS = 40;

/** Starts a server on a store; the program has the URL of its endpoint. */
async function serve(store) {
    const one = new Program("tests/tools/fixture_server",
        ["--store", store, "--http", "127.0.0.1"]);
    one.url = await one.line();
    return one;
}

function numberOf(status) {
    return `Number(document.querySelector(".chip.${status} .number").innerText)`;
}

/** The numbers of all segments of a task, as the board has them. */
function segmentsOf(id, token) {
    const headers = quoted({ Authorization: `Bearer ${token}` });
    return browser.evaluate(`(async () => {
        const numbers = [];
        for (let after = 0, more = true; more;) {
            const answer = await fetch("api/entries?id=${id}&after=" + after,
                { headers: ${headers} });
            const page = await answer.json();
            for (const one of page.entries)
                if (one.kind === "segment") numbers.push(one.segment);
            after = page.entries.at(-1)?.seq;
            more = page.more;
        }
        return numbers;
    })()`);
}

test("a killed server with thirty streams goes on before the eyes of the page", async () => {
    const store = place.file("walk.db");
    let walker = await serve(store);
    const walk = await begin(store);
    const ids = await Promise.all(Array.from({ length: STREAMS }, () =>
        startTask(walker.url, "story", { n: SEGMENTS, delayMs: 100 })));
    await show(walk.url);
    await browser.until(`${numberOf("working")} === ${STREAMS}`);
    await show(`${walk.url}#/task/${ids[0]}`);
    const count = "Number(document.querySelector('[data-mode=segments] .number').innerText)";
    await browser.until(`${count} >= 3`);
    await walker.end("SIGKILL");
    // the page still shows what the store has, and says how old it is
    await browser.until(`${TEXT}.includes("1 s ago")`);
    await badgeIs("Working");
    const before = await browser.evaluate(count);
    assert.ok(before >= 3 && before < SEGMENTS, `${before} segments`);
    walker = await serve(store);
    await badgeIs("Completed");
    await browser.until(`${count} === ${SEGMENTS}`);
    await show(walk.url);
    await browser.until(`${numberOf("completed")} === ${STREAMS}`);
    const all = Array.from({ length: SEGMENTS }, (_, i) => i + 1);
    for (const id of ids) assert.deepEqual(await segmentsOf(id, walk.token), all);
    await leave(walk);
    await walker.end();
});

test("the demo cuts the page's connection and kills its server", async () => {
    const demo = spawn("python3", ["-B", "tests/demo/board.py"], {
        stdio: ["ignore", "pipe", "inherit"],
        env: { ...process.env, SEGUE_DEMO_TASK_MS: "15000" },
    });
    const [line] = await once(readline.createInterface({ input: demo.stdout }), "line");
    await show(line);
    await browser.until(`${ROWS} >= 1`);
    await browser.evaluate("document.querySelector('.row a').click()");
    await browser.until("document.querySelector('[aria-posinset=\"3\"]')");
    isCut = true;
    await click("Cut this connection");
    await browser.until(`document.querySelector(".banner.lost")?.innerText
        .includes("Connection lost behind segment")`);
    await browser.until(`document.querySelector(".banner:not(.lost)")?.innerText
        .includes("Nothing is missing")`);
    isCut = false;
    await click("Kill the server");
    await browser.until(`document.querySelector("#notice").innerText.includes("killed")`);
    await badgeIs("Completed");
    const lines = readFileSync("LICENSE", "utf8").trimEnd().split("\n").length;
    await browser.until(`Number(document.querySelector("[data-mode=segments] .number")
        .innerText) === ${lines}`);
    await check("the page of the demo");
    await browser.evaluate("sessionStorage.clear()");
    await browser.go("about:blank");
    demo.kill();
    await once(demo, "exit");
});

test("a board shows and does only what it may", async () => {
    const store = place.file("closed.db");
    const [, id] = fill(store, 20, 20);
    const closed = await begin(store, "--read-only", "--redact");
    await show(closed.url);
    await browser.until(`document.querySelector(".tags").innerText.includes("read-only")`);
    await browser.until(`${ROWS} === 20`);
    await show(`${closed.url}#/task/${id}`);
    await badgeIs("Needs input");
    await browser.until(`${TEXT}.includes("hidden")`);
    assert.equal(await browser.evaluate(`${TEXT}.includes("Cancel task")`), false);
    assert.equal(await browser.evaluate(`${TEXT}.includes("lock it")`), false);
    await leave(closed);
});

test("a board without its token shows nothing", async () => {
    const store = place.file("secret.db");
    fill(store, 5, 5);
    const secret = await openBoard(store);
    isCut = true; // the answers 401 are reported
    await show(secret.url);
    await browser.until("document.querySelector('#token')");
    assert.match(await browser.evaluate(TEXT), /needs the token of its URL/);
    await check("the form of a board");
    // the whole URL, in the tab that is open already
    await browser.evaluate(`location.hash = "#token=${secret.token}"`);
    await browser.until(`${ROWS} === 5`);
    assert.equal(await browser.evaluate("location.hash"), "#/");
    await leave(secret);
    isCut = false;
});

test("the board of a proxy asks for a token", async () => {
    const tokens = place.file("tokens");
    writeFileSync(tokens, `ada ${createHash("sha256").update("secret").digest("hex")}\n`);
    const proxy = new Program("proxy/segue-proxy",
        ["--listen", "127.0.0.1:0", "--tokens", tokens, "--board-path", "/board", "--",
            program("tests/tools/fixture_server")], "stderr");
    let line = "";
    while (!/serving (http:\S+)/.test(line)) line = await proxy.line();
    const url = new URL("/board", /serving (http:\S+)/.exec(line)[1]).href;
    isCut = true; // the answers 401 are reported
    await show(url);
    await browser.until("document.querySelector('#token')");
    await check("the form for a token");
    await browser.evaluate(`document.querySelector("#token").value = "secret";
        document.querySelector("form.token button").click()`);
    await browser.until(`${TEXT}.includes("No tasks yet")`);
    await leave(proxy);
    isCut = false;
});

test("contrast and labels are right in each view, light and dark", async () => {
    const store = place.file("show.db");
    const [long, asking] = fill(store, 40, 300);
    const shown = await begin(store);
    for (const isDark of [false, true])
        for (const width of [1280, 390]) {
            await browser.dark(isDark);
            await browser.size(width, 800);
            const what = `${isDark ? "dark" : "light"}, ${width} pixels`;
            await show(shown.url);
            await browser.until(`document.querySelectorAll(".badge.failed").length`);
            await check(`the list, ${what}`);
            await show(`${shown.url}#/task/${long}/at/20`);
            await browser.until(`document.querySelector(".detail:not([hidden])")`);
            await check(`a task, ${what}`);
            assert.equal(await browser.evaluate(
                "document.documentElement.scrollWidth <= innerWidth"), true, what);
            await show(`${shown.url}#/task/${asking}`);
            await browser.until("document.querySelector('segue-question')");
            await check(`a question, ${what}`);
        }
    await browser.dark(false);
    await browser.size(1280, 800);
    await leave(shown);
});

test("the page has printed no error", () => {
    assert.deepEqual(errors, []);
});
