// Requests to the server of this page.

const TOKEN = "segue-board-token";
const DEMO = "segue-board-demo";

export class Refusal extends Error {
    constructor(status, message) {
        super(message);
        this.status = status; // of HTTP; 0 = the server could not be reached
    }
}

class Api {
    about = null;
    source = 0;

    get token() {
        return sessionStorage.getItem(TOKEN) ?? "";
    }

    set token(value) {
        sessionStorage.setItem(TOKEN, value);
    }

    // Takes the token out of a URL that ends with #token=..., so that the address bar, the
    // history and links do not have it. With "&demo" behind it, the page has buttons that
    // break things (tests/demo/board.py).
    takeToken() {
        const given = /^#token=([\w.~+/=-]+)(&demo)?$/.exec(location.hash);
        if (!given) return;
        this.token = given[1];
        if (given[2]) sessionStorage.setItem(DEMO, "1");
        history.replaceState(null, "", "#/");
    }

    url(name, parameters = {}) {
        const query = new URLSearchParams({ source: this.source, ...parameters });
        // the server decodes percent-encoding alone
        return `api/${name}?${query.toString().replaceAll("+", "%20")}`;
    }

    async #ask(name, parameters, options = {}) {
        const headers = { Accept: "application/json", ...options.headers };
        if (this.token) headers.Authorization = `Bearer ${this.token}`;
        let answer;
        try {
            answer = await fetch(this.url(name, parameters), {
                ...options, headers, signal: AbortSignal.timeout(20000),
            });
        } catch {
            throw new Refusal(0, "The server cannot be reached.");
        }
        const text = await answer.text().catch(() => "");
        let json = null;
        try {
            json = JSON.parse(text);
        } catch {
            if (answer.ok) throw new Refusal(0, "The answer was cut off.");
        }
        if (answer.ok) return json;
        const said = json?.error?.message ?? json?.error ?? text.trim();
        throw new Refusal(answer.status, said || `The server answered ${answer.status}.`);
    }

    #change(name, parameters, body) {
        return this.#ask(name, parameters, {
            method: "POST",
            headers: { "Content-Type": "application/json" },
            body: JSON.stringify(body),
        });
    }

    async begin() {
        this.about = await this.#ask("about");
    }

    tasks(tag) {
        return this.#ask("tasks", { tag });
    }

    summaries(ids) {
        return this.#ask("summaries", { ids: ids.join(",") });
    }

    task(id) {
        return this.#ask("task", { id });
    }

    entries(id, after) {
        return this.#ask("entries", { id, after });
    }

    cancel(id) {
        return this.#change("command", { id }, { cancel: 1 });
    }

    answer(id, key, response) {
        return this.#change("command", { id }, { answer: { key, response } });
    }

    // Makes a new task that begins behind the segment with the number `after`.
    rerun(id, after) {
        return this.#change("rerun", { id, after }, {});
    }

    get isDemo() {
        return sessionStorage.getItem(DEMO) !== null;
    }

    // Lets the demo cut the connections of this page, or kill the server.
    async breakIt(what) {
        await fetch(`demo/${what}`, { method: "POST" });
    }

    remove(id) {
        return this.#change("remove", { id }, {});
    }
}

export const api = new Api();

// Calls `work` again and again. `work` returns the pause in ms, or -1 to stop. After an
// error the pause grows, and `lost` gets the error. A hidden page asks rarely.
export class Loop {
    #timer = 0;
    #stopped = false;
    #failures = 0;

    constructor(work, lost) {
        this.work = work;
        this.lost = lost;
        this.wake = () => document.hidden || this.#soon(0);
        document.addEventListener("visibilitychange", this.wake);
        this.#soon(0);
    }

    #soon(ms) {
        if (this.#stopped || this.running) return;
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#turn(), ms);
    }

    async #turn() {
        this.running = true;
        let pause;
        try {
            pause = await this.work();
            this.#failures = 0;
        } catch (error) {
            if (!(error instanceof Refusal)) throw error;
            pause = Math.min(5000, 250 * 2 ** this.#failures++);
            if (!this.#stopped) this.lost(error);
        } finally {
            this.running = false;
        }
        if (pause < 0) this.stop();
        else this.#soon(document.hidden ? Math.max(pause, 5000) : pause);
    }

    stop() {
        this.#stopped = true;
        clearTimeout(this.#timer);
        document.removeEventListener("visibilitychange", this.wake);
    }
}
