// The conversation: a session's transcript, and its events put behind it.

import * as api from "./api.js";
import { announce, make, setText } from "./dom.js";
import { showMarkdown } from "./markdown.js";
import { Turn } from "./turn.js";
import { receiptWords, shortTurn } from "./format.js";

const NEAR_PX = 120;
const BEFORE = "before"; // what belongs to no turn, such as a past that was brought along
const CUT_BY = ["restart", "crash", "shutdown"]; // the program ended, and nobody stopped the turn
const GOES_ON = "continue:"; // and the turn's id: the message that goes on with it
const TAKING_BACK = ["reset", "rewind", "retry", "compact"]; // commands after which turns may be gone

export class Conversation {
  /** `world` has session, resync(), changed(), goOn(turn) and texts, the words of messages that wait, by id. */
  constructor(log, world) {
    this.log = log;
    this.world = world;
    this.turns = new Map();
    this.messages = new Map(); // articles, by message id
    this.running = null;
    this.notice = null;
    this.isFollowing = true;
    this.watcher = new ResizeObserver(() => this.follow());
    this.flow = make("div", { class: "flow" });
    this.log.replaceChildren(this.flow);
    this.watcher.observe(this.flow);
    this.watcher.observe(this.log);
    this.onScroll = () => this.#scrolled();
    this.log.addEventListener("scroll", this.onScroll);
  }

  close() {
    this.watcher.disconnect();
    this.log.removeEventListener("scroll", this.onScroll);
  }

  /** Show all of a transcript, in the place of what was there. */
  open(transcript) {
    const open = new Set([...this.turns.values()].filter((turn) => turn.timeline.node.open).map((turn) => turn.id));
    this.flow.replaceChildren();
    this.turns.clear();
    this.messages.clear();
    this.running = null;
    this.notice = null;
    for (const row of transcript.messages) this.#row(row);
    const { running } = transcript;
    if (running) {
      const turn = this.#run(this.turn(running.turn), Date.now() / 1000);
      turn.isWhole = true;
      turn.reply = null;
      if (running.text) turn.say(running.text);
      for (const asked of running.questions) turn.ask(asked);
    }
    for (const turn of this.turns.values()) {
      if (!turn.isRunning) for (const call of turn.calls.values()) if (!call.isOver) call.end({ effect: "unknown", text: "" });
      turn.timeline.node.open = open.has(turn.id);
      if (!turn.isRunning) setText(turn.ending, shortTurn(turn.id));
    }
    for (const id of transcript.cut ?? []) if (this.turns.has(id)) this.#offer(this.turns.get(id));
    this.#greet();
    this.follow();
  }

  take(event) {
    switch (event.type) {
      case "message.accepted": return this.#accepted(event);
      case "receipt": return this.#receipt(event.receipt);
      case "turn.started": return this.#started(event);
      case "notice": return this.#notice(event.turn, event.code, event.text);
      case "route.changed": return this.#notice(event.turn, "route", `Now served by ${event.route}: ${event.reason}`);
      default: return this.#inTurn(event);
    }
  }

  /** The question that a key would answer. */
  get question() {
    const open = [...(this.running?.questions.values() ?? [])].filter((one) => one.isOpen);
    return open[0] ?? null;
  }

  turn(id) {
    if (!this.turns.has(id)) {
      const turn = new Turn(this.world.session, id);
      this.turns.set(id, turn);
      this.#append(turn.node);
    }
    return this.turns.get(id);
  }

  /** Go to a turn, if it is there. */
  goTo(id) {
    const turn = this.turns.get(id);
    if (!turn) return;
    this.isFollowing = false;
    turn.node.scrollIntoView();
  }

  /** Show a line of the page's own. */
  remark(text, className) {
    this.#append(make("p", { class: className }, text));
  }

  follow() {
    if (this.isFollowing) this.log.scrollTop = this.log.scrollHeight;
  }

