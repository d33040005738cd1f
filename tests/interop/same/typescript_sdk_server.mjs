// The travel desk on the official TypeScript SDK. With PORT it serves HTTP there.
import { appendFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import {
    completable, createMcpHandler, inputRequired, McpServer, ResourceTemplate
} from '@modelcontextprotocol/server';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const CITIES = ['Basel', 'Berlin', 'Bern'];
const text = value => ({ content: [{ type: 'text', text: value }] });

function makeServer() {
    const server = new McpServer({ name: 'desk', version: '0' }, { capabilities: { logging: {} } });

    server.registerTool(
        'offer',
        {
            description: 'Makes an offer for a stay.',
            inputSchema: z.object({
                nights: z.number().int().min(1).max(30),
                arrives: z.iso.date(),
                comfort: z.enum(['simple', 'fine']).default('simple')
            }),
            outputSchema: z.object({ price: z.number(), leaves: z.iso.date() })
        },
        ({ nights, arrives, comfort }) => {
            const leaves = new Date(Date.parse(arrives) + nights * 86_400_000);
            const price = nights * (comfort === 'simple' ? 80 : 200);
            const offer = { price, leaves: leaves.toISOString().slice(0, 10) };
            return { ...text(JSON.stringify(offer)), structuredContent: offer };
        }
    );

    server.registerTool(
        'report',
        {
            description: 'Reports on a city, day by day.',
            inputSchema: z.object({ city: z.string() })
        },
        async ({ city }, { mcpReq }) => {
            const progressToken = mcpReq._meta?.progressToken;
            const days = [];
            for (let day = 1; day <= 3; day++) {
                const params = { progressToken, progress: day, total: 3, message: `day ${day}` };
                if (progressToken !== undefined) {
                    await mcpReq.notify({ method: 'notifications/progress', params });
                }
                await mcpReq.log('info', `day ${day} of ${city}`);
                days.push(`Day ${day} in ${city}\n`);
            }
            return text(days.join(''));
        }
    );

    server.registerTool(
        'book',
        {
            description: 'Books a trip, and asks before.',
            inputSchema: z.object({ city: z.string() })
        },
        ({ city }, { mcpReq }) => {
            const answer = mcpReq.inputResponses?.sure;
            if (!answer) {
                const requestedSchema = {
                    type: 'object',
                    properties: { sure: { type: 'boolean' } },
                    required: ['sure']
                };
                const sure = inputRequired.elicit({ message: `Book ${city}?`, requestedSchema });
                return inputRequired({ inputRequests: { sure } });
            }
            const isSure = answer.action === 'accept' && answer.content.sure;
            return text(isSure ? `booked: ${city}` : 'not booked');
        }
    );

    server.registerTool(
        'archive',
        {
            description: 'Writes pages to a file, slowly.',
            inputSchema: z.object({ pages: z.number().int(), file: z.string() })
        },
        async ({ pages, file }) => {
            for (let page = 0; page < pages; page++) {
                await setTimeout(100);
                await appendFile(file, `${page}\n`);
            }
            return text(`${pages} pages`);
        }
    );

    server.registerTool(
        'cancel',
        { description: 'Cancels a trip.', inputSchema: z.object({ trip: z.string() }) },
        ({ trip }) => ({ ...text(`There is no trip ${trip}`), isError: true })
    );

    server.registerTool('broken', { description: 'Has a defect.' }, () => {
        throw new Error('password is hunter2');
    });

    server.registerResource('policy', 'desk://policy', { mimeType: 'text/plain' }, uri => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Be kind.' }]
    }));

    server.registerResource(
        'trip',
        new ResourceTemplate('desk://trips/{trip}', { list: undefined }),
        {},
        (uri, { trip }) => ({ contents: [{ uri: uri.href, text: JSON.stringify({ trip }) }] })
    );

    const startingWith = typed => CITIES.filter(city => city.startsWith(typed));
    server.registerPrompt(
        'plan',
        {
            description: 'Plans a trip.',
            argsSchema: z.object({ city: completable(z.string(), startingWith) })
        },
        ({ city }) => ({
            messages: [{ role: 'user', content: { type: 'text', text: `Plan a trip to ${city}.` } }]
        })
    );
    return server;
}

if (process.env.PORT) {
    const handler = createMcpHandler(makeServer);
    createServer(toNodeHandler(handler)).listen(Number(process.env.PORT), '127.0.0.1');
} else {
    serveStdio(makeServer);
}
