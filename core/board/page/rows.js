// <segue-rows>: a list of rows of the same height, of which only the visible ones are
// elements. `make()` returns a row, and `fill(row, index)` shows an item in it.

import { el } from "./parts.js";

const MARGIN = 8; // rows beyond the edges, so that scrolling shows no gap

class Rows extends HTMLElement {
    height = 32;
    count = 0;
    first = 0;
    shown = 0;
    #rows = [];
    #frame = 0;

    begin({ height, make, fill, label, moved }) {
        Object.assign(this, { height, make, fill, moved });
        this.space = el("div", { role: "list", "aria-label": label });
        this.replaceChildren(this.space);
        this.addEventListener("scroll", () => this.soon(), { passive: true });
        this.observer = new ResizeObserver(() => this.soon());
        this.observer.observe(this);
    }

    disconnectedCallback() {
        this.observer?.disconnect();
        cancelAnimationFrame(this.#frame);
    }

    soon() {
        this.#frame ||= requestAnimationFrame(() => {
            this.#frame = 0;
            this.draw();
        });
    }

    setCount(count) {
        this.count = count;
        this.space.style.height = `${count * this.height}px`;
        this.draw();
    }

    draw() {
        const first = Math.max(0, Math.floor(this.scrollTop / this.height) - MARGIN);
        const room = Math.ceil(this.clientHeight / this.height) + 2 * MARGIN;
        const shown = Math.max(0, Math.min(room, this.count - first));
        this.first = first;
        this.shown = shown;
        while (this.#rows.length < shown) this.#rows.push(this.#add());
        while (this.#rows.length > shown) this.#rows.pop().remove();
        // A row keeps its item while it is visible, so that the focus stays with it.
        for (let index = first; index < first + shown; index++)
            this.#place(this.#rows[index % shown], index);
        this.moved?.();
    }

    #add() {
        const row = this.make();
        row.setAttribute("role", "listitem");
        row.classList.add("row");
        row.style.height = `${this.height}px`;
        this.space.append(row);
        return row;
    }

    #place(row, index) {
        row.dataset.index = index;
        row.style.transform = `translateY(${index * this.height}px)`;
        row.setAttribute("aria-posinset", index + 1);
        row.setAttribute("aria-setsize", this.count);
        this.fill(row, index);
    }

    rowOf(index) {
        return this.#rows.find((row) => Number(row.dataset.index) === index);
    }

    get isAtEnd() {
        return this.scrollTop + this.clientHeight >= this.scrollHeight - 2 * this.height;
    }

    toEnd() {
        this.scrollTop = this.scrollHeight;
    }

    reveal(index) {
        const top = index * this.height;
        if (top < this.scrollTop) this.scrollTop = top;
        else if (top + this.height > this.scrollTop + this.clientHeight)
            this.scrollTop = top + this.height - this.clientHeight;
        this.draw();
    }
}

customElements.define("segue-rows", Rows);
