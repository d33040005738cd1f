// <segue-question>: an open question of a task, as a form that its JSON schema describes.

import { api } from "./api.js";
import { el, notice } from "./parts.js";

let forms = 0;

function choices(schema) {
    const list = schema.oneOf ?? schema.anyOf;
    if (list) return list.map((one) => [one.const, one.title ?? String(one.const)]);
    return schema.enum?.map((one, i) => [one, schema.enumNames?.[i] ?? String(one)]);
}

// The type of an input for a string.
const TYPES = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

function select(id, list, schema, required) {
    const options = list.map(([value, text], i) =>
        el("option", { value: i, selected: schema.default === value }, text));
    if (!required || schema.default === undefined)
        options.unshift(el("option", { value: "" }, "–"));
    const input = el("select", { id, required }, options);
    return { input, read: () => (input.value === "" ? undefined : list[input.value][0]) };
}

function several(id, schema) {
    const boxes = choices(schema.items).map(([value, text]) => {
        const checked = Boolean(schema.default?.includes(value));
        const box = el("input", { type: "checkbox", checked });
        return { value, box, label: el("label", { class: "check" }, box, text) };
    });
    const input = el("div", { id, role: "group" }, boxes.map((one) => one.label));
    return { input, read: () => boxes.filter((o) => o.box.checked).map((o) => o.value) };
}

function number(id, schema, required) {
    const input = el("input", {
        id, type: "number", required, min: schema.minimum, max: schema.maximum,
        step: schema.type === "integer" ? 1 : "any", value: schema.default,
    });
    return { input, read: () => (input.value === "" ? undefined : Number(input.value)) };
}

function string(id, schema, required) {
    const input = el("input", {
        id, type: TYPES[schema.format] ?? "text", required, value: schema.default,
        minlength: schema.minLength, maxlength: schema.maxLength,
    });
    const read = () => {
        if (input.value === "") return undefined;
        return schema.format === "date-time" ? new Date(input.value).toISOString()
            : input.value;
    };
    return { input, read };
}

function boolean(id, schema) {
    const input = el("input", { id, type: "checkbox", checked: schema.default === true });
    return { input, read: () => input.checked };
}

function json(id, schema, required) {
    const input = el("textarea", { id, required, rows: 4, spellcheck: "false" });
    return { input, read: () => (input.value === "" ? undefined : JSON.parse(input.value)) };
}

function field(id, schema, required) {
    const list = choices(schema);
    if (list) return select(id, list, schema, required);
    if (schema.type === "array" && choices(schema.items ?? {})) return several(id, schema);
    if (schema.type === "boolean") return boolean(id, schema);
    if (schema.type === "integer" || schema.type === "number")
        return number(id, schema, required);
    if (schema.type === "string") return string(id, schema, required);
    return json(id, schema, required);
}

class Question extends HTMLElement {
    #fields = [];

    begin(id, question) {
        this.taskId = id;
        this.question = question;
        this.base = `question-${forms++}`;
        const { method, params = {} } = question;
        const isForm = method === "elicitation/create" && params.mode !== "url";
        const text = params.message ?? params.messages?.map((m) => m.content?.text)
            .filter(Boolean).join("\n") ?? method;
        const title = el("h2", { id: `${this.base}-title` }, "The task asks");
        const form = el("form", { "aria-labelledby": title.id, novalidate: !isForm },
            el("p", { class: "asked" }, text));
        if (method !== "elicitation/create") this.#other(form, method);
        else if (params.mode === "url") form.append(el("p", { class: "mono" }, params.url));
        else this.#form(form, params.requestedSchema ?? {});
        form.append(this.#actions(method));
        form.addEventListener("submit", (event) => {
            event.preventDefault();
            this.#accept();
        });
        this.replaceChildren(title, form);
    }

    #form(form, schema) {
        const required = new Set(schema.required ?? []);
        for (const [name, one] of Object.entries(schema.properties ?? {})) {
            const id = `${this.base}-${name}`;
            const made = field(id, one, required.has(name));
            const isCheck = made.input.type === "checkbox";
            const label = el("label", { for: id }, one.title ?? name,
                required.has(name) ? el("span", { class: "muted" }, " (required)") : null);
            if (made.input.tagName === "DIV") made.input.setAttribute("aria-label", name);
            if (one.description) {
                made.input.setAttribute("aria-describedby", `${id}-help`);
            }
            form.append(el("div", { class: isCheck ? "field check" : "field" },
                isCheck ? [made.input, label] : [label, made.input],
                one.description
                    ? el("p", { id: `${id}-help`, class: "help" }, one.description) : null));
            this.#fields.push({ name, read: made.read });
        }
        this.content = () => {
            const content = {};
            for (const { name, read } of this.#fields) {
                const value = read();
                if (value !== undefined) content[name] = value;
            }
            return { action: "accept", content };
        };
    }

    // A question that is no elicitation is answered with a text, or with JSON.
    #other(form, method) {
        const id = `${this.base}-text`;
        const isText = method === "sampling/createMessage";
        const input = el("textarea", { id, rows: 5, required: true });
        form.append(el("div", { class: "field" },
            el("label", { for: id }, isText ? "Answer" : "Answer (JSON object)"), input));
        this.content = () => (isText
            ? { role: "assistant", model: "task-board",
                content: { type: "text", text: input.value } }
            : JSON.parse(input.value));
    }

    #actions(method) {
        const say = (action) => () => this.#send({ action });
        const actions = el("div", { class: "actions" },
            el("button", { class: "primary", type: "submit" }, "Send answer"));
        if (method === "elicitation/create")
            actions.append(
                el("button", { type: "button", onclick: say("decline") }, "Decline"),
                el("button", { type: "button", onclick: say("cancel") }, "Dismiss"));
        return actions;
    }

    #accept() {
        try {
            this.#send(this.content ? this.content() : { action: "accept" });
        } catch (error) {
            notice(`This is no JSON: ${error.message}`);
        }
    }

    async #send(response) {
        for (const button of this.querySelectorAll("button")) button.disabled = true;
        try {
            await api.answer(this.taskId, this.question.key, response);
            notice("The answer was sent.");
        } catch (error) {
            notice(error.message);
            for (const button of this.querySelectorAll("button")) button.disabled = false;
        }
    }
}

customElements.define("segue-question", Question);
