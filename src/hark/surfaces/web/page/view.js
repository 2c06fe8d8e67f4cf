// The open session: its event stream, its conversation, its queue, and the messages that are sent to it.

import * as api from "./api.js";
import { addToDraft } from "./composer.js";
import { Conversation } from "./conversation.js";
import { announce, find, setText } from "./dom.js";
import { QueuePanel } from "./queue.js";
import { EventStream } from "./stream.js";
import { formatReceipt, shortTurnName } from "./format.js";

const QUEUE_EVENTS = ["receipt", "turn.started", "turn.ended"];

export class SessionView {
  /** `showProblem(text)` shows an error, `sessions` is the session list, and `speaker` speaks replies. */
  constructor(session, { showProblem, sessions, speaker }) {
    this.session = session;
    this.showProblem = showProblem;
    this.sessions = sessions;
    this.speaker = speaker;
    this.texts = new Map();
    this.authors = new Map();
    this.files = new Map();
    this.stopping = "";
    this.startedTurn = ""; // the turn of the last message, until its event arrives
    this.targetTurn = "";
    this.transcribing = 0; // recordings that the server is transcribing
    this.isClosed = false;
    this.lastSend = Promise.resolve(); // messages are sent one after another, so that they arrive in order
    this.queue = new QueuePanel(session, this.texts, showProblem);
    this.conversation = new Conversation(find("log"), this);
    this.stream = new EventStream(session, this);
  }

  close() {
    this.isClosed = true;
    this.speaker.stop();
    this.stream.close();
    this.queue.close();
    this.conversation.close();
  }

  resync() {
    return this.stream.resync();
  }

  show(transcript, queue) {
    localStorage.setItem("hark-session", this.session);
    this.queue.showItems(queue);
    this.conversation.showTranscript(transcript);
    this.startedTurn = "";
    if (this.targetTurn) this.scrollToTurn(this.targetTurn);
    this.updateControls();
    this.sessions.refreshSoon();
  }

  handleEvent(event) {
    this.conversation.handleEvent(event);
    if (event.type === "turn.started") this.startedTurn = "";
    this.speaker.handleEvent(event);
    if (QUEUE_EVENTS.includes(event.type)) {
      this.queue.refresh();
      this.sessions.refreshSoon();
    }
    this.updateControls();
  }

  setConnectionLost(isLost) {
    if (this.isClosed) return;
    find("connection").hidden = !isLost;
    if (isLost) return;
    this.queue.retryFailed();
    this.sessions.refreshSoon();
  }

  showRefusal(text) {
    this.conversation.addLine(text, "problem");
  }

  /** Scroll to a turn, as soon as it is shown. */
  scrollToTurn(turn) {
    this.targetTurn = this.conversation.turns.has(turn) ? "" : turn;
    this.conversation.scrollToTurn(turn);
  }

  /** Update the Stop button, the activity text and the other controls. */
  updateControls() {
    if (this.isClosed) return;
    const turn = this.conversation.running;
    const [sending] = this.queue.sendingIds;
    const isStopping = this.stopping !== "" && this.stopping === this.#stopTarget();
    const { isSpeaking } = this.speaker;
    const target = turn ? shortTurnName(turn.id) : this.transcribing ? "transcribing" : sending ? "sending" : "speaking";
    const stop = find("stop");
    stop.hidden = !this.#stopTarget() && !isSpeaking;
    stop.disabled = isStopping;
    setText(stop, isStopping ? "Stopping…" : `■ Stop ${target}`);
    const hasQuestion = this.conversation.question !== null;
    setText(find("activity"), turn ? (hasQuestion ? "Waiting for your answer" : "Working") : this.transcribing ? "Transcribing" : isSpeaking ? "Speaking" : "");
    find("steer").hidden = find("queue-message").hidden = turn === null;
    find("latest").hidden = this.conversation.isFollowing;
  }

  /** Send the text of the message field: to the open question if the text answers it, otherwise as a message. */
  async sendInput(text, delivery, files) {
    const question = delivery || files.length ? null : this.conversation.answerableQuestion;
    if (!question) return this.send(text, delivery, files);
    if (question.isOpen && !question.isReadable) return this.#returnText(text, "A question has just appeared. Press Enter again to send your text.");
    try {
      await question.answerInput(text);
    } catch (error) {
      if (!(error instanceof api.ApiError)) throw error;
      if (error.code === "not_an_answer") this.send(text, delivery, files);
      else this.#returnText(text, error.message);
    }
  }

