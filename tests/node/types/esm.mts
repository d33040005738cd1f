// The package as a TypeScript program that is an ES module sees it. It is only
// compiled, with the declarations and without the sources.
import {
    connect,
    isBlock,
    type Result,
    type Segment,
    SegueError,
    Server,
    ToolError,
    type UnknownContent,
} from "segue-mcp";
import { z } from "zod";

const server = new Server({ name: "types" });
server.tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => {
    const sum: number = a + b;
    return { sum };
});
server.tool("greet", { input: { name: z.string() } }, async function* ({ name }, ctx) {
    const told: string = name;
    await ctx.send(told);
    yield `Hello, ${told}`;
});
// @ts-expect-error: the arguments have what the schema says and nothing else
server.tool("wrong", { input: z.object({ a: z.number() }) }, ({ b }) => String(b));
// @ts-expect-error: each member has to be a Standard Schema
server.tool("nested", { input: { a: z.number(), o: { deep: z.boolean() } } }, () => "");
// @ts-expect-error: a member that is undefined is none
server.tool("absent", { input: { a: z.number(), b: undefined } }, () => "");
// @ts-expect-error: a JSON Schema has at least one of its keywords
server.tool("bare", { input: { a: { type: "number" } } }, () => "");
// @ts-expect-error: the members of `output`, too
server.tool("told", { output: { n: z.number(), o: {} } }, () => ({ n: 1 }));
// @ts-expect-error: and the arguments of a prompt
server.prompt("nested", { input: { a: z.string(), b: {} } }, () => "");
server.tool("json", { input: { type: "object", properties: {} } }, () => "");

server.tool("done", { output: { n: z.number() } }, async function* () {
    yield "begun";
    return { n: 1 };
});
// @ts-expect-error: what a generator returns has to fit `output`
server.tool("misfit", { output: { n: z.number() } }, async function* () {
    yield "begun";
    return { n: "x" };
});
server.tool("stream", () => new Response("text").body as AsyncIterable<Uint8Array>);
server.tool("video", () => ({ content: [{ type: "video", url: "https://a.example" }] }));

await using session = await connect(server);
const [block] = (await session.call("greet", { name: "Ada" })).content;
if (block?.type === "text") console.log(block.text.toUpperCase());
else if (block && !isBlock(block)) {
    const other: UnknownContent = block;
    console.log(other.type === "video", other.url);
}
const result: Result = await session.call("add", { a: 1, b: 2 });
const text: string = result.text;
for await (const segment of session.stream("greet", { name: text })) {
    const one: Segment = segment;
    console.log(one.number, one.text);
}
try {
    await session.call("greet", {}, { signal: AbortSignal.timeout(10) });
} catch (error) {
    if (error instanceof ToolError) console.log(error.result?.text);
    else if (error instanceof SegueError) console.log(error.code satisfies string);
}
