/**
 * Writes the JavaScript and TypeScript blocks of the guides as TypeScript modules, and
 * how strict the compiler must be with each.
 *
 * Usage: guide_types.mjs README.md... DIRECTORY
 *
 * The blocks of a page become one module, in their order; a block that makes its own
 * session stays in a scope of its own. The client of a quick start and the TypeScript
 * blocks become modules of their own.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { blocks } from "./page.mjs";

const IMPORT = /^import (?:type )?\{([^}]*)\} from "([^"]+)";\n/gm;

/** Joins the blocks to one module, with the imports first. */
function joined(codes, head) {
    const names = new Map(head);
    const bodies = codes.map((code) =>
        code.replace(IMPORT, (_, list, from) => {
            const known = names.get(from) ?? new Set();
            for (const name of list.split(",")) known.add(name.trim());
            names.set(from, known);
            return "";
        }),
    );
    const imports = [...names].map(
        ([from, list]) => `import { ${[...list].join(", ")} } from "${from}";\n`,
    );
    return [...imports, ...bodies].join("");
}

/** Returns [name, code] of each module that a page makes. */
function modules(text) {
    const found = [];
    const own = [];
    let clients = false;
    for (const [at, { before, language, code }] of blocks(text).entries()) {
        if (language === "ts" || (language === "js" && /client\.mjs/.test(before))) {
            found.push([`block${at}`, code]);
        } else if (language === "js") {
            const isOpen = /^const session = /m.test(code);
            if (!clients && /\bsession\./.test(code)) {
                clients = true;
                own.push("declare const session: Session;\n");
            }
            own.push(isOpen ? `{\n${code}}\n` : code);
        }
    }
    const head = [["segue-mcp", new Set(["connect", "Server", "type Session"])]];
    head[0][1].add("stores").add("TokenFile");
    found.push(["guide", joined(own, head)]);
    return found;
}

const pages = process.argv.slice(2);
const directory = pages.pop();
for (const page of pages) {
    const place = path.join(directory, path.basename(path.dirname(path.resolve(page))));
    mkdirSync(place, { recursive: true });
    for (const [name, code] of modules(readFileSync(page, "utf8"))) {
        writeFileSync(path.join(place, `${name}.mts`), code);
    }
}
const options = {
    target: "es2022",
    lib: ["es2023", "esnext.disposable"],
    types: ["node"],
    module: "nodenext",
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
};
writeFileSync(
    path.join(directory, "tsconfig.json"),
    JSON.stringify({ compilerOptions: options, include: ["**/*.mts"] }),
);
