// Runs named checks and prints one JSON line for each. A check passes when it returns; it
// throws Missing when the peer lacks the feature, anything else is a failure.
import http from 'node:http';

export class Missing extends Error {}

export function equal(actual, expected, what = 'value') {
    const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
    if (a !== b) throw new Error(`${what} is ${String(a).slice(0, 200)}, not ${String(b).slice(0, 200)}`);
}

export async function rejection(promise) {
    try {
        await promise;
    } catch (error) {
        return error;
    }
    throw new Error('it was not refused');
}

function within(promise, ms) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`not done within ${ms} ms`)), ms);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Polls until check() is true.
export async function until(check, what) {
    for (let i = 0; i < 500; i++) {
        if (check()) return;
        await new Promise(resolve => setTimeout(resolve, 10));
    }
    throw new Error(`${what} did not happen`);
}

// Makes the tap in front of the server at that URL end all other connections. The request
// must have a connection of its own.
export async function cutConnections(url) {
    const status = await new Promise((resolve, reject) => {
        const request = http.request(new URL('/cut', url), { method: 'POST', agent: false });
        request.on('response', answer => resolve(answer.resume().statusCode));
        request.on('error', reject);
        request.end();
    });
    equal(status, 204, 'the answer of the tap');
}

export async function runCells(cells, ms = 30000) {
    // Without this handler Node would end, and the later cells would be lost: now only
    // this one fails.
    let stray;
    process.on('unhandledRejection', error => void (stray ??= error));
    for (const [what, check] of Object.entries(cells)) {
        const line = { what, state: 'green' };
        try {
            await within(check(), ms);
            if (stray) throw new Error(`a rejection that nobody handles: ${stray?.message ?? stray}`);
        } catch (error) {
            line.state = error instanceof Missing ? 'missing' : 'FAILED';
            line.reason = String(error?.message ?? error).replace(/\s+/g, ' ').slice(0, 300);
        }
        stray = undefined;
        process.stdout.write(JSON.stringify(line) + '\n');
    }
}
