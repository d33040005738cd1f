/**
 * A server of the Node SDK that is killed and started again on its file, for
 * bench_outage:
 *
 *     outage_server.js FILE PORT
 *
 * Prints its port, and on a second line the time in ns (CLOCK_MONOTONIC) at which it
 * listened. The tool sends a segment every 2 ms.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Server } from "segue-mcp";

const [store, port] = process.argv.slice(2);
const server = new Server({ name: "bench" });
const input = { type: "object", properties: { us: { type: "integer" } } };
server.tool("tick", { input, task: "must", restartable: true }, async function* () {
    for (;;) {
        yield `tick ${process.pid}`;
        await sleep(2);
    }
});
const listener = await server.listenHttp({ port: Number(port), store });
console.log(`${new URL(listener.url).port}\n${process.hrtime.bigint()}`);
