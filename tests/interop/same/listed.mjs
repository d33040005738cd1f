// tasks/list of 2025-11-25, as two clients of the TypeScript SDK 1 request it from a travel
// desk over HTTP that knows no names: each sees what its session made.  listed.mjs legacy URL
import { unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CallToolResultSchema, CreateTaskResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { equal, runCells } from './cells.mjs';
import { loadSdk1 } from './ts_sdk.mjs';

const url = process.argv[3];
const file = join(tmpdir(), `listed-${process.pid}`);
const sdk = await loadSdk1();
let own, other, taskId;

async function connect() {
    const client = sdk.makeClient('listed-judge');
    await client.connect(new sdk.StreamableHTTPClientTransport(new URL(url)));
    equal(client.getServerCapabilities().tasks.list, {}, 'the capability');
    return client;
}

const list = async client => (await client.experimental.tasks.listTasks()).tasks.map(task => task.taskId);

const cells = {
    async 'connect: a session lists its tasks'() {
        [own, other] = [await connect(), await connect()];
        equal([await list(own), await list(other)], [[], []]);
    },
    async 'a running task is listed'() {
        const params = { name: 'archive', arguments: { pages: 3, file }, task: { ttl: 60000 } };
        const made = await own.request({ method: 'tools/call', params }, CreateTaskResultSchema);
        taskId = made.task.taskId;
        equal(await list(own), [taskId]);
    },
    async 'another session does not see it'() {
        equal(await list(other), []);
    },
    async 'an ended task is listed'() {
        const result = await own.experimental.tasks.getTaskResult(taskId, CallToolResultSchema);
        equal(result.content[0].text, '3 pages');
        const { tasks } = await own.experimental.tasks.listTasks();
        equal(tasks.map(task => [task.taskId, task.status]), [[taskId, 'completed']]);
        equal(await list(other), []);
    },
    async 'close'() {
        await Promise.all([own.close(), other.close(), unlink(file)]);
    }
};

await runCells(cells);
