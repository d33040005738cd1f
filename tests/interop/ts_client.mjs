// The TypeScript SDK's client against our server.  ts_client.mjs ERA COMMAND...|URL
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Missing, equal, rejection, runCells, until } from './cells.mjs';

const [era, command, ...args] = process.argv.slice(2);
const modern = era === 'modern';
const overHttp = command.startsWith('http');
const big = 8 * 1024 * 1024;
const logs = [];
let client;

function makeClient(mode, options = {}) {
    return new Client(
        { name: 'ts-judge', version: '1.0.0' },
        { versionNegotiation: { mode }, ...options }
    );
}

function transport() {
    return overHttp
        ? new StreamableHTTPClientTransport(new URL(command))
        : new StdioClientTransport({ command, args, env: process.env });
}

const text = result => result.content[0].text;
const call = (name, given = {}, options = undefined) =>
    client.callTool({ name, arguments: given }, options);

async function listPages() {
    const names = [];
    let cursor;
    let pages = 0;
    do {
        const page = await client.request({ method: 'tools/list', params: cursor ? { cursor } : {} });
        names.push(...page.tools.map(tool => tool.name));
        cursor = page.nextCursor;
        pages++;
    } while (cursor);
    return { names, pages };
}

const cells = {
    async 'connect'() {
        client = makeClient(modern ? { pin: '2026-07-28' } : 'legacy');
        client.setNotificationHandler('notifications/message', note => {
            logs.push(note.params);
        });
        await client.connect(transport());
        equal(client.getNegotiatedProtocolVersion(), modern ? '2026-07-28' : '2025-11-25');
        equal(client.getServerVersion()?.name, 'segue-fixture', 'the server name');
        equal(client.getInstructions(), 'Call greet first.', 'instructions');
        equal(client.getServerCapabilities()?.tools, { listChanged: true }, 'tools capability');
    },
    async 'connect: finds the era itself'() {
        const other = makeClient('auto');
        await other.connect(transport());
        equal(other.getNegotiatedProtocolVersion(), '2026-07-28');
        await other.close();
    },
    async 'ping'() {
        if (modern) await client.discover();
        else await client.ping();
    },
    async 'tools/list: all pages'() {
        const { names, pages } = await listPages();
        equal(pages > 3, true, 'more than 3 pages');
        equal(new Set(names).size, names.length, 'distinct names');
        equal((await client.listTools()).tools.map(tool => tool.name), names, 'all pages at once');
        for (const name of ['greet', 'add', 'toggle']) equal(names.includes(name), true, name);
    },
    async 'tools/list: bad cursor'() {
        const error = await rejection(
            client.request({ method: 'tools/list', params: { cursor: 'nonsense' } })
        );
        equal(error.code, -32602, 'code');
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
    async 'content: image, audio, resource, link'() {
        const result = await call('media');
        equal(result.content.map(block => block.type), ['image', 'audio', 'resource', 'resource_link']);
        equal(Buffer.from(result.content[0].data, 'base64').toString('latin1'), '\x89PNG');
        equal(result.content[2].resource.text, 'inside');
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
    async 'error: a tool that must be a task'() {
        const error = await rejection(call('failing_job'));
        equal(error.code, modern ? -32021 : -32601, 'code');
    },
    async 'error: unknown method'() {
        const error = await rejection(
            client.request({ method: 'prompts/list', params: {} })
        );
        if (modern && overHttp) {
            // 2026-07-28 wants 404, of which this client reads only the status
            equal([error.data?.status, JSON.parse(error.data?.text).error.code], [404, -32601]);
            throw new Missing('takes the error of a 404 for one of HTTP');
        }
        equal(error.code, -32601, 'code');
    },
    async 'progress'() {
        const seen = [];
        await call('steps', { n: 3 }, { onprogress: progress => seen.push(progress) });
        equal(seen.map(p => [p.progress, p.total, p.message]),
            [1, 2, 3].map(n => [n, 3, 'a step']));
    },
    async 'progress in one read with the result'() {
        const seen = [];
        await call('chatty', { n: 3 }, { onprogress: progress => seen.push(progress.progress) });
        equal(seen, [1, 2, 3].slice(0, seen.length), 'the order');
        if (seen.length < 3) throw new Missing('forgets the token before it looks at the progress');
    },
    async 'log messages'() {
        logs.length = 0;
        const level = 'io.modelcontextprotocol/logLevel';
        if (!modern) await client.setLoggingLevel('info');
        const asks = modern ? { _meta: { [level]: 'info' } } : {};
        await client.callTool({ name: 'chatty', arguments: { n: 2 }, ...asks });
        equal(logs.map(log => [log.level, log.data]), [['info', 'begin']]);
        if (!modern) await client.setLoggingLevel('emergency');
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
    async 'timeout'() {
        await rejection(call('hang_plain', {}, { timeout: 100 }));
        equal(text(await call('greet')), 'Hello, World!');
    },
    async 'concurrency: 20 calls and a slow one'() {
        const ended = [];
        const slow = call('slow_compute', { seconds: 1, label: 'slow' }).then(result => {
            ended.push('slow');
            return text(result);
        });
        const calls = Array.from({ length: 20 }, (_, i) =>
            call('greet', { name: `n${i}` }).then(result => {
                ended.push(i);
                return text(result);
            })
        );
        equal(await Promise.all(calls), calls.map((_, i) => `Hello, n${i}!`));
        equal(ended.includes('slow'), false, 'the slow one first');
        equal(await slow, 'Computed: slow');
    },
    async 'large result, 8 MiB'() {
        equal(text(await call('big', { bytes: big })).length, big);
    },
    async 'large arguments, 8 MiB'() {
        equal(text(await call('echo', { text: 'y'.repeat(big) })), 'y'.repeat(big));
    },
    async 'list_changed'() {
        let lists = 0;
        const other = makeClient(modern ? { pin: '2026-07-28' } : 'legacy', {
            listChanged: { tools: { onChanged: () => lists++, debounceMs: 0 } }
        });
        await other.connect(transport());
        await other.callTool({ name: 'toggle', arguments: {} });
        await until(() => lists > 0, 'list_changed');
        await other.close();
    },
    async 'subscriptions/listen'() {
        if (!modern) return;
        let notes = 0;
        client.setNotificationHandler('notifications/tools/list_changed', () => {
            notes++;
        });
        const subscription = await client.listen({ toolsListChanged: true });
        equal(subscription.honoredFilter, { toolsListChanged: true });
        await call('toggle');
        await until(() => notes === 1, 'the notification');
        await subscription.close();
        await call('toggle');
        equal(text(await call('greet')), 'Hello, World!');
        equal(notes, 1, 'notifications after the end');
    },
    async 'close'() {
        await client.close();
    }
};

if (modern) delete cells['ping'];
else delete cells['subscriptions/listen'];
await runCells(cells);
