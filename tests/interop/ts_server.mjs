// A server on the TypeScript SDK, or its version 1, for Segue's client.
//   ts_server.mjs [--legacy] [--sdk1] [--versions A,B] [--http PORT]
// Over HTTP it prints its URL and offers resumable sessions to clients of the handshake
// eras.
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { createMcpHandler, isLegacyRequest } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
// Version 2 accepts this store too, and has none of its own.
import { InMemoryEventStore } from '@modelcontextprotocol/sdk/examples/shared/inMemoryEventStore.js';
import { z } from 'zod';
import { addItems, itemCapabilities } from './ts_server_items.mjs';

const sdk1 = process.argv.includes('--sdk1');
const after = name => process.argv[process.argv.indexOf(name) + 1];
const versions = process.argv.includes('--versions') ? after('--versions').split(',') : undefined;
const legacyOnly = sdk1 || Boolean(versions) || process.argv.includes('--legacy');

async function load(...names) {
    return Object.assign({}, ...(await Promise.all(names.map(name => import(name)))));
}
const sdk = sdk1
    ? await load(...['server/mcp.js', 'server/stdio.js', 'server/webStandardStreamableHttp.js',
        'server/completable.js', 'types.js', 'experimental/tasks/stores/in-memory.js'
    ].map(name => `@modelcontextprotocol/sdk/${name}`))
    : await load('@modelcontextprotocol/server', '@modelcontextprotocol/server/stdio');
const { InMemoryTaskStore, McpServer, StdioServerTransport, WebStandardStreamableHTTPServerTransport } = sdk;
sdk.isVersion1 = sdk1;
const schemas = {
    'resources/subscribe': sdk.SubscribeRequestSchema, 'resources/unsubscribe': sdk.UnsubscribeRequestSchema
};
sdk.answer = (server, method, handle) =>
    server.server.setRequestHandler(sdk1 ? schemas[method] : method, handle);

// Version 2 has these members in mcpReq.
const requestOf = given => given.mcpReq ?? {
    ...given,
    notify: given.sendNotification,
    log: (level, data) => given.sendNotification({ method: 'notifications/message', params: { level, data } })
};

const text = value => ({ content: [{ type: 'text', text: value }] });
const pause = ms => new Promise(resolve => setTimeout(resolve, ms));

async function takeSteps({ n, delayMs }, given) {
    const request = requestOf(given);
    const token = request._meta?.progressToken;
    for (let at = 1; at <= n; at++) {
        await pause(delayMs);
        await request.log('info', { step: at });
        if (token !== undefined)
            await request.notify({
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

// Over HTTP requests of the modern era have a server each, and share this. told: the
// listeners that the modern era notifies of changes over HTTP.
let hasExtra = false;
const shared = { hasExtraItems: false, told: undefined };

function makeServer() {
    const server = new McpServer(
        { name: 'judged', version: '1.0.0' },
        {
            capabilities: {
                logging: {}, tools: { listChanged: true }, ...itemCapabilities,
                ...(sdk1 && { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } })
            },
            taskStore,
            ...(versions && { supportedProtocolVersions: versions })
        }
    );
    const addExtra = () => server.registerTool('extra', {}, () => text('extra'));
    let extra = hasExtra ? addExtra() : undefined;
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
        requestOf(ctx).signal.addEventListener('abort', () => reject(new Error('cancelled')));
    }));
    addItems(server, sdk, shared);
    if (sdk1) addTasks(server);
    server.registerTool('die', {}, () => process.exit(3));
    server.registerTool('toggle', {}, () => {
        hasExtra = !extra;
        if (extra) extra.remove();
        extra = hasExtra ? addExtra() : undefined;
        shared.told?.toolsChanged();
        return text('changed');
    });
    return server;
}

// Tasks of 2025-11-25, which version 2 does not have.
const taskStore = sdk1 ? new InMemoryTaskStore() : undefined;

function addTask(server, name, makeResult) {
    const inputSchema = { label: z.string().default(''), ms: z.number().default(100) };
    server.experimental.tasks.registerToolTask(name, { inputSchema, execution: { taskSupport: 'optional' } }, {
        async createTask({ label, ms }, { taskStore: store, taskRequestedTtl }) {
            const task = await store.createTask({ ttl: taskRequestedTtl, pollInterval: 50 });
            const { status, ...result } = makeResult(label);
            // A cancelled task accepts no result.
            pause(ms).then(() => store.storeTaskResult(task.taskId, status, result)).catch(() => {});
            return { task };
        },
        getTask: (_given, { taskId, taskStore: store }) => store.getTask(taskId),
        getTaskResult: (_given, { taskId, taskStore: store }) => store.getTaskResult(taskId)
    });
}

function addTasks(server) {
    addTask(server, 'work', label => ({ status: 'completed', ...text(`worked: ${label}`) }));
    addTask(server, 'fail_at_work', () =>
        ({ status: 'failed', ...text('failed on purpose'), isError: true }));
}

const maxRequestBodySize = 16 * 1024 * 1024;

async function serveSession(sessions, request) {
    const id = request.headers.get('mcp-session-id');
    if (id) return sessions.get(id)?.handleRequest(request) ?? new Response(null, { status: 404 });
    const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new InMemoryEventStore(),
        onsessioninitialized: made => void sessions.set(made, transport),
        onsessionclosed: gone => void sessions.delete(gone),
        maxRequestBodySize
    });
    await makeServer().connect(transport);
    return transport.handleRequest(request);
}

function makeFetch() {
    const sessions = new Map();
    const handler = createMcpHandler(makeServer, { legacy: 'reject', maxRequestBodySize });
    shared.told = handler.notify;
    return async request =>
        legacyOnly || (await isLegacyRequest(request, undefined, { maxRequestBodySize }))
            ? serveSession(sessions, request)
            : handler.fetch(request);
}

async function answer(fetch, incoming, outgoing) {
    const parts = [];
    for await (const part of incoming) parts.push(part);
    const gone = new AbortController();
    outgoing.on('close', () => gone.abort());
    const response = await fetch(new Request(`http://localhost${incoming.url}`, {
        method: incoming.method,
        headers: incoming.headers,
        body: parts.length ? Buffer.concat(parts) : undefined,
        signal: gone.signal
    }));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.flushHeaders();
    const reader = response.body?.getReader();
    outgoing.on('close', () => reader?.cancel().catch(() => {}));
    for (let part; reader && !(part = await reader.read()).done; ) outgoing.write(part.value);
    outgoing.end();
}

function serveHttp(port) {
    const fetch = makeFetch();
    const server = http.createServer((incoming, outgoing) =>
        answer(fetch, incoming, outgoing).catch(() => outgoing.destroy()));
    process.on('SIGTERM', () => process.exit(0));
    server.listen(port, '127.0.0.1', () =>
        console.log(`http://127.0.0.1:${server.address().port}/mcp`));
}

if (process.argv.includes('--http')) serveHttp(Number(after('--http')));
else if (legacyOnly) await makeServer().connect(new StdioServerTransport());
else serveStdio(makeServer);
