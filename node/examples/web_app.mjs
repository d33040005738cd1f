/**
 * A web application with a mounted server: the page at / and the MCP server at /mcp are
 * one application on one port, and share their data. Express and others mount it the
 * same way.
 *
 *     node web_app.mjs          starts it, adds two notes as a client, reads the page
 *     node web_app.mjs serve    serves it at http://127.0.0.1:8000
 */
import { once } from "node:events";
import http from "node:http";
import { connect, Server } from "segue-mcp";
import { z } from "zod";

const notes = [];
const server = new Server({ name: "notes" });

server.tool(
    "add_note",
    { description: "Adds a note to the page.", input: { text: z.string() } },
    ({ text }) => notes.push(text),
);

const escapeHtml = (text) =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const mcp = server.handler();
const app = http.createServer((request, response) => {
    if (request.url === "/mcp") {
        mcp(request, response);
        return;
    }
    const items = notes.map((note) => `<li>${escapeHtml(note)}</li>`).join("");
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.end(`<h1>${notes.length} notes</h1><ul>${items}</ul>\n`);
});

async function main() {
    app.listen(0, "127.0.0.1");
    await once(app, "listening");
    const url = `http://127.0.0.1:${app.address().port}`;
    const session = await connect(`${url}/mcp`);
    for (const text of ["buy bread", "look at <the tides>"]) {
        console.log("note", (await session.call("add_note", { text })).text);
    }
    await session.close();
    const page = await fetch(url);
    process.stdout.write(await page.text());
    await mcp.close();
    app.closeAllConnections();
    app.close();
}

if (process.argv[2] === "serve") app.listen(8000, "127.0.0.1");
else await main();
