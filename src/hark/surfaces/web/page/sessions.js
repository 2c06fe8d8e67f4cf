// The list of sessions, and the search in them.

import * as api from "./api.js";
import { find, make } from "./dom.js";
import { agoWords } from "./format.js";

const EVERY_MS = 5000;
const TYPING_MS = 150;

export class SessionList {
  /** `titled(title)` is told what the open session is called. */
  constructor(titled) {
    this.titled = titled;
    this.current = "";
    this.node = find("session-list");
    this.field = find("search");
    this.timer = 0;
    this.asked = 0;
    this.field.addEventListener("input", () => this.soon(TYPING_MS));
    document.addEventListener("visibilitychange", () => document.hidden || this.soon(0));
  }

  choose(session) {
    this.current = session;
    this.refresh();
  }

  /** Read the list again in a moment. */
  soon(milliseconds = TYPING_MS) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.refresh(), milliseconds);
  }

  async refresh() {
    clearTimeout(this.timer);
    const number = ++this.asked;
    const words = this.field.value.trim();
    try {
      const [{ sessions }, { hits }] = await Promise.all([api.sessions(words), words ? api.search(words) : { hits: [] }]);
      if (number === this.asked) this.#draw(sessions, hits, words);
    } catch {
      // Shown by the stream; the list is read again soon.
    }
    if (number === this.asked && !document.hidden) this.soon(EVERY_MS);
  }

  #draw(sessions, hits, words) {
    const focused = this.node.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const here = sessions.find((row) => row.session === this.current);
    if (here?.title) this.titled(here.title);
    const isNew = this.current && !words && !here;
    const rows = sessions.map((row) => this.#row(row));
    if (isNew) rows.unshift(this.#row({ session: this.current, title: "New session" }));
    const parts = [make("ul", { class: "rows" }, ...rows)];
    if (hits.length) parts.push(make("h2", {}, "In messages"), make("ul", { class: "rows hits" }, ...hits.map((hit) => this.#hit(hit))));
    if (!rows.length && !hits.length) parts.push(make("p", { class: "none" }, words ? "Nothing was found." : "No sessions yet."));
    this.node.replaceChildren(...parts);
    if (focused) this.node.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }

  #row(row) {
    const state = row.is_open ? "running" : row.is_waiting ? "waiting" : "";
    const isHere = row.session === this.current;
    return make("li", {}, make("a", { href: `#/s/${encodeURIComponent(row.session)}`, class: state, "aria-current": isHere ? "page" : null },
      make("span", { class: "title" }, row.title || row.session),
      make("span", { class: "more" }, state && make("span", { class: "dot" }, state), row.updated_at ? agoWords(row.updated_at) : "")));
  }

  #hit(hit) {
    return make("li", {}, make("a", { href: `#/s/${encodeURIComponent(hit.session)}/${encodeURIComponent(hit.turn)}` },
      make("span", { class: "title" }, hit.snippet), make("span", { class: "more" }, `${hit.session} · ${agoWords(hit.at)}`)));
  }
}
