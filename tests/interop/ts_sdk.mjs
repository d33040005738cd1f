// The clients of the TypeScript SDK and of its version 1, in one shape. Methods and
// notifications go by their names, as they do in version 2.
async function load(...names) {
    return Object.assign({}, ...(await Promise.all(names.map(name => import(name)))));
}

const v1 = name => `@modelcontextprotocol/sdk/${name}.js`;

export async function loadSdk1() {
    const sdk = await load(...['client/index', 'client/stdio', 'client/streamableHttp', 'types'].map(v1));
    const results = {
        'tools/list': sdk.ListToolsResultSchema,
        'prompts/list': sdk.ListPromptsResultSchema
    };
    const notes = {
        'notifications/message': sdk.LoggingMessageNotificationSchema,
        'notifications/tools/list_changed': sdk.ToolListChangedNotificationSchema
    };
    return {
        ...sdk,
        makeClient: (name, _mode, options) => new sdk.Client({ name, version: '1.0.0' }, options),
        on: (client, method, handle) => client.setNotificationHandler(notes[method], handle),
        request: (client, request) => client.request(request, results[request.method]),
        call: (client, params, options) => client.callTool(params, sdk.CallToolResultSchema, options),
        // It keeps the version to itself; over HTTP it has to say it.
        versionOf: (client, wire) => wire.protocolVersion,
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
        request: (client, request) => client.request(request),
        call: (client, params, options) => client.callTool(params, options),
        versionOf: client => client.getNegotiatedProtocolVersion(),
        choosesVersion: true
    };
}
