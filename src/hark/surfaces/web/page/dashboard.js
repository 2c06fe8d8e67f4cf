// The dashboard: how all of it stands, read every other second while somebody looks.

import * as api from "./api.js";
import { make } from "./dom.js";
import { costWords, shortTurn, timeWords } from "./format.js";

const EVERY_MS = 2000;
const ILL = ["waiting", "login", "parked"]; // of MCP servers; one that is idle is only not needed yet

export class Dashboard {
  constructor(node) {
    this.node = node;
    this.timer = 0;
    this.isOpen = false;
  }

  open() {
    this.isOpen = true;
    this.refresh();
  }

  close() {
    this.isOpen = false;
    clearTimeout(this.timer);
  }

  async refresh() {
    clearTimeout(this.timer);
    if (!this.isOpen) return;
    try {
      const [status, { schedules }] = await Promise.all([api.status(), api.schedules()]);
      if (this.isOpen) this.#draw(status, schedules);
    } catch (error) {
      this.node.replaceChildren(make("p", { class: "problem", role: "alert" }, `${error.message} Trying again …`));
    }
    this.timer = setTimeout(() => this.refresh(), EVERY_MS);
  }

  #draw(status, schedules) {
    const focused = this.node.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    this.node.replaceChildren(
      make("div", { class: "numbers" },
        number("Status", status.status, `version ${status.version} · up ${timeWords(status.uptime_seconds * 1000)}`),
        number("Sessions open", status.sessions.open, `${status.sessions.running} running`),
        number("Turns", sum(status.turns), counts(status.turns)),
        number("Messages", sum(status.messages), counts(status.messages)),
        number("Cost today", costWords(status.cost_usd.today) || "$0", `${costWords(status.cost_usd.since_start) || "$0"} since the start`),
        number("Tokens", sum(status.tokens).toLocaleString("en"), counts(status.tokens)),
        number("Event-loop lag", timeWords(status.lag_ms.p99), `p99 of the last minute · p50 ${timeWords(status.lag_ms.p50)} · most ${timeWords(status.lag_ms.most)}`)),
      panel("Interrupts", histogram(status.interrupts)),
      panel("Running turns", running(status.running)),
      panel("Schedules", table(["Name", "When", "Session", "Next", "Last"], schedules.map((row) =>
        [row.name, `${row.when} · ${row.timezone}`, sessionLink(row.session), row.next ? clock(row.next) : row.state, lastRun(row.last)]), "Nothing is scheduled.")),
      panel("Routes", table(["Route", "Model", "Health", "Failures"], status.routes.map((row) =>
        [row.name, row.model, health(row.is_well, row.is_well ? "well" : `rests for ${Math.ceil(row.rests_seconds)} s`), String(row.failures)]), "No routes.")),
      panel("MCP servers", table(["Server", "State", "Tools", "Restarts", "Last error"], status.mcp.map((row) =>
        [row.name, health(!ILL.includes(row.state), row.state), String(row.tools), String(row.restarts), row.last_error]), "No MCP servers are configured.")));
    if (focused) this.node.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }
}

const sum = (counted) => Object.values(counted).reduce((all, one) => all + one, 0);
const counts = (counted) => Object.entries(counted).map(([name, count]) => `${count.toLocaleString("en")} ${name.replaceAll("_", " ")}`).join(" · ") || "none yet";
const number = (name, value, more) => make("section", { class: "number" }, make("h2", {}, name), make("p", { class: "value" }, String(value)), make("p", { class: "more" }, more));
const panel = (name, body) => make("section", { class: "panel" }, make("h2", {}, name), body);
const health = (isWell, words) => make("span", { class: isWell ? "health well" : "health ill" }, words);

const sessionLink = (session) => make("a", { href: `#/s/${encodeURIComponent(session)}` }, session);
const clock = (moment) => moment.slice(0, 16).replace("T", " "); // on the clocks of the schedule's own zone
const moment = (at) => new Date(at * 1000).toLocaleString([], { dateStyle: "short", timeStyle: "short" });

function lastRun(run) {
  if (!run) return "";
  const more = [run.detail, run.note].filter(Boolean).join("; ");
  return health(!["failed", "missed", "limit_reached"].includes(run.state), `${moment(run.at)} ${run.state.replaceAll("_", " ")}${more ? ` (${more})` : ""}`);
}

function running(rows) {
  if (!rows.length) return make("p", { class: "none" }, "Nothing runs.");
  return make("ul", { class: "rows" }, ...rows.map((row) => make("li", {}, make("a", { href: `#/s/${encodeURIComponent(row.session)}` },
    make("span", { class: "title" }, row.session), make("span", { class: "more" }, shortTurn(row.turn))))));
}

function table(heads, rows, none) {
  if (!rows.length) return make("p", { class: "none" }, none);
  return make("div", { class: "table" }, make("table", {},
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell)))))));
}

/** Show how long interrupts took: the buckets come as "at most so many", and are shown one by one. */
function histogram({ count, seconds, buckets }) {
  if (!count) return make("p", { class: "none" }, "No turn was interrupted yet.");
  const bars = buckets.map(({ le, count: upTo }, place) => ({ le, count: upTo - (buckets[place - 1]?.count ?? 0) }));
  const most = Math.max(...bars.map((bar) => bar.count));
  const nodes = bars.map(({ le, count: here }, place) => {
    const fill = make("span", { class: "fill" });
    fill.style.blockSize = `${(100 * here) / most}%`;
    const bound = le === "+Inf" ? `> ${timeWords(Number(buckets[place - 1].le) * 1000)}` : `≤ ${bareTime(Number(le) * 1000)}`;
    return make("li", { "aria-label": `${here} of ${bound}` }, make("span", { class: "count" }, here ? String(here) : ""), make("span", { class: "track" }, fill), make("span", { class: "bound" }, bound));
  });
  return make("div", {}, make("p", { class: "more" }, `${count} ${count === 1 ? "interrupt" : "interrupts"}, ${timeWords((seconds / count) * 1000)} on average from the wish to the settled turn`),
    make("ol", { class: "histogram" }, ...nodes));
}

const bareTime = (milliseconds) => (milliseconds < 1000 ? `${milliseconds} ms` : `${milliseconds / 1000} s`);
