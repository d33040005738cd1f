/** `segue-mcp install`: enters a server into the configuration of a host. */

import fs from "node:fs";
import path from "node:path";
import { nearest } from "../names.js";
import type { Server } from "../server/server.js";
import { guardOutput } from "../server/stdio.js";
import { Exit, UsageError } from "./codes.js";
import { HOSTS, type Host, placeOf, RESTART } from "./hosts.js";
import { getMember, setMember, TextError } from "./jsontext.js";
import { load, type Source, showFailure } from "./loading.js";
import { loaders, withoutLoaders } from "./node_options.js";

/** What to install: the options of the command line. */
export interface Wish {
    readonly source: Source;
    readonly words: readonly string[];
    readonly name: string | undefined;
    readonly env: readonly string[];
    readonly store: string | undefined;
    readonly isProject: boolean;
    readonly config: string | undefined;
    readonly isDry: boolean;
}

/**
 * Enters the server of a file into the configuration of a host. The file is loaded first,
 * so a server that cannot start is not entered.
 *
 * @returns the exit code.
 * @throws UsageError: the host is unknown, or its configuration cannot be changed.
 */
export async function install(hostName: string, wish: Wish): Promise<number> {
    const host = hostOf(hostName);
    const env = Object.fromEntries(wish.env.map(variable));
    const file = placeFor(host, hostName, wish);
    const restore = guardOutput();
    let server: Server;
    try {
        server = await load(wish.source, wish.words);
    } catch (error) {
        return showFailure(error);
    } finally {
        restore();
    }
    const name = wish.name ?? nameOf(server);
    const command = commandOf(wish);
    const before = read(file);
    const place = [host.member ?? "mcpServers", name];
    let after: string;
    let had: boolean | undefined;
    try {
        had = getMember(before ?? "", place, host.hasComments ?? false);
        after = changed(host, before ?? "", place, command, env);
    } catch (error) {
        if (!(error instanceof TextError)) throw error;
        throw new UsageError(
            `${file} is not changed, because it is broken: ${error.message}`,
        );
    }
    if (after === before) {
        say(`${host.title} has the server ${name} already: ${file}`);
        return Exit.OK;
    }
    if (wish.isDry) {
        say(`${file} would be:\n${after}`);
        process.stderr.write("Nothing was written (--dry-run).\n");
        return Exit.OK;
    }
    const backup = write(file, before, after);
    const done = had === undefined ? "Added" : "Changed";
    say(`${done} the server ${name} of ${host.title}: ${file}`);
    say(`It runs: ${command.map(quoted).join(" ")}`);
    if (backup !== undefined) say(`The file before the change: ${backup}`);
    say(host.next ?? RESTART);
    return Exit.OK;
}

function say(text: string): void {
    process.stdout.write(text.endsWith("\n") ? text : `${text}\n`);
}

