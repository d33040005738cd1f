// A server on the TypeScript SDK that requires tokens of an issuer.  ts_auth_server.mjs
// ISSUER Prints its URL. Clients of the handshake eras are served without sessions.
import http from 'node:http';
import {
    createMcpHandler, getOAuthProtectedResourceMetadataUrl, McpServer, oauthMetadataResponse, OAuthError,
    OAuthErrorCode, requireBearerAuth
} from '@modelcontextprotocol/server';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { z } from 'zod';

const issuer = process.argv[2];
const keys = createRemoteJWKSet(new URL('jwks.json', issuer));
const metadata = await (await fetch(new URL('.well-known/oauth-authorization-server', issuer))).json();

function makeServer() {
    const server = new McpServer({ name: 'judged', version: '1.0.0' });
    server.registerTool('greet', { inputSchema: z.object({ name: z.string().default('World') }) },
        ({ name }) => ({ content: [{ type: 'text', text: `Hello, ${name}!` }] }));
    return server;
}

function makeFetch(url) {
    const verifier = {
        async verifyAccessToken(token) {
            const { payload } = await jwtVerify(token, keys, { issuer, audience: url.href }).catch(error => {
                throw new OAuthError(OAuthErrorCode.InvalidToken, error.message);
            });
            return {
                token, clientId: payload.client_id, scopes: payload.scope.split(' '), expiresAt: payload.exp, resource: url
            };
        }
    };
    const gate = requireBearerAuth({
        verifier, requiredScopes: ['mcp'], expectedResource: url,
        resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(url)
    });
    const handler = createMcpHandler(makeServer);
    return async request => {
        const about = oauthMetadataResponse(request, {
            oauthMetadata: metadata, resourceServerUrl: url, dangerouslyAllowInsecureIssuerUrl: true
        });
        if (about) return about;
        const caller = await gate(request);
        return caller instanceof Response ? caller : handler.fetch(request, { authInfo: caller });
    };
}

let fetchOurs;

async function answer(incoming, outgoing) {
    const parts = [];
    for await (const part of incoming) parts.push(part);
    const response = await fetchOurs(new Request(`http://${incoming.headers.host}${incoming.url}`, {
        method: incoming.method, headers: incoming.headers, body: parts.length ? Buffer.concat(parts) : undefined
    }));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    const reader = response.body?.getReader();
    outgoing.on('close', () => reader?.cancel().catch(() => {}));
    for (let part; reader && !(part = await reader.read()).done; ) outgoing.write(part.value);
    outgoing.end();
}

const server = http.createServer((incoming, outgoing) =>
    answer(incoming, outgoing).catch(() => outgoing.destroy()));
process.on('SIGTERM', () => process.exit(0));
server.listen(0, '127.0.0.1', () => {
    const url = new URL(`http://127.0.0.1:${server.address().port}/mcp`);
    fetchOurs = makeFetch(url);
    console.log(url.href);
});
