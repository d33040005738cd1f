/** The command `segue-mcp`: `run`, `dev` and `install`, and their options. */

import path from "node:path";
import { type ParseArgsConfig, parseArgs } from "node:util";
import type { ListenOptions } from "../server/options.js";
import { Exit, showError, UsageError } from "./codes.js";
import { dev } from "./dev.js";
import { HELP } from "./help.js";
import { install } from "./installing.js";
import { packageOf, parseSource, type Source } from "./loading.js";
import { run, type Wish } from "./run.js";

const text = { type: "string" } as const;
const many = { type: "string", multiple: true } as const;
const flag = { type: "boolean" } as const;
const SERVED = { store: text, path: text, drain: text };
const OPTIONS: { readonly [command: string]: NonNullable<ParseArgsConfig["options"]> } = {
    run: {
        ...SERVED,
        http: text,
        "metrics-path": text,
        "board-path": text,
        tokens: text,
        host: many,
        origin: many,
        cert: text,
        key: text,
        log: text,
    },
    dev: { ...SERVED, http: text, stdio: flag },
    install: {
        name: text,
        env: many,
        store: text,
        project: flag,
        config: text,
        "dry-run": flag,
    },
};

/** The options of the command line. `parseArgs` has checked their types. */
interface Given {
    readonly store?: string;
    readonly path?: string;
    readonly drain?: string;
    readonly http?: string;
    readonly "metrics-path"?: string;
    readonly "board-path"?: string;
    readonly tokens?: string;
    readonly host?: string[];
    readonly origin?: string[];
    readonly cert?: string;
    readonly key?: string;
    readonly log?: string;
    readonly stdio?: boolean;
    readonly name?: string;
    readonly env?: string[];
    readonly project?: boolean;
    readonly config?: string;
    readonly "dry-run"?: boolean;
    readonly help?: boolean;
}

/** The options that need HTTP. */
const OVER_HTTP = [
    "path",
    "metrics-path",
    "board-path",
    "host",
    "origin",
    "tokens",
    "cert",
    "key",
] as const;

function wishOf(given: Given, http: string | undefined): Wish {
    const wrong =
        http === undefined && OVER_HTTP.find((name) => given[name] !== undefined);
    if (wrong)
        throw new UsageError(`--${wrong} needs --http: there is no HTTP over stdio`);
    const drain = Number(given.drain ?? 10);
    if (!(drain >= 0))
        throw new UsageError(`--drain: '${given.drain}' is no number of seconds`);
    if (given.log !== undefined && given.log !== "json")
        throw new UsageError(`--log: '${given.log}' is no form of a log: use json`);
    const options = {
        store: given.store,
        path: given.path,
        metricsPath: given["metrics-path"],
        boardPath: given["board-path"],
        tokensFile: given.tokens,
        hosts: given.host,
        origins: given.origin,
        certFile: given.cert,
        keyFile: given.key,
        drainMs: given.drain === undefined ? undefined : drain * 1000,
    };
    const entries = Object.entries(options).filter(([, value]) => value !== undefined);
    return {
        http,
        logs: given.log !== undefined,
        options: Object.fromEntries(entries) as ListenOptions,
    };
}

function parse(command: string, args: readonly string[]): [Given, string[], string[]] {
    const end = args.indexOf("--");
    const words = end < 0 ? [] : args.slice(end + 1);
    try {
        const { values, positionals } = parseArgs({
            args: end < 0 ? [...args] : args.slice(0, end),
            options: { ...OPTIONS[command], help: { type: "boolean", short: "h" } },
            allowPositionals: true,
        });
        return [values as Given, positionals, words];
    } catch (error) {
        throw new UsageError((error as Error).message);
    }
}

/**
 * Returns the source, unless another copy of the package has to do the work: that which
 * the file imports, because both have state that they do not share.
 */
function sourceOf(textOfFile: string | undefined): Source {
    if (textOfFile === undefined) throw new UsageError("no file is given: see --help");
    return parseSource(textOfFile);
}

function otherCopy(source: Source): ((args: string[]) => Promise<void>) | undefined {
    const root = packageOf(source.file);
    const own = path.dirname(path.dirname(__dirname));
    if (root === undefined || root === own) return undefined;
    try {
        return require(path.join(root, "dist", "cli", "main.js")).main;
    } catch {
        return undefined; // a version without this command
    }
}

async function act(args: string[]): Promise<void> {
    const [command = "", ...rest] = args;
    const help = HELP[command];
    if (help === undefined) throw new UsageError(`there is no command ${command}`);
    const [given, places, words] = parse(command, rest);
    if (given.help) {
        process.stdout.write(help);
        return;
    }
    const isInstall = command === "install";
    if (isInstall && places.length === 0)
        throw new UsageError("no host is given: see --help");
    if (places.length > (isInstall ? 2 : 1)) {
        throw new UsageError(
            `unexpected argument '${places.at(-1)}'; arguments of the file come after --`,
        );
    }
    const source = sourceOf(places[isInstall ? 1 : 0]);
    const other = otherCopy(source);
    if (other) {
        await other(args);
    } else if (isInstall) {
        process.exitCode = await install(places[0] ?? "", {
            source,
            words,
            name: given.name,
            env: given.env ?? [],
            store: given.store,
            isProject: given.project ?? false,
            config: given.config,
            isDry: given["dry-run"] ?? false,
        });
    } else if (command === "dev") {
        const http = given.stdio ? "127.0.0.1:0" : (given.http ?? "127.0.0.1:8000");
        process.exitCode = await dev(
            source,
            words,
            wishOf(given, http),
            given.stdio ?? false,
        );
    } else {
        await run(source, words, wishOf(given, given.http));
    }
}

/** Runs the command with these arguments, and sets the exit code of the process. */
export async function main(args: string[]): Promise<void> {
    try {
        await act(args);
    } catch (error) {
        showError(error);
        process.exitCode = error instanceof UsageError ? Exit.USAGE : Exit.CONNECTION;
    }
    // A file that was loaded may have opened something.
    if (args[0] === "install" || args[0] === "dev") process.exit();
}

if (require.main === module) void main(process.argv.slice(2));
