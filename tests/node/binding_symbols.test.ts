/**
 * The libraries whose symbols the addon uses. Node's executable has its own OpenSSL,
 * zlib, nghttp2 and others, and exports their symbols. A library of the addon that used
 * one of them would mix two versions in one object. So the dynamic linker logs each
 * binding that it makes while a server over TLS is called.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { PACKAGE } from "./tree.js";

const scratch = mkdtempSync(path.join(tmpdir(), "segue-bindings-"));
after(() => rmSync(scratch, { recursive: true }));

/** One binding: a symbol that `from` uses, and that `to` defines. */
interface Binding {
    readonly from: string;
    readonly to: string;
    readonly symbol: string;
}

const PROGRAM = `
    const { connect, Server } = require(process.argv[1]);
    async function main() {
        const [cert, key] = process.argv.slice(2);
        const server = new Server({ name: "bindings" });
        server.tool("hello", {}, () => "hello");
        const tls = { certFile: cert, keyFile: key };
        const listener = await server.listenHttp({ port: 0, ...tls });
        const session = await connect(listener.url, { tls: { caFile: cert }, proxy: "" });
        console.log((await session.call("hello")).text);
        await session.close();
        await listener.close();
    }
    main();
`;

function run(): Binding[] {
    const cert = path.join(scratch, "cert.pem");
    const key = path.join(scratch, "key.pem");
    const name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const files = ["-keyout", key, "-out", cert];
    execFileSync("openssl", ["req", "-x509", ...kind, ...name, ...files], {
        stdio: "ignore",
    });
    const said = execFileSync(process.execPath, ["-e", PROGRAM, PACKAGE, cert, key], {
        encoding: "utf8",
        env: {
            ...process.env,
            LD_DEBUG: "bindings",
            LD_DEBUG_OUTPUT: path.join(scratch, "ld"),
        },
    });
    assert.equal(said.trim(), "hello");
    const line = /binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `([^']+)'/g;
    return readdirSync(scratch)
        .filter((file) => file.startsWith("ld."))
        .flatMap((file) => [
            ...readFileSync(path.join(scratch, file), "utf8").matchAll(line),
        ])
        .map(([, from, to, symbol]) => ({
            from: path.basename(String(from)),
            to: path.basename(String(to)),
            symbol: String(symbol),
        }));
}

const bindings = run();
const NODE = path.basename(process.execPath);
const OURS = /^(segue\.node|lib(curl|ssl|crypto|websockets|ev|sqlite3|nghttp2|z)\b.*)$/;

function wantedOf(from: RegExp, symbol: RegExp): Binding[] {
    const found = bindings.filter(
        (one) => from.test(one.from) && symbol.test(one.symbol),
    );
    assert.notEqual(found.length, 0, `nothing binds ${symbol}`);
    return found;
}

test("what is ours takes nothing of Node but Node-API", () => {
    const taken = bindings.filter(
        ({ from, to, symbol }) =>
            to === NODE && OURS.test(from) && !/^napi_/.test(symbol),
    );
    assert.deepEqual(taken, []);
});

test("OpenSSL, zlib and nghttp2 are those that the libraries were built with", () => {
    const rules: [RegExp, RegExp, RegExp][] = [
        [/^segue\.node$/, /^(EVP|SSL|X509|BIO)_/, /^lib(crypto|ssl)\.so\./],
        [/^libcurl\./, /^(EVP|SSL|X509|BIO)_/, /^lib(crypto|ssl)\.so\./],
        [/^libwebsockets\./, /^(EVP|SSL|X509|BIO)_/, /^lib(crypto|ssl)\.so\./],
        [/^libcurl\./, /^nghttp2_/, /^libnghttp2\.so\./],
        [/^libcurl\./, /^inflate/, /^libz\.so\./],
        [/^segue\.node$/, /^sqlite3_/, /^libsqlite3\.so\./],
        [/^segue\.node$/, /^ev_/, /^libev\.so\./],
    ];
    for (const [from, symbol, to] of rules) {
        const others = wantedOf(from, symbol).filter((one) => !to.test(one.to));
        assert.deepEqual(others, []);
    }
});

test("nothing of Node takes what we brought", () => {
    const taken = bindings.filter(({ from, to }) => from === NODE && OURS.test(to));
    assert.deepEqual(taken, []);
});
