// The official TypeScript SDK as a server over HTTP with the same tool, on node:http.
// Prints its port.  ts_server.mjs DIRECTORY      which contains node_modules
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
    return server;
}

const handler = createMcpHandler(makeServer);

// The least work between the two: one Request, one Response, one write.
async function serve(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const answer = await handler.fetch(new Request(`http://127.0.0.1${request.url}`, {
        method: request.method, headers: request.headers, body: Buffer.concat(chunks)
    }));
    const body = Buffer.from(await answer.arrayBuffer());
    response.writeHead(answer.status, {
        ...Object.fromEntries(answer.headers), 'content-length': body.length
    });
    response.end(body);
}

const server = http.createServer(serve);
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
