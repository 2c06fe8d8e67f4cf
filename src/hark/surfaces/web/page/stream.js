// Following a session: its transcript, then its events exactly from there on, through every disconnect.

import * as api from "./api.js";

const LOST_AFTER_MS = 1500;
const FIRST_RETRY_MS = 500;
const MOST_RETRY_MS = 5000;
const HIDDEN_MS = 60000;
const TYPES = [
  "message.accepted", "receipt", "turn.started", "step.started", "reply.delta", "reply.restarted", "reasoning.delta",
  "call.started", "call.output", "call.ended", "question.asked", "question.closed", "route.changed", "notice", "turn.ended",
];

/** One session's stream. `reader` has open(transcript, queue), take(event), lost(is_lost) and refused(why). */
export class Stream {
  constructor(session, reader) {
    this.session = session;
    this.reader = reader;
    this.seq = null;
    this.held = null; // events that wait for the transcript, null when none must wait
    this.source = null;
    this.isClosed = false;
    this.isReady = false;
    this.retries = 0;
    this.retryTimer = 0;
    this.lostTimer = 0;
    this.hiddenTimer = 0;
    this.onSeen = () => this.#seen();
    document.addEventListener("visibilitychange", this.onSeen);
    this.#connect();
  }

  close() {
    this.isClosed = true;
    document.removeEventListener("visibilitychange", this.onSeen);
    for (const timer of [this.retryTimer, this.lostTimer, this.hiddenTimer]) clearTimeout(timer);
    this.source?.close();
  }

  /** Try at once: there was a login. */
  wake() {
    this.#connect();
  }

  /** Read all of it anew; what comes meanwhile waits. */
  async resync() {
    const mine = (this.held = []);
    try {
      // The queue second: what leaves it in between is told by an event behind the transcript's `seq`.
      const transcript = await api.transcript(this.session);
      const { queue } = await api.queue(this.session);
      if (this.isClosed || this.held !== mine) return;
      this.seq = transcript.seq;
      this.held = null;
      this.isReady = true;
      this.reader.open(transcript, queue);
      for (const event of mine) this.#take(event);
    } catch (error) {
      if (this.isClosed || this.held !== mine) return;
      if (!(error instanceof api.ApiError)) throw error;
      this.isReady = false;
      if (error.status !== 401) this.#retry(); // after a login, the page opens all of it anew
    }
  }

  #connect() {
    this.source?.close();
    clearTimeout(this.retryTimer);
    // Without a number to go on from, the events come first, so that none is missed while the transcript is read.
    const source = (this.source = new EventSource(api.eventsPath(this.session, this.isReady ? this.seq : null)));
    source.addEventListener("open", () => this.#opened());
    source.addEventListener("error", () => this.#failed(source));
    for (const type of TYPES) source.addEventListener(type, (message) => this.#take(JSON.parse(message.data)));
  }

  #opened() {
    this.retries = 0;
    clearTimeout(this.lostTimer);
    this.lostTimer = 0;
    this.reader.lost(false);
    if (!this.isReady || this.seq === null) this.resync();
  }

  async #failed(source) {
    if (this.isClosed || source !== this.source) return;
    source.close(); // we come back ourselves: a browser gives up after an answer that was an error
    this.#retry();
    if (!navigator.onLine) return;
    const error = await api.queue(this.session).then(() => null, (failure) => failure);
    if (!error || error.status < 400 || error.status >= 500) return;
    clearTimeout(this.retryTimer); // after a login, the page opens all of it anew
    clearTimeout(this.lostTimer);
    this.lostTimer = 0;
    if (error.status !== 401) this.reader.refused(error.message);
  }

  #retry() {
    this.lostTimer ||= setTimeout(() => this.reader.lost(true), LOST_AFTER_MS);
    clearTimeout(this.retryTimer);
    this.retryTimer = setTimeout(() => this.#connect(), Math.min(MOST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.retries++));
  }

  #take(event) {
    if (event.type === "notice" && event.code === "resync") return void this.resync();
    if (this.held !== null) return void this.held.push(event);
    if (this.seq !== null && event.seq <= this.seq) return;
    this.seq = event.seq;
    this.reader.take(event);
  }

  /** A page that nobody sees gives its connection back after a while: browsers allow only a few to one server. */
  #seen() {
    clearTimeout(this.hiddenTimer);
    if (document.hidden) this.hiddenTimer = setTimeout(() => this.source.close(), HIDDEN_MS);
    else if (this.source.readyState === EventSource.CLOSED) this.#connect();
  }
}
