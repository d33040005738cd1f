/**
 * The site in a real browser, opened as files: no error, nothing from elsewhere, contrast
 * and labels (axe-core) in light and dark, no sideways scrolling on a phone, its size, the
 * first paint, and the search.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Chromium } from "../board/chromium.mjs";
import { address, DIRECTORY, MAIN } from "./site.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGE_BYTES = 1_500_000; // what a page loads, without the index of the search
const PAINT_MS = 3000;
// The corner of a matrix is empty, and the theme nests its navigation in itself.
const RULES = {
    "empty-table-header": { enabled: false },
    "landmark-unique": { enabled: false },
};

let browser;
const errors = [];
const requests = [];

before(async () => {
    browser = await Chromium.open();
    browser.on("Runtime.exceptionThrown", ({ exceptionDetails }) =>
        errors.push(exceptionDetails.exception?.description ?? exceptionDetails.text));
    browser.on("Log.entryAdded", ({ entry }) => {
        if (entry.level === "error") errors.push(`${entry.text} ${entry.url ?? ""}`);
    });
    browser.on("Runtime.consoleAPICalled", ({ type, args }) => {
        if (type === "error") errors.push(args.map((one) => one.value).join(" "));
    });
    browser.on("Network.requestWillBeSent", ({ request }) => requests.push(request.url));
});
after(() => browser.close());

async function open(page, isDark, width = 1280) {
    await browser.dark(isDark);
    await browser.size(width, 900);
    await browser.go(address("404.html"));
    await browser.until("document.readyState === 'complete'");
    await browser.evaluate("localStorage.clear()"); // it remembers the colours
    await browser.go("about:blank");
    errors.length = requests.length = 0;
    await browser.go(address(page));
    await browser.until(`location.href.endsWith(${JSON.stringify(page)})`);
    await browser.until("document.readyState === 'complete'");
}

function bytesLoaded() {
    return requests
        .filter((url) => url.startsWith("file:") && !url.includes("search_index"))
        .reduce((sum, url) => sum + statSync(fileURLToPath(url.split(/[?#]/)[0])).size, 0);
}

for (const page of MAIN) {
    test(page, async () => {
        for (const isDark of [false, true]) {
            await open(page, isDark);
            const scheme = await browser.evaluate("document.body.dataset.mdColorScheme");
            assert.equal(scheme, isDark ? "slate" : "default");
            await browser.evaluate(AXE);
            const { violations } = await browser.evaluate(
                `axe.run(document, { preload: false, rules: ${JSON.stringify(RULES)} })`);
            assert.deepEqual(violations.map(({ id, nodes }) =>
                `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160))}`), []);
            const paint = await browser.until(
                "performance.getEntriesByName('first-contentful-paint')[0]?.startTime");
            assert.ok(paint < PAINT_MS, `the first paint took ${paint} ms`);
            assert.deepEqual(errors, []);
            assert.deepEqual(requests.filter((url) => !/^(file|data|blob):/.test(url)), []);
            const bytes = bytesLoaded();
            assert.ok(bytes > 0 && bytes < PAGE_BYTES, `${bytes} bytes`);
        }
        await open(page, false, 390);
        const [wide, shown] = await browser.evaluate(
            "[document.documentElement.scrollWidth, innerWidth]");
        assert.ok(wide <= shown, `${wide} of ${shown} pixels`);
    });
}

test("the search finds a page, from a file", async () => {
    await open("index.html", false);
    await browser.evaluate("document.querySelector('[data-md-component=search-query]').focus()");
    for (const letter of "checkpoint") await browser.key(letter);
    await browser.until("document.querySelector('.md-search-result__item a')");
    assert.deepEqual(errors, []);
});

test("llms.txt names every page as Markdown", () => {
    const list = readFileSync(path.join(DIRECTORY, "llms.txt"), "utf8");
    const named = [...list.matchAll(/\]\(([^)]+\.md)\)/g)].map(([, name]) => name);
    assert.ok(named.length > 80, `${named.length} pages`);
    for (const name of named) assert.ok(statSync(path.join(DIRECTORY, name)).size > 0, name);
    const pages = readdirSync(DIRECTORY, { recursive: true })
        .filter((name) => name.endsWith(".html") && name !== "404.html");
    for (const name of pages)
        assert.ok(statSync(path.join(DIRECTORY, name.replace(/html$/, "md"))).size > 0, name);
});
