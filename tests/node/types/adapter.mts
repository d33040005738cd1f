// The transport as the official SDK sees it, with all checks of TypeScript.
// (adapter_mcp.test.ts has 1.x, whose own declarations do not pass them.)
import { Client } from "@modelcontextprotocol/client";
import { OAuth } from "segue-mcp";
import { SegueTransport, type SegueTransportOptions } from "segue-mcp/adapters/mcp";

const info = { name: "types", version: "1" };
const options: SegueTransportOptions = { auth: new OAuth(), headers: { "X-More": "7" } };

const client = new Client(info);
await client.connect(new SegueTransport("http://127.0.0.1:1/mcp", options));
await client.connect(new SegueTransport(["node", "server.mjs"], { cwd: "/" }));

// @ts-expect-error: log messages are the client's
new SegueTransport("http://127.0.0.1:1/mcp", { onLog: () => undefined });
