// A server on the TypeScript SDK for our client.  ts_server.mjs [--legacy]
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const text = value => ({ content: [{ type: 'text', text: value }] });
const pause = ms => new Promise(resolve => setTimeout(resolve, ms));

async function takeSteps({ n, delayMs }, ctx) {
    const token = ctx.mcpReq._meta?.progressToken;
    for (let at = 1; at <= n; at++) {
        await pause(delayMs);
        await ctx.mcpReq.log('info', { step: at });
        if (token !== undefined)
            await ctx.mcpReq.notify({
                method: 'notifications/progress',
                params: { progressToken: token, progress: at, total: n }
            });
    }
    return text('arrived');
}

const media = {
    content: [
        { type: 'image', data: Buffer.from('\x89PNG', 'latin1').toString('base64'), mimeType: 'image/png' },
        { type: 'audio', data: Buffer.from('RIFF').toString('base64'), mimeType: 'audio/wav' },
        { type: 'resource', resource: { uri: 'test://x', mimeType: 'text/plain', text: 'inside' } }
    ]
};

function makeServer() {
    const server = new McpServer(
        { name: 'judged', version: '1.0.0' },
        { capabilities: { logging: {}, tools: { listChanged: true } } }
    );
    let extra;
    server.registerTool('greet', { inputSchema: z.object({ name: z.string().default('World') }) },
        ({ name }) => text(`Hello, ${name}!`));
    server.registerTool('repeat', { inputSchema: z.object({ text: z.string() }) },
        given => text(given.text));
    server.registerTool('big', { inputSchema: z.object({ bytes: z.number() }) },
        ({ bytes }) => text('x'.repeat(bytes)));
    server.registerTool('add', {
        inputSchema: z.object({ a: z.number(), b: z.number() }),
        outputSchema: z.object({ sum: z.number() })
    }, ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }));
    server.registerTool('steps', { inputSchema: z.object({ n: z.number(), delayMs: z.number() }) },
        takeSteps);
    server.registerTool('media', {}, () => media);
    server.registerTool('fail', {}, () => ({ ...text('failed on purpose'), isError: true }));
    server.registerTool('hang', {}, ctx => new Promise((_, reject) => {
        ctx.mcpReq.signal.addEventListener('abort', () => reject(new Error('cancelled')));
    }));
    server.registerTool('die', {}, () => process.exit(3));
    server.registerTool('toggle', {}, () => {
        if (extra) extra.remove();
        extra = extra ? undefined : server.registerTool('extra', {}, () => text('extra'));
        return text('changed');
    });
    return server;
}

if (process.argv.includes('--legacy')) await makeServer().connect(new StdioServerTransport());
else serveStdio(makeServer);
