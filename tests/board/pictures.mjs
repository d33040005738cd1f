/** Makes the pictures of core/docs/board.md in a directory. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { Chromium } from "./chromium.mjs";
import { fill, openBoard, Place } from "./programs.mjs";

const [directory] = process.argv.slice(2);
const place = new Place();
const store = place.file("tasks.db");
const [long, asking] = fill(store, 64, 400);
const board = await openBoard(store);
const browser = await Chromium.open();
const views = [
    ["board-list", "#/", 1040, 600, ".badge.cancelled"],
    ["board-task", `#/task/${long}`, 1040, 600, ".entry", true],
    ["board-question", `#/task/${asking}`, 1040, 600, "segue-question"],
    ["board-phone", `#/task/${long}`, 390, 700, ".entry"],
];
await browser.go(`${board.url}#token=${board.token}`);
await browser.until("location.hash === '#/' && sessionStorage.length");
for (const [name, hash, width, height, seen, isDark = false] of views) {
    await browser.dark(isDark);
    await browser.size(width, height);
    await browser.go("about:blank");
    await browser.go(board.url + hash);
    await browser.until(`document.querySelector("${seen}")`);
    await browser.until("document.fonts.status === 'loaded'");
    await browser.until("document.querySelector('header .state').innerText");
    writeFileSync(path.join(directory, `${name}.png`), await browser.screenshot());
}
await browser.close();
await board.end();
place.remove();
