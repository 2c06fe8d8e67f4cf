// Speaks replies sentence by sentence while they stream, if the user turned this on. Stops as soon as the user acts.

import * as api from "./api.js";
import { find } from "./dom.js";
import { SentenceSplitter } from "./sentence_splitter.js";

const STORAGE_KEY = "hark-speak";
const MAX_PREFETCHED = 3; // sentences whose audio is requested in advance

export class Speaker {
  /** `onChange()` is called when speech starts or stops; `showProblem(text)` shows an error. */
  constructor({ onChange, showProblem }) {
    this.callbacks = { onChange, showProblem };
    this.isOn = localStorage.getItem(STORAGE_KEY) === "yes";
    this.player = new Audio();
    this.turn = "";
    this.step = 0;
    this.splitter = new SentenceSplitter();
    this.pending = []; // sentences to play, the current one first: { step, text, start, end, audio }
    this.aborter = new AbortController();
    this.stoppedAt = null; // { turn, step, characters }: where speech was stopped
    this.finishPlaying = () => {};
    this.button = find("speak-replies");
    this.button.addEventListener("click", () => this.#setOn(!this.isOn));
    this.#updateButton();
  }

  get isSpeaking() {
    return this.pending.length > 0;
  }

  /** Speak the text of an event. */
  handleEvent(event) {
    if (!this.isOn) return;
    switch (event.type) {
      case "turn.started": return this.#startTurn(event.turn);
      case "step.started": return this.#startStep();
      case "reply.restarted": return this.#restartStep();
      case "reply.delta":
        if (event.turn !== this.turn) this.#startTurn(event.turn);
        return this.#enqueue(this.splitter.add(event.text));
      case "turn.ended":
        if (event.outcome.type === "completed") this.#enqueue(this.splitter.end());
        else this.stop();
    }
  }

  /** Stop speaking for the rest of this turn. */
  stop() {
    if (!this.isOn || !this.turn || this.stoppedAt?.turn === this.turn) return;
    const spoken = this.splitter.text.slice(0, this.#spokenLength());
    this.stoppedAt = { turn: this.turn, step: this.step, characters: Array.from(spoken).length }; // code points, as the server counts
    this.#silence();
  }

  /** How much of the last reply was spoken before it was stopped: { turn, characters }. Null if it was not stopped. */
  get progress() {
    if (this.stoppedAt === null) return null;
    return { turn: this.stoppedAt.turn, characters: this.stoppedAt.step === this.step ? this.stoppedAt.characters : 0 };
  }

  #startTurn(turn) {
    this.#enqueue(this.splitter.end());
    this.turn = turn;
    this.step = 0;
    this.stoppedAt = null;
    this.splitter = new SentenceSplitter();
  }

  #startStep() {
    this.#enqueue(this.splitter.end());
    this.step++;
    this.splitter = new SentenceSplitter();
  }

  /** Discard the sentences of this step, whose reply starts again. */
  #restartStep() {
    const [current] = this.pending;
    if (current?.step === this.step) this.#silence();
    else this.pending = this.pending.filter((sentence) => sentence.step !== this.step);
    this.splitter = new SentenceSplitter();
  }

  #enqueue(sentences) {
    if (this.stoppedAt?.turn === this.turn) return;
    const wasSilent = !this.pending.length;
    for (const sentence of sentences) this.pending.push({ ...sentence, step: this.step, audio: null });
    if (wasSilent && this.pending.length) this.#playPending(this.aborter.signal);
  }

  async #playPending(signal) {
    this.callbacks.onChange();
    while (this.pending.length) {
      const [current] = this.pending;
      for (const sentence of this.pending.slice(0, MAX_PREFETCHED)) sentence.audio ??= this.#synthesize(sentence, signal);
      const audio = await current.audio;
      if (signal.aborted) return;
      if (audio) await this.#play(audio, signal);
      if (signal.aborted) return;
      this.pending.shift();
    }
    this.callbacks.onChange();
  }

  async #synthesize(sentence, signal) {
    try {
      return await api.synthesizeSpeech(sentence.text, signal);
    } catch (error) {
      if (signal.aborted) return null;
      this.#setOn(false);
      this.callbacks.showProblem(error.message);
      return null;
    }
  }

  #play(audio, signal) {
    const url = URL.createObjectURL(audio);
    return new Promise((resolve) => {
      this.finishPlaying = () => { URL.revokeObjectURL(url); resolve(); };
      this.player.onended = this.player.onerror = this.finishPlaying;
      this.player.src = url;
      this.player.play().catch((error) => {
        if (!signal.aborted) this.callbacks.showProblem(`The reply can't be played: ${error.message}`);
        this.finishPlaying();
      });
    });
  }

  /** Return how much of the running step was spoken, up to the last complete word. */
  #spokenLength() {
    const [sentence] = this.pending;
    if (!sentence) return this.splitter.position;
    if (sentence.step !== this.step) return 0;
    const { currentTime, duration } = this.player;
    const share = duration > 0 && !this.player.ended && this.player.currentSrc ? Math.min(1, currentTime / duration) : 0;
    const reached = sentence.start + Math.floor((sentence.end - sentence.start) * share);
    const space = this.splitter.text.lastIndexOf(" ", reached);
    return reached === sentence.end ? reached : Math.max(sentence.start, space);
  }

  #silence() {
    this.aborter.abort();
    this.aborter = new AbortController();
    this.pending = [];
    this.player.pause();
    this.finishPlaying();
    this.player.removeAttribute("src");
    this.callbacks.onChange();
  }

  #setOn(isOn) {
    this.isOn = isOn;
    localStorage.setItem(STORAGE_KEY, isOn ? "yes" : "no");
    this.#silence();
    this.turn = "";
    this.stoppedAt = null;
    this.splitter = new SentenceSplitter();
    this.#updateButton();
  }

  #updateButton() {
    this.button.classList.toggle("on", this.isOn);
    this.button.setAttribute("aria-pressed", String(this.isOn));
  }
}
