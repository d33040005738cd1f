// Uses the server in Next with the clients of Segue and of the official SDK.  check.mjs URL
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { connect } from "segue-mcp";

const url = process.argv[2];

async function withSegue(era) {
    const session = await connect(url, {
        era,
        proxy: "",
        onElicit: () => ({ action: "accept", content: { value: true } }),
    });
    assert.equal((await session.call("add", { a: 1, b: 2 })).text, "3");
    // The first piece is here while the tool still runs.
    const pieces = [];
    for await (const { text } of session.stream("held")) {
        pieces.push(text);
        if (pieces.length === 1) await session.call("go_on");
    }
    assert.deepEqual(pieces, ["first\n", "second\n"]);
    assert.equal((await session.call("sure")).text, "true");
    const before = Number((await session.call("aborted")).text);
    const stop = new AbortController();
    const options = { signal: stop.signal, onProgress: () => stop.abort() };
    await assert.rejects(session.call("waits", {}, options));
    while (Number((await session.call("aborted")).text) === before);
    await session.close();
    console.log(`next: segue, ${era}, ok`);
}

async function withOfficial(mode, name) {
    const client = new Client(
        { name: "next", version: "0" },
        { versionNegotiation: { mode } },
    );
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    const { content } = await client.callTool({ name: "add", arguments: { a: 1, b: 2 } });
    assert.equal(content[0].text, "3");
    await client.close();
    console.log(`next: official client, ${name}, ok`);
}

for (const era of ["modern", "legacy"]) await withSegue(era);
await withOfficial({ pin: "2026-07-28" }, "modern");
await withOfficial("legacy", "legacy");
