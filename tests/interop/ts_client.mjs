// The client of the TypeScript SDK, or of its version 1, against Segue's server.
//   ts_client.mjs [--sdk1] ERA COMMAND...|URL
import { loadSdk1, loadSdk2 } from './ts_sdk.mjs';
import { Missing, cutConnections, equal, rejection, runCells, until } from './cells.mjs';
import { capabilities, itemCells } from './ts_items.mjs';

const given = process.argv.slice(2);
const sdk1 = given[0] === '--sdk1' && Boolean(given.shift());
const [era, command, ...args] = given;
const sdk = await (sdk1 ? loadSdk1() : loadSdk2());
const modern = era === 'modern';
const overHttp = command.startsWith('http');
const mode = modern ? { pin: '2026-07-28' } : 'legacy';
const big = 8 * 1024 * 1024;
const logs = [];
let lists = 0;
let client, wire;

function transport() {
    return overHttp
        ? new sdk.StreamableHTTPClientTransport(new URL(command))
        : new sdk.StdioClientTransport({ command, args, env: process.env });
}

const makeClient = (how, options) => sdk.makeClient('ts-judge', how, options);

// Uses another client, and closes it afterwards.
async function withClient(how, options, use) {
    const other = makeClient(how, options);
    const line = transport();
    await other.connect(line);
    await use(other, line);
    await other.close();
}

const text = result => result.content[0].text;
const callOf = (who, name, arguments_ = {}, options = undefined) =>
    sdk.call(who, { name, arguments: arguments_ }, options);
const call = (...all) => callOf(client, ...all);

// Returns why there was no answer, or undefined. A call may be lost with its connection,
// or with a pooled connection whose end the client has not noticed yet.
async function greetAgain() {
    let last;
    for (let i = 0; i < 20; i++) {
        last = await call('greet').then(text, error => error);
        if (last === 'Hello, World!') return undefined;
        await new Promise(resolve => setTimeout(resolve, 100));
    }
    return last;
}

async function listPages() {
    const names = [];
    let cursor;
    let pages = 0;
    do {
        const page = await sdk.request(client, { method: 'tools/list', params: cursor ? { cursor } : {} });
        names.push(...page.tools.map(tool => tool.name));
        cursor = page.nextCursor;
        pages++;
    } while (cursor);
    return { names, pages };
}

const items = itemCells({ sdk, modern, client: () => client, call });

