// One open session: its stream, its conversation, its queue, and what is sent into it.

import * as api from "./api.js";
import { keepDraft } from "./composer.js";
import { Conversation } from "./conversation.js";
import { announce, find, setText } from "./dom.js";
import { QueuePanel } from "./queue.js";
import { Stream } from "./stream.js";
import { receiptWords, shortTurn } from "./format.js";

const QUEUE_CHANGES = ["receipt", "turn.started", "turn.ended"];

export class View {
  /** `complain(text)` tells what went wrong; `sessions` is the list, to be read again when something changed; `speaker` speaks. */
  constructor(session, { complain, sessions, speaker }) {
    this.session = session;
    this.complain = complain;
    this.sessions = sessions;
    this.speaker = speaker;
    this.texts = new Map();
    this.authors = new Map();
    this.files = new Map();
    this.stopping = "";
    this.begun = ""; // the turn of the last message, which the stream may not have told of yet
    this.goal = "";
    this.listening = 0; // recordings that are being turned into words
    this.isClosed = false;
    this.line = Promise.resolve(); // messages leave one after the other, so that they arrive in their order
    this.queue = new QueuePanel(session, this.texts, complain);
    this.conversation = new Conversation(find("log"), this);
    this.stream = new Stream(session, this);
  }

  close() {
    this.isClosed = true;
    this.speaker.cut();
    this.stream.close();
    this.queue.close();
    this.conversation.close();
  }

  resync() {
    return this.stream.resync();
  }

  open(transcript, queue) {
    localStorage.setItem("hark-session", this.session);
    this.queue.show(queue);
    this.conversation.open(transcript);
    this.begun = "";
    if (this.goal) this.goTo(this.goal);
    this.changed();
    this.sessions.soon();
  }

  take(event) {
    this.conversation.take(event);
    if (event.type === "turn.started") this.begun = "";
    this.speaker.take(event);
    if (QUEUE_CHANGES.includes(event.type)) {
      this.queue.refresh();
      this.sessions.soon();
    }
    this.changed();
  }

  lost(isLost) {
    if (this.isClosed) return;
    find("connection").hidden = !isLost;
    if (isLost) return;
    this.queue.sendAgain();
    this.sessions.soon();
  }

  refused(why) {
    this.conversation.remark(why, "problem");
  }

  /** Show a turn, as soon as it is there. */
  goTo(turn) {
    this.goal = this.conversation.turns.has(turn) ? "" : turn;
    this.conversation.goTo(turn);
  }

  /** Show what can be done now. */
  changed() {
    if (this.isClosed) return;
    const turn = this.conversation.running;
    const [sending] = this.queue.onTheirWay;
    const isStopping = this.stopping !== "" && this.stopping === this.#toStop();
    const { isSounding } = this.speaker;
    const what = turn ? shortTurn(turn.id) : this.listening ? "listening" : sending ? "sending" : "speaking";
    const stop = find("stop");
    stop.hidden = !this.#toStop() && !isSounding;
    stop.disabled = isStopping;
    setText(stop, isStopping ? "Stopping …" : `■ Stop ${what}`);
    const isAsked = this.conversation.question !== null;
    setText(find("activity"), turn ? (isAsked ? "waits for you" : "working") : this.listening ? "listening" : isSounding ? "speaking" : "");
    find("steer").hidden = find("queue-up").hidden = turn === null;
    find("latest").hidden = this.conversation.isFollowing;
  }

  /** Send a message; it stays on the page until the server has it. */
  send(text, delivery, files, id = api.newId()) {
    this.queue.send(id, text);
    this.changed();
    this.conversation.isFollowing = true;
    this.conversation.follow();
    if (files.length) this.files.set(id, files.map(({ name, media_type }) => ({ name, media_type })));
    const attachments = files.map(({ media_type, name, data }) => ({ media_type, name, data }));
    const shown = delivery === "queue" ? null : this.#heard();
    const message = { id, text, ...(delivery && { delivery }), ...(attachments.length && { attachments }), ...(shown && { shown }) };
    this.line = this.line.then(() => this.#leave(id, text, () => api.say(this.session, message), () => this.send(text, delivery, files, id)));
  }

  /** Have the agent go on with a turn that a restart or a crash cut. */
  goOn(turn) {
    this.send(`/continue ${turn}`, "", []);
  }

  /** Send a recording; its words come back as a message. */
  async hear(audio, id = api.newId()) {
    const words = "🎙️ voice message";
    const shown = this.#heard();
    this.listening++;
    this.queue.send(id, words);
    this.changed();
    await this.#leave(id, words, () => api.voice(this.session, id, audio, shown), () => this.hear(audio, id));
    this.listening--;
    this.changed();
  }

  /** What a stop would end: the running turn, a recording that is being transcribed, or a message on its way. */
  #toStop() {
    return this.conversation.running?.id ?? (this.listening ? "voice" : this.queue.onTheirWay[0] ?? this.begun);
  }

  /** Stop the running turn and the messages on their way, which the server may get only after the stop. */
  async stop() {
    this.speaker.cut();
    const what = this.#toStop();
    const turn = this.conversation.running?.id ?? (what === this.begun ? what : undefined);
    if (!what || this.stopping === what) return;
    this.stopping = what;
    this.changed();
    try {
      const { heard } = this.speaker;
      const messages = this.queue.onTheirWay.map((message) => ({ message }));
      const named = { turn, shown: turn && heard?.turn === turn ? heard.characters : undefined };
      // Without a name, a stop ends everything, recordings that are being transcribed included.
      const stops = this.listening ? [{}, ...messages] : turn ? [named, ...messages] : messages;
      await Promise.all(stops.map((stop) => api.interrupt(this.session, stop)));
    } catch (error) {
      this.complain(`Not stopped: ${error.message}`);
    }
    this.stopping = "";
    this.changed();
  }

  /** Be silent, and return how much of the last reply was heard; null when it was not spoken. */
  #heard() {
    this.speaker.cut();
    return this.speaker.heard;
  }

  async #leave(id, text, post, again) {
    try {
      const receipt = await post();
      if (receipt.state === "started" && receipt.turn && !this.conversation.turns.has(receipt.turn)) this.begun = receipt.turn;
      if (!receipt.turn && receipt.state === "started") this.conversation.remark(`› ${text}`, "command");
      await this.queue.refresh();
      this.queue.sent(id);
      announce(`Your message: ${receiptWords(receipt)}`);
    } catch (error) {
      if (!(error instanceof api.ApiError)) throw error;
      this.#notSent(id, text, error, again);
    }
    this.changed();
  }

  #notSent(id, text, error, again) {
    const isAway = error.status === 0 || error.status === 401 || error.status >= 502;
    if (this.isClosed) {
      keepDraft(this.session, text);
      this.complain(`A message for ${this.session} was not sent: ${error.message} It is in its message field.`);
    } else if (isAway) {
      this.queue.failed(id, `Not sent: ${error.message}`, again);
    } else {
      this.queue.sent(id);
      if (!find("input").value && !text.startsWith("🎙️")) find("input").value = text;
      this.complain(error.message);
    }
  }
}
