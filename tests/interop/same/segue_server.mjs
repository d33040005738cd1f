// The travel desk on Segue for Node. With PORT it serves HTTP there.
import { appendFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { Server, ToolError } from 'segue-mcp';
import { z } from 'zod';

const server = new Server({ name: 'desk', store: process.env.STORE });

server.tool(
    'offer',
    {
        description: 'Makes an offer for a stay.',
        input: {
            nights: z.number().int().min(1).max(30),
            arrives: z.iso.date(),
            comfort: z.enum(['simple', 'fine']).default('simple')
        },
        output: { price: z.number(), leaves: z.iso.date() }
    },
    ({ nights, arrives, comfort }) => {
        const leaves = new Date(Date.parse(arrives) + nights * 86_400_000);
        const price = nights * (comfort === 'simple' ? 80 : 200);
        return { price, leaves: leaves.toISOString().slice(0, 10) };
    }
);

server.tool(
    'report',
    { description: 'Reports on a city, day by day.', input: { city: z.string() } },
    async function* ({ city }, ctx) {
        for (let day = 1; day <= 3; day++) {
            ctx.progress(day, 3, `day ${day}`);
            ctx.log(`day ${day} of ${city}`);
            yield `Day ${day} in ${city}\n`;
        }
    }
);

server.tool(
    'book',
    { description: 'Books a trip, and asks before.', input: { city: z.string() } },
    async ({ city }, ctx) =>
        (await ctx.ask(`Book ${city}?`, z.boolean())) ? `booked: ${city}` : 'not booked'
);

server.tool(
    'archive',
    {
        description: 'Writes pages to a file, slowly, and goes on after a crash.',
        input: { pages: z.number().int(), file: z.string() },
        task: 'may',
        promoteAfterMs: 0,
        restartable: true
    },
    async ({ pages, file }, ctx) => {
        for (let page = ctx.resumed?.data ?? 0; page < pages; page++) {
            await setTimeout(100);
            await appendFile(file, `${page}\n`);
            await ctx.checkpoint(page + 1);
        }
        return `${pages} pages`;
    }
);

server.tool('cancel', { description: 'Cancels a trip.', input: { trip: z.string() } }, ({ trip }) => {
    throw new ToolError(`There is no trip ${trip}`);
});

server.tool('broken', { description: 'Has a defect.' }, () => {
    throw new Error('password is hunter2');
});

server.resource('desk://policy', { mimeType: 'text/plain' }, () => 'Be kind.');

server.resource('desk://trips/{trip}', ({ trip }) => ({ trip }));

server.prompt(
    'plan',
    {
        description: 'Plans a trip.',
        input: { city: z.string() },
        complete: { city: ['Basel', 'Berlin', 'Bern'] }
    },
    ({ city }) => `Plan a trip to ${city}.`
);

if (process.env.PORT) await server.listenHttp({ port: Number(process.env.PORT) });
else await server.serveStdio();
