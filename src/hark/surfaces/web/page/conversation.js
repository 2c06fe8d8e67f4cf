// The conversation: shows a session's transcript and then its live events.

import * as api from "./api.js";
import { announce, make, setText } from "./dom.js";
import { showMarkdown } from "./markdown.js";
import { Question } from "./question.js";
import { Turn } from "./turn.js";
import { formatReceipt, shortTurnName } from "./format.js";

const NEAR_END_PX = 120;
const NO_TURN = "before"; // messages outside of any turn, such as imported history
const CONTINUE_PREFIX = "continue:"; // the id of a message that continues a turn, followed by the turn's id
const TURN_CHANGING_COMMANDS = ["reset", "rewind", "retry", "compact", "undo"]; // commands that may remove or restore turns

export class Conversation {
  /** `view` has session, resync(), updateControls(), continueTurn(turn), send(text, delivery, files), and texts, authors and files by message id. */
  constructor(log, view) {
    this.log = log;
    this.view = view;
    this.turns = new Map();
    this.messages = new Map(); // the nodes of user messages, by message id
    this.running = null;
    this.childQuestions = new Map(); // questions of children, which belong to no turn here
    this.notice = null;
    this.openSideQuestions = 0; // asked on this page and not answered yet
    this.isFollowing = true;
    this.resizeObserver = new ResizeObserver(() => this.scrollToEnd());
    this.content = make("div", { class: "conversation" });
    this.log.replaceChildren(this.content);
    this.resizeObserver.observe(this.content);
    this.resizeObserver.observe(this.log);
    this.onScroll = () => this.#onScroll();
    this.log.addEventListener("scroll", this.onScroll);
  }

  close() {
    this.resizeObserver.disconnect();
    this.log.removeEventListener("scroll", this.onScroll);
  }

  /** Replace everything with a transcript. */
  showTranscript(transcript) {
    const openTimelines = new Set([...this.turns.values()].filter((turn) => turn.timeline.node.open).map((turn) => turn.id));
    this.content.replaceChildren();
    this.turns.clear();
    this.messages.clear();
    this.running = null;
    this.childQuestions.clear();
    this.notice = null;
    for (const row of transcript.messages) this.#showRow(row);
    const { running } = transcript;
    if (running) {
      const turn = this.#setRunning(this.getTurn(running.turn), Date.now() / 1000);
      turn.isComplete = true;
      turn.reply = null;
      if (running.text) turn.addReplyText(running.text);
      for (const question of running.questions) if (question.turn) turn.ask(question);
    }
    for (const question of transcript.questions ?? []) this.#askForChild(question);
    for (const turn of this.turns.values()) {
      if (!turn.isRunning) for (const call of turn.calls.values()) if (!call.isFinished) call.finish({ effect: "unknown", text: "" });
      turn.timeline.node.open = openTimelines.has(turn.id);
      if (!turn.isRunning) setText(turn.status, shortTurnName(turn.id));
    }
    for (const id of transcript.resumable ?? []) if (this.turns.has(id)) this.#offerContinue(this.turns.get(id));
    this.#greetIfEmpty();
    this.scrollToEnd();
  }

  handleEvent(event) {
    switch (event.type) {
      case "message.accepted": return this.#onAccepted(event);
      case "receipt": return this.#onReceipt(event.receipt);
      case "turn.started": return this.#onTurnStarted(event);
      case "question.asked": return event.turn ? this.#onTurnEvent(event) : this.#askForChild(event);
      case "question.closed": return event.turn ? this.#onTurnEvent(event) : this.childQuestions.get(event.question)?.close(event.reason);
      case "notice": return this.#onNotice(event.turn, event.code, event.text);
      case "route.changed": return this.#onNotice(event.turn, "route", `Switched to ${event.route}: ${event.reason}`);
      default: return this.#onTurnEvent(event);
    }
  }

  /** The oldest open question, or null. */
  get question() {
    return this.#questions.find((question) => question.isOpen) ?? null;
  }

