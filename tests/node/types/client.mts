// What the client's types allow and what they refuse.
import {
    type Change,
    type ConnectOptions,
    connect,
    OAuth,
    type OnElicit,
    resume,
    type Tool,
} from "segue-mcp";

const onElicit: OnElicit = async ({ message }, { signal }) => {
    if (signal.aborted) return;
    return { action: "accept", content: { message } };
};
const options: ConnectOptions = {
    onElicit,
    onSample: ({ maxTokens }) => ({
        role: "assistant",
        content: { type: "text", text: maxTokens.toFixed() },
        model: "m",
    }),
    roots: ["file:///a", { uri: "file:///b" }],
    onLog: ({ level, data }) => console.log(level, data),
    auth: new OAuth({ grant: "client", clientId: "a", clientSecret: "b" }),
    tls: { rejectUnauthorized: false },
};
await using session = await connect({ command: "node", args: ["x.mjs"] }, options);
const tools: Tool[] = await session.listTools();
for await (const tool of session.listTools()) tools.push(tool satisfies Tool);
session.listPrompts().catch(() => []);
const changes = await session.subscribe({ uris: ["a:b"] }, (change: Change) => {
    if (change.kind === "resource") console.log(change.uri);
});
await changes.close();
for await (const change of await session.subscribe(["a:b"])) console.log(change.kind);
const task = await session.start("t", { a: 1 }, { ttlMs: 1000 });
const token: string | undefined = task.token;
if (token !== undefined) {
    await using again = await resume(token, new URL("http://127.0.0.1/mcp"));
    for await (const segment of again) console.log(segment.text);
}
const status = await task.status();
console.log(status.isFinal satisfies boolean, status.raw);

// @ts-expect-error: no target
connect(42);
// @ts-expect-error: nor is any object
connect({});
// @ts-expect-error: no such option
connect("http://127.0.0.1/mcp", { timeout: 1 });
// @ts-expect-error: no such option either
session.call("t", {}, { timeout: 1 });
// @ts-expect-error: no such thing to subscribe to
session.subscribe({ everything: true });
// @ts-expect-error: no such level
session.setLogLevel("loud");
