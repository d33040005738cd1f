// The official tasks client (ext-tasks) on the TypeScript SDK's client, against Segue's
// server: the extension of 2026-07-28, or the tasks of 2025-11-25.
//   ts_tasks.mjs ERA COMMAND...|URL
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import {
    createApplicationInputHandler,
    createTaskSessionFromClient,
    resultFromTaskOutcome,
    toolDeclarationFromMcpTool
} from '@modelcontextprotocol/ext-tasks/client';
import { CreateTaskResultV2Schema, DetailedTaskV2Schema } from '@modelcontextprotocol/ext-tasks/core/v2';
import { Missing, equal, rejection, runCells, until } from './cells.mjs';

const [era, command, ...args] = process.argv.slice(2);
const modern = era === 'modern';
const extension = 'io.modelcontextprotocol/tasks';
const answers = [];
const asked = [];
const errors = [];
let wire, client, session;

// The SDK's client does not know the answers of the tasks extension. So ext-tasks needs a
// way around it: requests with ids of this program on the same transport.
const waiting = new Map();
let nextRaw = 1;

function tapAnswers() {
    const forward = wire.onmessage;
    wire.onmessage = (message, extra) => {
        const settle = waiting.get(message.id);
        if (!settle || message.method) return forward(message, extra);
        waiting.delete(message.id);
        answers.push(message);
        settle('error' in message
            ? { kind: 'error', error: message.error }
            : { kind: 'result', result: message.result });
    };
}

function dispatch(request, options = {}) {
    const id = `raw-${nextRaw++}`;
    return new Promise((resolve, reject) => {
        waiting.set(id, resolve);
        options.signal?.addEventListener('abort', () => {
            if (!waiting.delete(id)) return;
            wire.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
            reject(options.signal.reason);
        });
        wire.send({ jsonrpc: '2.0', id, ...request }).catch(error => {
            // Over HTTP the SDK passes on the JSON-RPC errors that come with 400, but not
            // with 404.
            if (error.data?.status !== 404 || !waiting.delete(id)) return reject(error);
            resolve({ kind: 'error', error: JSON.parse(error.data.text).error });
        });
    });
}

const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'tasks-judge', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, extensions: { [extension]: {} } }
};
const raw = (method, params) => dispatch({ method, params: { ...params, _meta: meta } });

const inputs = createApplicationInputHandler({
    elicitation: request => {
        asked.push(request.params.message);
        return { action: 'accept', content: { confirm: true } };
    },
    sampling: () => Promise.reject(new Error('not asked for')),
    roots: () => Promise.reject(new Error('not asked for'))
});

const callTool = (name, given) => session.callTool(name, given, { task: { preference: 'prefer' } });

async function settle(name, given) {
    const execution = await callTool(name, given);
    const { outcome, lastTask } = await execution.settle();
    return { outcome, lastTask };
}

const text = outcome => resultFromTaskOutcome(outcome).content.map(block => block.text).join('');