  /** The question that a text may answer: the oldest open one, otherwise the last one of the running turn, or null. */
  get answerableQuestion() {
    return this.question ?? this.#questions.at(-1) ?? null;
  }

  get #questions() {
    return [...(this.running?.questions.values() ?? []), ...this.childQuestions.values()];
  }

  /** Return the turn with that id. Adds an empty turn if it is unknown. */
  getTurn(id) {
    if (!this.turns.has(id)) {
      const turn = new Turn(this.view.session, id, (text) => this.view.send(text, "", []));
      this.turns.set(id, turn);
      this.#append(turn.node);
    }
    return this.turns.get(id);
  }

  /** Scroll to a turn if it is shown. */
  scrollToTurn(id) {
    const turn = this.turns.get(id);
    if (!turn) return;
    this.isFollowing = false;
    turn.node.scrollIntoView();
  }

  /** Append a line that is not part of the transcript. */
  addLine(text, className) {
    this.#append(make("p", { class: className }, text));
  }

  /** Scroll to the end, unless the user has scrolled up. */
  scrollToEnd() {
    if (this.isFollowing) this.log.scrollTop = this.log.scrollHeight;
  }

  #askForChild(event) {
    if (this.childQuestions.has(event.question)) return;
    const question = new Question(this.view.session, event, (text) => this.view.send(text, "", []));
    this.childQuestions.set(event.question, question);
    this.#append(question.node);
  }

  #setRunning(turn, at) {
    this.running = turn;
    turn.start(at);
    return turn;
  }

  #onTurnEvent(event) {
    if (!event.turn) return;
    const turn = this.getTurn(event.turn);
    if (!turn.isRunning && event.type !== "turn.ended") this.#setRunning(turn, event.at); // it started before the page was opened
    turn.handleEvent(event);
    if (event.type !== "turn.ended") return;
    if (this.running === turn) this.running = null;
    if (event.outcome.type === "interrupted" && event.outcome.source !== "reset") this.#offerContinue(turn);
    if (!turn.matchesOutcome(event.outcome)) this.view.resync();
  }

  #offerContinue(turn) {
    turn.offerContinue(() => this.view.continueTurn(turn.id));
  }

  /** Remove the Continue button of a turn if this message continues it. */
  #removeContinueOffer(message) {
    if (message.startsWith(CONTINUE_PREFIX)) this.turns.get(message.slice(CONTINUE_PREFIX.length))?.removeContinueOffer();
  }

  #onTurnStarted(event) {
    event.messages.forEach((id) => this.#removeContinueOffer(id));
    const turn = this.#setRunning(this.getTurn(event.turn), event.at);
    turn.isComplete = true;
    const isKnown = event.messages.map((id) => this.#addUserMessage(turn, id, { state: "started", turn: event.turn }));
    if (isKnown.includes(false)) this.#loadMissingTexts();
  }

  #onAccepted({ id, text, author }) {
    this.view.texts.set(id, text);
    if (author) this.view.authors.set(id, author);
  }

  #onReceipt(receipt) {
    this.#removeContinueOffer(receipt.id);
    if (receipt.state === "steered") {
      if (!this.#addUserMessage(this.getTurn(receipt.turn), receipt.id, receipt)) this.#loadMissingTexts();
    } else if (receipt.state === "edited") {
      this.view.texts.delete(receipt.id); // the event does not contain the new text
    } else if (receipt.state === "withdrawn") {
      announce("A waiting message was deleted.");
    } else {
      const message = this.messages.get(receipt.id);
      if (message) setText(message.receipt, formatReceipt(receipt));
    }
  }

  /** Add a user message to a turn. Return whether its content is known. */
  #addUserMessage(turn, id, receipt, row = null) {
    if (this.messages.has(id)) return true;
    const text = row?.text ?? this.view.texts.get(id);
    const files = row?.attachments ?? this.view.files.get(id) ?? [];
    const textNode = make("div", { class: "text" });
    const receiptNode = make("p", { class: "receipt" }, formatReceipt(receipt));
    const name = row?.author ?? this.view.authors.get(id);
    const author = name ? make("p", { class: "author" }, name) : null;
    const fileNames = files.map((file) => make("li", {}, file.name || file.media_type));
    const node = make("article", { class: "user-message", "aria-label": "Your message", "data-id": id }, author, textNode,
      fileNames.length ? make("ul", { class: "file-names" }, ...fileNames) : null, receiptNode);
    showMarkdown(textNode, text ?? "");
    turn.append(node);
    this.messages.set(id, { node, text: textNode, receipt: receiptNode });
    return Boolean(text) || files.length > 0;
  }

  /** Load the texts of messages whose ids alone are known: edited, or accepted before the page was opened. */
  async #loadMissingTexts() {
    const { messages } = await api.getTranscript(this.view.session).catch(() => ({ messages: [] }));
    for (const row of messages) {
      const message = row.role === "user" && this.messages.get(row.id);
      if (message) showMarkdown(message.text, row.text);
    }
  }

  /** Add a message of the transcript to its turn. */
  #showRow(row) {
    const turn = this.getTurn(row.turn || NO_TURN);
    turn.isComplete = true;
    switch (row.role) {
      case "user": return void this.#addUserMessage(turn, row.id, { state: "taken", turn: row.turn }, row);
      case "assistant":
        turn.reply = null;
        if (row.text) turn.addReplyText(row.text);
        if (row.is_partial) turn.reply?.node.classList.add("partial");
        return (row.calls ?? []).forEach((call) => turn.getCall(call.id, call.name, call.arguments ?? "{}"));
      case "tool": return turn.getCall(row.call, row.name, "{}").finish(row);
      case "note": return turn.append(make("p", { class: "note" }, row.text.replace(/^\[(.*)\]$/s, "$1")));
    }
  }

  #onNotice(turnId, code, text) {
    if (code === "btw" && text.startsWith("btw ")) this.openSideQuestions = Math.max(0, this.openSideQuestions - 1);
    this.#showNotice(turnId, code, text);
    announce(text);
    if (TURN_CHANGING_COMMANDS.includes(code)) this.#reloadIfTurnsChanged(code, text);
  }

  /** Show a notice. It replaces the previous notice if both have the same code and nothing was added in between. */
  #showNotice(turnId, code, text) {
    const isRepeated = this.notice?.code === code && this.notice.node.parentNode?.lastChild === this.notice.node && !text.startsWith("🎙️") && code !== "btw";
    const node = make("div", { class: "notice", role: "note", "data-code": code }, text);
    if (isRepeated) this.notice.node.replaceWith(node);
    else if (turnId && this.turns.get(turnId)?.isRunning) this.turns.get(turnId).append(node);
    else this.#append(node);
    this.notice = { code, node };
  }

  /** Reload the conversation if a command, here or in another tab, removed or restored turns. The command's notice stays. */
  async #reloadIfTurnsChanged(code, text) {
    const { messages } = await api.getTranscript(this.view.session).catch(() => ({ messages: null }));
    if (messages === null) return;
    const remaining = new Set(messages.map((row) => row.turn || NO_TURN));
    const isRemoved = [...this.turns.values()].some((turn) => !turn.isRunning && turn.body.childElementCount && !remaining.has(turn.id));
    const isRestored = [...remaining].some((id) => id !== NO_TURN && !this.turns.has(id));
    if (!isRemoved && !isRestored) return;
    await this.view.resync();
    this.#showNotice(null, code, text);
  }

  #append(node) {
    this.content.querySelector(".greeting")?.remove();
    this.content.append(node);
  }

  #greetIfEmpty() {
    if (this.content.childElementCount) return;
    this.content.append(make("div", { class: "greeting" }, make("h2", {}, "What shall we work on?"),
      make("p", {}, "Type a message below. You can stop, steer or queue at any time: Hark listens while it works.")));
  }

  #onScroll() {
    const { scrollHeight, scrollTop, clientHeight } = this.log;
    this.isFollowing = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    this.view.updateControls();
  }
}
