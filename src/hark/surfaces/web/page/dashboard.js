// The dashboard: the server's status, refreshed every two seconds while the dashboard is open.

import * as api from "./api.js";
import { make } from "./dom.js";
import { formatCost, formatDuration, shortTurnName } from "./format.js";

const REFRESH_MS = 2000;
const UNHEALTHY_STATES = ["waiting", "login", "failed"]; // of MCP servers; an idle server is healthy and just not in use

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
      const [status, { schedules }] = await Promise.all([api.getStatus(), api.listSchedules()]);
      if (this.isOpen) this.#draw(status, schedules);
    } catch (error) {
      this.node.replaceChildren(make("p", { class: "problem", role: "alert" }, `${error.message} Trying again…`));
    }
    this.timer = setTimeout(() => this.refresh(), REFRESH_MS);
  }

  #draw(status, schedules) {
    const focused = this.node.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    this.node.replaceChildren(
      make("div", { class: "metrics" },
        metric("Status", status.status, `version ${status.version} · up ${formatDuration(status.uptime_seconds * 1000)}`),
        metric("Sessions open", status.sessions.open, `${status.sessions.running} running`),
        metric("Turns", sum(status.turns), formatCounts(status.turns)),
        metric("Messages", sum(status.messages), formatCounts(status.messages)),
        metric("Cost today", formatCost(status.cost_usd.today) || "$0", `${formatCost(status.cost_usd.since_start) || "$0"} since the server started`),
        metric("Tokens", sum(status.tokens).toLocaleString("en"), formatCounts(status.tokens)),
        metric("Event-loop lag", formatDuration(status.lag_ms.p99), `p99 of the last minute · p50 ${formatDuration(status.lag_ms.p50)} · max ${formatDuration(status.lag_ms.most)}`)),
      panel("Interrupts", histogram(status.interrupts)),
      panel("Running turns", runningTurns(status.running)),
      panel("Schedules", table(["Name", "When", "Session", "Next", "Last"], schedules.map((row) =>
        [row.name, `${row.when} · ${row.timezone}`, sessionLink(row.session), row.next ? formatLocalTime(row.next) : row.state, lastRun(row.last)]), "No schedules.")),
      panel("Routes", table(["Route", "Model", "Health", "Failures"], status.routes.map((row) =>
        [row.name, row.model, health(row.is_well, row.is_well ? "healthy" : `in cool-down for ${Math.ceil(row.rests_seconds)} s`), String(row.failures)]), "No routes.")),
      panel("MCP servers", table(["Server", "State", "Tools", "Restarts", "Last error"], status.mcp.map((row) =>
        [row.name, health(!UNHEALTHY_STATES.includes(row.state), row.state), String(row.tools), String(row.restarts), row.last_error]), "No MCP servers are configured.")));
    if (focused) this.node.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }
}

const sum = (counts) => Object.values(counts).reduce((total, count) => total + count, 0);
const formatCounts = (counts) => Object.entries(counts).map(([name, count]) => `${count.toLocaleString("en")} ${name.replaceAll("_", " ")}`).join(" · ") || "none yet";
const metric = (name, value, details) => make("section", { class: "metric" }, make("h2", {}, name), make("p", { class: "value" }, String(value)), make("p", { class: "details" }, details));
const panel = (name, body) => make("section", { class: "panel" }, make("h2", {}, name), body);
const health = (isHealthy, text) => make("span", { class: isHealthy ? "health healthy" : "health unhealthy" }, text);

const sessionLink = (session) => make("a", { href: `#/s/${encodeURIComponent(session)}` }, session);
const formatLocalTime = (isoTime) => isoTime.slice(0, 16).replace("T", " "); // in the schedule's own time zone
const formatTime = (at) => new Date(at * 1000).toLocaleString([], { dateStyle: "short", timeStyle: "short" });

function lastRun(run) {
  if (!run) return "";
  const details = [run.detail, run.note].filter(Boolean).join("; ");
  return health(!["failed", "missed", "limit_reached"].includes(run.state), `${formatTime(run.at)} ${run.state.replaceAll("_", " ")}${details ? ` (${details})` : ""}`);
}

function runningTurns(rows) {
  if (!rows.length) return make("p", { class: "empty" }, "No turn is running.");
  return make("ul", { class: "rows" }, ...rows.map((row) => make("li", {}, make("a", { href: `#/s/${encodeURIComponent(row.session)}` },
    make("span", { class: "title" }, row.session), make("span", { class: "details" }, shortTurnName(row.turn))))));
}

function table(headers, rows, emptyText) {
  if (!rows.length) return make("p", { class: "empty" }, emptyText);
  return make("div", { class: "table" }, make("table", {},
    make("thead", {}, make("tr", {}, ...headers.map((header) => make("th", { scope: "col" }, header)))),
    make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell)))))));
}

/** Return a histogram of interrupt durations. The API's buckets are cumulative; the bars are not. */
function histogram({ count, seconds, buckets }) {
  if (!count) return make("p", { class: "empty" }, "No turn has been interrupted yet.");
  const bars = buckets.map(({ le, count: cumulative }, index) => ({ le, count: cumulative - (buckets[index - 1]?.count ?? 0) }));
  const highest = Math.max(...bars.map((bar) => bar.count));
  const nodes = bars.map(({ le, count: barCount }, index) => {
    const fill = make("span", { class: "fill" });
    fill.style.blockSize = `${(100 * barCount) / highest}%`;
    const bound = le === "+Inf" ? `> ${formatDuration(Number(buckets[index - 1].le) * 1000)}` : `≤ ${formatBound(Number(le) * 1000)}`;
    return make("li", { "aria-label": `${barCount} of ${bound}` }, make("span", { class: "count" }, barCount ? String(barCount) : ""), make("span", { class: "track" }, fill), make("span", { class: "bound" }, bound));
  });
  return make("div", {}, make("p", { class: "details" }, `${count} ${count === 1 ? "interrupt" : "interrupts"}, ${formatDuration((seconds / count) * 1000)} on average from the request to the end of the turn`),
    make("ol", { class: "histogram" }, ...nodes));
}

const formatBound = (milliseconds) => (milliseconds < 1000 ? `${milliseconds} ms` : `${milliseconds / 1000} s`);
