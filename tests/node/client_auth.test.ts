/** Identity of the client over HTTP: headers, tokens, OAuth with a browser, saved
 * tokens. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import {
    authorize,
    type CallbackFailure,
    connect,
    DisconnectedError,
    FileStorage,
    NotFoundError,
    OAuth,
    UnauthorizedError,
} from "segue-mcp";
import { Authority, agree, browse } from "./fake_authority.js";

async function withAuthority(
    work: (authority: Authority) => Promise<void>,
): Promise<void> {
    const authority = await Authority.start();
    try {
        await work(authority);
    } finally {
        await authority.stop();
    }
}

/** Connects, checks the server's name, and closes. */
async function visit(url: string, auth: OAuth | string): Promise<void> {
    const session = await connect(url, { auth });
    assert.equal(session.peer.server.name, "guarded");
    await session.close();
}

/** Follows the redirect of a user who agrees. */
function browser(log: string[]): (url: string) => Promise<void> {
    return async (url) => {
        log.push(url);
        const { page } = await browse(await agree(url));
        assert.match(page, /You can close this window/);
    };
}

test("a bearer token", () =>
    withAuthority(async (authority) => {
        authority.tokens.add("secret");
        await visit(authority.url, "secret");
        const wrong = connect(authority.url, { auth: "wrong" });
        await assert.rejects(wrong, UnauthorizedError);
        await assert.rejects(connect(authority.url), (error: unknown) => {
            assert.ok(error instanceof UnauthorizedError);
            assert.match(
                error.message,
                /expired; set the option auth to a token, or to new OAuth\(\) to log in$/,
            );
            return true;
        });
        const headers = { Authorization: "Bearer secret", "X-More": "7" };
        const session = await connect(authority.url, { headers });
        assert.equal(authority.headers["x-more"], "7");
        await session.close();
    }));

test("a token that is asked for", () =>
    withAuthority(async (authority) => {
        authority.tokens.add("new");
        const asked: number[] = [];
        const auth = (status: number): string => {
            asked.push(status);
            return status === 0 ? "old" : "new";
        };
        const session = await connect(authority.url, { auth });
        await session.close();
        assert.deepEqual(asked.slice(0, 2), [0, 401]);
        const found: unknown[] = [];
        const onError = (error: unknown, { callback }: CallbackFailure): void =>
            void found.push(callback, error);
        const promised = { auth: async () => "new", onError } as object;
        await assert.rejects(connect(authority.url, promised), UnauthorizedError);
        assert.equal(found[0], "auth");
        assert.match(String(found[1]), /not a promise/);
    }));

test("a storage of tokens that fails is reported, and the user logs in", () =>
    withAuthority(async (authority) => {
        const found = new Set<string>();
        const onError = (error: unknown, { callback }: CallbackFailure): void =>
            void found.add(`${callback}: ${(error as Error).message}`);
        const fails = (): never => {
            throw new Error("locked");
        };
        const storage = { load: fails, save: fails };
        const shown: string[] = [];
        const auth = new OAuth({ openBrowser: browser(shown), storage });
        const session = await connect(authority.url, { auth, onError });
        await session.close();
        assert.equal(shown.length, 1);
        assert.deepEqual([...found].sort(), [
            "storage.load: locked",
            "storage.save: locked",
        ]);
    }));

test("a user agrees in a browser", () =>
    withAuthority(async (authority) => {
        const directory = mkdtempSync(path.join(os.tmpdir(), "segue-auth-"));
        const kept = path.join(directory, "kept");
        const shown: string[] = [];
        const oauth = new OAuth({
            openBrowser: browser(shown),
            storage: new FileStorage(kept),
            clientName: "test",
            clientSecret: "hush",
        });
        await visit(authority.url, oauth);
        assert.equal(shown.length, 1);
        assert.match(shown[0] ?? "", /code_challenge/);
        await visit(authority.url, oauth); // with the saved token
        assert.equal(shown.length, 1);
        const files = readdirSync(kept).map((name) => path.join(kept, name));
        assert.ok(files.length > 0);
        for (const file of files) assert.equal(statSync(file).mode & 0o777, 0o600);
        assert.equal(statSync(kept).mode & 0o777, 0o700);
        assert.doesNotMatch(inspect(oauth, { depth: 5 }), /hush/);
        rmSync(directory, { recursive: true });
    }));

