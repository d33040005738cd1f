/**
 * The code blocks of node/README.md run, in the order of the page, in one program. Blocks
 * for a server extend one server; blocks for clients run with a session of that server.
 * (guide_types.mjs checks their types.)
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import * as segue from "segue-mcp";
import { PACKAGE, TREE } from "./tree.js";

interface Block {
    readonly before: string;
    readonly language: string;
    readonly code: string;
}

const { blocks } = (await import(path.join(TREE, "tests/node/page.mjs"))) as {
    blocks(text: string): Block[];
};
const TEXT = readFileSync(path.join(TREE, "node/README.md"), "utf8");
const ENV = path.join(PACKAGE, "../..");
const scratch = mkdtempSync(path.join(ENV, "guide-"));
after(() => rmSync(scratch, { recursive: true }));

const IMPORT = /^import \{([^}]*)\} from "([^"]+)";\n/gm;
const LISTENING = /^const listener = .*\n.*listener\.url.*\n/gm;

function programs(text: string): string[] {
    return blocks(text)
        .filter(
            ({ before, language }) => language === "js" && !/client\.mjs/.test(before),
        )
        .map(({ code }) => code.replace(LISTENING, ""));
}

/** Makes one program of the blocks. Each block for clients has names of its own, and sees
 * those of the blocks before it. */
function assemble(): string {
    const [ofServers = "", ofClients = ""] = TEXT.split("\n## Clients\n");
    const names = new Map<string, Set<string>>([
        ["segue-mcp", new Set(["Server", "connect", "stores", "TokenFile"])],
    ]);
    const bare = (code: string): string =>
        code.replace(IMPORT, (_, list: string, from: string) => {
            const known = names.get(from) ?? new Set();
            for (const name of list.split(",")) known.add(name.trim());
            names.set(from, known.delete("") ? known : known);
            return "";
        });
    const servers = programs(ofServers).map(bare);
    const clients = programs(ofClients).map(bare);
    assert.ok(servers.length >= 4 && clients.length >= 6);
    const open = clients.map((code) =>
        /^const session = /m.test(code)
            ? `{\n${code}}\n`
            : code.replace(/^const (\w+) =/gm, "var $1 ="),
    );
    const imports = [...names].map(
        ([from, list]) => `import { ${[...list].join(", ")} } from "${from}";\n`,
    );
    const session = "const session = await connect(server);\n";
    return [...imports, ...servers, session, ...open, "await session.close();\n"].join(
        "",
    );
}

test("the blocks that call run", () => {
    const file = path.join(scratch, "guide.mjs");
    writeFileSync(file, assemble());
    writeFileSync(path.join(scratch, "seal.key"), randomBytes(32));
    const done = spawnSync(process.execPath, [file], {
        cwd: scratch,
        encoding: "utf8",
        env: { ...process.env, SEGUE_TOKENS: path.join(scratch, "tokens.json") },
        timeout: 120_000,
    });
    assert.equal(done.status, 0, done.stderr);
    for (const line of ["quick-start 2026-07-28", "9900", "5 5", "50", "true"]) {
        assert.ok(done.stdout.includes(`${line}\n`), `${line}: not in\n${done.stdout}`);
    }
});

test("the page names the errors that callers see", () => {
    const internal = new Set([
        "SegueError",
        "FatalError",
        "OutOfMemoryError",
        "ReentrantError",
        "ThreadError",
        "TooSmallError",
        "VersionError",
        "WouldBlockError",
        "ExistsError",
        "NotFoundError",
        "EndedError",
        "NotAsked",
        "UnsupportedError",
    ]);
    const errors = Object.entries(segue)
        .filter(([, value]) => typeof value === "function")
        .filter(
            ([, value]) => (value as { prototype?: unknown }).prototype instanceof Error,
        )
        .map(([name]) => name);
    assert.ok(errors.length > 20);
    const missing = errors.filter(
        (name) => !internal.has(name) && !TEXT.includes(`\`${name}\``),
    );
    assert.deepEqual(missing, []);
});

test("the page has the figures of the code", () => {
    const source = readFileSync(path.join(TREE, "node/src/runtime.ts"), "utf8");
    const [, budget] = /^const BUDGET_MS = ([\d.]+);$/m.exec(source) ?? [];
    assert.ok(budget);
    assert.match(TEXT, new RegExp(`batches of at most ${budget} ms`));
});