const cells = {
    async 'connect'() {
        client = makeClient(mode, { capabilities });
        items.listen(client);
        sdk.on(client, 'notifications/message', note => void logs.push(note.params));
        if (!modern) sdk.on(client, 'notifications/tools/list_changed', () => void lists++);
        wire = transport();
        await client.connect(wire);
        if (!sdk1 || overHttp)
            equal(sdk.versionOf(client, wire), modern ? '2026-07-28' : '2025-11-25', 'the version');
        if (!modern && overHttp) equal(typeof wire.sessionId, 'string', 'the type of the session id');
        equal(client.getServerVersion()?.name, 'segue-fixture', 'the server name');
        equal(client.getInstructions(), 'Call greet first.', 'instructions');
        equal(client.getServerCapabilities()?.tools, { listChanged: true }, 'tools capability');
    },
    async 'connect: finds the era itself'() {
        await withClient('auto', {}, async (other, line) =>
            equal(sdk.versionOf(other, line), '2026-07-28', 'the version'));
    },
    async 'ping'() {
        if (modern) await client.discover();
        else await client.ping();
    },
    async 'tools/list: all pages'() {
        const { names, pages } = await listPages();
        equal(pages > 3, true, 'more than 3 pages');
        equal(new Set(names).size, names.length, 'distinct names');
        if (!sdk1)
            equal((await client.listTools()).tools.map(tool => tool.name), names, 'all pages at once');
        for (const name of ['greet', 'add', 'toggle']) equal(names.includes(name), true, name);
    },
    async 'tools/list: bad cursor'() {
        const error = await rejection(
            sdk.request(client, { method: 'tools/list', params: { cursor: 'nonsense' } })
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
            sdk.requestOther(client, { method: 'no/such_method', params: {} })
        );
        if (modern && overHttp) {
            // 2026-07-28 wants 404, and this client reads only the status.
            equal([error.data?.status, JSON.parse(error.data?.text).error.code], [404, -32601]);
            throw new Missing('takes the error of a 404 for one of HTTP');
        }
        equal(error.code, -32601, 'code');
    },
    async 'progress'() {
        const seen = [];
        await call('steps', { n: 3, delayMs: 100 }, { onprogress: progress => seen.push(progress) });
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
        await sdk.call(client, { name: 'chatty', arguments: { n: 2 }, ...asks });
        await until(() => logs.length, 'a message');
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
        // the slow call lasts until all the others have ended
        const abort = new AbortController();
        const slow = rejection(call('hang_plain', {}, { signal: abort.signal }));
        const calls = Array.from({ length: 20 }, (_, i) =>
            call('greet', { name: `n${i}` }).then(text));
        equal(await Promise.all(calls), calls.map((_, i) => `Hello, n${i}!`));
        abort.abort();
        await slow;
    },
    async 'large result, 8 MiB'() {
        equal(text(await call('big', { bytes: big })).length, big);
    },
    async 'large arguments, 8 MiB'() {
        equal(text(await call('echo', { text: 'y'.repeat(big) })), 'y'.repeat(big));
    },
    async 'list_changed'() {
        if (!modern) {
            lists = 0;
            await call('toggle');
            return until(() => lists > 0, 'list_changed');
        }
        const onChanged = () => lists++;
        await withClient(mode, { listChanged: { tools: { onChanged, debounceMs: 0 } } }, async other => {
            await callOf(other, 'toggle');
            await until(() => lists > 0, 'list_changed');
        });
    },
    async 'subscriptions/listen'() {
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
    ...items.cells,
    async 'reconnect: a stream is cut'() {
        const steps = [];
        const options = { timeout: modern ? 5000 : 60000, onprogress: step => steps.push(step) };
        const slow = call('steps', { n: 20, delayMs: 100 }, options);
        slow.catch(() => {});
        await until(() => steps.length, 'the first step');
        await cutConnections(command);
        const problem = modern ? await rejection(slow) : equal(text(await slow), 'arrived');
        equal(await greetAgain(), undefined, 'what ended the next calls');
        if (/timed out/.test(problem?.message)) throw new Missing('waits for an answer until its timeout');
    },
    async 'reconnect: the server dies'() {
        await rejection(call('die'));
        const last = await greetAgain();
        if (!last) return;
        await withClient(mode, {}, async other => equal(text(await callOf(other, 'greet')), 'Hello, World!'));
        throw new Missing(`the client stays without a session: ${last.message}`);
    },
    async 'close'() {
        await client.close();
    },
    async 'close: the session is over'() {
        const line = transport();
        const other = makeClient(mode);
        await other.connect(line);
        const { sessionId } = line;
        await line.terminateSession();
        const answer = await fetch(command, {
            method: 'POST',
            headers: {
                'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
                'Mcp-Session-Id': sessionId
            },
            body: '{"jsonrpc":"2.0","id":1,"method":"ping"}'
        });
        equal(answer.status, 404, 'a request of the session that has ended');
        await other.close();
    }
};

for (const version of sdk.choosesVersion ? ['2025-11-25', '2025-06-18', '2025-03-26'] : [])
    cells[`protocol version ${version}`] = () =>
        withClient('legacy', { supportedProtocolVersions: [version] }, async (other, line) => {
            equal(sdk.versionOf(other, line), version, 'the version');
            equal((await other.listTools()).tools.length > 10, true, 'a list of tools');
            equal(text(await callOf(other, 'greet')), 'Hello, World!');
        });

const modernOnly = ['connect: finds the era itself', 'subscriptions/listen'];
const legacyOnly = what => what === 'ping' || what === 'close: the session is over' || /^protocol/.test(what);
const httpOnly = ['reconnect: a stream is cut', 'close: the session is over'];
for (const what of Object.keys(cells))
    if (modern ? legacyOnly(what) : modernOnly.includes(what)) delete cells[what];
    else if (!overHttp && httpOnly.includes(what)) delete cells[what];
await runCells(cells);
