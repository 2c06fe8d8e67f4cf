// One turn on the page: its messages, replies, calls and questions, and how it ended.

import * as api from "./api.js";
import { ToolCall } from "./call.js";
import { announce, button, make, setText } from "./dom.js";
import { showMarkdown } from "./markdown.js";
import { Question } from "./question.js";
import { TimelineFold } from "./timeline.js";
import { formatCost, formatDuration, formatOutcome, formatTokens, shortTurnName } from "./format.js";

/** A growing Markdown text. It is rendered at most once per frame. */
class GrowingText {
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
  /** `sendMessage(text)` sends a text that was typed into the field of a question but is a command or a stop word. */
  constructor(session, id, sendMessage) {
    this.session = session;
    this.sendMessage = sendMessage;
    this.id = id;
    this.isRunning = false;
    this.isComplete = false; // false if the page missed the turn's start; then its end reloads the conversation
    this.reply = null; // the reply text of the current step
    this.replies = [];
    this.reasoning = null;
    this.calls = new Map();
    this.questions = new Map();
    this.body = make("div", { class: "turn-body" });
    this.timeline = new TimelineFold(id, api.getTimeline);
    this.status = make("span", { class: "turn-status" });
    this.timeline.summary.replaceChildren(this.status, make("span", { class: "timeline-label" }, "timeline"));
    this.node = make("section", { class: "turn", "data-turn": id, "aria-label": `Turn ${shortTurnName(id)}` },
      make("h2", { class: "visually-hidden" }, `Turn ${shortTurnName(id)}`), this.body, this.timeline.node);
  }

  /** Show that the turn is running. */
  start(at) {
    this.isRunning = true;
    this.node.classList.add("running");
    this.body.setAttribute("aria-busy", "true");
    this.timeline.start(at);
    setText(this.status, "working…");
  }

  /** Append a node. Later reply text starts a new block after it. */
  append(node) {
    this.reply = null;
    this.reasoning = null;
    this.body.append(node);
  }

  addReplyText(text) {
    if (this.reply === null) {
      const reply = new GrowingText("reply");
      this.append(reply.node);
      this.reply = reply;
      this.replies.push(reply);
    }
    this.reply.add(text);
  }

  /** Return the call with that id. Adds it if it is unknown. */
  getCall(id, name, argumentsText) {
    if (this.calls.has(id)) return this.calls.get(id);
    const call = new ToolCall(id, name, argumentsText);
    this.calls.set(id, call);
    this.append(call.node);
    return call;
  }

  /** Show a question, once. */
  ask(event) {
    if (this.questions.has(event.question)) return;
    const question = new Question(this.session, event, this.sendMessage);
    this.questions.set(event.question, question);
    this.append(question.node);
  }

  handleEvent(event) {
    this.timeline.handleEvent(event);
    switch (event.type) {
      case "step.started": this.reply = null; this.reasoning = null; return;
      case "reply.delta": return this.addReplyText(event.text);
      case "reply.restarted": return this.#removeReply();
      case "reasoning.delta": return this.#addReasoning(event.text);
      case "call.started": return this.getCall(event.call, event.name, event.arguments).start();
      case "call.output": return this.calls.get(event.call)?.addOutput(event.text);
      case "call.ended": return this.getCall(event.call, event.name, "{}").finish(event);
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
    const parts = [formatOutcome(outcome, timings), timings?.total && formatDuration(timings.total), formatTokens(usage), formatCost(cost)];
    setText(this.status, parts.filter(Boolean).join(" · "));
    this.#showOutcome(outcome);
  }

  /** Show a Continue button, for an interrupted turn. */
  offerContinue(onClick) {
    this.removeContinueOffer();
    const node = button("▶ Continue", () => { node.disabled = true; onClick(); }, { class: "continue-turn", "aria-label": `Continue turn ${shortTurnName(this.id)}` });
    this.node.append(node);
  }

  removeContinueOffer() {
    this.node.querySelector(".continue-turn")?.remove();
  }

  /** Return whether the page shows the reply that the turn ended with. */
  matchesOutcome(outcome) {
    if (!this.isComplete) return false;
    return outcome.type !== "completed" || outcome.text === (this.replies.at(-1)?.text ?? "");
  }

  #showOutcome(outcome) {
    const reply = this.replies.at(-1)?.text ?? "";
    if (outcome.type === "failed") this.append(make("p", { class: "problem" }, outcome.error.message));
    if (outcome.type === "limit_reached") this.append(make("p", { class: "problem" }, outcome.message));
    if (outcome.left_running?.length) this.append(make("p", { class: "problem" }, `Still running: ${outcome.left_running.join(", ")}`));
    announce(outcome.type === "completed" ? `Hark: ${reply}` : `The turn ended: ${this.status.textContent}. ${reply}`);
  }

  #removeReply() {
    this.reply?.node.remove();
    this.replies = this.replies.filter((reply) => reply !== this.reply);
    this.reply = null;
  }

  #addReasoning(text) {
    if (this.reasoning === null) {
      const reasoning = new GrowingText("reasoning-text");
      this.append(make("details", { class: "reasoning" }, make("summary", {}, "Thinking"), reasoning.node));
      this.reasoning = reasoning;
    }
    this.reasoning.add(text);
  }
}
