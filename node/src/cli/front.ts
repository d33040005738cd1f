/**
 * segue-proxy in front of `segue-mcp dev --stdio`: it speaks to the client over standard
 * input and output, while the server behind it is replaced.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";

/** The command of the package, which finds the proxy. */
const COMMAND = path.join(__dirname, "..", "..", "bin", "segue-mcp");

/** The proxy. Only it can call the server, because nobody else knows the token. */
export class Front {
    /** The file of tokens for the server. */
    readonly tokensFile: string;
    readonly #config: string;
    readonly #token = randomBytes(32).toString("hex");
    #rounds = 0;
    #process: ChildProcess | undefined;
    #begin: () => void = () => undefined;
    readonly #begun = new Promise<void>((resolve) => {
        this.#begin = resolve;
    });

    constructor(directory: string) {
        this.#config = path.join(directory, "upstream.json");
        this.tokensFile = path.join(directory, "tokens.txt");
        const digest = createHash("sha256").update(this.#token).digest("hex");
        fs.writeFileSync(this.tokensFile, `dev ${digest}\n`);
    }

    /**
     * Lets the proxy read the lists of a new server. The client then hears that they have
     * changed. The first time it starts the proxy.
     */
    renew(url: string): void {
        const headers = {
            Authorization: `Bearer ${this.#token}`,
            // With another header the proxy takes the upstream for another one.
            "Dev-Segue-Round": String(++this.#rounds),
        };
        const told = JSON.stringify({ mcpServers: { dev: { url, headers } } });
        fs.writeFileSync(`${this.#config}.new`, told);
        fs.renameSync(`${this.#config}.new`, this.#config);
        if (this.#process) {
            this.#process.kill("SIGHUP");
            return;
        }
        const words = ["proxy", "--log-level", "error", "--config", this.#config];
        this.#process = spawn(COMMAND, words, { stdio: "inherit" });
        this.#begin();
    }

    /** Waits until the client has left and the proxy has ended. */
    async wait(): Promise<void> {
        await this.#begun;
        const one = this.#process;
        if (one && one.exitCode === null && one.signalCode === null) {
            await once(one, "exit");
        }
    }

    /** Ends the proxy. */
    async end(): Promise<void> {
        if (!this.#process) return;
        this.#process.kill("SIGTERM");
        await this.wait();
    }
}
