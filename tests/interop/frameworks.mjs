// Frameworks of agents for Node and a server.  frameworks.mjs FRAMEWORK adapter|own SERVER COMMAND...
// adapter: by Segue's client and its adapter; own: by the framework's own client of MCP.
import { equal, runCells } from './cells.mjs';

const [framework, way, server, command, ...args] = process.argv.slice(2);
const { env } = process;
const desk = server.startsWith('desk');
const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 }
};

// Runs an agent whose model calls one tool. Returns what the model then sees.
async function roundOfAi(tools, toolName, input) {
    const { generateText, stepCountIs } = await import('ai');
    const { MockLanguageModelV3 } = await import('ai/test');
    let seen;
    const model = new MockLanguageModelV3({
        doGenerate: async ({ prompt }) => {
            const last = prompt.at(-1);
            const isEnd = last.role === 'tool';
            if (isEnd) seen = last.content;
            const asked = { type: 'tool-call', toolCallId: 'c1', toolName, input: JSON.stringify(input) };
            return {
                content: isEnd ? [{ type: 'text', text: 'done' }] : [asked],
                finishReason: { unified: isEnd ? 'stop' : 'tool-calls', raw: undefined },
                usage, warnings: []
            };
        }
    });
    await generateText({ model, tools, prompt: 'go', stopWhen: stepCountIs(3) });
    return seen;
}

async function roundOfLangchain(tools, name, given) {
    const tool = tools.find(one => one.name === name);
    const call = { name, args: given, id: 'c1', type: 'tool_call' };
    return tool.invoke(call).then(({ content }) => content, String);
}

const ways = {
    async 'ai adapter'() {
        const { connect } = await import('segue-mcp');
        const { tools } = await import('segue-mcp/adapters/ai');
        const session = await connect([command, ...args]);
        return [await tools(session), () => session.close()];
    },
    async 'langchain adapter'() {
        const { connect } = await import('segue-mcp');
        const { tools } = await import('segue-mcp/adapters/langchain');
        const session = await connect([command, ...args]);
        return [await tools(session), () => session.close()];
    },
    async 'ai own'() {
        const { createMCPClient } = await import('@ai-sdk/mcp');
        const { Experimental_StdioMCPTransport: Stdio } = await import('@ai-sdk/mcp/mcp-stdio');
        const client = await createMCPClient({ transport: new Stdio({ command, args, env }) });
        return [await client.tools(), () => client.close()];
    },
    async 'langchain own'() {
        const { MultiServerMCPClient } = await import('@langchain/mcp-adapters');
        const desk = { transport: 'stdio', command, args, env };
        const client = new MultiServerMCPClient({ mcpServers: { desk } });
        return [await client.getTools(), () => client.close()];
    }
};

const [tools, close] = await ways[`${framework} ${way}`]();
const round = { ai: roundOfAi, langchain: roundOfLangchain }[framework];
const call = async (name, given) => JSON.stringify(await round(tools, name, given));
const has = (found, part) => equal(found.includes(part), true, `${part} in ${found.slice(0, 150)}`);

await runCells(desk ? {
    async 'a structured result'() {
        const found = await call('offer', { nights: 2, arrives: '2026-12-01' });
        for (const part of ['160', '2026-12-03']) has(found, part);
    },
    async 'a report'() {
        has(await call('report', { city: 'Bern' }), 'Day 3 in Bern');
    },
    async 'an error that the model reads'() {
        has(await call('cancel', { trip: '7' }), 'There is no trip 7');
    }
} : {
    async 'a call'() {
        has(await call('echo', { message: 'hello' }), 'hello');
    },
    async 'an image'() {
        has(await call('get-tiny-image', {}), 'iVBOR');
    }
});
await close();
