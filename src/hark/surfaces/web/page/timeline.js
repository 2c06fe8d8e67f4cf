// Where a turn's time went: live from its events, then as it was measured, with the interrupt and its latency.

import { make, setText } from "./dom.js";
import { timeWords } from "./format.js";

const NAMED = { prompt: "asked", steer: "steered", interrupt: "interrupted by", queue: "queued" };

/** The parts of a running turn, as far as its events tell them. */
export class LiveParts {
  constructor(at) {
    this.began = at;
    this.parts = [];
    this.open = new Map();
  }

  take(event) {
    const at = (event.at - this.began) * 1000;
    switch (event.type) {
      case "step.started": return this.#begin("model", "model", `step ${event.step}`, at);
      case "call.started": this.#end("model", at); return this.#begin(event.call, "tool", event.name, at);
      case "call.ended": return this.#end(event.call, at);
      case "question.asked": this.#end("model", at); return this.#begin(event.question, "question", "question", at);
      case "question.closed": return this.#end(event.question, at);
      case "turn.ended": return this.open.forEach((part) => { part.end = at; });
    }
  }

  story() {
    const total = Date.now() - this.began * 1000;
    return { total, parts: this.parts.map((part) => ({ ...part, end: part.end ?? total })), arrivals: [] };
  }

  #begin(key, kind, name, start) {
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

/** Show a story in a node. */
export function showTimeline(node, story) {
  const total = Math.max(1, story.total, ...story.parts.map((part) => part.end));
  const rows = story.parts.map((part) => bar(part, total, story.interrupted_at));
  const notes = story.arrivals.filter((arrival) => arrival.how !== "prompt").map((arrival) => arrivalRow(arrival));
  const cut = story.interrupted_at == null ? null : make("p", { class: "cut" },
    `■ interrupted at ${timeWords(story.interrupted_at)}, settled in ${timeWords(story.settle)}`);
  node.replaceChildren(
    make("div", { class: "scale", "aria-hidden": "true" }, ...[0, 0.25, 0.5, 0.75, 1].map((part) => make("span", {}, part ? timeWords(total * part) : "0"))),
    make("ul", { class: "bars" }, ...rows), ...notes, ...(cut ? [cut] : []));
}

function bar(part, total, interruptedAt) {
  const took = part.end - part.start;
  const fill = make("span", { class: `fill is-${part.kind}${part.is_bad ? " bad" : ""}` });
  fill.style.insetInlineStart = `${(100 * part.start) / total}%`;
  fill.style.inlineSize = `max(3px, ${(100 * took) / total}%)`;
  const track = make("span", { class: "track", "aria-hidden": "true" }, fill);
  if (part.settle > 0) {
    const settle = make("span", { class: "fill settle" });
    settle.style.insetInlineStart = `${(100 * (part.end - part.settle)) / total}%`;
    settle.style.inlineSize = `max(3px, ${(100 * part.settle) / total}%)`;
    track.append(settle);
  }
  if (interruptedAt != null) {
    const line = make("span", { class: "mark" });
    line.style.insetInlineStart = `${(100 * interruptedAt) / total}%`;
    track.append(line);
  }
  const words = `${timeWords(took)}${part.settle > 0 ? ` (${timeWords(part.settle)} to stop)` : ""}`;
  return make("li", { title: part.note || null },
    make("span", { class: "name" }, `${"  ".repeat(part.depth ?? 0)}${part.name}${part.title ? ` ${part.title}` : ""}`), track, make("span", { class: "took" }, words));
}

function arrivalRow(arrival) {
  return make("p", { class: "arrival" }, `${timeWords(Math.max(0, arrival.at))} · ${NAMED[arrival.how] ?? arrival.how}: “${arrival.text.slice(0, 120)}”`);
}

/** The fold below a turn. It is live while the turn runs; then it is read when somebody looks. */
export class TimelineFold {
  constructor(turn, read) {
    this.turn = turn;
    this.read = read;
    this.live = null;
    this.timer = 0;
    this.isMeasured = false;
    this.summary = make("summary", {}, "Timeline");
    this.body = make("div", { class: "timeline-body" });
    this.node = make("details", { class: "timeline", on: { toggle: () => this.refresh() } }, this.summary, this.body);
  }

  begin(at) {
    this.live = new LiveParts(at);
  }

  take(event) {
    this.live?.take(event);
    if (event.type === "turn.ended") this.settle();
    else this.refresh();
  }

  settle() {
    this.live = null;
    this.refresh();
  }

  async refresh() {
    clearTimeout(this.timer);
    if (!this.node.open) return;
    if (this.live) {
      showTimeline(this.body, this.live.story());
      this.timer = setTimeout(() => this.node.isConnected && this.refresh(), 250);
    } else if (!this.isMeasured) {
      this.isMeasured = true;
      try {
        showTimeline(this.body, await this.read(this.turn));
      } catch (error) {
        this.isMeasured = false;
        setText(this.body, error.message);
      }
    }
  }
}
