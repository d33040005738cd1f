/**
 * segue-proxy in front of two servers, by the configuration in mcp.json: they are one
 * server, with the names and limits of that file, and a call survives the end of the
 * proxy.
 *
 *     node proxy.mjs          a client that starts the proxy and uses it
 *     npx segue-mcp proxy --config mcp.json --listen 127.0.0.1:8000 --store tasks.db
 */
import { fileURLToPath } from "node:url";
import { connect } from "segue-mcp";

const session = await connect(
    ["npx", "--no-install", "segue-mcp", "proxy", "--config", "mcp.json"],
    {
        cwd: fileURLToPath(new URL(".", import.meta.url)),
    },
);
const tools = await session.listTools();
for (const { name, description } of tools.sort((a, b) => a.name.localeCompare(b.name))) {
    console.log(`${name}: ${description}`);
}
for await (const { text } of session.stream("ask", {
    question: "How wrong is a clock?",
})) {
    process.stdout.write(text ?? "");
}
const { files, words } = (await session.call("summary", {})).structured;
console.log(`${files} files, ${words} words`);
await session.close();
