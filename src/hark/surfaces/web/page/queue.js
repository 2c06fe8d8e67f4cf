// The panel of waiting messages: what is being sent, steers, interrupts, waits or is held; edited, moved, withdrawn.

import * as api from "./api.js";
import { announce, button, find, make } from "./dom.js";
import { receiptWords } from "./format.js";

export class QueuePanel {
  constructor(session, texts, complain) {
    this.session = session;
    this.texts = texts;
    this.complain = complain;
    this.items = [];
    this.sending = new Map(); // messages that the server has not answered for, by id
    this.editing = "";
    this.isReading = false;
    this.isStale = false;
    this.isClosed = false;
    this.node = find("queue");
    this.draw();
  }

  /** Show a queue as the server told it. */
  show(items) {
    this.items = items;
    for (const item of items) this.texts.set(item.id, item.text);
    this.draw();
  }

  /** Read the queue again; calls while it is read become one more. */
  async refresh() {
    this.isStale = true;
    if (this.isReading) return;
    this.isReading = true;
    try {
      while (this.isStale) {
        this.isStale = false;
        this.show((await api.queue(this.session)).queue);
      }
    } catch {
      // The stream tells of a lost connection, and has all of it read anew.
    } finally {
      this.isReading = false;
    }
  }

  /** Show a message that is on its way. */
  send(id, text) {
    this.sending.set(id, { text, problem: "", again: null });
    this.draw();
  }

  /** The messages that are on their way to the server. */
  get onTheirWay() {
    return [...this.sending].filter(([, { problem }]) => !problem).map(([id]) => id);
  }

  sent(id) {
    this.sending.delete(id);
    this.draw();
  }

  failed(id, problem, again) {
    const item = this.sending.get(id);
    if (item) Object.assign(item, { problem, again });
    this.draw();
  }

  close() {
    this.isClosed = true;
  }

  /** Send again what did not reach the server: the same id is taken once. */
  sendAgain() {
    for (const { again } of [...this.sending.values()]) again?.();
  }

  draw() {
    if (this.isClosed) return;
    const known = new Set(this.items.map((item) => item.id));
    const waiting = this.items.map((item, place) => this.#waiting(item, place));
    const leaving = [...this.sending].filter(([id]) => !known.has(id)).map(([id, item]) => this.#leaving(id, item));
    this.node.hidden = !waiting.length && !leaving.length;
    if (this.editing && known.has(this.editing)) return; // what is being typed stays
    this.editing = "";
    const focused = document.activeElement?.closest("#queue li")?.dataset.id;
    const act = document.activeElement?.dataset.act;
    this.node.replaceChildren(make("h2", {}, `Waiting (${waiting.length + leaving.length})`), make("ol", {}, ...waiting, ...leaving));
    if (focused) this.#focus(focused, act);
  }

  #focus(id, act) {
    const row = this.node.querySelector(`li[data-id="${CSS.escape(id)}"]`);
    const next = row?.querySelector(`[data-act="${act}"]:not(:disabled)`) ?? row?.querySelector("button:not(:disabled)") ?? find("input");
    next.focus();
  }

  #waiting(item, place) {
    const mine = (label, sign, name, run, isOff = false) =>
      button(sign, run, { class: "icon", "data-act": name, "aria-label": `${label}: ${item.text.slice(0, 60)}`, title: label, disabled: isOff });
    const row = make("li", { "data-id": item.id, class: item.state },
      make("div", { class: "words" }, item.text || "(attachment)"),
      make("p", { class: "receipt" }, receiptWords({ state: item.state, position: place + 1 })),
      make("div", { class: "acts" },
        mine("Move up", "↑", "up", () => this.#change(item.id, { position: place }), place === 0),
        mine("Move down", "↓", "down", () => this.#change(item.id, { position: place + 2 }), place === this.items.length - 1),
        mine("Edit", "✎", "edit", () => this.#edit(row, item)),
        mine("Withdraw", "✕", "withdraw", () => this.#act(() => api.withdraw(this.session, item.id), "withdrawn"))));
    return row;
  }

  #leaving(id, { text, problem, again }) {
    const state = make("p", { class: problem ? "receipt problem" : "receipt" }, problem || "sending …");
    const acts = problem && make("div", { class: "acts" }, button("Try again", again), button("Drop", () => this.sent(id)));
    return make("li", { "data-id": id, class: "sending" }, make("div", { class: "words" }, text || "(attachment)"), state, acts || null);
  }

  #edit(row, item) {
    this.editing = item.id;
    const field = make("textarea", { "aria-label": "Edit the waiting message", rows: "2" });
    field.value = item.text;
    const stop = () => {
      this.editing = "";
      this.draw();
      this.#focus(item.id, "edit");
    };
    const save = () => {
      const text = field.value.trim();
      stop();
      if (text && text !== item.text) this.#change(item.id, { text });
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.stopPropagation(); stop(); }
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); save(); }
    });
    row.replaceChildren(field, make("div", { class: "acts" }, button("Save", save, { class: "main" }), button("Cancel", stop)));
    field.focus();
  }

  #change(id, what) {
    return this.#act(() => api.change(this.session, id, what), "text" in what ? "edited" : `moved to ${what.position}`);
  }

  async #act(run, done) {
    try {
      this.show((await run()).queue);
      announce(`Waiting message ${done}.`);
    } catch (error) {
      this.complain(error.message);
      this.refresh();
    }
  }
}
