/**
 * A headless Chromium, driven over the DevTools protocol on a pair of pipes: one JSON
 * message after the other, each with a NUL behind it. The browser ends with the test.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const PROGRAM = process.env.CHROMIUM ?? "chromium";
const PATIENCE_MS = 30_000;

export class Chromium {
    #next = 1;
    #waiting = new Map();
    #rest = "";
    #listeners = [];

    static async open() {
        const browser = new Chromium();
        await browser.#start();
        return browser;
    }

    async #start() {
        this.directory = mkdtempSync(path.join(tmpdir(), "segue-board."));
        this.child = spawn(PROGRAM, [
            "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--no-proxy-server", "--hide-scrollbars", "--remote-debugging-pipe",
            `--user-data-dir=${this.directory}`, "about:blank",
        ], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], detached: true });
        this.ended = new Promise((resolve) => {
            this.child.on("exit", resolve);
            this.child.on("error", resolve);
        });
        this.child.stdio[4].setEncoding("utf8").on("data", (text) => this.#take(text));
        const { targetInfos } = await this.#send("Target.getTargets");
        const { targetId } = targetInfos.find((one) => one.type === "page");
        const { sessionId } = await this.#send("Target.attachToTarget",
            { targetId, flatten: true });
        this.session = sessionId;
        for (const domain of ["Page", "Runtime", "Log", "Network"])
            await this.call(`${domain}.enable`);
    }

    #take(text) {
        const parts = (this.#rest + text).split("\0");
        this.#rest = parts.pop();
        for (const part of parts) {
            const message = JSON.parse(part);
            const waiting = this.#waiting.get(message.id);
            this.#waiting.delete(message.id);
            if (waiting && message.error) waiting.reject(new Error(message.error.message));
            else if (waiting) waiting.resolve(message.result);
            else for (const listener of this.#listeners) listener(message);
        }
    }

    #send(method, params = {}, sessionId = undefined) {
        const id = this.#next++;
        this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
        return new Promise((resolve, reject) => {
            this.#waiting.set(id, { resolve, reject });
            this.ended.then(() => reject(new Error("the browser has ended")));
        });
    }

    /** Calls a method of the protocol for the page. */
    call(method, params) {
        return this.#send(method, params, this.session);
    }

    on(method, listener) {
        this.#listeners.push((message) => {
            if (message.method === method) listener(message.params);
        });
    }

    /** Evaluates an expression in the page; a promise is awaited. */
    async evaluate(expression) {
        const { result, exceptionDetails } = await this.call("Runtime.evaluate",
            { expression, awaitPromise: true, returnByValue: true, userGesture: true });
        if (exceptionDetails)
            throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
        return result.value;
    }

    /** Waits until the expression is true in the page, and returns its value. */
    async until(expression, patience = PATIENCE_MS) {
        const script = `new Promise((resolve, reject) => {
            const end = Date.now() + ${patience};
            const look = () => {
                let value = null;
                try { value = (${expression}); } catch (error) { value = null; }
                if (value) resolve(value);
                else if (Date.now() > end) reject(new Error(document.body.innerText));
                else setTimeout(look, 20);
            };
            look();
        })`;
        try {
            return await this.evaluate(script);
        } catch (error) {
            throw new Error(`never true: ${expression}\n${error.message}`);
        }
    }

    async go(url) {
        await this.call("Page.navigate", { url });
    }

    size(width, height, scale = 1) {
        return this.call("Emulation.setDeviceMetricsOverride",
            { width, height, deviceScaleFactor: scale, mobile: width < 600 });
    }

    dark(isDark) {
        const value = isDark ? "dark" : "light";
        return this.call("Emulation.setEmulatedMedia",
            { features: [{ name: "prefers-color-scheme", value }] });
    }

    async key(key, text = key.length === 1 ? key : undefined) {
        const codes = { Enter: 13, Escape: 27 };
        const one = { key, text: key === "Enter" ? "\r" : text,
            windowsVirtualKeyCode: codes[key] ?? key.toUpperCase().charCodeAt(0) };
        await this.call("Input.dispatchKeyEvent", { type: "keyDown", ...one });
        await this.call("Input.dispatchKeyEvent", { type: "keyUp", key });
    }

    async screenshot() {
        const { data } = await this.call("Page.captureScreenshot", { format: "png" });
        return Buffer.from(data, "base64");
    }

    async close() {
        try {
            process.kill(-this.child.pid, "SIGKILL");
        } catch {
            // it has ended
        }
        await this.ended;
        rmSync(this.directory, { recursive: true, force: true });
    }
}
