/** Tools of the Vercel AI SDK (`ai`) from a session: `tools: await tools(session)`. The
 * output of a tool is a result of MCP; `streamText` gets it as it grows. */

import type { Tool, ToolSet } from "ai";
import type { Session } from "../client/session.js";
import { Result, type WireResult } from "../content.js";
import { type AdapterOptions, framework, partsOf, segmentsOf, textOf } from "./calls.js";

export type { AdapterOptions, Tokens } from "./calls.js";

/** Returns the tools of the server, by name. */
export async function tools(
    session: Session,
    options: AdapterOptions = {},
): Promise<ToolSet> {
    const { dynamicTool, jsonSchema } = framework("ai", "ai", () => require("ai"));
    const { onSegment, tokens } = options;
    const made: { [name: string]: Tool } = {};
    for (const { name, description, inputSchema } of await session.listTools()) {
        made[name] = dynamicTool({
            description,
            inputSchema: jsonSchema(inputSchema),
            async *execute(
                input: object,
                call: { toolCallId: string; abortSignal?: AbortSignal },
            ): AsyncGenerator<WireResult> {
                const { toolCallId: id, abortSignal: signal } = call;
                const args = input as { [name: string]: unknown };
                const running = segmentsOf(session, {
                    tool: name,
                    args,
                    id,
                    signal,
                    tokens,
                });
                let text = "";
                let step = await running.next();
                for (; !step.done; step = await running.next()) {
                    await onSegment?.(name, step.value);
                    text = (step.value.replaces ? "" : text) + String(step.value);
                    yield { content: [{ type: "text", text }] };
                }
                if (step.value.isError) throw new Error(textOf(step.value));
                yield step.value.toJSON();
            },
            toModelOutput({ output }: { output: WireResult }) {
                const value = partsOf(Result.of(output)).map((part) => {
                    if (part.type === "text") return part;
                    const { data, mimeType: mediaType } = part;
                    return { type: "file-data" as const, data, mediaType };
                });
                return { type: "content", value };
            },
        });
    }
    return made;
}
