// The panel of waiting messages, which are being sent, interrupting, steering, queued or on hold. Users edit, move or delete them.

import * as api from "./api.js";
import { announce, button, find, make } from "./dom.js";
import { formatReceipt } from "./format.js";

export class QueuePanel {
  constructor(session, texts, showProblem) {
    this.session = session;
    this.texts = texts;
    this.showProblem = showProblem;
    this.items = [];
    this.sending = new Map(); // messages without a response of the server, by id
    this.editedId = "";
    this.isLoading = false;
    this.isStale = false;
    this.isClosed = false;
    this.node = find("queue");
    this.draw();
  }

  /** Show a queue that was loaded from the server. */
  showItems(items) {
    this.items = items;
    for (const item of items) this.texts.set(item.id, item.text);
    this.draw();
  }

  /** Load the queue again. Calls during a load cause one more load. */
  async refresh() {
    this.isStale = true;
    if (this.isLoading) return;
    this.isLoading = true;
    try {
      while (this.isStale) {
        this.isStale = false;
        this.showItems((await api.getQueue(this.session)).queue);
      }
    } catch {
      // The stream reports a lost connection, and loads everything again afterwards.
    } finally {
      this.isLoading = false;
    }
  }

  /** Show a message that is being sent. */
  addSending(id, text) {
    this.sending.set(id, { text, problem: "", retry: null });
    this.draw();
  }

  /** The ids of the messages that are being sent and have not failed. */
  get sendingIds() {
    return [...this.sending].filter(([, { problem }]) => !problem).map(([id]) => id);
  }

  /** Remove a message that was being sent. */
  removeSending(id) {
    this.sending.delete(id);
    this.draw();
  }

  /** Show that a message could not be sent. `retry` sends it again. */
  markFailed(id, problem, retry) {
    const item = this.sending.get(id);
    if (item) Object.assign(item, { problem, retry });
    this.draw();
  }

  close() {
    this.isClosed = true;
  }

  /** Send all failed messages again. The server ignores a message whose id it already has. */
  retryFailed() {
    for (const { retry } of [...this.sending.values()]) retry?.();
  }

  draw() {
    if (this.isClosed) return;
    const ids = new Set(this.items.map((item) => item.id));
    const queuedRows = this.items.map((item, index) => this.#queuedRow(item, index));
    const sendingRows = [...this.sending].filter(([id]) => !ids.has(id)).map(([id, item]) => this.#sendingRow(id, item));
    this.node.hidden = !queuedRows.length && !sendingRows.length;
    if (this.editedId && ids.has(this.editedId)) return; // a redraw would discard the text being edited
    this.editedId = "";
    const focusedId = document.activeElement?.closest("#queue li")?.dataset.id;
    const action = document.activeElement?.dataset.action;
    this.node.replaceChildren(make("h2", {}, `${queuedRows.length + sendingRows.length} waiting`), make("ol", {}, ...queuedRows, ...sendingRows));
    if (focusedId) this.#focus(focusedId, action);
  }

  #focus(id, action) {
    const row = this.node.querySelector(`li[data-id="${CSS.escape(id)}"]`);
    const target = row?.querySelector(`[data-action="${action}"]:not(:disabled)`) ?? row?.querySelector("button:not(:disabled)") ?? find("input");
    target.focus();
  }

  #queuedRow(item, index) {
    const actionButton = (label, glyph, action, run, isDisabled = false) =>
      button(glyph, run, { class: "icon", "data-action": action, "aria-label": `${label}: ${item.text.slice(0, 60)}`, title: label, disabled: isDisabled });
    const row = make("li", { "data-id": item.id, class: item.state },
      make("div", { class: "text" }, item.text || "(attachment)"),
      make("p", { class: "receipt" }, formatReceipt({ state: item.state, position: index + 1 })),
      make("div", { class: "actions" },
        actionButton("Move up", "↑", "up", () => this.#change(item.id, { position: index }), index === 0),
        actionButton("Move down", "↓", "down", () => this.#change(item.id, { position: index + 2 }), index === this.items.length - 1),
        actionButton("Edit", "✎", "edit", () => this.#edit(row, item)),
        actionButton("Delete", "✕", "delete", () => this.#run(() => api.withdrawMessage(this.session, item.id), "Waiting message deleted."))));
    return row;
  }

  #sendingRow(id, { text, problem, retry }) {
    const state = make("p", { class: problem ? "receipt problem" : "receipt" }, problem || "Sending…");
    const actions = problem && make("div", { class: "actions" }, button("Try again", retry), button("Discard", () => this.removeSending(id)));
    return make("li", { "data-id": id, class: "sending" }, make("div", { class: "text" }, text || "(attachment)"), state, actions || null);
  }

  #edit(row, item) {
    this.editedId = item.id;
    const field = make("textarea", { "aria-label": "Edit the waiting message", rows: "2" });
    field.value = item.text;
    const close = () => {
      this.editedId = "";
      this.draw();
      this.#focus(item.id, "edit");
    };
    const save = () => {
      const text = field.value.trim();
      close();
      if (text && text !== item.text) this.#change(item.id, { text });
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.stopPropagation(); close(); }
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); save(); }
    });
    row.replaceChildren(field, make("div", { class: "actions" }, button("Save", save, { class: "main" }), button("Cancel", close)));
    field.focus();
  }

  #change(id, change) {
    const announcement = "text" in change ? "Waiting message edited." : `Moved to ${change.position} of ${this.items.length}.`;
    return this.#run(() => api.changeQueuedMessage(this.session, id, change), announcement);
  }

  /** Make a change on the server and announce it. */
  async #run(request, announcement) {
    try {
      await request();
      announce(announcement);
    } catch (error) {
      this.showProblem(error.message);
    }
    this.refresh(); // the queue in a late response may be older than the one shown
  }
}
