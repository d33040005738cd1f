// <segue-list>: the tasks of a store by status, tool, principal and age.

import { age, badge, count, el, plural, STATUSES, statusName, time }
    from "./parts.js";
import { hashOf } from "./routes.js";
import "./rows.js";

const AGES = [["", "Any age"], ["3600", "Last hour"], ["86400", "Last day"],
    ["604800", "Last week"]];
const WIDE = 44, NARROW = 64; // heights of a row

class List extends HTMLElement {
    #shown = []; // the rows that pass the filter
    #chosen = 0;
    #chips = new Map();
    #narrow = matchMedia("(max-width: 640px)");

    begin(tasks, filter) {
        this.tasks = tasks;
        this.filter = filter;
        this.append(el("h1", { class: "unseen" }, "Tasks"), this.#bar(), this.#head(), this.#table(), this.empty = el("p",
            { class: "empty", hidden: true }));
        this.changed = () => this.soon();
        tasks.addEventListener("change", this.changed);
        this.keys = (event) => this.#key(event);
        document.addEventListener("keydown", this.keys);
        this.resized = () => this.#resize();
        this.#narrow.addEventListener("change", this.resized);
        this.draw();
    }

    disconnectedCallback() {
        this.tasks.removeEventListener("change", this.changed);
        document.removeEventListener("keydown", this.keys);
        this.#narrow.removeEventListener("change", this.resized);
        cancelAnimationFrame(this.frame);
    }

    soon() {
        this.frame ||= requestAnimationFrame(() => {
            this.frame = 0;
            this.draw();
        });
    }

    // ---- elements ----

    #bar() {
        const chips = el("div", { class: "chips", role: "group", "aria-label": "Status" });
        for (const status of ["", ...STATUSES]) {
            const number = el("span", { class: "number" });
            const chip = el("button", {
                class: `chip ${status}`, onclick: () => this.#set("status", status),
            }, status ? statusName(status) : "All", number);
            this.#chips.set(status, { chip, number });
            chips.append(chip);
        }
        this.search = el("input", {
            type: "search", placeholder: "Filter  ( / )", "aria-label": "Filter tasks",
            value: this.filter.q, oninput: () => this.#set("q", this.search.value),
        });
        this.tool = this.#select("tool", "Tool");
        this.by = this.#select("by", "Principal");
        this.age = this.#select("age", "Age");
        this.#fill(this.age, AGES);
        return el("div", { class: "bar" }, chips,
            el("div", { class: "filters" }, this.search, this.tool, this.by, this.age));
    }

    #select(name, label) {
        return el("select", {
            "aria-label": label, onchange: (event) => this.#set(name, event.target.value),
        });
    }

    #fill(select, options) {
        const wanted = options.map(([value]) => value).join("\n");
        if (select.dataset.wanted !== wanted) {
            select.dataset.wanted = wanted;
            select.replaceChildren(...options.map(([value, text]) =>
                el("option", { value }, text)));
        }
    }

    #head() {
        const names = ["Status", "Tool", "Message", "Principal", "Segments", "Age"];
        return el("div", { class: "head", "aria-hidden": "true" },
            names.map((name) => el("span", {}, name)));
    }

    #table() {
        this.rows = el("segue-rows", { class: "tasks" });
        this.rows.begin({
            height: this.#narrow.matches ? NARROW : WIDE,
            label: "Tasks",
            make: () => this.#make(),
            fill: (row, index) => this.#show(row, this.#shown[index]),
            moved: () => this.#moved(),
        });
        return this.rows;
    }

    #make() {
        const part = (name) => el("span", { class: name });
        return el("div", {}, el("a", { class: "task" }, part("status"), part("tool"),
            part("message"), part("by"), part("segments"), part("age")));
    }

    #show(element, row) {
        const [status, tool, message, by, segments, old] = element.firstChild.children;
        const summary = this.tasks.summaries.get(row.id);
        const now = this.tasks.status(row);
        const link = element.firstChild;
        link.href = hashOf({ task: row.id });
        if (status.dataset.now !== now) {
            status.dataset.now = now;
            status.replaceChildren(badge(now));
        }
        tool.textContent = row.tool || "(no tool)";
        message.textContent = summary?.questions[0]?.params?.message ??
            summary?.statusMessage ?? row.id;
        by.textContent = row.by || "anonymous";
        segments.textContent = summary ? count(summary.segments) : "";
        segments.title = summary ? plural(summary.segments, "segment") : "";
        old.textContent = age(row.created);
        old.title = time(row.created);
    }

    #moved() {
        this.tasks.visible = this.#shown
            .slice(this.rows.first, this.rows.first + this.rows.shown).map((row) => row.id);
    }

    // ---- the filter ----

    #set(name, value) {
        this.filter[name] = value;
        history.replaceState(null, "", hashOf({ filter: this.filter }));
        this.rows.scrollTop = 0;
        this.draw();
    }

    #passes(row) {
        const { q, tool, by, age: most } = this.filter;
        if (tool && row.tool !== tool) return false;
        if (by && row.by !== by) return false;
        if (most && Date.now() - row.created > most * 1000) return false;
        if (!q) return true;
        const summary = this.tasks.summaries.get(row.id);
        return `${row.id} ${row.tool} ${row.by} ${summary?.statusMessage ?? ""}`
            .toLowerCase().includes(q.toLowerCase());
    }

    // Called when the list has changed.
    #drawNames() {
        if (this.named === this.tasks.rows) return;
        this.named = this.tasks.rows;
        this.#fill(this.tool, this.#names("tool", "All tools"));
        this.#fill(this.by, this.#names("by", "All principals"));
    }

    #names(name, all) {
        const names = [...new Set(this.tasks.rows.map((row) => row[name]))]
            .filter(Boolean).sort();
        const chosen = this.filter[name];
        if (chosen && !names.includes(chosen)) names.unshift(chosen);
        return [["", all], ...names.map((one) => [one, one])];
    }

    draw() {
        const { filter, tasks } = this;
        const numbers = new Map([["", 0]]);
        this.#shown = [];
        for (const row of tasks.rows) {
            if (!this.#passes(row)) continue;
            const status = tasks.status(row);
            numbers.set("", numbers.get("") + 1);
            numbers.set(status, (numbers.get(status) ?? 0) + 1);
            if (!filter.status || filter.status === status) this.#shown.push(row);
        }
        for (const [status, { chip, number }] of this.#chips) {
            number.textContent = count(numbers.get(status) ?? 0);
            chip.setAttribute("aria-pressed", (filter.status ?? "") === status);
        }
        this.#drawNames();
        for (const name of ["tool", "by", "age"]) this[name].value = filter[name] ?? "";
        this.rows.setCount(this.#shown.length);
        this.#tell();
    }

    #tell() {
        const { tasks } = this;
        this.empty.hidden = this.#shown.length > 0;
        this.empty.textContent = !tasks.isLoaded ? "Reading the store …"
            : tasks.rows.length ? "No task passes the filter."
                : "No tasks yet. A task appears here as soon as a client starts one.";
        this.rows.hidden = !this.#shown.length;
    }

    #resize() {
        this.rows.height = this.#narrow.matches ? NARROW : WIDE;
        for (const row of this.rows.querySelectorAll(".row"))
            row.style.height = `${this.rows.height}px`;
        this.draw();
    }

    // ---- the keyboard ----

    #key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const isTyping = event.target.matches("input, select, textarea");
        if (event.key === "Escape" && event.target === this.search) {
            this.search.value = "";
            this.#set("q", "");
            this.search.blur();
        } else if (isTyping) {
            return;
        } else if (event.key === "/") {
            event.preventDefault();
            this.search.focus();
        } else if (event.key === "j" || event.key === "ArrowDown") {
            event.preventDefault();
            this.#choose(1);
        } else if (event.key === "k" || event.key === "ArrowUp") {
            event.preventDefault();
            this.#choose(-1);
        }
    }

    #choose(step) {
        const row = document.activeElement?.closest?.(".row");
        const from = row ? Number(row.dataset.index) : this.#chosen - (step > 0 ? 1 : 0);
        this.#chosen = Math.max(0, Math.min(this.#shown.length - 1, from + step));
        if (!this.#shown.length) return;
        this.rows.reveal(this.#chosen);
        this.rows.rowOf(this.#chosen).firstChild.focus();
    }
}

customElements.define("segue-list", List);
