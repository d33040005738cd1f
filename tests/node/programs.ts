/**
 * The C programs that tests of the client connect to. They are built with the core (`make
 * release`, or SEGUE_BUILD names another build).
 *
 * `serverCommand` is a server on its standard input and output, `HttpServer` the same
 * over HTTP, `CuttingProxy` cuts connections on request. They have the tools of
 * tests/support/fixtures.c and tests/interop/fixture_server.c.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import readline from "node:readline";
import { built } from "./tree.js";

/** Returns the path of a program of the build. */
export function program(name: string): string {
    const path = built(`tests/${name}`);
    assert.ok(existsSync(path), `${path} is not built; SEGUE_BUILD names another build`);
    return path;
}

/** Returns the command of a server on its standard input and output. */
export function serverCommand(...args: string[]): string[] {
    return [program("tools/fixture_server"), ...args];
}

/** A child process that prints lines. */
export class Program {
    readonly child: ChildProcess;
    private readonly lines: AsyncIterator<string>;

    constructor(command: readonly string[]) {
        const [name, ...args] = command;
        const stdio = ["pipe", "pipe", "inherit"] as const;
        this.child = spawn(name as string, args, { stdio: [...stdio] });
        assert.ok(this.child.stdout);
        this.lines = readline
            .createInterface({ input: this.child.stdout })
            [Symbol.asyncIterator]();
    }

    /** Reads one line of its output. */
    async line(): Promise<string> {
        const { done, value } = await this.lines.next();
        assert.ok(!done, `${this.child.spawnfile} says nothing`);
        return value as string;
    }

    say(line: string): void {
        this.child.stdin?.write(`${line}\n`);
    }

    async end(signal: NodeJS.Signals): Promise<void> {
        if (this.child.exitCode === null && this.child.signalCode === null) {
            const ended = once(this.child, "exit");
            this.child.kill(signal);
            await ended;
        }
    }
}

/** The fixture server over HTTP; it may be killed and started again on its port. */
export class HttpServer {
    url = "";
    port = 0; // 0 at first: a free one
    private program: Program | undefined;

    private constructor(private readonly args: readonly string[]) {}

    static async start(...args: string[]): Promise<HttpServer> {
        const server = new HttpServer(args);
        await server.start();
        return server;
    }

    /** Starts the server, on its earlier port if it had one. */
    async start(): Promise<void> {
        const options = ["--http", "127.0.0.1", "--port", String(this.port), "--drain"];
        this.program = new Program(serverCommand(...options, "1", ...this.args));
        const url = await this.program.line();
        assert.ok(this.url === "" || this.url === url, url);
        this.url = url;
        this.port = Number(/^http:\/\/127\.0\.0\.1:(\d+)\/mcp$/.exec(url)?.[1]);
        assert.ok(this.port, url);
    }

    /** Kills the server. */
    async kill(): Promise<void> {
        await this.program?.end("SIGKILL");
    }

    /** Asks the server to end, and waits for that. */
    async stop(): Promise<void> {
        await this.program?.end("SIGTERM");
    }
}

/** A proxy between a client and a server that cuts connections. */
export class CuttingProxy {
    url = "";

    private constructor(private readonly program: Program) {}

    static async start(server: HttpServer, ...args: string[]): Promise<CuttingProxy> {
        const target = `127.0.0.1:${server.port}`;
        const command = [program("tools/cutting_proxy"), "--target", target, ...args];
        const proxy = new CuttingProxy(new Program(command));
        const port = /^port (\d+)$/.exec(await proxy.program.line())?.[1];
        assert.ok(port);
        proxy.url = `http://127.0.0.1:${port}/mcp`;
        return proxy;
    }

    /** Sends one command, such as "cut rst"; returns the answer. */
    async say(line: string): Promise<string> {
        this.program.say(line);
        return this.program.line();
    }

    async stop(): Promise<void> {
        await this.program.end("SIGKILL");
    }
}
