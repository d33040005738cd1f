/** The programs of the tests: a server with the fixtures, a board, and what cuts a page. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import readline from "node:readline";

const BUILD = process.env.SEGUE_BUILD;

export function program(name) {
    const file = path.join(BUILD, name);
    if (!existsSync(file)) throw new Error(`${file} is not built`);
    return file;
}

/** A directory that goes with the test. */
export class Place {
    constructor() {
        this.path = mkdtempSync(path.join(tmpdir(), "segue-board-test."));
    }

    file(name) {
        return path.join(this.path, name);
    }

    remove() {
        rmSync(this.path, { recursive: true, force: true });
    }
}

/** A child process whose lines are read. */
export class Program {
    constructor(name, args, from = "stdout") {
        const quiet = from === "stdout" ? "ignore" : "pipe";
        this.child = spawn(program(name), args, { stdio: ["pipe", "pipe", quiet] });
        this.lines = readline.createInterface({ input: this.child[from] })
            [Symbol.asyncIterator]();
    }

    async line() {
        const { done, value } = await this.lines.next();
        if (done) throw new Error(`${this.child.spawnfile} says nothing`);
        return value;
    }

    async end(signal = "SIGTERM") {
        if (this.child.exitCode !== null || this.child.signalCode !== null) return;
        const ended = once(this.child, "exit");
        this.child.kill(signal);
        await ended;
    }
}

/** Fills a new store; returns the ids of its long task and of its question. */
export function fill(store, tasks, segments) {
    const args = [store, String(tasks), String(segments)];
    const text = execFileSync(program("tests/tools/board_store"), args, { encoding: "utf8" });
    return text.trim().split(" ");
}

export async function openBoard(store, ...options) {
    const board = new Program("proxy/segue-proxy", ["board", store, ...options]);
    [board.url, board.token] = (await board.line()).split("#token=");
    return board;
}

const META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {
        elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} },
    },
};

/** Calls a tool of a server as a task; returns the id of the task. */
export async function startTask(url, name, args) {
    const body = JSON.stringify({
        jsonrpc: "2.0", id: 1, method: "tools/call",
        params: { name, arguments: args, _meta: META },
    });
    const request = http.request(url, {
        method: "POST",
        headers: {
            "Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28",
            Accept: "application/json, text/event-stream",
            "Mcp-Method": "tools/call", "Mcp-Name": name,
        },
    });
    request.end(body);
    const [answer] = await once(request, "response");
    let text = "";
    for await (const part of answer) text += part;
    const id = /"taskId":"([^"]+)"/.exec(text);
    if (!id) throw new Error(`no task: ${text}`);
    return id[1];
}

/** Stands between a page and its server, and cuts them off. */
export class Cutter {
    #sockets = new Set();

    constructor(url) {
        this.target = new URL(url);
    }

    async open(port = 0) {
        this.server = net.createServer((socket) => {
            const other = net.connect(Number(this.target.port), this.target.hostname);
            for (const one of [socket, other]) {
                this.#sockets.add(one);
                one.on("error", () => {});
                one.on("close", () => {
                    this.#sockets.delete(one);
                    socket.destroy();
                    other.destroy();
                });
            }
            socket.pipe(other).pipe(socket);
        });
        this.server.listen(port, "127.0.0.1");
        await once(this.server, "listening");
        this.port = this.server.address().port;
        this.url = `http://127.0.0.1:${this.port}/`;
    }

    async cut() {
        const closed = once(this.server, "close");
        this.server.close();
        for (const socket of this.#sockets) socket.destroy();
        await closed;
    }

    mend() {
        return this.open(this.port);
    }
}
