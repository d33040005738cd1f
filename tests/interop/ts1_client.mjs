// The client of the TypeScript SDK 1, the one of most programs, against our server: handshake
// eras only.  ts1_client.mjs COMMAND...|URL
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CallToolResultSchema, ListPromptsResultSchema, ListToolsResultSchema,
    LoggingMessageNotificationSchema, ToolListChangedNotificationSchema
} from '@modelcontextprotocol/sdk/types.js';
import { equal, rejection, runCells, until } from './cells.mjs';

const [command, ...args] = process.argv.slice(2);
const overHttp = command.startsWith('http');
const big = 8 * 1024 * 1024;
const logs = [];
let lists = 0;
let client, wire;

function transport() {
    return overHttp
        ? new StreamableHTTPClientTransport(new URL(command))
        : new StdioClientTransport({ command, args, env: process.env });
}

const text = result => result.content[0].text;
const call = (name, given = {}, options = undefined) =>
    client.callTool({ name, arguments: given }, CallToolResultSchema, options);

const cells = {
    async 'connect'() {
        client = new Client({ name: 'ts1-judge', version: '1.0.0' });
        client.setNotificationHandler(LoggingMessageNotificationSchema, note => void logs.push(note.params));
        client.setNotificationHandler(ToolListChangedNotificationSchema, () => void lists++);
        wire = transport();
        await client.connect(wire);
        equal(client.getServerVersion()?.name, 'segue-fixture', 'the server name');
        equal(client.getServerCapabilities()?.tools, { listChanged: true }, 'tools capability');
        if (overHttp) equal([wire.protocolVersion, typeof wire.sessionId], ['2025-11-25', 'string']);
    },
    async 'ping'() {
        await client.ping();
    },
    async 'tools/list: all pages'() {
        const names = [];
        let cursor;
        do {
            const page = await client.request(
                { method: 'tools/list', params: cursor ? { cursor } : {} }, ListToolsResultSchema);
            names.push(...page.tools.map(tool => tool.name));
            cursor = page.nextCursor;
        } while (cursor);
        equal(new Set(names).size, names.length, 'distinct names');
        for (const name of ['greet', 'add', 'toggle']) equal(names.includes(name), true, name);
    },
    async 'tools/call'() {
        equal(text(await call('greet', { name: 'Ada' })), 'Hello, Ada!');
    },
    async 'tools/call: unicode and control characters'() {
        const odd = 'snow \u2603, emoji \u{1F600}, tab\t, newline\n, nul \u0000, quote " \\ \u2028';
        equal(text(await call('repeat', { text: odd })), odd);
    },
    async 'structuredContent'() {
        equal((await call('add', { a: 40, b: 2 })).structuredContent, { sum: 42 });
    },
    async 'isError'() {
        const result = await call('fail');
        equal([result.isError, text(result)], [true, 'failed on purpose']);
    },
    async 'error: unknown tool'() {
        equal((await rejection(call('no_such_tool'))).code, -32602, 'code');
    },
    async 'error: of the handler, with data'() {
        const error = await rejection(call('protocol_error_job'));
        equal([error.code, error.data], [-32603, { hint: 'on purpose' }]);
    },
    async 'error: unknown method'() {
        const asked = client.request({ method: 'prompts/list', params: {} }, ListPromptsResultSchema);
        equal((await rejection(asked)).code, -32601, 'code');
    },
    async 'progress'() {
        const seen = [];
        await call('steps', { n: 3, delayMs: 100 }, { onprogress: progress => seen.push(progress) });
        equal(seen.map(p => [p.progress, p.total, p.message]),
            [1, 2, 3].map(n => [n, 3, 'a step']));
    },
    async 'log messages'() {
        await client.setLoggingLevel('info');
        await call('chatty', { n: 2 });
        await until(() => logs.length, 'a message');
        equal(logs.map(log => [log.level, log.data]), [['info', 'begin']]);
        await client.setLoggingLevel('emergency');
        await call('chatty');
        equal(logs.length, 1, 'messages after they were not asked for');
    },
    async 'cancel'() {
        const abort = new AbortController();
        const hanging = rejection(call('hang_plain', {}, { signal: abort.signal }));
        setTimeout(() => abort.abort(), 100);
        await hanging;
        equal(text(await call('greet')), 'Hello, World!');
    },
    async 'concurrency: 20 calls and a slow one'() {
        const ended = [];
        const slow = call('slow_compute', { seconds: 1, label: 'slow' }).then(text);
        const calls = Array.from({ length: 20 }, (_, i) =>
            call('greet', { name: `n${i}` }).then(result => (ended.push(i), text(result))));
        equal(await Promise.all(calls), calls.map((_, i) => `Hello, n${i}!`));
        equal(await slow, 'Computed: slow');
    },
    async 'large result, 8 MiB'() {
        equal(text(await call('big', { bytes: big })).length, big);
    },
    async 'large arguments, 8 MiB'() {
        equal(text(await call('echo', { text: 'y'.repeat(big) })), 'y'.repeat(big));
    },
    async 'list_changed'() {
        lists = 0;
        await call('toggle');
        await until(() => lists > 0, 'list_changed');
    },
    async 'close'() {
        if (overHttp) {
            const { sessionId } = wire;
            await wire.terminateSession();
            const answer = await fetch(command, {
                method: 'POST',
                headers: {
                    'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
                    'Mcp-Session-Id': sessionId
                },
                body: '{"jsonrpc":"2.0","id":1,"method":"ping"}'
            });
            equal(answer.status, 404, 'a request of the session that has ended');
        }
        await client.close();
    }
};

await runCells(cells);
