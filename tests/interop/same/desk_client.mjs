// The official TypeScript client with a travel desk.  desk_client.mjs ERA COMMAND...|URL
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { equal, Missing, runCells, until } from './cells.mjs';

const [era, command, ...args] = process.argv.slice(2);
const modern = era === 'modern';
const logs = [];
let sure = true;

const client = new Client({ name: 'traveller', version: '0' }, {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: modern ? { pin: '2026-07-28' } : 'legacy' }
});
client.setNotificationHandler('notifications/message', ({ params }) => void logs.push(params.data));
client.setRequestHandler('elicitation/create', ({ params }) => {
    if (sure === undefined) return { action: 'decline' };
    const names = Object.keys(params.requestedSchema.properties);
    return { action: 'accept', content: Object.fromEntries(names.map(name => [name, sure])) };
});

const _meta = modern ? { 'io.modelcontextprotocol/logLevel': 'info' } : undefined;
const call = (name, given = {}, options = {}) =>
    client.callTool({ name, arguments: given, _meta }, options);
const text = ({ content }) => content.map(block => block.text).join('');

// Returns the text of a refusal, by an error or by a result; undefined without one.
const refusal = (name, given) => call(name, given).then(
    result => (result.isError ? text(result) : undefined), error => error.message);

const tools = async () =>
    Object.fromEntries((await client.listTools()).tools.map(tool => [tool.name, tool]));
const date = '2026-12-01';

const cells = {
    async 'report'() {
        equal(text(await call('report', { city: 'Bern' })),
            'Day 1 in Bern\nDay 2 in Bern\nDay 3 in Bern\n');
    },
    async 'progress and log'() {
        const steps = [];
        if (!modern && client.getServerCapabilities().logging) await client.setLoggingLevel('info');
        logs.length = 0;
        const onprogress = ({ progress, total, message }) => steps.push([progress, total, message]);
        await call('report', { city: 'Bern' }, { onprogress });
        equal(steps, [1, 2, 3].map(day => [day, 3, `day ${day}`]));
        await until(() => logs.length === 3, 'the log');
        equal(logs.map(log => log.msg ?? log), [1, 2, 3].map(day => `day ${day} of Bern`));
    },
    async 'question'() {
        for (const [answer, said] of [[true, 'booked: Bern'], [false, 'not booked']]) {
            sure = answer;
            const found = text(await call('book', { city: 'Bern' }));
            // What the SDK's handler of HTTP does without more code.
            if (found.includes('Cannot request input'))
                throw new Missing("over HTTP in 2025-11-25 only with sessions of one's own");
            equal(found, said);
        }
        sure = undefined;
        equal(text(await call('book', { city: 'Bern' })).includes('booked: Bern'), false);
    },
    async 'structured result'() {
        const { structuredContent } = await call('offer', { nights: 2, arrives: date });
        equal(structuredContent, { price: 160, leaves: '2026-12-03' });
        const { properties } = (await tools()).offer.outputSchema;
        equal(Object.keys(properties).sort(), ['leaves', 'price']);
    },
    async 'typed arguments'() {
        const told = JSON.stringify((await tools()).offer.inputSchema);
        for (const part of ['"date"', '["simple","fine"]', '"minimum":1'])
            equal(told.includes(part), true, `${part} in the schema`);
        const given = { nights: 2, arrives: date, comfort: 'fine' };
        equal((await call('offer', given)).structuredContent.price, 400);
        for (const wrong of [{ nights: 31 }, { arrives: 'soon' }, { comfort: 'some' }])
            equal(typeof (await refusal('offer', { ...given, ...wrong })), 'string', Object.keys(wrong)[0]);
    },
    async 'arguments of another type are refused'() {
        if (!(await refusal('offer', { nights: '2', arrives: date })))
            throw new Missing('"2" passes for the number 2');
    },
    async 'unknown arguments are refused'() {
        const why = await refusal('offer', { nights: 2, arrives: date, comfrt: 'fine' });
        if (why === undefined) throw new Missing('an unknown argument is ignored');
        if (!why.includes('"comfort"')) throw new Missing('refused, but the nearest name is not told');
    },
    async 'error'() {
        const why = await refusal('cancel', { trip: '7' });
        equal(why?.includes('There is no trip 7'), true, `the reason in ${why}`);
    },
    async 'defects are masked'() {
        const why = await refusal('broken', {});
        equal(typeof why, 'string');
        if (why.includes('hunter2')) throw new Missing('clients read the text of every exception');
    },
    async 'resource'() {
        const { contents: [found] } = await client.readResource({ uri: 'desk://policy' });
        equal([found.text, found.mimeType], ['Be kind.', 'text/plain']);
    },
    async 'resource template'() {
        const { contents: [found] } = await client.readResource({ uri: 'desk://trips/7' });
        equal(JSON.parse(found.text), { trip: '7' });
        const { resourceTemplates: [listed] } = await client.listResourceTemplates();
        equal(listed.uriTemplate, 'desk://trips/{trip}');
    },
    async 'prompt'() {
        const { messages } = await client.getPrompt({ name: 'plan', arguments: { city: 'Bern' } });
        equal(messages[0].content.text, 'Plan a trip to Bern.');
    },
    async 'completion'() {
        const { completion } = await client.complete({
            ref: { type: 'ref/prompt', name: 'plan' }, argument: { name: 'city', value: 'Be' }
        });
        equal(completion.values, ['Berlin', 'Bern']);
    }
};

await client.connect(command.startsWith('http')
    ? new StreamableHTTPClientTransport(new URL(command))
    : new StdioClientTransport({ command, args, env: process.env }));
await runCells(cells);
await client.close();
