// The items of a server on the TypeScript SDK, or its version 1, beside plain tools:
// resources, prompts, completion, and tools that ask the client or change the lists.
import { z } from 'zod';

const text = value => ({ content: [{ type: 'text', text: value }] });
const uri = 'test://static-text';
const words = ['paris', 'park', 'london'];
const person = { type: 'object', properties: { name: { type: 'string' } } };
const form = { message: 'Your name?', requestedSchema: person };
const thought = {
    maxTokens: 100, messages: [{ role: 'user', content: { type: 'text', text: 'Say something.' } }]
};

const told = {
    elicit: ({ action, content }) => `${action} ${content?.name ?? ''}`.trim(),
    sample: ({ model, content }) => `${model}: ${(Array.isArray(content) ? content[0] : content).text}`,
    roots: ({ roots }) => roots.map(root => root.uri).join()
};

export const itemCapabilities = {
    completions: {}, prompts: { listChanged: true }, resources: { listChanged: true, subscribe: true }
};

// Version 1 asks in the middle of the call.
function addQuestions1(server, { ElicitResultSchema, CreateMessageResultSchema, ListRootsResultSchema }) {
    const ask = (name, run) => server.registerTool(name, {}, async extra => text(await run(extra)));
    const elicit = extra => extra.sendRequest({ method: 'elicitation/create', params: form }, ElicitResultSchema);
    ask('ask_name', async extra => told.elicit(await elicit(extra)));
    ask('ask_twice', async extra => {
        const { content: { name } } = await elicit(extra);
        return `${name} and ${(await elicit(extra)).content.name}`;
    });
    ask('ask_model', async extra => told.sample(await extra.sendRequest(
        { method: 'sampling/createMessage', params: thought }, CreateMessageResultSchema)));
    ask('ask_roots', async extra =>
        told.roots(await extra.sendRequest({ method: 'roots/list' }, ListRootsResultSchema)));
}

// Version 2 ends the call with its question, and runs the tool again, in all eras.
function addQuestions2(server, { inputRequired }) {
    const ask = (name, question, tell) => server.registerTool(name, {}, ({ mcpReq }) => {
        const answer = mcpReq.inputResponses?.[name];
        return answer ? text(tell(answer)) : inputRequired({ inputRequests: { [name]: question } });
    });
    ask('ask_name', inputRequired.elicit(form), told.elicit);
    ask('ask_model', inputRequired.createMessage(thought), told.sample);
    ask('ask_roots', inputRequired.listRoots(), told.roots);
    server.registerTool('ask_twice', {}, ({ mcpReq }) => {
        const before = mcpReq.requestState();
        const name = mcpReq.inputResponses?.name?.content.name;
        return before && before !== 'begun'
            ? text(`${before} and ${name}`)
            : inputRequired({
                inputRequests: { name: inputRequired.elicit(form) }, requestState: before ? name : 'begun'
            });
    });
}

// shared: one object for all servers of this process; over HTTP each request of the
// modern era has a server.
export function addItems(server, sdk, shared) {
    server.registerResource('static-text', uri, { mimeType: 'text/plain' }, () => ({
        contents: [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }]
    }));
    server.registerResource('static-binary', 'test://static-binary', { mimeType: 'image/png' }, () => ({
        contents: [{ uri: 'test://static-binary', mimeType: 'image/png', blob: 'iVBORwA=' }]
    }));
    server.registerResource('template', new sdk.ResourceTemplate('test://template/{id}/data', { list: undefined }), {},
        (place, { id }) => ({ contents: [{ uri: place.href, text: `Data of ${id}` }] }));

    const given = {
        arg1: sdk.completable(z.string(), value => words.filter(word => word.startsWith(value))),
        arg2: z.string().optional()
    };
    server.registerPrompt('arguments', { argsSchema: sdk.isVersion1 ? given : z.object(given) }, ({ arg1, arg2 }) => ({
        messages: [{
            role: 'user', content: { type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` }
        }]
    }));
    server.registerPrompt('blocks', {}, () => ({
        messages: [
            { role: 'user', content: { type: 'image', mimeType: 'image/png', data: 'cG5n' } },
            { role: 'user', content: { type: 'resource', resource: { uri: 'test://x', text: 'Embedded.' } } }
        ]
    }));
    addChanges(server, sdk, shared);
    (sdk.isVersion1 ? addQuestions1 : addQuestions2)(server, sdk);
}

function addChanges(server, sdk, shared) {
    const subscribed = new Set();
    sdk.answer(server, 'resources/subscribe', ({ params }) => (subscribed.add(params.uri), {}));
    sdk.answer(server, 'resources/unsubscribe', ({ params }) => (subscribed.delete(params.uri), {}));
    server.registerTool('update', {}, async () => {
        shared.told?.resourceUpdated(uri);
        // Over stdio in the modern era the SDK itself knows the subscriptions.
        if (subscribed.has(uri) || !shared.told) await server.server.sendResourceUpdated({ uri });
        return text('updated');
    });

    const add = () => [
        server.registerResource('extra', 'test://extra', {}, () => ({ contents: [] })),
        server.registerPrompt('extra', {}, () => ({ messages: [] }))
    ];
    let extra = shared.hasExtraItems ? add() : undefined;
    server.registerTool('toggle_items', {}, () => {
        shared.hasExtraItems = !extra;
        extra?.forEach(item => item.remove());
        extra = shared.hasExtraItems ? add() : undefined;
        shared.told?.resourcesChanged();
        shared.told?.promptsChanged();
        return text('changed');
    });
}
