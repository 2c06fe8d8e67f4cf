// One turn on the page: what was asked, what was said and done, and how it ended.

import * as api from "./api.js";
import { Call } from "./call.js";
import { announce, button, make, setText } from "./dom.js";
import { showMarkdown } from "./markdown.js";
import { Question } from "./question.js";
import { TimelineFold } from "./timeline.js";
import { costWords, outcomeWords, shortTurn, timeWords, tokenWords } from "./format.js";

/** A piece of Markdown that grows; it is drawn once a frame. */
class Reply {
  constructor(className) {
    this.text = "";
    this.frame = 0;
    this.node = make("div", { class: className });
  }

  add(text) {
    this.text += text;
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    showMarkdown(this.node, this.text);
  }
}

export class Turn {
  constructor(session, id) {
    this.session = session;
    this.id = id;
    this.isRunning = false;
    this.isWhole = false; // false when its beginning was not seen: then its end has all of it read anew
    this.reply = null; // the piece of this step that grows
    this.replies = [];
    this.thought = null;
    this.calls = new Map();
    this.questions = new Map();
    this.body = make("div", { class: "turn-body" });
    this.timeline = new TimelineFold(id, api.timeline);
    this.ending = make("span", { class: "ending" });
    this.timeline.summary.replaceChildren(this.ending, make("span", { class: "unfold" }, "timeline"));
    this.node = make("section", { class: "turn", "data-turn": id, "aria-label": `Turn ${shortTurn(id)}` },
      make("h2", { class: "unseen" }, `Turn ${shortTurn(id)}`), this.body, this.timeline.node);
  }

  /** The turn runs. */
  begin(at) {
    this.isRunning = true;
    this.node.classList.add("running");
    this.body.setAttribute("aria-busy", "true");
    this.timeline.begin(at);
    setText(this.ending, "working …");
  }

  /** Put something at its end. What is said next is a new piece. */
  append(node) {
    this.reply = null;
    this.thought = null;
    this.body.append(node);
  }

  say(text) {
    if (this.reply === null) {
      const reply = new Reply("reply");
      this.append(reply.node);
      this.reply = reply;
      this.replies.push(reply);
    }
    this.reply.add(text);
  }

  call(id, name, argumentsText) {
    if (this.calls.has(id)) return this.calls.get(id);
    const call = new Call(id, name, argumentsText);
    this.calls.set(id, call);
    this.append(call.node);
    return call;
  }

  ask(asked) {
    if (this.questions.has(asked.question)) return;
    const question = new Question(this.session, asked);
    this.questions.set(asked.question, question);
    this.append(question.node);
  }

  take(event) {
    this.timeline.take(event);
    switch (event.type) {
      case "step.started": this.reply = null; this.thought = null; return;
      case "reply.delta": return this.say(event.text);
      case "reply.restarted": return this.#restart();
      case "reasoning.delta": return this.#think(event.text);
      case "call.started": return this.call(event.call, event.name, event.arguments).start();
      case "call.output": return this.calls.get(event.call)?.add(event.text);
      case "call.ended": return this.call(event.call, event.name, "{}").end(event);
      case "question.asked": return this.ask(event);
      case "question.closed": return this.questions.get(event.question)?.close(event.reason);
      case "turn.ended": return this.end(event);
    }
  }

  end({ outcome, timings, usage, cost }) {
    this.isRunning = false;
    this.node.classList.remove("running");
    this.node.classList.add(outcome.type);
    this.body.removeAttribute("aria-busy");
    for (const question of this.questions.values()) question.close("withdrawn");
    const words = [outcomeWords(outcome, timings), timings?.total && timeWords(timings.total), tokenWords(usage), costWords(cost)];
    setText(this.ending, words.filter(Boolean).join(" · "));
    this.#tell(outcome);
  }

  /** Offer to go on with it, since the program's own end cut it. */
  offer(act) {
    this.withdrawOffer();
    const go = button("▶ Go on", () => { go.disabled = true; act(); }, { class: "go-on", "aria-label": `Go on with turn ${shortTurn(this.id)}` });
    this.node.append(go);
  }

  withdrawOffer() {
    this.node.querySelector(".go-on")?.remove();
  }

  /** Say whether what was shown is what the turn ended with. */
  isTrue(outcome) {
    if (!this.isWhole) return false;
    return outcome.type !== "completed" || outcome.text === (this.replies.at(-1)?.text ?? "");
  }

  #tell(outcome) {
    const said = this.replies.at(-1)?.text ?? "";
    if (outcome.type === "failed") this.append(make("p", { class: "problem" }, outcome.error.message));
    if (outcome.type === "limit_reached") this.append(make("p", { class: "problem" }, outcome.message));
    if (outcome.left_running?.length) this.append(make("p", { class: "problem" }, `Still running: ${outcome.left_running.join(", ")}`));
    announce(outcome.type === "completed" ? `Hark: ${said}` : `The turn ended: ${this.ending.textContent}. ${said}`);
  }

  #restart() {
    this.reply?.node.remove();
    this.replies = this.replies.filter((reply) => reply !== this.reply);
    this.reply = null;
  }

  #think(text) {
    if (this.thought === null) {
      const thought = new Reply("thought");
      this.append(make("details", { class: "thinking" }, make("summary", {}, "Thinking"), thought.node));
      this.thought = thought;
    }
    this.thought.add(text);
  }
}