function quoted(word: string): string {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

function hostOf(name: string): Host {
    const host = Object.hasOwn(HOSTS, name) ? HOSTS[name] : undefined;
    if (host) return host;
    const names = Object.keys(HOSTS);
    const meant = nearest(name, names);
    const hint = meant ? `did you mean ${meant}?` : `there are ${names.join(", ")}`;
    throw new UsageError(`unknown host '${name}'; ${hint}`);
}

function variable(text: string): [string, string] {
    const found = /^([^=]+)(?:=([\s\S]*))?$/.exec(text);
    if (!found) throw new UsageError(`'${text}' is not of the form KEY=VALUE`);
    const name = found[1] as string;
    const value = found[2] ?? process.env[name];
    if (value === undefined) {
        throw new UsageError(`--env ${name}: there is no such environment variable here`);
    }
    // The command has the modules that are loaded first, with their whole paths.
    return [name, name === "NODE_OPTIONS" ? withoutLoaders(value) : value];
}

/** Returns the file to change. If it is a link, this is the file to which it leads. */
function placeFor(host: Host, hostName: string, wish: Wish): string {
    let file = wish.config ?? (wish.isProject ? host.project : placeOf(host));
    if (file === undefined) {
        throw new UsageError(`${hostName} has no configuration for one project`);
    }
    file = path.resolve(file);
    try {
        return fs.realpathSync(file);
    } catch {
        return file; // it does not exist
    }
}

function nameOf(server: Server): string {
    const name = server.name.replace(/[^A-Za-z0-9_-]+/g, "-");
    return name.replace(/^-+|-+$/g, "") || "server";
}

/**
 * Returns the command for the host. A host has its own PATH and its own working
 * directory, so all paths are absolute.
 */
function commandOf(wish: Wish): string[] {
    const { file, name } = wish.source;
    const main = path.join(__dirname, "main.js");
    const command = [process.execPath, ...loaders(), main, "run"];
    command.push(name === undefined ? file : `${file}:${name}`);
    if (wish.store !== undefined) {
        const isUrl = wish.store.includes("://");
        command.push("--store", isUrl ? wish.store : path.resolve(wish.store));
    }
    return wish.words.length ? [...command, "--", ...wish.words] : command;
}

/**
 * Returns the configuration with the entry. Of an entry that has a command, other members
 * and variables stay.
 */
function changed(
    host: Host,
    text: string,
    place: readonly string[],
    command: readonly string[],
    env: { readonly [name: string]: string },
): string {
    const { hasComments = false, env: variables = "env" } = host;
    const members = host.hasList
        ? { ...host.extra, command }
        : { ...host.extra, command: command[0], args: command.slice(1) };
    if (getMember(text, [...place, "command"], hasComments) === undefined) {
        const more = Object.keys(env).length ? { [variables]: env } : {};
        return setMember(text, place, { ...members, ...more }, hasComments);
    }
    for (const [name, value] of Object.entries(members)) {
        text = setMember(text, [...place, name], value, hasComments);
    }
    for (const [name, value] of Object.entries(env)) {
        text = setMember(text, [...place, variables, name], value, hasComments);
    }
    return text;
}

// ---- the file

function read(file: string): string | undefined {
    let bytes: Buffer;
    try {
        bytes = fs.readFileSync(file);
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
        throw new UsageError((error as Error).message);
    }
    try {
        // ignoreBOM: the mark stays in the text
        return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
        throw new UsageError(`${file} is not changed, because it is not UTF-8`);
    }
}

/**
 * Writes the file in one step, so that nobody sees a part of it. @returns the path of the
 * copy of the file before, which keeps its mode.
 */
function write(
    file: string,
    before: string | undefined,
    after: string,
): string | undefined {
    const made = path.join(path.dirname(file), `.${path.basename(file)}.${process.pid}`);
    try {
        fs.mkdirSync(path.dirname(file), { recursive: true });
        const backup = before === undefined ? undefined : copy(file);
        const descriptor = fs.openSync(made, "wx", 0o600);
        try {
            fs.writeFileSync(descriptor, after);
            fs.fsyncSync(descriptor);
        } finally {
            fs.closeSync(descriptor);
        }
        if (before !== undefined) fs.chmodSync(made, fs.statSync(file).mode & 0o7777);
        if (read(file) !== before) {
            throw new UsageError(`${file} was changed meanwhile: try again`);
        }
        fs.renameSync(made, file);
        return backup;
    } catch (error) {
        fs.rmSync(made, { force: true });
        throw error instanceof UsageError
            ? error
            : new UsageError((error as Error).message);
    }
}

/** Copies the file to a name that is new. */
function copy(file: string): string {
    const now = new Date();
    const two = (number: number): string => String(number).padStart(2, "0");
    const day = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`;
    const time = `${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`;
    for (let number = 0; ; number++) {
        const more = number ? `-${number}` : "";
        const backup = `${file}.${day}-${time}${more}.bak`;
        try {
            fs.copyFileSync(file, backup, fs.constants.COPYFILE_EXCL);
            fs.chmodSync(backup, fs.statSync(file).mode & 0o7777);
            return backup;
        } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
        }
    }
}
