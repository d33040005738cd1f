/** Makes pictures of the main pages of build/docs in a directory, light and dark. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Chromium } from "../board/chromium.mjs";
import { address, MAIN } from "./site.mjs";

const [directory, ...only] = process.argv.slice(2);
mkdirSync(directory, { recursive: true });
const browser = await Chromium.open();
for (const page of only.length ? only : MAIN) {
    for (const [kind, width, height, isDark] of [
        ["light", 1280, 1400, false],
        ["dark", 1280, 1400, true],
        ["phone", 390, 1400, false],
    ]) {
        await browser.dark(isDark);
        await browser.size(width, height);
        await browser.go(address(page));
        await browser.until("document.readyState === 'complete'");
        await browser.evaluate("localStorage.clear()"); // it remembers the colours
        await browser.go("about:blank");
        await browser.go(address(page));
        await browser.until("document.readyState === 'complete'");
        await browser.until("document.fonts.status === 'loaded'");
        const name = page.replace(/\.html$/, "").replaceAll("/", "-");
        writeFileSync(path.join(directory, `${name}-${kind}.png`), await browser.screenshot());
    }
}
await browser.close();
