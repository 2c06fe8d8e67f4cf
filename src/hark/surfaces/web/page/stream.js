// Follows a session: loads its transcript, then its events from exactly there, and reconnects after every disconnect.

import * as api from "./api.js";

const LOST_AFTER_MS = 1500;
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 5000;
const HIDDEN_MS = 60000;
const EVENT_TYPES = [
  "message.accepted", "receipt", "turn.started", "step.started", "reply.delta", "reply.restarted", "reasoning.delta",
  "call.started", "call.output", "call.ended", "question.asked", "question.closed", "route.changed", "notice", "turn.ended",
];

/** The event stream of one session. `reader` has show(transcript, queue), handleEvent(event), setConnectionLost(isLost) and showRefusal(text). */
export class EventStream {
  constructor(session, reader) {
    this.session = session;
    this.reader = reader;
    this.seq = null;
    this.buffered = null; // events that arrive while the transcript is loading, otherwise null
    this.source = null;
    this.isClosed = false;
    this.isReady = false;
    this.retries = 0;
    this.retryTimer = 0;
    this.lostTimer = 0;
    this.hiddenTimer = 0;
    this.onVisibilityChange = () => this.#onVisibilityChange();
    document.addEventListener("visibilitychange", this.onVisibilityChange);
    this.#connect();
  }

  close() {
    this.isClosed = true;
    document.removeEventListener("visibilitychange", this.onVisibilityChange);
    for (const timer of [this.retryTimer, this.lostTimer, this.hiddenTimer]) clearTimeout(timer);
    this.source?.close();
  }

  /** Connect again immediately, such as after a login. */
  reconnect() {
    this.#connect();
  }

  /** Load the transcript and the queue again. Events that arrive during the load are handled after it. */
  async resync() {
    const buffered = (this.buffered = []);
    try {
      // The queue is loaded second: an event after the transcript's `seq` reports each message that leaves it in between.
      const transcript = await api.getTranscript(this.session);
      const { queue } = await api.getQueue(this.session);
      if (this.isClosed || this.buffered !== buffered) return;
      this.seq = transcript.seq;
      this.buffered = null;
      this.isReady = true;
      this.reader.show(transcript, queue);
      for (const event of buffered) this.#handleEvent(event);
    } catch (error) {
      if (this.isClosed || this.buffered !== buffered) return;
      if (!(error instanceof api.ApiError)) throw error;
      this.isReady = false;
      if (error.status !== 401) this.#retry(); // the login reconnects
    }
  }

  #connect() {
    this.source?.close();
    clearTimeout(this.retryTimer);
    // Without a `seq` the stream opens before the transcript is loaded, so that no event is missed.
    const source = (this.source = new EventSource(api.eventsPath(this.session, this.isReady ? this.seq : null)));
    source.addEventListener("open", () => this.#onOpen());
    source.addEventListener("error", () => this.#onError(source));
    for (const type of EVENT_TYPES) source.addEventListener(type, (message) => this.#handleEvent(JSON.parse(message.data)));
  }

  #onOpen() {
    this.retries = 0;
    clearTimeout(this.lostTimer);
    this.lostTimer = 0;
    this.reader.setConnectionLost(false);
    if (!this.isReady || this.seq === null) this.resync();
  }

  async #onError(source) {
    if (this.isClosed || source !== this.source) return;
    source.close(); // the page reconnects itself, because browsers don't after an error response
    this.#retry();
    if (!navigator.onLine) return;
    const error = await api.getQueue(this.session).then(() => null, (failure) => failure);
    if (!error || error.status < 400 || error.status >= 500) return;
    clearTimeout(this.retryTimer); // if a login is needed, it reconnects
    clearTimeout(this.lostTimer);
    this.lostTimer = 0;
    if (error.status !== 401) this.reader.showRefusal(error.message);
  }

  #retry() {
    this.lostTimer ||= setTimeout(() => this.reader.setConnectionLost(true), LOST_AFTER_MS);
    clearTimeout(this.retryTimer);
    this.retryTimer = setTimeout(() => this.#connect(), Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** this.retries++));
  }

  #handleEvent(event) {
    if (event.type === "notice" && event.code === "resync") return void this.resync();
    if (this.buffered !== null) return void this.buffered.push(event);
    if (this.seq !== null && event.seq <= this.seq) return;
    this.seq = event.seq;
    this.reader.handleEvent(event);
  }

  /** Close the connection of a page that stays hidden, because browsers allow few connections per server. */
  #onVisibilityChange() {
    clearTimeout(this.hiddenTimer);
    if (document.hidden) this.hiddenTimer = setTimeout(() => this.source.close(), HIDDEN_MS);
    else if (this.source.readyState === EventSource.CLOSED) this.#connect();
  }
}
