// The timeline of a turn: built from live events while the turn runs, then loaded from the server.

import { make, setText } from "./dom.js";
import { formatDuration } from "./format.js";

const ARRIVAL_LABELS = { prompt: "asked", steer: "steered", interrupt: "interrupted by", queue: "queued" };

/** The parts of a running turn, collected from its events. */
export class LiveTimeline {
  constructor(startedAt) {
    this.startedAt = startedAt;
    this.parts = [];
    this.open = new Map();
  }

  handleEvent(event) {
    const at = (event.at - this.startedAt) * 1000;
    switch (event.type) {
      case "step.started": return this.#start("model", "model", `step ${event.step}`, at);
      case "call.started": this.#end("model", at); return this.#start(event.call, "tool", event.name, at);
      case "call.ended": return this.#end(event.call, at);
      case "question.asked": this.#end("model", at); return this.#start(event.question, "question", "question", at);
      case "question.closed": return this.#end(event.question, at);
      case "turn.ended": return this.open.forEach((part) => { part.end = at; });
    }
  }

  /** Return the parts so far, in the format of the API's timeline. */
  snapshot() {
    const total = Date.now() - this.startedAt * 1000;
    return { total, parts: this.parts.map((part) => ({ ...part, end: part.end ?? total })), arrivals: [] };
  }

  #start(key, kind, name, start) {
    this.#end(key, start);
    const part = { kind, name, start };
    this.parts.push(part);
    this.open.set(key, part);
  }

  #end(key, at) {
    const part = this.open.get(key);
    if (part) part.end = at;
    this.open.delete(key);
  }
}

/** Draw a timeline into a node. */
export function showTimeline(node, timeline) {
  const total = Math.max(1, timeline.total, ...timeline.parts.map((part) => part.end));
  const rows = timeline.parts.map((part) => partRow(part, total, timeline.interrupted_at));
  const arrivals = timeline.arrivals.filter((arrival) => arrival.how !== "prompt").map((arrival) => arrivalRow(arrival));
  const interrupt = timeline.interrupted_at == null ? null : make("p", { class: "interrupt-summary" },
    `■ Interrupted at ${formatDuration(timeline.interrupted_at)}, ended ${formatDuration(timeline.settle)} later`);
  node.replaceChildren(
    make("div", { class: "scale", "aria-hidden": "true" }, ...[0, 0.25, 0.5, 0.75, 1].map((share) => make("span", {}, share ? formatDuration(total * share) : "0"))),
    make("ul", { class: "bars" }, ...rows), ...arrivals, ...(interrupt ? [interrupt] : []));
}

function partRow(part, total, interruptedAt) {
  const duration = part.end - part.start;
  const fill = make("span", { class: `fill is-${part.kind}${part.is_bad ? " failed" : ""}` });
  fill.style.insetInlineStart = `${(100 * part.start) / total}%`;
  fill.style.inlineSize = `max(3px, ${(100 * duration) / total}%)`;
  const track = make("span", { class: "track", "aria-hidden": "true" }, fill);
  if (part.settle > 0) {
    const settle = make("span", { class: "fill settle" });
    settle.style.insetInlineStart = `${(100 * (part.end - part.settle)) / total}%`;
    settle.style.inlineSize = `max(3px, ${(100 * part.settle) / total}%)`;
    track.append(settle);
  }
  if (interruptedAt != null) {
    const line = make("span", { class: "interrupt-line" });
    line.style.insetInlineStart = `${(100 * interruptedAt) / total}%`;
    track.append(line);
  }
  const text = `${formatDuration(duration)}${part.settle > 0 ? ` (${formatDuration(part.settle)} to stop)` : ""}`;
  return make("li", { title: part.note || null },
    make("span", { class: "name" }, `${"  ".repeat(part.depth ?? 0)}${part.name}${part.title ? ` ${part.title}` : ""}`), track, make("span", { class: "duration" }, text));
}

function arrivalRow(arrival) {
  return make("p", { class: "arrival" }, `${formatDuration(Math.max(0, arrival.at))} · ${ARRIVAL_LABELS[arrival.how] ?? arrival.how}: “${arrival.text.slice(0, 120)}”`);
}

/** The folded timeline below a turn. It is live while the turn runs, and loaded when the user opens it afterwards. */
export class TimelineFold {
  constructor(turn, load) {
    this.turn = turn;
    this.load = load;
    this.live = null;
    this.timer = 0;
    this.isLoaded = false;
    this.summary = make("summary", {}, "Timeline");
    this.body = make("div", { class: "timeline-body" });
    this.node = make("details", { class: "timeline", on: { toggle: () => this.refresh() } }, this.summary, this.body);
  }

  start(at) {
    this.live = new LiveTimeline(at);
  }

  handleEvent(event) {
    this.live?.handleEvent(event);
    if (event.type === "turn.ended") this.end();
    else this.refresh();
  }

  end() {
    this.live = null;
    this.refresh();
  }

  async refresh() {
    clearTimeout(this.timer);
    if (!this.node.open) return;
    if (this.live) {
      showTimeline(this.body, this.live.snapshot());
      this.timer = setTimeout(() => this.node.isConnected && this.refresh(), 250);
    } else if (!this.isLoaded) {
      this.isLoaded = true;
      try {
        showTimeline(this.body, await this.load(this.turn));
      } catch (error) {
        this.isLoaded = false;
        setText(this.body, error.message);
      }
    }
  }
}
