/** Tools of LangChain.js and LangGraph from a session: `tools: await tools(session)`.
 * Each segment is a custom event `segue_segment` of the run, which `streamEvents` yields
 * at once. The artifact of a tool message is the {@link Result}. */

import type { RunnableConfig } from "@langchain/core/runnables";
import type { DynamicStructuredTool } from "@langchain/core/tools";
import type { Session } from "../client/session.js";
import type { Result } from "../content.js";
import { type AdapterOptions, framework, partsOf, segmentsOf, textOf } from "./calls.js";

export type { AdapterOptions, Tokens } from "./calls.js";

type Config = RunnableConfig & { toolCall?: { id?: string } };

/** Returns the tools of the server. */
export async function tools(
    session: Session,
    options: AdapterOptions = {},
): Promise<DynamicStructuredTool[]> {
    const load = <T>(path: string): T =>
        framework("langchain", "@langchain/core", () =>
            require(`@langchain/core/${path}`),
        );
    const { tool: make } = load<typeof import("@langchain/core/tools")>("tools");
    const { dispatchCustomEvent } =
        load<typeof import("@langchain/core/callbacks/dispatch")>("callbacks/dispatch");
    const { onSegment, tokens } = options;
    return (await session.listTools()).map(({ name, description = "", inputSchema }) => {
        const run = async (
            input: unknown,
            config: Config,
        ): Promise<[unknown, Result]> => {
            const args = input as { [name: string]: unknown };
            const { signal, toolCall } = config;
            const wanted = { tool: name, args, id: toolCall?.id, signal, tokens };
            const running = segmentsOf(session, wanted);
            let step = await running.next();
            for (; !step.done; step = await running.next()) {
                const { number, text } = step.value;
                const told = { tool: name, number, text };
                await dispatchCustomEvent("segue_segment", told, config);
                await onSegment?.(name, step.value);
            }
            if (step.value.isError) throw new Error(textOf(step.value));
            return [contentOf(step.value), step.value];
        };
        const responseFormat = "content_and_artifact";
        return make(run, { name, description, schema: inputSchema, responseFormat });
    }) as unknown as DynamicStructuredTool[];
}

function contentOf(result: Result): unknown {
    const parts = partsOf(result);
    if (parts.every(({ type }) => type === "text")) return textOf(result);
    return parts.map((part) => {
        if (part.type === "text") return part;
        const { type, data, mimeType: mime_type } = part;
        return { type, source_type: "base64", data, mime_type };
    });
}
