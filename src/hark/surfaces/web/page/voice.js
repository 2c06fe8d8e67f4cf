// Voice: record, send, and show how long it has been; the words come back as a message like any other.

import * as api from "./api.js";
import { find, setText } from "./dom.js";

const TYPES = ["audio/webm;codecs=opus", "audio/ogg;codecs=opus", "audio/mp4"];

export class VoiceRecorder {
  constructor({ session, complain }) {
    this.session = session;
    this.complain = complain;
    this.recorder = null;
    this.pieces = [];
    this.timer = 0;
    this.isKept = true;
    this.button = find("record");
    this.status = find("recording");
    this.button.hidden = !navigator.mediaDevices || !window.MediaRecorder;
    this.button.addEventListener("click", () => (this.recorder ? this.stop(true) : this.start()));
  }

  get isRecording() {
    return this.recorder !== null;
  }

  async start() {
    let microphone;
    try {
      microphone = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch (error) {
      return this.complain(`The microphone can't be used: ${error.message}.`);
    }
    if (this.recorder) return microphone.getTracks().forEach((track) => track.stop());
    const session = this.session(); // what is said is for the session that was open then
    const recorder = new MediaRecorder(microphone, { mimeType: TYPES.find((type) => MediaRecorder.isTypeSupported(type)) });
    this.recorder = recorder;
    this.pieces = [];
    this.isKept = true;
    const began = Date.now();
    recorder.addEventListener("dataavailable", (event) => this.pieces.push(event.data));
    recorder.addEventListener("stop", () => this.#over(microphone, session, recorder.mimeType));
    recorder.start();
    this.#show(true);
    this.timer = setInterval(() => setText(this.status, `recording ${Math.round((Date.now() - began) / 1000)} s · Esc drops it`), 200);
  }

  /** End the recording, and send it or not. */
  stop(isKept) {
    this.isKept = isKept;
    this.recorder?.stop();
  }

  #over(microphone, session, type) {
    for (const track of microphone.getTracks()) track.stop();
    clearInterval(this.timer);
    this.recorder = null;
    this.#show(false);
    setText(this.status, "");
    if (this.isKept) this.#send(session, new Blob(this.pieces, { type }));
  }

  async #send(session, audio) {
    setText(this.status, "listening …");
    try {
      await api.voice(session, api.newId(), audio);
    } catch (error) {
      this.complain(error.message);
    } finally {
      if (!this.recorder) setText(this.status, "");
    }
  }

  #show(isOn) {
    this.button.classList.toggle("on", isOn);
    this.button.setAttribute("aria-pressed", String(isOn));
    this.button.setAttribute("aria-label", isOn ? "Send the recording" : "Record a voice message");
  }
}
