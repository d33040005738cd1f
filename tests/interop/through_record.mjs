// A client of the TypeScript SDK, or of its version 1, that does what it is told and prints
// what it gets. through_record.py explains more.
//   through_record.mjs [--sdk1] ERA COMMAND...|URL <STEPS
import { readFileSync } from 'node:fs';
import { loadSdk1, loadSdk2 } from './ts_sdk.mjs';

const given = process.argv.slice(2);
const sdk1 = given[0] === '--sdk1' && Boolean(given.shift());
const [era, command, ...args] = given;
const sdk = await (sdk1 ? loadSdk1() : loadSdk2());
const client = sdk.makeClient('ts-judge', era === 'modern' ? { pin: '2026-07-28' } : 'legacy', {});
// More than the SDK's own minute: where the machine is busy, a server starts slowly.
const patience = { timeout: 300_000 };
const lists = {
    'tools/list': ['listTools', 'tools'], 'prompts/list': ['listPrompts', 'prompts'],
    'resources/list': ['listResources', 'resources'],
    'resources/templates/list': ['listResourceTemplates', 'resourceTemplates']
};

async function allPages(name, member) {
    const found = [];
    let cursor;
    do {
        const page = await client[name](cursor ? { cursor } : undefined, patience);
        found.push(...page[member]);
        cursor = sdk1 ? page.nextCursor : undefined; // version 2 reads all pages itself
    } while (cursor);
    return found;
}

async function act(method, name, arguments_) {
    if (method === 'hello')
        return { name: client.getServerVersion()?.name, instructions: client.getInstructions() };
    if (lists[method]) return allPages(...lists[method]);
    if (method === 'tools/call') return sdk.call(client, { name, arguments: arguments_ ?? {} }, patience);
    if (method === 'prompts/get') return client.getPrompt({ name, arguments: arguments_ }, patience);
    if (method === 'resources/read') return client.readResource({ uri: name }, patience);
    throw new Error(`no step ${method}`);
}

await client.connect(command.startsWith('http')
    ? new sdk.StreamableHTTPClientTransport(new URL(command))
    : new sdk.StdioClientTransport({ command, args, env: process.env }), patience);
for (const step of JSON.parse(readFileSync(0, 'utf8'))) {
    let line;
    try {
        line = { result: await act(...step) };
    } catch (error) {
        line = { error: String(error?.message ?? error).replace(/\s+/g, ' ').slice(0, 300) };
    }
    process.stdout.write(JSON.stringify(line) + '\n');
}
await client.close();
