// The clients of the TypeScript SDK and of its version 1, with one interface. Methods and
// notifications have the names that they have in version 2.
import { z } from 'zod';

async function load(...names) {
    return Object.assign({}, ...(await Promise.all(names.map(name => import(name)))));
}

const v1 = name => `@modelcontextprotocol/sdk/${name}.js`;

export async function loadSdk1() {
    const sdk = await load(...['client/index', 'client/stdio', 'client/streamableHttp', 'types'].map(v1));
    const results = {
        'tools/list': sdk.ListToolsResultSchema
    };
    const notes = {
        'notifications/message': sdk.LoggingMessageNotificationSchema,
        'notifications/tools/list_changed': sdk.ToolListChangedNotificationSchema,
        'notifications/prompts/list_changed': sdk.PromptListChangedNotificationSchema,
        'notifications/resources/list_changed': sdk.ResourceListChangedNotificationSchema,
        'notifications/resources/updated': sdk.ResourceUpdatedNotificationSchema
    };
    const questions = {
        'elicitation/create': sdk.ElicitRequestSchema,
        'sampling/createMessage': sdk.CreateMessageRequestSchema,
        'roots/list': sdk.ListRootsRequestSchema
    };
    return {
        ...sdk,
        makeClient: (name, _mode, options) => new sdk.Client({ name, version: '1.0.0' }, options),
        on: (client, method, handle) => client.setNotificationHandler(notes[method], handle),
        answer: (client, method, handle) => client.setRequestHandler(questions[method], handle),
        request: (client, request) => client.request(request, results[request.method]),
        requestOther: (client, request) => client.request(request, sdk.ResultSchema),
        call: (client, params, options) => client.callTool(params, sdk.CallToolResultSchema, options),
        // The client does not show the version; over HTTP its transport must send it.
        versionOf: (client, wire) => wire.protocolVersion,
        notFound: -32002,
        choosesVersion: false
    };
}

export async function loadSdk2() {
    const sdk = await load('@modelcontextprotocol/client', '@modelcontextprotocol/client/stdio');
    return {
        ...sdk,
        makeClient: (name, mode, options) =>
            new sdk.Client({ name, version: '1.0.0' }, { versionNegotiation: { mode }, ...options }),
        on: (client, method, handle) => client.setNotificationHandler(method, handle),
        answer: (client, method, handle) => client.setRequestHandler(method, handle),
        request: (client, request) => client.request(request),
        requestOther: (client, request) => client.request(request, z.looseObject({})),
        call: (client, params, options) => client.callTool(params, options),
        versionOf: client => client.getNegotiatedProtocolVersion(),
        notFound: -32602, // the client treats the handshake eras' code as this one
        choosesVersion: true
    };
}