  #run(turn, at) {
    this.running = turn;
    turn.begin(at);
    return turn;
  }

  #inTurn(event) {
    if (!event.turn) return;
    const turn = this.turn(event.turn);
    if (!turn.isRunning && event.type !== "turn.ended") this.#run(turn, event.at); // it began before we came
    turn.take(event);
    if (event.type !== "turn.ended") return;
    if (this.running === turn) this.running = null;
    if (CUT_BY.includes(event.outcome.source)) this.#offer(turn);
    if (!turn.isTrue(event.outcome)) this.world.resync();
  }

  #offer(turn) {
    turn.offer(() => this.world.goOn(turn.id));
  }

  /** A message that goes on with a turn was taken: once is enough. */
  #goneOn(message) {
    if (message.startsWith(GOES_ON)) this.turns.get(message.slice(GOES_ON.length))?.withdrawOffer();
  }

  #started(event) {
    event.messages.forEach((id) => this.#goneOn(id));
    const turn = this.#run(this.turn(event.turn), event.at);
    turn.isWhole = true;
    const isKnown = event.messages.map((id) => this.#userMessage(turn, id, { state: "started", turn: event.turn }));
    if (isKnown.includes(false)) this.#readWords();
  }

  #accepted({ id, text, author }) {
    this.world.texts.set(id, text);
    if (author) this.world.authors.set(id, author);
  }

  #receipt(receipt) {
    this.#goneOn(receipt.id);
    if (receipt.state === "steered") {
      if (!this.#userMessage(this.turn(receipt.turn), receipt.id, receipt)) this.#readWords();
    } else if (receipt.state === "edited") {
      this.world.texts.delete(receipt.id); // the new words are not told
    } else if (receipt.state === "withdrawn") {
      announce("A waiting message was withdrawn.");
    } else {
      const shown = this.messages.get(receipt.id);
      if (shown) setText(shown.receipt, receiptWords(receipt));
    }
  }

  /** Put a person's message into a turn; return whether its words are known. */
  #userMessage(turn, id, receipt, row = null) {
    if (this.messages.has(id)) return true;
    const text = row?.text ?? this.world.texts.get(id);
    const files = row?.attachments ?? this.world.files.get(id) ?? [];
    const words = make("div", { class: "words" });
    const line = make("p", { class: "receipt" }, receiptWords(receipt));
    const name = row?.author ?? this.world.authors.get(id);
    const author = name ? make("p", { class: "author" }, name) : null;
    const names = files.map((file) => make("li", {}, file.name || file.media_type));
    const node = make("article", { class: "said", "aria-label": "You said", "data-id": id }, author, words,
      names.length ? make("ul", { class: "names" }, ...names) : null, line);
    showMarkdown(words, text ?? "");
    turn.append(node);
    this.messages.set(id, { node, words, receipt: line });
    return Boolean(text) || files.length > 0;
  }

  /** Read the words of messages of which only the ids are known: they were edited, or accepted before we came. */
  async #readWords() {
    const { messages } = await api.transcript(this.world.session).catch(() => ({ messages: [] }));
    for (const row of messages) {
      const shown = row.role === "user" && this.messages.get(row.id);
      if (shown) showMarkdown(shown.words, row.text);
    }
  }

  #row(row) {
    const turn = this.turn(row.turn || BEFORE);
    turn.isWhole = true;
    switch (row.role) {
      case "user": return void this.#userMessage(turn, row.id, { state: "taken", turn: row.turn }, row);
      case "assistant":
        turn.reply = null;
        if (row.text) turn.say(row.text);
        if (row.is_partial) turn.reply?.node.classList.add("partial");
        return (row.calls ?? []).forEach((call) => turn.call(call.id, call.name, call.arguments ?? "{}"));
      case "tool": return turn.call(row.call, row.name, "{}").end(row);
      case "note": return turn.append(make("p", { class: "note" }, row.text.replace(/^\[(.*)\]$/s, "$1")));
    }
  }

  #notice(turnId, code, text) {
    this.#show(turnId, code, text);
    announce(text);
    if (TAKING_BACK.includes(code)) this.#checkTurns(code, text);
  }

  /** A notice takes the place of one with the same code if nothing came in between. */
  #show(turnId, code, text) {
    const isSame = this.notice?.code === code && this.notice.node.parentNode?.lastChild === this.notice.node && !text.startsWith("🎙️");
    const node = make("div", { class: "notice", role: "note", "data-code": code }, text);
    if (isSame) this.notice.node.replaceWith(node);
    else if (turnId && this.turns.get(turnId)?.isRunning) this.turns.get(turnId).append(node);
    else this.#append(node);
    this.notice = { code, node };
  }

  /** A command may have taken turns back, here or in another tab: then all is read anew, but for its notice. */
  async #checkTurns(code, text) {
    const { messages } = await api.transcript(this.world.session).catch(() => ({ messages: null }));
    if (messages === null) return;
    const left = new Set(messages.map((row) => row.turn || BEFORE));
    if (![...this.turns.values()].some((turn) => !turn.isRunning && turn.body.childElementCount && !left.has(turn.id))) return;
    await this.world.resync();
    this.#show(null, code, text);
  }

  #append(node) {
    this.flow.querySelector(".greeting")?.remove();
    this.flow.append(node);
  }

  #greet() {
    if (this.flow.childElementCount) return;
    this.flow.append(make("div", { class: "greeting" }, make("h2", {}, "What shall we do?"),
      make("p", {}, "Say it below. You can stop, steer or queue at any instant: Hark listens while it works.")));
  }

  #scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.log;
    this.isFollowing = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    this.world.changed();
  }
}
