// The client of the TypeScript SDK, or of its version 1, gets a token for our server.
//   ts_auth_client.mjs [--sdk1] URL
import { equal, runCells } from './cells.mjs';
import { loadSdk1, loadSdk2 } from './ts_sdk.mjs';

const given = process.argv.slice(2);
const sdk1 = given[0] === '--sdk1' && Boolean(given.shift());
const [url] = given;
const sdk = await (sdk1 ? loadSdk1() : loadSdk2());
// nothing listens there: the browser is one request
const redirectUrl = 'http://127.0.0.1:9/callback';

// Keeps the data that the SDK gives it; the browser is one request.
class Provider {
    visits = 0;
    redirectUrl = redirectUrl;
    clientMetadata = {
        client_name: 'ts-judge', redirect_uris: [redirectUrl], token_endpoint_auth_method: 'client_secret_post',
        grant_types: ['authorization_code', 'refresh_token'], response_types: ['code']
    };
    clientInformation = () => this.client;
    saveClientInformation = client => void (this.client = client);
    tokens = () => this.kept;
    saveTokens = tokens => void (this.kept = tokens);
    saveCodeVerifier = verifier => void (this.verifier = verifier);
    codeVerifier = () => this.verifier;
    async redirectToAuthorization(place) {
        this.visits++;
        const answer = await fetch(place, { redirect: 'manual' });
        this.came = new URL(answer.headers.get('location')).searchParams;
    }
}

// The SDK gives up when it has opened the browser; with the code the client tries again.
async function greet(provider, mode) {
    const line = () => new sdk.StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
    let client = sdk.makeClient('ts-judge', mode);
    const first = line();
    try {
        await client.connect(first);
    } catch (error) {
        if (!provider.came) throw error;
        await first.finishAuth(sdk1 ? provider.came.get('code') : provider.came);
        provider.came = undefined;
        client = sdk.makeClient('ts-judge', mode);
        await client.connect(line());
    }
    const result = await sdk.call(client, { name: 'greet', arguments: { name: 'Ada' } });
    equal(result.content[0].text, 'Hello, Ada!');
    await client.close();
}

const cells = {};
for (const [era, mode] of Object.entries({ modern: { pin: '2026-07-28' }, legacy: 'legacy' }))
    cells[`${era}: registration, code, token, call`] = async () => {
        const provider = new Provider();
        await greet(provider, mode);
        equal(provider.visits, 1, 'visits of the browser');
        await greet(provider, mode);
        equal(provider.visits, 1, 'visits with a token that was kept');
    };
cells['a token that is damaged is replaced'] = async () => {
    const provider = new Provider();
    await greet(provider, 'legacy');
    provider.kept = { access_token: `${provider.kept.access_token.slice(0, -4)}AAAA`, token_type: 'Bearer' };
    await greet(provider, 'legacy');
    equal(provider.visits, 2, 'visits of the browser');
};
if (sdk1) delete cells['modern: registration, code, token, call'];
await runCells(cells);