test("a redirect of one's own", () =>
    withAuthority(async (authority) => {
        let came: (url: string) => void = () => undefined;
        const shown = new Promise<string>((resolve) => {
            came = resolve;
        });
        const oauth = new OAuth({
            redirectUri: "http://127.0.0.1:9/callback",
            openBrowser: (url) => came(url),
        });
        const connecting = connect(authority.url, { auth: oauth });
        const location = await agree(await shown);
        authorize(location);
        const session = await connecting;
        assert.throws(() => authorize(location), NotFoundError);
        await session.close();
    }));

test("strangers at the redirect", () =>
    withAuthority(async (authority) => {
        const stranger = async (url: string): Promise<void> => {
            const redirect = new URL(url).searchParams.get("redirect_uri");
            for (const query of ["?code=x&state=wrong", "?state=", "", "/other?code=x"]) {
                assert.equal((await browse(`${redirect}${query}`)).status, 404);
            }
            assert.equal((await browse(String(redirect), "POST")).status, 404);
            await browser([])(url);
        };
        await visit(authority.url, new OAuth({ openBrowser: stranger }));
    }));

test("a user who takes his time", (context) =>
    withAuthority(async (authority) => {
        for (const isOwn of [false, true]) {
            context.mock.timers.enable({ apis: ["setTimeout"] });
            const decide = async (url: string): Promise<void> => {
                context.mock.timers.tick(31_000); // only the user's own time limit counts
                if (isOwn) authorize(await agree(url));
                else await browser([])(url);
            };
            const redirectUri = isOwn ? "http://127.0.0.1:9/callback" : undefined;
            await visit(authority.url, new OAuth({ openBrowser: decide, redirectUri }));
            context.mock.timers.reset();
        }
    }));

test("an outage of the authorization server", () =>
    withAuthority(async (authority) => {
        const auth = new OAuth({
            grant: "client",
            clientId: "me",
            clientSecret: "secret-of-me",
        });
        const session = await connect(authority.url, { auth, maxReconnects: 2 });
        authority.tokens.clear();
        authority.busy = 2;
        const task = session.stream("t");
        await task.started();
        assert.equal(authority.busy, 0); // the temporary outage was waited for
        authority.tokens.clear();
        authority.busy = 1000;
        await assert.rejects(task.collect(), (error: unknown) => {
            assert.ok(error instanceof DisconnectedError);
            return error.retryable;
        });
        const { token } = task;
        assert.ok(token); // the reader has ended, but not the task
        authority.busy = 0;
        authority.isDone = true;
        assert.deepEqual((await session.resume(token).result()).content, []);
        await session.close();
    }));

test("a browser that fails later ends the call", () =>
    withAuthority(async (authority) => {
        const shown: string[] = [];
        const once = async (url: string): Promise<void> => {
            if (shown.length > 0) throw new Error("no display");
            await browser(shown)(url);
        };
        const auth = new OAuth({ openBrowser: once });
        const found: unknown[] = [];
        const onError = (error: unknown, { callback }: CallbackFailure): void =>
            void found.push(callback, error);
        const session = await connect(authority.url, { auth, onError });
        authority.tokens.clear();
        await assert.rejects(session.call("t"), UnauthorizedError);
        assert.equal(found[0], "openBrowser");
        assert.match(String(found[1]), /no display/);
        await session.close();
    }));

test("a browser that cannot be opened is the error of connecting", () =>
    withAuthority(async (authority) => {
        const openBrowser = (): never => {
            throw new Error("no display");
        };
        const auth = new OAuth({ openBrowser });
        await assert.rejects(connect(authority.url, { auth }), /no display/);
    }));

test("without a browser the error has the URL", () =>
    withAuthority(async (authority) => {
        const { PATH } = process.env;
        process.env["PATH"] = "/nowhere";
        try {
            const connecting = connect(authority.url, { auth: new OAuth() });
            const told = /no browser can be opened .*visit http:.*code_challenge/;
            await assert.rejects(connecting, told);
        } finally {
            process.env["PATH"] = PATH;
        }
    }));

test("a client of its own", () =>
    withAuthority(async (authority) => {
        const clientSecret = "secret-of-me";
        const oauth = new OAuth({ grant: "client", clientId: "me", clientSecret });
        await visit(authority.url, oauth);
        assert.deepEqual(authority.grants, ["client_credentials"]);
        assert.doesNotMatch(inspect(oauth), /secret-of-me/);
    }));

test("options that do not go together", () => {
    assert.throws(
        () => new OAuth({ grant: "password" as "code" }),
        /unknown grant: "password"; the grants are code, /,
    );
    assert.throws(() => new OAuth({ grant: "assertion" }), /needs the option assertion/);
});
