// Cells for ts_client.mjs: the client of the TypeScript SDK, or of its version 1, with
// the resources, prompts, completions and questions of Segue's server.
import { equal, rejection, until } from './cells.mjs';

export const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };

const answers = {
    'Your name?': { name: 'Ada' },
    'Are you sure?': { confirm: true },
    'Name?': {},
    'What context?': { context: 'here' }
};
const png = '\x89PNG';
const bytesOf = blob => Buffer.from(blob, 'base64').toString('latin1');

async function everyPage(list, member) {
    const items = [];
    let cursor;
    do {
        const page = await list(cursor ? { cursor } : undefined);
        items.push(...page[member]);
        cursor = page.nextCursor;
    } while (cursor);
    return items;
}

// given: sdk, modern, client() once it is connected, call(tool, arguments).
export function itemCells({ sdk, modern, client, call }) {
    const asked = [];
    const notes = [];
    let action = 'accept';
    const text = result => result.content[0].text;
    const names = items => items.map(item => item.name);

    async function ask(tool) {
        asked.length = 0;
        return text(await call(tool));
    }
    const noted = (method, uri) => () => notes.some(note => note.method === method && note.params?.uri === uri);
    const watched = ['resources/updated', 'resources/list_changed', 'prompts/list_changed']
        .map(name => `notifications/${name}`);

    const cells = {
        async 'resources/list'() {
            const resources = await everyPage(params => client().listResources(params), 'resources');
            const static_ = resources.find(resource => resource.name === 'static-text');
            equal([static_.uri, static_.mimeType, resources.length > 4], ['test://static-text', 'text/plain', true]);
        },
        async 'resources/templates/list'() {
            const { resourceTemplates } = await client().listResourceTemplates();
            equal(names(resourceTemplates).sort(), ['files', 'template']);
        },
        async 'resources/read: text and blob'() {
            const [inText] = (await client().readResource({ uri: 'test://static-text' })).contents;
            equal([inText.uri, inText.text], ['test://static-text', 'This is the content of the static text resource.']);
            const [blob] = (await client().readResource({ uri: 'test://static-binary' })).contents;
            equal([blob.mimeType, bytesOf(blob.blob)], ['image/png', `${png}\0`]);
        },
        async 'resources/read: several contents'() {
            const { contents } = await client().readResource({ uri: 'test://many' });
            equal(contents.map(part => part.text ?? bytesOf(part.blob)), ['a', 'b', 'c']);
        },
        async 'resources/read: by a template'() {
            const [part] = (await client().readResource({ uri: 'test://template/%C3%A9%2F7/data' })).contents;
            equal(JSON.parse(part.text).id, 'é/7');
        },
        async 'resources/read: not found'() {
            const error = await rejection(client().readResource({ uri: 'test://nowhere' }));
            equal([error.code, error.data?.uri], [sdk.notFound, 'test://nowhere']);
        },
        async 'prompts/list'() {
            const prompts = await everyPage(params => client().listPrompts(params), 'prompts');
            const { arguments: given } = prompts.find(prompt => prompt.name === 'arguments');
            equal(given.map(argument => [argument.name, argument.required ?? false]), [['arg1', true], ['arg2', false]]);
        },
        async 'prompts/get: arguments'() {
            const { messages } = await client().getPrompt({ name: 'arguments', arguments: { arg1: 'x', arg2: 'y' } });
            equal([messages[0].role, messages[0].content.text],
                ['user', "Prompt with arguments: arg1='x', arg2='y'"]);
        },
        async 'prompts/get: image and resource'() {
            const { messages } = await client().getPrompt({ name: 'blocks' });
            equal(messages.map(({ role, content }) => [role, content.type]),
                [['user', 'resource'], ['user', 'image'], ['assistant', 'text'], ['assistant', 'text']]);
            equal([messages[0].content.resource.text, bytesOf(messages[1].content.data)], ['Embedded.', 'png']);
        },
        async 'prompts/get: unknown, and an argument is missing'() {
            for (const name of ['no-such-prompt', 'arguments'])
                equal((await rejection(client().getPrompt({ name }))).code, -32602, name);
        },
        async 'completion/complete'() {
            const argument = value => ({ name: 'arg1', value });
            const ofPrompt = await client().complete(
                { ref: { type: 'ref/prompt', name: 'arguments' }, argument: argument('word-14') });
            equal(ofPrompt.completion.values.length, 11, 'the number of values');
            const ofTemplate = await client().complete({
                ref: { type: 'ref/resource', uri: 'test://template/{id}/data' },
                argument: { name: 'id', value: '' }
            });
            const { values, total, hasMore } = ofTemplate.completion;
            equal([values.length, total, hasMore], [100, 150, true]);
            const inContext = await client().complete({
                ref: { type: 'ref/prompt', name: 'blocks' }, argument: argument('x'),
                context: { arguments: { language: 'python' } }
            });
            equal(inContext.completion.values, ['completion/complete', 'blocks', 'python']);
        },
        async 'a resource changes'() {
            notes.length = 0;
            const uri = 'test://static-text';
            const subscription = modern
                ? await client().listen({ resourceSubscriptions: [uri] })
                : await client().subscribeResource({ uri });
            if (modern) equal(subscription.honoredFilter.resourceSubscriptions, [uri], 'what is honoured');
            await call('update');
            await until(noted('notifications/resources/updated', uri), 'the notification');
            await (modern ? subscription.close() : client().unsubscribeResource({ uri }));
            await call('update');
            await call('greet');
            equal(notes.length, 1, 'notifications after the end');
        },
        async 'list_changed: resources and prompts'() {
            notes.length = 0;
            const subscription = modern &&
                await client().listen({ resourcesListChanged: true, promptsListChanged: true });
            await call('toggle_items');
            for (const method of watched.slice(1)) await until(noted(method), method);
            await (modern && subscription.close());
        },
        async 'elicitation: form'() {
            equal(JSON.parse(await ask('ask_name')), { action: 'accept', content: { name: 'Ada' } });
            equal(asked, ['Your name?']);
        },
        async 'elicitation: declined'() {
            action = 'decline';
            const said = await ask('ask_name').finally(() => void (action = 'accept'));
            equal(JSON.parse(said), { action: 'decline' });
        },
        async 'elicitation: two at once'() {
            const said = await ask('ask_both');
            equal([asked.sort(), said.split('"accept"').length - 1], [['Are you sure?', 'Name?'], 2]);
        },
        async 'elicitation: three in turn'() {
            equal(await ask('ask_rounds'), 'asked 3 times');
            equal(asked.length, 3);
        },
        async 'elicitation: for a prompt and a resource'() {
            const wanted = { action: 'accept', content: { context: 'here' } };
            const { messages } = await client().getPrompt({ name: 'ask' });
            equal(JSON.parse(messages[0].content.text), wanted);
            const { contents } = await client().readResource({ uri: 'test://ask' });
            equal(JSON.parse(contents[0].text), wanted);
        },
        async 'sampling'() {
            const said = JSON.parse(await ask('ask_model'));
            equal([said.role, said.model, said.content.text], ['assistant', 'judge', 'Say something.!']);
        },
        async 'roots'() {
            equal(JSON.parse(await ask('ask_roots')), { roots: [{ uri: 'file:///judged', name: 'judged' }] });
        }
    };

    // Must be called before the client connects.
    function listen(client) {
        sdk.answer(client, 'elicitation/create', ({ params }) => {
            asked.push(params.message);
            return action === 'accept' ? { action, content: answers[params.message] } : { action };
        });
        sdk.answer(client, 'sampling/createMessage', ({ params }) => {
            const [{ content }] = params.messages;
            const said = `${(Array.isArray(content) ? content[0] : content).text}!`;
            return { role: 'assistant', model: 'judge', content: { type: 'text', text: said } };
        });
        sdk.answer(client, 'roots/list', () => ({ roots: [{ uri: 'file:///judged', name: 'judged' }] }));
        for (const method of watched) sdk.on(client, method, note => void notes.push({ ...note, method }));
    }
    return { cells, listen };
}
