// The same for a program that is CommonJS.
import { connect, type Result, SegueError, Server } from "segue-mcp";

import segue = require("segue-mcp");

async function main(): Promise<void> {
    const server: segue.Server = new Server({ name: "types" });
    const session = await connect(server);
    const result: Result = await session.call("add");
    console.log(result.text, new SegueError("x") instanceof segue.SegueError);
    await session.close();
}

void main();
