// <segue-board>: the frame of the page. It says whether the server can be reached, asks
// for a token if one is needed, and shows the view that the hash names.

import { api } from "./api.js";
import { el } from "./parts.js";
import { hashOf, routeOf } from "./routes.js";
import { Tasks } from "./tasks.js";
import "./form.js";
import "./list.js";
import "./task.js";

class Board extends HTMLElement {
    #from = "#/"; // the list from which a task was opened

    connectedCallback() {
        this.state = el("span", { class: "state", role: "status" });
        this.tags = el("span", { class: "tags" });
        this.sources = el("select", {
            "aria-label": "Server", hidden: true, onchange: () => this.#choose(),
        });
        this.main = el("main", {});
        this.append(
            el("header", {},
                el("a", { class: "brand", href: "#/" }, el("span", { class: "mark" }),
                    el("span", {}, "Segue"), el("span", { class: "muted" }, "tasks")),
                this.sources, this.tags, this.state),
            this.main,
            el("div", { id: "notice", role: "status" }));
        addEventListener("hashchange", () => this.#follow());
        document.addEventListener("keydown", (event) => this.#key(event));
        this.#begin();
    }

    async #begin() {
        api.takeToken();
        try {
            await api.begin();
        } catch (error) {
            this.#refused(error);
            return;
        }
        const { sources, readOnly, redacted } = api.about;
        this.sources.replaceChildren(...sources.map((path, i) =>
            el("option", { value: i }, path)));
        this.sources.hidden = sources.length < 2;
        const tag = (text, title) => el("span", { class: "tag", title }, text);
        this.tags.replaceChildren();
        if (readOnly) this.tags.append(tag("read-only", "This board changes nothing"));
        if (redacted) this.tags.append(tag("redacted", "Contents are hidden"));
        api.source = routeOf(location.hash).source;
        this.#open();
    }

    #refused(error) {
        if (error.status === 401) {
            this.#askForToken(error.message);
            return;
        }
        this.main.replaceChildren(el("p", { class: "empty" }, error.message));
        if (!error.status || error.status >= 500)
            this.again = setTimeout(() => this.#begin(), 2000);
    }

    #askForToken(why) {
        const input = el("input", {
            id: "token", type: "password", required: true, autocomplete: "off",
        });
        const form = el("form", { class: "token" },
            el("h1", {}, "This server asks for a token"),
            el("label", { for: "token" }, "Access token"), input,
            el("p", { class: "help" }, why),
            el("button", { class: "primary", type: "submit" }, "Open"));
        form.addEventListener("submit", (event) => {
            event.preventDefault();
            api.token = input.value;
            this.#begin();
        });
        this.main.replaceChildren(form);
        input.focus();
    }

    #choose() {
        api.source = Number(this.sources.value);
        location.hash = hashOf({});
        this.#open();
    }

    #open() {
        this.tasks?.end();
        this.tasks = new Tasks();
        this.tasks.addEventListener("change", () => this.#tell(this.tasks));
        this.sources.value = api.source;
        this.#show();
    }

    // A URL with a token may be opened in a tab that shows the page already.
    #follow() {
        if (location.hash.startsWith("#token=")) this.#begin();
        else this.#show();
    }

    #show() {
        const route = routeOf(location.hash);
        if (!api.about) return;
        if (route.source !== api.source) {
            api.source = route.source;
            this.#open();
            return;
        }
        this.main.querySelector("segue-task")?.end();
        if (route.task) this.#showTask(route);
        else this.#showList(route);
    }

    #showList(route) {
        this.#from = location.hash || "#/";
        this.tasks.loop ?? this.tasks.begin();
        document.title = "Tasks – Segue";
        const list = el("segue-list");
        this.main.replaceChildren(list);
        list.begin(this.tasks, route.filter);
        this.#tell(this.tasks);
    }

    // The list is not read while a task is shown.
    #showTask(route) {
        this.tasks.end();
        this.#forget();
        const task = el("segue-task");
        this.main.replaceChildren(task);
        task.begin(route, this.#from);
        task.log.addEventListener("change", () => this.#tell(task.log));
    }

    #forget() {
        const { rows, summaries, isLoaded, total } = this.tasks;
        this.tasks = Object.assign(new Tasks(), { rows, summaries, isLoaded, total });
        this.tasks.addEventListener("change", () => this.#tell(this.tasks));
    }

    #tell(what) {
        const lost = what.lost;
        this.state.className = `state ${lost ? "lost" : what.ended ? "over" : "live"}`;
        this.state.textContent = !lost ? (what.ended ? "Complete" : "Live")
            : lost.status ? lost.message : "Connection lost. Trying again …";
        if (lost?.status === 401) this.#refused(lost);
    }

    #key(event) {
        const isTyping = event.target.matches?.("input, select, textarea");
        const isOpen = document.querySelector("dialog");
        if (event.key === "Escape" && !isTyping && !isOpen && routeOf(location.hash).task)
            location.hash = this.#from;
    }
}

customElements.define("segue-board", Board);
