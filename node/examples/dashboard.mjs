/**
 * What an operator sees of a server: its metrics for Prometheus at /metrics, and its
 * tasks as a web page at /board. The program uses the server and prints a table of the
 * metrics. core/docs/recipes has a dashboard for Grafana and alerts for the same
 * metrics.
 *
 *     node dashboard.mjs          starts the server, calls it, prints the table
 *     node dashboard.mjs serve    serves at http://127.0.0.1:8000
 */
import { connect, Server, ToolError } from "segue-mcp";
import { z } from "zod";

const server = new Server({ name: "dashboard" });

server.tool(
    "divide",
    { description: "Divides a by b.", input: { a: z.number(), b: z.number() } },
    ({ a, b }) => {
        if (b === 0) throw new ToolError("division by zero");
        return a / b;
    },
);

server.tool("slow", { description: "Is a task.", task: "must" }, () => "done");

/** Returns the tool, the kind of end and the number of its calls. */
function rows(text) {
    const found = [];
    for (const [, labels, value] of text.matchAll(
        /^segue_calls_total\{(.*)\} (\d+)$/gm,
    )) {
        const row = Object.fromEntries(
            [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, text]) => [
                name,
                text,
            ]),
        );
        found.push([row.gen_ai_tool_name, row.error_type ?? "ok", value]);
    }
    return found.sort();
}

const PATHS = { metricsPath: "/metrics", boardPath: "/board" };

async function main() {
    const listener = await server.listenHttp(PATHS);
    const session = await connect(listener.url);
    for (const b of [1, 2, 0, 4]) {
        await session.call("divide", { a: 8, b }, { throwOnError: false });
    }
    await session.call("slow", {});
    await session.close();
    const metrics = await fetch(new URL("/metrics", listener.url));
    const board = await fetch(new URL("/board/", listener.url));
    console.log("tool    end         calls");
    for (const [tool, end, calls] of rows(await metrics.text())) {
        console.log(`${tool.padEnd(8)}${end.padEnd(12)}${calls}`);
    }
    console.log("board:", board.status);
    await board.text();
    await server.close();
}

if (process.argv[2] === "serve") await server.listenHttp({ port: 8000, ...PATHS });
else await main();
