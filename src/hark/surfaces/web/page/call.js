// A tool call: a block to unfold, with its arguments, its output as it comes, and its result.

import { isDiff, showOutput } from "./diff.js";
import { make, plain, setText } from "./dom.js";

const LIVE_CHARACTERS = 100000;
const EFFECTS = { completed: "done", cancelled: "cut", not_started: "not run", unknown: "effect unknown" };

export class Call {
  constructor(id, name, argumentsText) {
    this.id = id;
    this.name = name;
    this.isOver = false;
    this.live = "";
    this.frame = 0;
    this.state = make("span", { class: "state" }, "not ended yet");
    this.output = make("pre", { class: "output", tabindex: "0", "aria-label": `Output of ${name}` });
    this.node = make("details", { class: "call running" },
      make("summary", {}, make("span", { class: "tool" }, name), make("span", { class: "what" }, titleOf(argumentsText)), this.state),
      make("div", { class: "inside" }, argumentBlock(argumentsText), this.output));
    this.output.hidden = true;
  }

  /** It runs. */
  start() {
    if (!this.isOver) setText(this.state, "running …");
  }

  /** Show more of what it prints. */
  add(text) {
    this.live = (this.live + text).slice(-LIVE_CHARACTERS);
    this.node.open = true;
    this.start();
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (this.isOver) return;
      this.output.hidden = false;
      this.output.textContent = plain(this.live);
      this.output.scrollTop = this.output.scrollHeight;
    });
  }

  /** Show what came of it. */
  end({ effect, text, is_error: isError }) {
    this.isOver = true;
    this.node.classList.remove("running");
    this.node.classList.add(isError ? "bad" : effect);
    setText(this.state, isError && effect === "completed" ? "failed" : EFFECTS[effect] ?? effect);
    this.output.hidden = !text;
    showOutput(this.output, text);
    this.node.open = isDiff(text);
  }
}

function parsed(argumentsText) {
  try {
    const value = JSON.parse(argumentsText);
    return value !== null && typeof value === "object" ? value : {};
  } catch {
    return {};
  }
}

/** Return what a call is about, in a few words: its command, its file, or the first thing that it is given. */
function titleOf(argumentsText) {
  const given = parsed(argumentsText);
  const first = given.command ?? given.path ?? given.file ?? given.query ?? given.url ?? Object.values(given).find((value) => typeof value === "string");
  return String(first ?? "").split("\n")[0].slice(0, 200);
}

/** Return what a call is given, by name. */
export function argumentBlock(argumentsText) {
  const rows = Object.entries(parsed(argumentsText)).map(([name, value]) => {
    const words = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    const shown = make("pre", { tabindex: "0" });
    showOutput(shown, words);
    return make("div", { class: "argument" }, make("span", {}, name), shown);
  });
  return make("div", { class: "arguments" }, ...rows);
}
