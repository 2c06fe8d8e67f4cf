// The session list and the search.

import * as api from "./api.js";
import { find, make } from "./dom.js";
import { formatAge } from "./format.js";

const REFRESH_MS = 5000;
const TYPING_MS = 150;

export class SessionList {
  /** `onTitle(title)` is called with the title of the open session. */
  constructor(onTitle) {
    this.onTitle = onTitle;
    this.current = "";
    this.node = find("session-list");
    this.searchField = find("search");
    this.timer = 0;
    this.requests = 0;
    this.searchField.addEventListener("input", () => this.refreshSoon(TYPING_MS));
    document.addEventListener("visibilitychange", () => document.hidden || this.refreshSoon(0));
  }

  select(session) {
    this.current = session;
    this.refresh();
  }

  /** Load the list again after a short delay. */
  refreshSoon(milliseconds = TYPING_MS) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.refresh(), milliseconds);
  }

  async refresh() {
    clearTimeout(this.timer);
    const request = ++this.requests;
    const query = this.searchField.value.trim();
    try {
      const [{ sessions }, { hits }] = await Promise.all([api.listSessions(query), query ? api.searchMessages(query) : { hits: [] }]);
      if (request === this.requests) this.#draw(sessions, hits, query);
    } catch {
      // The stream reports the lost connection, and the list is loaded again soon.
    }
    if (request === this.requests && !document.hidden) this.refreshSoon(REFRESH_MS);
  }

  #draw(sessions, hits, query) {
    const focused = this.node.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const current = sessions.find((row) => row.session === this.current);
    if (current?.title) this.onTitle(current.title);
    const isNew = this.current && !query && !current;
    const rows = sessions.map((row) => this.#sessionRow(row));
    if (isNew) rows.unshift(this.#sessionRow({ session: this.current, title: "New session" }));
    const nodes = [make("ul", { class: "rows" }, ...rows)];
    if (hits.length) nodes.push(make("h2", {}, "In messages"), make("ul", { class: "rows hits" }, ...hits.map((hit) => this.#hitRow(hit))));
    if (!rows.length && !hits.length) nodes.push(make("p", { class: "empty" }, query ? `Nothing found for “${query}”.` : "No sessions yet."));
    this.node.replaceChildren(...nodes);
    if (focused) this.node.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }

  #sessionRow(row) {
    const state = row.is_open ? "running" : row.is_waiting ? "waiting" : "";
    const isCurrent = row.session === this.current;
    return make("li", {}, make("a", { href: `#/s/${encodeURIComponent(row.session)}`, class: state, "aria-current": isCurrent ? "page" : null },
      make("span", { class: "title" }, row.title || row.session),
      make("span", { class: "details" }, state && make("span", { class: "session-state" }, state), row.updated_at ? formatAge(row.updated_at) : "")));
  }

  #hitRow(hit) {
    return make("li", {}, make("a", { href: `#/s/${encodeURIComponent(hit.session)}/${encodeURIComponent(hit.turn)}` },
      make("span", { class: "title" }, hit.snippet), make("span", { class: "details" }, `${hit.session} · ${formatAge(hit.at)}`)));
  }
}
