// The tasks of 2025-11-25 as the client of the TypeScript SDK 1 requests them, against
// Segue's server.  ts1_tasks.mjs legacy COMMAND...|URL
import { CallToolResultSchema, CreateTaskResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { equal, rejection, runCells } from './cells.mjs';
import { loadSdk1 } from './ts_sdk.mjs';

const [, command, ...args] = process.argv.slice(2);
const overHttp = command.startsWith('http');
const sdk = await loadSdk1();
let client, tasks;

const text = result => result.content.map(block => block.text).join('');

// Makes the task only: the SDK's own helper would go on to the result.
async function create(name, given = {}, task = { ttl: 60000 }) {
    const request = { method: 'tools/call', params: { name, arguments: given, task } };
    return (await client.request(request, CreateTaskResultSchema)).task;
}

async function settled(taskId) {
    let task;
    const look = async () => ['completed', 'failed', 'cancelled'].includes((task = await tasks.getTask(taskId)).status);
    for (let i = 0; i < 100 && !(await look()); i++) await new Promise(resolve => setTimeout(resolve, 50));
    return task;
}

const cells = {
    async 'connect: our server offers tasks'() {
        client = sdk.makeClient('ts1-judge');
        await client.connect(overHttp
            ? new sdk.StreamableHTTPClientTransport(new URL(command))
            : new sdk.StdioClientTransport({ command, args, env: process.env }));
        tasks = client.experimental.tasks;
        const { tasks: offered } = client.getServerCapabilities();
        equal([offered.list, offered.cancel, offered.requests.tools.call], [{}, {}, {}], 'the capability');
    },
    async 'tools/list: taskSupport'() {
        const tools = [];
        let cursor;
        do {
            const page = await client.listTools({ cursor });
            tools.push(...page.tools);
            cursor = page.nextCursor;
        } while (cursor);
        const said = name => tools.find(tool => tool.name === name).execution?.taskSupport ?? 'forbidden';
        equal(['failing_job', 'slow_compute', 'greet'].map(said), ['required', 'optional', 'forbidden']);
    },
    async 'create'() {
        const task = await create('slow_compute', { ms: 300, label: 'x' }, { ttl: 60000 });
        equal([task.status, task.ttl, typeof task.taskId], ['working', 60000, 'string']);
        equal(Number.isNaN(Date.parse(task.createdAt)), false, 'a time');
        equal(typeof task.lastUpdatedAt, 'string');
    },
    async 'create, get, result'() {
        const { taskId } = await create('slow_compute', { ms: 300, label: 'x' });
        equal((await tasks.getTask(taskId)).taskId, taskId, 'the id');
        equal((await settled(taskId)).status, 'completed', 'the status');
        const result = await tasks.getTaskResult(taskId, CallToolResultSchema);
        equal(text(result), 'Computed: x');
        equal(result._meta?.['io.modelcontextprotocol/related-task'], { taskId }, 'related-task');
    },
    async 'tasks/result waits for the end'() {
        const { taskId } = await create('slow_compute', { ms: 500, label: 'y' });
        equal(text(await tasks.getTaskResult(taskId, CallToolResultSchema)), 'Computed: y');
        equal((await tasks.getTask(taskId)).status, 'completed', 'the status');
    },
    async 'the SDK follows a task by itself'() {
        const seen = [];
        for await (const message of tasks.callToolStream(
            { name: 'slow_compute', arguments: { ms: 300, label: 'z' } }, CallToolResultSchema, { task: {} }))
            seen.push(message);
        equal([seen[0].type, seen.at(-1).type], ['taskCreated', 'result']);
        equal(text(seen.at(-1).result), 'Computed: z');
    },
    async 'isError is a failed task'() {
        const { taskId } = await create('failing_job');
        equal((await settled(taskId)).status, 'failed', 'the status');
        equal((await tasks.getTaskResult(taskId, CallToolResultSchema)).isError, true, 'isError');
    },
    async 'an error is a failed task, and what tasks/result answers'() {
        const { taskId } = await create('protocol_error_job');
        equal((await settled(taskId)).status, 'failed', 'the status');
        const error = await rejection(tasks.getTaskResult(taskId, CallToolResultSchema));
        equal([error.code, error.data], [-32603, { hint: 'on purpose' }]);
    },
    async 'a tool that fails at once is a failed task, too'() {
        const { taskId } = await create('break_at_once');
        equal((await settled(taskId)).status, 'failed', 'the status');
        const error = await rejection(tasks.getTaskResult(taskId, CallToolResultSchema));
        equal([error.code, error.data], [-32603, { hint: 'on purpose' }]);
    },
    async 'list'() {
        const { taskId } = await create('slow_compute', { ms: 10 });
        const ids = [];
        let cursor;
        do {
            const page = await tasks.listTasks(cursor);
            ids.push(...page.tasks.map(task => task.taskId));
            cursor = page.nextCursor;
        } while (cursor);
        equal([new Set(ids).size, ids.includes(taskId)], [ids.length, true], 'the list');
    },
    async 'cancel'() {
        const { taskId } = await create('hang');
        equal((await tasks.cancelTask(taskId)).status, 'cancelled', 'the answer');
        equal((await tasks.getTask(taskId)).status, 'cancelled', 'the status');
        equal((await rejection(tasks.cancelTask(taskId))).code, -32602, 'the code of a second time');
    },
    async 'an unknown task'() {
        // One after the other: an error that comes before it is awaited would end Node.
        for (const ask of [() => tasks.getTask('no-such-task'), () => tasks.cancelTask('no-such-task'),
            () => tasks.getTaskResult('no-such-task', CallToolResultSchema)])
            equal((await rejection(ask())).code, -32602, 'code');
    },
    async 'a tool that cannot be a task'() {
        equal((await rejection(create('greet'))).code, -32601, 'code');
    },
    async 'close'() {
        await client.close();
    }
};

await runCells(cells);
