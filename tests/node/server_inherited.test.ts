/** A server takes the listening socket that systemd, or another parent, hands to it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";
import { connect } from "segue-mcp";
import { PACKAGE } from "./tree.js";

const PROGRAM = `
    import { Server } from "segue-mcp";
    const server = new Server({ name: "inherited" });
    server.tool("pid", {}, () => String(process.pid));
    server.closeOnSignals();
    await server.listenHttp({ host: "systemd" });
`;
const AS_SYSTEMD = 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"';

test("a socket of systemd is served, also to who connected before", async () => {
    const listening = net.createServer().listen(0, "127.0.0.1");
    await once(listening, "listening");
    const { port } = listening.address() as net.AddressInfo;
    const { _handle } = listening as unknown as { _handle: { fd: number } };
    const node = [process.execPath, "--input-type=module", "-e", PROGRAM];
    const child = spawn("sh", ["-c", AS_SYSTEMD, "sh", ...node], {
        cwd: path.join(PACKAGE, "../.."),
        stdio: ["ignore", "inherit", "inherit", _handle.fd], // it is descriptor 3 there
    });
    const ended = once(child, "exit");
    listening.close(); // the child has it now
    try {
        const session = await connect(`http://127.0.0.1:${port}/mcp`);
        assert.equal((await session.call("pid", {})).text, String(child.pid));
        await session.close();
    } finally {
        child.kill("SIGTERM");
    }
    assert.deepEqual(await ended, [0, null]);
});
