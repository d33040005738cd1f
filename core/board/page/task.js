// <segue-task>: one task, live: its output, the time line of its life, its arguments, its
// questions, and what can be done with it.

import { api } from "./api.js";
import { age, badge, bytes, clock, confirmed, copy, count, duration, el, isLive, notice, plural,
    preview, statusOf, time } from "./parts.js";
import { hashOf } from "./routes.js";
import { Log } from "./log.js";

const ROW = 28;

class Task extends HTMLElement {
    #mode = "segments";
    #follows = true;
    #chosen = 0; // number of the entry that is shown in full
    #behind = 0; // number of the segment behind which the task would run again
    #questions = new Map();
    #drawn = 0; // number of the last entry when the time line was drawn

    begin({ task, at }, from) {
        this.taskId = task;
        this.at = at;
        this.from = from;
        this.log = new Log(task);
        this.#build();
        this.log.addEventListener("change", () => this.#soon());
        this.log.begin();
        this.ticker = setInterval(() => this.#drawAges(), 1000);
    }

    end() {
        this.log.close();
        clearInterval(this.ticker);
        cancelAnimationFrame(this.frame);
    }

    #soon() {
        this.frame ||= requestAnimationFrame(() => {
            this.frame = 0;
            this.#draw();
        });
    }

    // ---- elements ----

    #build() {
        const panel = (title, ...parts) => el("section", { class: "panel" },
            el("h2", {}, title), parts);
        this.heading = el("h1", {}, "…");
        this.badge = el("span", {});
        this.facts = el("dl", { class: "facts" });
        this.message = el("p", { class: "message", hidden: true });
        this.banner = el("p", { class: "banner", role: "status", hidden: true });
        this.asked = el("div", { class: "questions" });
        this.args = el("pre", { tabindex: "0", "aria-label": "Arguments" });
        this.result = el("pre", { tabindex: "0", "aria-label": "Result" });
        this.resultPanel = panel("Result", this.result);
        this.line = el("ol", { class: "timeline" });
        this.append(
            el("div", { class: "title" },
                el("a", { class: "back", href: this.from, "aria-label": "All tasks" }, "←"),
                this.heading, this.badge, this.#actions()),
            this.facts, this.message, this.banner,
            el("div", { class: "columns" },
                el("div", { class: "left", tabindex: "0", role: "region",
                    "aria-label": "Output of the task" }, this.asked, this.#output()),
                el("div", { class: "right", tabindex: "0", role: "region",
                    "aria-label": "About the task" },
                panel("Time line", this.line), panel("Arguments", this.args),
                this.resultPanel)));
    }

    #actions() {
        const button = (text, act, kind = "") => el("button", { class: kind, onclick: act },
            text);
        this.cancelButton = button("Cancel task", () => this.#cancel(), "danger");
        this.rerunButton = button("Run again", () => this.#rerun());
        this.removeButton = button("Remove", () => this.#remove(), "danger");
        const demo = api.isDemo && [
            button("Cut this connection", () => this.#break("cut"), "demo"),
            button("Kill the server", () => this.#break("kill"), "demo")];
        return el("div", { class: "actions" }, demo || [],
            button("Copy link", () => copy(this.#link(), "the link")),
            button("Copy curl", () => copy(this.#curl(), "a curl line")),
            this.rerunButton, this.cancelButton, this.removeButton);
    }

    #output() {
        const mode = (name, text) => el("button", {
            class: "chip", "data-mode": name, onclick: () => this.#setMode(name),
        }, text, el("span", { class: "number" }));
        this.modes = [mode("segments", "Segments"), mode("entries", "Whole log")];
        this.follow = el("button", {
            class: "chip", "aria-pressed": "true",
            onclick: () => this.#setFollow(!this.#follows),
        }, "Follow");
        this.rows = el("segue-rows", { class: "log" });
        this.rows.begin({
            height: ROW, label: "Log", make: () => this.#make(),
            fill: (row, index) => this.#show(row, this.log.item(this.#mode, index)),
            moved: () => this.log.keep(this.#mode, this.rows.first,
                this.rows.first + this.rows.shown - 1),
        });
        this.rows.addEventListener("wheel", () => this.#setFollow(this.rows.isAtEnd),
            { passive: true });
        this.detail = el("pre", { class: "detail", hidden: true, tabindex: "0",
            "aria-label": "Entry" });
        this.nothing = el("p", { class: "empty", hidden: true });
        return el("section", { class: "panel output" },
            el("div", { class: "tools", role: "group", "aria-label": "Output" },
                this.modes, this.follow),
            this.rows, this.nothing, this.detail);
    }

    #make() {
        const part = (name) => el("span", { class: name });
        return el("div", {}, el("button", {
            class: "entry",
            onclick: (event) => {
                const { index } = event.currentTarget.parentNode.dataset;
                const entry = this.log.item(this.#mode, Number(index));
                if (entry) this.#choose(entry);
            },
        }, part("number"), part("kind"), part("text"), part("at")));
    }

    #show(row, entry) {
        const button = row.firstChild, [number, kind, text, at] = button.children;
        button.classList.toggle("void", Boolean(entry && this.log.isVoid(entry)));
        button.setAttribute("aria-pressed", Boolean(entry && entry.seq === this.#chosen));
        if (!entry) {
            for (const part of [number, kind, at]) part.textContent = "";
            text.textContent = "…";
            return;
        }
        number.textContent = this.#mode === "segments" ? entry.segment : entry.seq;
        kind.textContent = this.#mode === "segments" ? "" : entry.kind;
        text.textContent = preview(entry);
        at.textContent = clock(Date.parse(entry.at)).slice(0, 8);
    }

    // ---- drawing ----

    #draw() {
        const { log } = this;
        if (log.isGone && !log.last) {
            this.replaceChildren(el("p", { class: "empty" }, "The store has no such task. ",
                el("a", { href: this.from }, "All tasks")));
            return;
        }
        if (log.summary) this.#drawHead(log.summary);
        this.#drawBanner();
        for (const button of this.modes) {
            const { mode } = button.dataset;
            button.setAttribute("aria-pressed", mode === this.#mode);
            button.lastChild.textContent = count(log.count(mode));
        }
        const sum = log.count(this.#mode);
        this.rows.hidden = !sum;
        this.rows.setCount(sum);
        this.nothing.hidden = sum > 0;
        this.nothing.textContent = log.ended ? "This task has made no segments."
            : "Nothing yet. Segments appear here as the task makes them.";
        this.#goTo();
        if (this.#follows) this.rows.toEnd();
        if (log.summary) this.#drawTimeline();
    }

    #drawHead(summary) {
        const status = statusOf(summary), live = isLive(summary.status);
        if (!this.isLooked && !live) this.#setFollow(false); // read it from the beginning
        this.isLooked = true;
        document.title = `${summary.tool ?? "Task"} – Segue`;
        this.heading.textContent = summary.tool ?? "Task";
        if (this.badge.dataset.status !== status) this.badge.replaceChildren(badge(status));
        this.badge.dataset.status = status;
        this.cancelButton.hidden = !live || api.about.readOnly;
        this.removeButton.hidden = live || api.about.readOnly;
        this.rerunButton.hidden = api.about.readOnly || summary.kind !== "task";
        this.message.textContent = summary.statusMessage ?? "";
        this.message.hidden = !summary.statusMessage || status === "completed";
        this.args.textContent = summary.params
            ? JSON.stringify(summary.params.arguments ?? {}, null, 2) : "hidden";
        this.#drawResult();
        this.#drawQuestions(summary.questions);
        this.#drawAges();
    }

    #drawResult() {
        const { end, fields } = this.log;
        this.resultPanel.hidden = !end;
        if (!end || this.resultPanel.dataset.of === String(end.seq)) return;
        this.resultPanel.dataset.of = end.seq;
        this.result.textContent = end.data === undefined ? "hidden"
            : JSON.stringify({ ...fields, ...end.data }, null, 2);
    }

    #drawAges() {
        const { log } = this, { summary } = log;
        if (!summary) return;
        const made = Date.parse(summary.createdAt);
        const until = log.ended ? Date.parse(summary.lastUpdatedAt) : Date.now();
        const sum = log.last ? log.count("segments") : summary.segments;
        const facts = [
            ["Id", el("button", { class: "mono plain", title: "Copy the id",
                onclick: () => copy(this.taskId, "the id") }, this.taskId)],
            ["Principal", summary.by ?? "anonymous"],
            ["Made", time(made)],
            [log.ended ? "Took" : "Runs for", duration(until - made)],
            ...(log.ended ? [] : [["Last change", `${age(log.lastAt ?? made)} ago`]]),
            ["Segments", count(sum)],
            ["Log", bytes(summary.bytes)],
        ];
        if (summary.checkpointBytes) facts.push(["Checkpoint", bytes(summary.checkpointBytes)]);
        const key = facts.map(([name, value]) => `${name}${value.textContent ?? value}`);
        if (this.facts.dataset.key === key.join()) return;
        this.facts.dataset.key = key.join();
        this.facts.replaceChildren(...facts.map(([name, value]) =>
            el("div", {}, el("dt", {}, name), el("dd", {}, value))));
    }

    #drawBanner() {
        const { log } = this;
        this.banner.hidden = !log.lost && !log.resumedAt;
        this.banner.classList.toggle("lost", Boolean(log.lost));
        this.banner.textContent = log.lost
            ? (log.isGone ? "The task is not in the store any more."
                : `Connection lost behind segment ${count(log.lastSegment)}. The page asks again …`)
            : `The connection broke, and the page went on behind entry ` +
              `${count(log.resumedAt)}. Nothing is missing.`;
    }

    #drawQuestions(questions) {
        const open = new Set(api.about.readOnly ? [] : questions.map((one) => one.key));
        for (const [key, form] of this.#questions)
            if (!open.has(key)) {
                form.remove();
                this.#questions.delete(key);
            }
        for (const question of questions) {
            if (!open.has(question.key) || this.#questions.has(question.key)) continue;
            const form = el("segue-question", { class: "panel question" });
            form.begin(this.taskId, question);
            this.#questions.set(question.key, form);
            this.asked.append(form);
        }
    }

    #drawTimeline() {
        const { log } = this;
        if (this.#drawn === log.last && this.line.childElementCount) return;
        this.#drawn = log.last;
        const steps = log.timeline.steps(log.summary);
        const begin = steps[0].at;
        this.line.replaceChildren(...steps.map((step) => {
            const text = step.seq
                ? el("a", { href: hashOf({ task: this.taskId, at: step.seq }) }, step.text)
                : el("span", {}, step.text);
            return el("li", { class: step.kind }, text,
                el("span", { class: "muted", title: time(step.at) },
                    `+${duration(step.at - begin)}`));
        }));
    }

    // ---- moments ----

    // Shows the entry that the link names, once the log has come so far.
    async #goTo() {
        if (!this.at || this.log.last < this.at) return;
        const seq = this.at;
        this.at = 0;
        this.#setFollow(false);
        const found = await this.log.find(seq);
        if (!found) return;
        if (found.entry.kind !== "segment") this.#setMode("entries");
        this.rows.reveal(found.index(this.#mode));
        this.#choose(found.entry);
    }

    #choose(entry) {
        this.#chosen = this.#chosen === entry.seq ? 0 : entry.seq;
        this.detail.hidden = !this.#chosen;
        if (this.#chosen) {
            this.#setFollow(false);
            this.detail.textContent = JSON.stringify(entry, null, 2);
        }
        this.#behind = this.#chosen && entry.kind === "segment" ? entry.segment : 0;
        this.rerunButton.textContent = this.#behind
            ? `Run again behind segment ${count(this.#behind)}` : "Run again";
        const at = this.#chosen || undefined;
        history.replaceState(null, "", hashOf({ task: this.taskId, at }));
        this.rows.draw();
    }

    #setMode(mode) {
        this.#mode = mode;
        this.#soon();
        this.rows.setCount(this.log.count(this.#mode));
    }

    #setFollow(follows) {
        this.#follows = follows;
        this.follow.setAttribute("aria-pressed", follows);
        if (follows) this.rows.toEnd();
    }

    // ---- acts ----

    #link() {
        const hash = hashOf({ task: this.taskId, at: this.#chosen || undefined });
        return new URL(hash, location.href).href;
    }

    #curl() {
        const path = api.url("entries", { id: this.taskId, after: this.log.last });
        const token = api.token ? " -H 'Authorization: Bearer TOKEN'" : "";
        return `curl -sS${token} '${new URL(path, location.href).href}'`;
    }

    async #break(what) {
        try {
            await api.breakIt(what);
        } catch {
            // the answer was cut, too
        }
        notice(what === "cut" ? "The connections of this page were cut."
            : "The server was killed, and started again.");
    }

    async #cancel() {
        if (!await confirmed("Cancel this task? Its server stops it.", "Cancel task")) return;
        await this.#act(api.cancel(this.taskId), "The task is asked to stop.");
    }

    async #rerun() {
        const behind = this.#behind;
        const where = behind ? `keep the first ${plural(behind, "segment")} and go on behind`
            + " them" : "begin anew";
        const question = `Make a new task with the same arguments? It will ${where}. ` +
            "This task stays as it is.";
        if (!await confirmed(question, "Run again", "primary")) return;
        const made = await this.#act(api.rerun(this.taskId, behind),
            "This is the new task. A server of the store goes on with it.");
        if (made) location.hash = hashOf({ task: made.taskId });
    }

    async #remove() {
        const sum = plural(this.log.count("entries"), "entry").replace("entrys", "entries");
        const question = `Remove this task and its log (${sum}) from the store?`;
        if (!await confirmed(question, "Remove")) return;
        if (await this.#act(api.remove(this.taskId), "The task was removed."))
            location.hash = this.from;
    }

    async #act(request, text) {
        try {
            const answer = await request;
            notice(text);
            return answer;
        } catch (error) {
            notice(error.message);
            return null;
        }
    }
}

customElements.define("segue-task", Task);
