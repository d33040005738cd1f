// Compiles the package: build.mjs DIRECTORY. The implementation is CommonJS. For ES
// modules, each entry gets a wrapper that names the same exports. So programs of both
// module systems use the same classes and the same runtime.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.dirname(here);
const require = createRequire(path.join(root, "package.json"));
const ts = require("typescript");

const host = {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => process.cwd(),
    getNewLine: () => "\n",
};

function report(diagnostics) {
    if (diagnostics.length === 0) return;
    console.error(ts.formatDiagnostics(diagnostics, host));
    process.exitCode = 1;
}

/** The entries of the package that package.json names: "index", "adapters/mcp". */
function entries() {
    return Object.values(require("./package.json").exports)
        .filter((entry) => typeof entry === "object")
        .map((entry) => entry.require.default.replace(/^\.\/dist\/|\.js$/g, ""));
}

/** Returns the names of an entry's exports that exist at run time, without the types. */
function valuesOf(program, entry) {
    const checker = program.getTypeChecker();
    const source = program.getSourceFile(path.join(root, "src", `${entry}.ts`));
    const module = source && checker.getSymbolAtLocation(source);
    if (!module) throw new Error(`src/${entry}.ts is no module`);
    return checker
        .getExportsOfModule(module)
        .filter((symbol) => isValue(symbol, checker))
        .map((symbol) => symbol.name)
        .sort();
}

function isValue(symbol, checker) {
    if (symbol.declarations?.some((made) => ts.isTypeOnlyImportOrExportDeclaration(made)))
        return false;
    const alias = symbol.flags & ts.SymbolFlags.Alias;
    const target = alias ? checker.getAliasedSymbol(symbol) : symbol;
    return (target.flags & ts.SymbolFlags.Value) !== 0;
}

function wrap(directory, entry, names) {
    const base = path.basename(entry);
    const wrapper = `import module from "./${base}.js";\n
export const {\n${names.map((name) => `    ${name},\n`).join("")}} = module;\n`;
    writeFileSync(path.join(directory, `${entry}.mjs`), wrapper);
    // The types of a framework differ between its two module systems. So an entry that
    // names them has the same declarations for each. Two declarations of a class would be
    // two classes.
    const own = readFileSync(path.join(directory, `${entry}.d.ts`), "utf8");
    const isCopied = /\bfrom "[^.]/.test(own) && !/\bclass\b/.test(own);
    const types = isCopied ? own : `export * from "./${base}.js";\n`;
    writeFileSync(path.join(directory, `${entry}.d.mts`), types);
}

function main() {
    const directory = path.resolve(process.argv[2], "dist");
    const config = ts.getParsedCommandLineOfConfigFile(
        path.join(root, "tsconfig.json"),
        { outDir: directory },
        { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (one) => report([one]) },
    );
    const program = ts.createProgram(config.fileNames, config.options);
    const emitted = program.emit();
    report([...ts.getPreEmitDiagnostics(program), ...emitted.diagnostics]);
    for (const entry of entries()) {
        wrap(directory, entry, valuesOf(program, entry));
    }
}

main();