  /** Put a text that was not sent back into the message field. */
  #returnText(text, reason) {
    const input = find("input");
    input.value = [text, input.value].filter(Boolean).join("\n");
    this.showProblem(reason);
  }

  /** Send a message. The page shows it as waiting until the server has it. */
  send(text, delivery, files, id = api.newId()) {
    this.queue.addSending(id, text);
    if (/^\/btw\s+(?!stop$)/i.test(text)) this.conversation.openSideQuestions++;
    this.updateControls();
    this.conversation.isFollowing = true;
    this.conversation.scrollToEnd();
    if (files.length) this.files.set(id, files.map(({ name, media_type }) => ({ name, media_type })));
    const attachments = files.map(({ media_type, name, data }) => ({ media_type, name, data }));
    const shown = delivery === "queue" ? null : this.#stopSpeaking();
    const message = { id, text, ...(delivery && { delivery }), ...(attachments.length && { attachments }), ...(shown && { shown }) };
    this.lastSend = this.lastSend.then(() => this.#post(id, text, () => api.postMessage(this.session, message), () => this.send(text, delivery, files, id)));
  }

  /** Continue an interrupted turn. */
  continueTurn(turn) {
    this.send(`/continue ${turn}`, "", []);
  }

  /** The id of the open question if it could be read, else "". */
  get readableQuestion() {
    const { question } = this.conversation;
    return question?.isReadable ? question.id : "";
  }

  /** Send a recording. Its transcript answers `question` or arrives as a message. A refused answer returns to the message field. */
  async sendRecording(audio, question, id = api.newId()) {
    const text = "🎙️ Voice message";
    const shown = this.#stopSpeaking();
    this.transcribing++;
    this.queue.addSending(id, text);
    this.updateControls();
    const post = async () => {
      const receipt = await api.postVoiceMessage(this.session, id, audio, question, shown);
      if (receipt.text) this.#returnText(receipt.text, "Your recording did not answer the question. Its text is in the message field.");
      return receipt;
    };
    await this.#post(id, text, post, () => this.sendRecording(audio, question, id));
    this.transcribing--;
    this.updateControls();
  }

  /** The target of a stop: the running turn, a recording that is being transcribed, or a message that is being sent. */
  #stopTarget() {
    return this.conversation.running?.id ?? (this.transcribing ? "voice" : this.queue.sendingIds[0] ?? this.startedTurn);
  }

  /** Stop the open side questions; if there are none, stop the running turn and the messages that are being sent, which may reach the server after the stop. */
  async stop() {
    this.speaker.stop();
    if (this.conversation.openSideQuestions) return void this.send("/btw stop", "", []);
    const target = this.#stopTarget();
    const turn = this.conversation.running?.id ?? (target === this.startedTurn ? target : undefined);
    if (!target || this.stopping === target) return;
    this.stopping = target;
    this.updateControls();
    try {
      const { progress } = this.speaker;
      const messages = this.queue.sendingIds.map((message) => ({ message }));
      const turnStop = { turn, shown: turn && progress?.turn === turn ? progress.characters : undefined };
      // A stop without a turn or message stops everything, including recordings that are being transcribed.
      const stops = this.transcribing ? [{}, ...messages] : turn ? [turnStop, ...messages] : messages;
      await Promise.all(stops.map((stop) => api.interrupt(this.session, stop)));
    } catch (error) {
      this.showProblem(`Not stopped: ${error.message}`);
    }
    this.stopping = "";
    this.updateControls();
  }

  /** Stop speaking. Return how much of the last reply was spoken, or null if it was not stopped. */
  #stopSpeaking() {
    this.speaker.stop();
    return this.speaker.progress;
  }

  async #post(id, text, request, retry) {
    try {
      const receipt = await request();
      if (receipt.state === "started" && receipt.turn && !this.conversation.turns.has(receipt.turn)) this.startedTurn = receipt.turn;
      if (!receipt.turn && receipt.state === "started") this.conversation.addLine(`› ${text}`, "command");
      // A response can arrive after the end of its turn, when the reply has been announced.
      const hasEnded = this.conversation.turns.get(receipt.turn)?.isRunning === false;
      if (!hasEnded) announce(`Your message: ${formatReceipt(receipt)}`);
      await this.queue.refresh();
      this.queue.removeSending(id);
    } catch (error) {
      if (!(error instanceof api.ApiError)) throw error;
      this.#onSendError(id, text, error, retry);
    }
    this.updateControls();
  }

  #onSendError(id, text, error, retry) {
    const isUnreachable = error.status === 0 || error.status === 401 || error.status >= 502;
    if (this.isClosed) {
      addToDraft(this.session, text);
      this.showProblem(`A message to ${this.session} was not sent: ${error.message} Its text is in that session's message field.`);
    } else if (isUnreachable) {
      this.queue.markFailed(id, `Not sent yet: ${error.message}`, retry);
    } else {
      this.queue.removeSending(id);
      if (!find("input").value && !text.startsWith("🎙️")) find("input").value = text;
      this.showProblem(error.message);
    }
  }
}
