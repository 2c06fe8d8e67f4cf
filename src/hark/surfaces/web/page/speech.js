// Replies aloud, where the person wants it: sentence by sentence while they stream, and cut the instant the person speaks up.

import * as api from "./api.js";
import { find } from "./dom.js";
import { Sentences } from "./sentence_splitter.js";

const KEPT = "hark-speak";
const AHEAD = 3; // sentences that are made before they are needed

export class Speaker {
  /** `changed()` is called when sound begins or ends; `complain(text)` tells what went wrong. */
  constructor({ changed, complain }) {
    this.act = { changed, complain };
    this.isOn = localStorage.getItem(KEPT) === "yes";
    this.sound = new Audio();
    this.turn = "";
    this.step = 0;
    this.sentences = new Sentences();
    this.line = []; // what is to be heard: { step, text, start, end, audio }
    this.aborter = new AbortController();
    this.mark = null; // { turn, step, characters }: where the sound was cut
    this.release = () => {};
    this.button = find("speak");
    this.button.addEventListener("click", () => this.#turn(!this.isOn));
    this.#show();
  }

  get isSounding() {
    return this.line.length > 0;
  }

  /** Say aloud what an event brings. */
  take(event) {
    if (!this.isOn) return;
    switch (event.type) {
      case "turn.started": return this.#begin(event.turn);
      case "step.started": return this.#next();
      case "reply.restarted": return this.#again();
      case "reply.delta":
        if (event.turn !== this.turn) this.#begin(event.turn);
        return this.#queue(this.sentences.add(event.text));
      case "turn.ended":
        if (event.outcome.type === "completed") this.#queue(this.sentences.end());
        else this.cut();
    }
  }

  /** Be silent, now, and for the rest of this turn. */
  cut() {
    if (!this.isOn || !this.turn || this.mark?.turn === this.turn) return;
    const heard = this.sentences.text.slice(0, this.#heard());
    this.mark = { turn: this.turn, step: this.step, characters: Array.from(heard).length }; // as the server counts
    this.#silence();
  }

  /** How much of the last reply was heard before it was cut: { turn, characters }; null when it was not cut. */
  get heard() {
    if (this.mark === null) return null;
    return { turn: this.mark.turn, characters: this.mark.step === this.step ? this.mark.characters : 0 };
  }

  #begin(turn) {
    this.#queue(this.sentences.end());
    this.turn = turn;
    this.step = 0;
    this.mark = null;
    this.sentences = new Sentences();
  }

  #next() {
    this.#queue(this.sentences.end());
    this.step++;
    this.sentences = new Sentences();
  }

  /** What this step said is taken back: it comes again. */
  #again() {
    const [first] = this.line;
    if (first?.step === this.step) this.#silence();
    else this.line = this.line.filter((piece) => piece.step !== this.step);
    this.sentences = new Sentences();
  }

  #queue(pieces) {
    if (this.mark?.turn === this.turn) return;
    const isAtRest = !this.line.length;
    for (const piece of pieces) this.line.push({ ...piece, step: this.step, audio: null });
    if (isAtRest && this.line.length) this.#play(this.aborter.signal);
  }

  async #play(signal) {
    this.act.changed();
    while (this.line.length) {
      const [piece] = this.line;
      for (const one of this.line.slice(0, AHEAD)) one.audio ??= this.#spoken(one, signal);
      const audio = await piece.audio;
      if (signal.aborted) return;
      if (audio) await this.#hear(audio, signal);
      if (signal.aborted) return;
      this.line.shift();
    }
    this.act.changed();
  }

  async #spoken(piece, signal) {
    try {
      return await api.speech(piece.text, signal);
    } catch (error) {
      if (signal.aborted) return null;
      this.#turn(false);
      this.act.complain(error.message);
      return null;
    }
  }

  #hear(audio, signal) {
    const address = URL.createObjectURL(audio);
    return new Promise((resolve) => {
      this.release = () => { URL.revokeObjectURL(address); resolve(); };
      this.sound.onended = this.sound.onerror = this.release;
      this.sound.src = address;
      this.sound.play().catch((error) => {
        if (!signal.aborted) this.act.complain(`The reply can't be played: ${error.message}`);
        this.release();
      });
    });
  }

  /** How many characters of the running step were heard, to the last whole word. */
  #heard() {
    const [piece] = this.line;
    if (!piece) return this.sentences.place;
    if (piece.step !== this.step) return 0;
    const { currentTime, duration } = this.sound;
    const share = duration > 0 && !this.sound.ended && this.sound.currentSrc ? Math.min(1, currentTime / duration) : 0;
    const reached = piece.start + Math.floor((piece.end - piece.start) * share);
    const space = this.sentences.text.lastIndexOf(" ", reached);
    return reached === piece.end ? reached : Math.max(piece.start, space);
  }

  #silence() {
    this.aborter.abort();
    this.aborter = new AbortController();
    this.line = [];
    this.sound.pause();
    this.release();
    this.sound.removeAttribute("src");
    this.act.changed();
  }

  #turn(isOn) {
    this.isOn = isOn;
    localStorage.setItem(KEPT, isOn ? "yes" : "no");
    this.#silence();
    this.turn = "";
    this.mark = null;
    this.sentences = new Sentences();
    this.#show();
  }

  #show() {
    this.button.classList.toggle("on", this.isOn);
    this.button.setAttribute("aria-pressed", String(this.isOn));
  }
}
