// A tool call: a block that unfolds to its arguments, its live output and its result.

import { isDiff, showOutput } from "./diff.js";
import { make, plainText, setText } from "./dom.js";

const MAX_LIVE_CHARACTERS = 100000;
const EFFECT_LABELS = { completed: "done", cancelled: "stopped", not_started: "not run", continues: "continues in the background", unknown: "may have run: check before repeating" };

export class ToolCall {
  constructor(id, name, argumentsText) {
    this.id = id;
    this.name = name;
    this.isFinished = false;
    this.liveOutput = "";
    this.frame = 0;
    this.state = make("span", { class: "state" }, "not finished");
    this.output = make("pre", { class: "output", tabindex: "0", "aria-label": `Output of ${name}` });
    this.node = make("details", { class: "call running" },
      make("summary", {}, make("span", { class: "tool" }, name), make("span", { class: "call-title" }, callTitle(argumentsText)), this.state),
      make("div", { class: "call-details" }, argumentBlock(argumentsText), this.output));
    this.output.hidden = true;
  }

  /** Show that the call is running. */
  start() {
    if (!this.isFinished) setText(this.state, "running…");
  }

  /** Append to the live output. */
  addOutput(text) {
    this.liveOutput = (this.liveOutput + text).slice(-MAX_LIVE_CHARACTERS);
    this.node.open = true;
    this.start();
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (this.isFinished) return;
      this.output.hidden = false;
      this.output.textContent = plainText(this.liveOutput);
      this.output.scrollTop = this.output.scrollHeight;
    });
  }

  /** Show the result. */
  finish({ effect, text, is_error: isError }) {
    this.isFinished = true;
    this.node.classList.remove("running");
    this.node.classList.add(isError ? "failed" : effect);
    setText(this.state, isError && effect === "completed" ? "failed" : EFFECT_LABELS[effect] ?? effect);
    this.output.hidden = !text;
    showOutput(this.output, text);
    this.node.open = isDiff(text);
  }
}

function parseArguments(argumentsText) {
  try {
    const value = JSON.parse(argumentsText);
    return value !== null && typeof value === "object" ? value : {};
  } catch {
    return {};
  }
}

/** Return a short title for a call: its command, file, query or URL, or its first text argument. */
function callTitle(argumentsText) {
  const values = parseArguments(argumentsText);
  const first = values.command ?? values.path ?? values.file ?? values.query ?? values.url ?? Object.values(values).find((value) => typeof value === "string");
  return String(first ?? "").split("\n")[0].slice(0, 200);
}

/** Return the arguments of a call as a list of names and values. */
export function argumentBlock(argumentsText) {
  const rows = Object.entries(parseArguments(argumentsText)).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    const node = make("pre", { tabindex: "0" });
    showOutput(node, text);
    return make("div", { class: "argument" }, make("span", {}, name), node);
  });
  return make("div", { class: "arguments" }, ...rows);
}
