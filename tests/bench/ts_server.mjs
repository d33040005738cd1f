// The official TypeScript SDK as a server over HTTP with the same tools, on node:http.
// Prints its port, and then its version.
//   ts_server.mjs DIRECTORY      which contains node_modules
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(path.resolve(process.argv[2], 'package.json'));
const { McpServer, createMcpHandler } = require('@modelcontextprotocol/server');
const { z } = require('zod');

function makeServer() {
    const server = new McpServer({ name: 'bench', version: '1.0.0' });
    server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) },
        ({ text }) => ({ content: [{ type: 'text', text }] }));
    server.registerTool('report', { inputSchema: z.object({ n: z.number() }) }, async ({ n }, { mcpReq }) => {
        const { progressToken } = mcpReq._meta;
        for (let progress = 1; progress <= n; progress++)
            await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: n } });
        return { content: [{ type: 'text', text: 'done' }] };
    });
    return server;
}

const handler = createMcpHandler(makeServer);

// The least work between the two: one Request, one Response, one write; for a stream, a
// write per piece.
async function serve(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const answer = await handler.fetch(new Request(`http://127.0.0.1${request.url}`, {
        method: request.method, headers: request.headers, body: Buffer.concat(chunks)
    }));
    if (answer.headers.get('content-type') === 'text/event-stream') {
        response.writeHead(answer.status, Object.fromEntries(answer.headers));
        for await (const chunk of answer.body) response.write(chunk);
        return response.end();
    }
    const body = Buffer.from(await answer.arrayBuffer());
    response.writeHead(answer.status, {
        ...Object.fromEntries(answer.headers), 'content-length': body.length
    });
    response.end(body);
}

const server = http.createServer(serve);
const place = path.resolve(process.argv[2], 'node_modules/@modelcontextprotocol/server/package.json');
const { version } = JSON.parse(fs.readFileSync(place, 'utf8'));
server.listen(0, '127.0.0.1', () => console.log(`${server.address().port}\nTypeScript SDK ${version}`));