const cells = {
    async 'connect'() {
        wire = command.startsWith('http')
            ? new StreamableHTTPClientTransport(new URL(command))
            : new StdioClientTransport({ command, args, env: process.env });
        client = new Client(
            { name: 'tasks-judge', version: '1.0.0' },
            {
                versionNegotiation: { mode: modern ? { pin: '2026-07-28' } : 'legacy' },
                capabilities: { elicitation: {} }
            }
        );
        await client.connect(wire);
        if (modern) tapAnswers();
    },
    async 'session: our server offers tasks'() {
        // In 2025-11-25 the client asks for a task, for tools that may be one.
        const tools = modern ? [] : (await client.listTools()).tools;
        const declared = new Map(tools.map(tool => [tool.name, toolDeclarationFromMcpTool(tool)]));
        session = createTaskSessionFromClient(client, {
            endpointId: 'fixture',
            tools: { currentTool: name => declared.get(name) },
            ...(modern && {
                rawDispatch: dispatch,
                v2RequestFraming: {
                    protocolVersion: '2026-07-28',
                    clientInfo: { name: 'tasks-judge', version: '1.0.0' },
                    clientCapabilities: { elicitation: {} }
                }
            }),
            onInputRequest: inputs,
            onError: error => errors.push(error)
        });
        const offered = client.getServerCapabilities();
        if (modern) equal(offered.extensions[extension], {}, 'the extension');
        else equal(offered.tasks.requests.tools.call, {}, 'the capability');
    },
    async 'a plain result'() {
        equal(text((await settle('greet', { name: 'Ada' })).outcome), 'Hello, Ada!');
    },
    async 'create, get, result'() {
        const { outcome, lastTask } = await settle('slow_compute', { seconds: 1, label: 'x' });
        equal([outcome.status, text(outcome)], ['completed', 'Computed: x']);
        equal(lastTask?.status, 'completed', 'the last state');
    },
    async 'a streamed result is merged'() {
        const { outcome } = await settle('story', { n: 4, delayMs: 100 });
        equal(text(outcome), [1, 2, 3, 4].map(n => `segment ${n} of the story`).join(''));
    },
    async 'isError'() {
        const { outcome } = await settle('failing_job', {});
        // In 2025-11-25 the task has failed by then, and this client does not read its
        // result.
        equal([outcome.status, outcome.result?.isError], modern ? ['completed', true] : ['failed', undefined]);
    },
    async 'an error is a failed task'() {
        const { outcome } = await settle('protocol_error_job', {});
        equal([outcome.status, outcome.error.code, outcome.error.data],
            modern ? ['failed', -32603, { hint: 'on purpose' }] : ['failed', undefined, undefined]);
    },
    async 'a tool that fails at once is a failed task, too'() {
        const { outcome } = await settle('break_at_once', {});
        equal([outcome.status, outcome.error.code, outcome.error.data],
            modern ? ['failed', -32603, { hint: 'on purpose' }] : ['failed', undefined, undefined]);
    },
    async 'updates'() {
        const execution = await callTool('slow_compute', { seconds: 1 });
        const seen = [];
        for await (const event of execution.updates())
            seen.push(event.type === 'task' ? event.task.status : event.outcome.status);
        equal([seen[0], seen.at(-1)], ['working', 'completed']);
        await execution.close();
    },
    async 'cancel'() {
        const execution = await callTool('hang', {});
        await execution.cancel();
        equal((await execution.settle()).outcome.status, 'cancelled');
    },
    async 'input'() {
        asked.length = 0;
        const { outcome } = await settle('confirm_delete', {});
        equal([outcome.status, asked], ['completed', ['Are you sure?']]);
        equal(JSON.parse(text(outcome)), { action: 'accept', content: { confirm: true } });
    },
    async 'input: two questions at once'() {
        asked.length = 0;
        const { outcome } = await settle('multi_input', {});
        equal([outcome.status, asked.sort()], ['completed', ['Are you sure?', 'Name?']]);
    },
    async 'input: three questions in turn'() {
        asked.length = 0;
        const { outcome } = await settle('ask_in_turn', {});
        equal([outcome.status, text(outcome)], ['completed', 'asked 3 times']);
        if (!modern && asked.length < 3)
            throw new Missing('cancels the questions that come before it knows of the task');
        equal(asked.length, 3);
    },
    async 'detach and find again by id'() {
        const execution = await callTool('slow_compute', { seconds: 1, label: 'later' });
        const { taskId } = execution.handle;
        await execution.detach();
        equal((await session.task(taskId).snapshot()).status, 'working');
        equal(text(await session.task(taskId).result()), 'Computed: later');
    },
    async 'an unknown task'() {
        equal((await rejection(session.task('no-such-task').snapshot())).code, -32602, 'code');
        equal((await rejection(session.task('no-such-task').cancel())).code, -32602, 'code');
    },
    async 'tasks/list and tasks/result do not exist'() {
        for (const method of ['tasks/list', 'tasks/result'])
            equal((await raw(method, { taskId: 'x' })).error?.code, -32601, method);
    },
    async 'a subscription shows the task to its end'() {
        const seen = [];
        client.fallbackNotificationHandler = async note => seen.push(note);
        const created = await raw('tools/call', { name: 'slow_compute', arguments: { seconds: 1 } });
        const { taskId } = CreateTaskResultV2Schema.parse(created.result);
        const listening = raw('subscriptions/listen', { notifications: { taskIds: [taskId] } });
        await until(() => seen.some(note => note.params.status === 'completed'), 'completion');
        const tasks = seen.filter(note => note.method === 'notifications/tasks');
        for (const note of tasks) DetailedTaskV2Schema.parse(note.params);
        equal([...new Set(tasks.map(note => note.params.taskId))], [taskId]);
        listening.catch(() => {});
    },
    async 'every answer fits the extension\'s schema'() {
        const created = answers.filter(answer => answer.result?.resultType === 'task');
        const shown = answers.filter(answer => answer.result?.status && answer.result.resultType === 'complete');
        equal(created.length > 5 && shown.length > 5, true, 'many answers');
        for (const answer of created) CreateTaskResultV2Schema.parse(answer.result);
        for (const answer of shown) DetailedTaskV2Schema.parse(answer.result);
        equal(errors.map(String), [], 'errors of the session');
    },
    async 'close'() {
        await session.close();
        await client.close();
    }
};

// In 2025-11-25 this client cancels every question of a task at once.
const modernOnly = [
    'input', 'input: two questions at once',
    'tasks/list and tasks/result do not exist', 'a subscription shows the task to its end',
    'every answer fits the extension\'s schema'
];
for (const what of modern ? [] : modernOnly) delete cells[what];
await runCells(cells);
